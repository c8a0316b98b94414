"""A planner out of the node's parameters: policy, prompts, skill sets, engine."""

from __future__ import annotations

import itertools
import json
import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from timely_llm import policies
from timely_llm.core.planner import Planner
from timely_llm.core.robots import Fleet
from timely_llm.engine.config import EngineConfig, Script
from timely_llm.engine.factory import build
from timely_llm.estimation.learned_times import Times
from timely_llm.estimation.presets import PACES
from timely_llm.language.loader import load_skill_set
from timely_llm.language.skills import SkillSet
from timely_llm.paths import data, share
from timely_llm.prompts.template import PLAN_NAMES, PromptTemplate
from timely_llm.protocols.engine import EngineRequest
from timely_llm.ros.declare import ParameterError
from timely_llm.ros.parameters import existing_file, json_object, planner_config
from timely_llm.validation.reader import as_text, file_text, yaml_value

ENGINES = ("vllm", "simulated")
SIMULATED_PACE = "rtx4090-llama3-8b"
_WORD = re.compile(r"\w+|\W", re.ASCII)


def make_planner(values: dict[str, Any]) -> Planner:
    """Build the planner that the parameters describe, and load its model.

    Raises ``ParameterError``, ``UnknownPolicy``, ``FileError``, ``TemplateError`` or an
    ``EngineError``; each text names the parameter or the file.
    """
    policy = policies.get(values["policy"])
    model = model_of(values)
    config = planner_config(values, model)
    pace = pace_of(values)
    prompts = PromptTemplate.resolve(values["prompt_template"], model, _plan_names(values))
    times = Times() if values["learn_times"] else None
    fleet = Fleet(skill_sets(values), session_ids(), times)
    engine = build(_engine_config(values, model, policy, pace))
    return Planner(policy, engine, prompts, fleet, config, PACES.get(pace))


def _plan_names(values: dict[str, Any]) -> str:
    names = str(values["plan_names"])
    if names not in PLAN_NAMES:
        raise ParameterError(
            f"parameter 'plan_names': {names!r} is unknown ({', '.join(PLAN_NAMES)})"
        )
    return names


def session_ids() -> Callable[[], int]:
    """Counts up from a number that no other start of the planner begins with."""
    return itertools.count((secrets.randbits(31) << 32) + 1).__next__


def pace_of(values: dict[str, Any]) -> str:
    """The name of the step times that the engine is slowed down to; empty: its own."""
    if values["engine"] == "simulated" and values["pace"] in ("", "none"):
        values["pace"] = SIMULATED_PACE  # it has no speed of its own
    name = str(values["pace"])
    if name in ("", "none"):
        return ""
    if name not in PACES:
        raise ParameterError(f"parameter 'pace': {name!r} is unknown (none, {', '.join(PACES)})")
    return name


def model_of(values: dict[str, Any]) -> str:
    """Path or name of the model; by default the bundled one."""
    return values["model"] or str(share("models", "tiny_planner"))


def skill_sets(values: dict[str, Any]) -> dict[str, SkillSet]:
    """The kinds known by name, from files and from all ``*.yaml`` of folders."""
    kinds: dict[str, SkillSet] = {}
    for path in _skill_files(values["skill_sets"]):
        skills = load_skill_set(path)
        if skills.kind in kinds:
            raise ParameterError(f"parameter 'skill_sets': {path}: kind {skills.kind!r} is twice")
        kinds[skills.kind] = skills
    return kinds


def _skill_files(given: list[str]) -> Iterator[Path]:
    for name in [name for name in given if name] or [str(share("config", "skills"))]:
        path = Path(name).expanduser()
        if not path.exists():
            raise ParameterError(f"parameter 'skill_sets': there is no {str(path)!r}")
        yield from sorted(path.glob("*.yaml")) if path.is_dir() else [path]


def _engine_config(
    values: dict[str, Any], model: str, policy: policies.Policy, pace: str
) -> EngineConfig:
    if values["engine"] == "simulated":
        script = script_of(Path(values["model"] or data("lrtrace_tasks.json")))
        return EngineConfig(max_batch=values["max_batch"], pace=pace, script=script)
    if values["engine"] != "vllm":
        raise ParameterError(
            f"parameter 'engine': {values['engine']!r} is unknown ({', '.join(ENGINES)})"
        )
    template = existing_file(values, "chat_template")
    return EngineConfig(
        model,
        values["max_batch"],
        native=policy.native,
        priority=policy.priority,
        engine_args=json_object(values, "engine_args"),
        sampling=json_object(values, "sampling"),
        chat_template=file_text(template) if template else None,
        pace=pace,
    )


def script_of(path: Path) -> Script:
    """What the simulated engine answers: from a YAML or JSON file whose ``tasks`` are pairs of
    ``task`` (an instruction) and ``plan``."""
    try:
        tasks = yaml_value(file_text(path))["tasks"]
        plans = {_words(as_text(entry["task"])): as_text(entry["plan"]) for entry in tasks}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ParameterError(f"parameter 'model': {path} is no file of tasks: {error}") from error

    def script(request: EngineRequest) -> list[str]:
        words = _words(request.user or "")
        known = [plan for task, plan in plans.items() if task in words]
        return _WORD.findall(known[0] if known else "l('I do not know how');")

    return script


def _words(text: str) -> str:
    """Prompt templates change case and spaces of an instruction."""
    return " ".join(text.split()).casefold()


def config_text(values: dict[str, Any], planner: Planner) -> str:
    """The latched ``planner_config``: all parameters, the engine and the prompts, as YAML."""
    info = planner.engine.info
    return yaml.safe_dump(
        {
            "parameters": json.loads(json.dumps(values, default=list)),
            "engine": {
                "backend": info.backend,
                "version": info.version,
                "model": info.model,
                "max_batch": info.max_batch,
                "block_size": info.block_size,
                "kv_blocks": info.kv_blocks,
                "max_model_len": info.max_model_len,
                "pace": info.pace,
            },
            "prompt_template": planner.state.prompts.text,
            "kinds": sorted(planner.state.fleet.kinds),
        },
        sort_keys=False,
    )

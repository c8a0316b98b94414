"""The planner node's parameters: names, defaults, units, ranges, and what becomes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from timely_llm.core.config import Limits, PlannerConfig, check_overload
from timely_llm.prompts.doubt import min_logprob
from timely_llm.protocols.utility import PRESETS, TimeUtility, Urgency
from timely_llm.ros.declare import Parameter, ParameterError
from timely_llm.validation import reader


def _preset(urgency: Urgency) -> Parameter:
    preset = PRESETS[urgency]
    return Parameter(
        [preset.ert, preset.alpha, preset.beta],
        f"utility of a goal of urgency {urgency.name}: ert (s), alpha (1/s), beta",
    )


PARAMETERS: dict[str, Parameter] = {
    "policy": Parameter("least_loss", "scheduling policy by name"),
    "engine": Parameter("vllm", "vllm, or simulated (scripted plans; for tests)"),
    "model": Parameter("", "path or name that vLLM loads; empty: the bundled planner"),
    "prompt_template": Parameter("", "jinja2 file; empty: the model's own, else the default"),
    "plan_names": Parameter(
        "auto", "names of skills in plans: short, words, or auto: short if the model has a prompt"
    ),
    "chat_template": Parameter("", "jinja2 chat template file; empty: the tokenizer's, if any"),
    "engine_args": Parameter("", "JSON object of further vLLM engine arguments"),
    "sampling": Parameter("", "JSON object of vLLM sampling parameters"),
    "max_batch": Parameter(8, "plans computed in one engine step", (1, 1024)),
    "max_tokens": Parameter(2048, "tokens of one plan", (1, 1 << 20)),
    "pace": Parameter("none", "preset whose step times the engine is slowed to; none: its own"),
    "autostart": Parameter(True, "configure and activate at start"),
    "skill_sets": Parameter([""], "skill set files or folders of them; empty: the bundled ones"),
    "learn_times": Parameter(True, "learn from robots' reports how long their skills really take"),
    "times_file": Parameter("", "JSON file in which that is kept; empty: it is forgotten"),
    "network": Parameter(0.008, "time a segment takes to its robot, s", (0.0, 60.0)),
    "prefill_chunk": Parameter(
        64, "prompt tokens of a registration computed per step beside running plans", (1, 1 << 20)
    ),
    "ack_timeout": Parameter(2.0, "a segment must be acknowledged within, s", (0.01, 3600.0)),
    "heartbeat_timeout": Parameter(3.0, "a robot silent for longer is lost, s", (0.01, 3600.0)),
    "first_report_timeout": Parameter(
        10.0, "a robot must report for the first time after it registered within, s", (0.01, 3600.0)
    ),
    "stop_timeout": Parameter(5.0, "a robot must confirm a stop within, s", (0.01, 3600.0)),
    "probe_timeout": Parameter(5.0, "the model must answer a probe within, s", (0.01, 3600.0)),
    "engine_timeout": Parameter(
        60.0, "an engine step that takes longer is a failure of the engine, s", (2.0, 3600.0)
    ),
    "min_logprob": Parameter(
        "auto",
        "least mean log probability of a plan before anything moves: a number, none, or auto: what "
        "was calibrated for the model",
    ),
    "overload": Parameter(
        "late", "goals that would be worth nothing when answered: late (served) or refuse"
    ),
    "status_period": Parameter(0.5, "between planner_status messages, s", (0.01, 60.0)),
    "sole_planner": Parameter(False, "refuse to activate while another planner is heard"),
    "web": Parameter("", "HOST:PORT of the fleet's web page, such as 127.0.0.1:8088; empty: none"),
    "max_instruction": Parameter(1000, "characters of an instruction", (1, 1 << 20)),
    "max_scene": Parameter(4000, "characters of a scene", (0, 1 << 20)),
    "max_queue": Parameter(16, "goals that may wait for one robot", (0, 1 << 20)),
    **{
        f"utility.{urgency.name.lower()}": _preset(urgency)
        for urgency in Urgency
        if urgency is not Urgency.UNSPECIFIED
    },
}


def planner_config(values: dict[str, Any], model: str) -> PlannerConfig:
    """The planner's settings out of the parameters' values, for plans of the ``model``."""
    presets = {}
    for urgency in PRESETS:
        name = f"utility.{urgency.name.lower()}"
        numbers = list(values[name])
        if len(numbers) != 3:
            raise ParameterError(f"parameter {name!r}: needs three numbers: ert, alpha, beta")
        try:
            presets[urgency] = TimeUtility(*numbers)
        except ValueError as error:
            raise ParameterError(f"parameter {name!r}: {error}") from error
    try:
        check_overload(values["overload"])
    except ValueError as error:
        raise ParameterError(f"parameter {error}") from error
    try:
        least = min_logprob(str(values["min_logprob"]), model)
    except ValueError as error:
        raise ParameterError(f"parameter 'min_logprob': {error}") from error
    return PlannerConfig(
        limits=Limits(values["max_instruction"], values["max_scene"], values["max_queue"]),
        presets=presets,
        max_tokens=values["max_tokens"],
        prefill_chunk=values["prefill_chunk"],
        network=values["network"],
        ack_timeout=values["ack_timeout"],
        heartbeat_timeout=values["heartbeat_timeout"],
        first_report_timeout=values["first_report_timeout"],
        stop_timeout=values["stop_timeout"],
        probe_timeout=values["probe_timeout"],
        min_logprob=least,
        overload=values["overload"],
    )


def json_object(values: dict[str, Any], name: str) -> dict[str, Any]:
    """A parameter that holds a JSON object; empty is an empty one."""
    try:
        return reader.json_object(values[name].strip() or "{}")
    except ValueError as error:
        raise ParameterError(f"parameter {name!r} {error}") from error


def existing_file(values: dict[str, Any], name: str) -> Path | None:
    """A parameter that names a file; None where it is empty."""
    if not values[name]:
        return None
    path = Path(values[name]).expanduser()
    if not path.is_file():
        raise ParameterError(f"parameter {name!r}: there is no file {str(path)!r}")
    return path

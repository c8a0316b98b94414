"""Profiles: the step times of an engine with a model, as measured, in a YAML file. Pure but for
reading files.

    format: 1
    model: {name: tiny_planner, config: 0f3c9a...}   # config: digest of its config.json
    machine: {processor: ..., cores: 2, threads: 1, load: 0.1}
    engine: {backend: vllm-cpu, version: 0.32.0, max_batch: 16, ..., arguments: '{}'}
    measured: {date: 2026-11-21, steps: 120, seconds: 61.2}
    errors: {all: 0.021, ...}                         # shares, see docs/operations.md
    latency: {decode_ms: [3.1, 3.4], ...}
    planner: {decode_step_ms: 3.2, mean_over_median: 1.05, step_ms: 0.4, goal_ms: 1.1}
    grid: [{batch: 1, prefill: 0, kv: 80, steps: 120, median_ms: 3.1, ...}]
"""

from __future__ import annotations

import hashlib
import json
import os.path
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import yaml

from timely_llm.bench.latency_fit import FitReport, ShapeReport
from timely_llm.estimation.presets import EngineModel
from timely_llm.estimation.step_time import StepLatency
from timely_llm.protocols.engine import EngineInfo
from timely_llm.validation.reader import (
    Entry,
    Fault,
    described_by,
    file_text,
    items,
    json_value,
    number,
    parse_yaml,
    text,
    whole,
)

FORMAT = 1
_LONGEST = 1000.0  # s, of any time in a profile
_MS = number(0, _LONGEST / 1e-3, " ms", 1e-3)
# Terms of the latency by key: field of StepLatency, and what a unit of it is in s.
_TERMS = {
    "per_sequence_ms": ("per_sequence", 1e-3),
    "per_kv_token_us": ("per_kv_token", 1e-6),
    "prefill_alone_ms": ("prefill_alone", 1e-3),
    "prefill_beside_ms": ("prefill_beside", 1e-3),
    "per_prefill_token_us": ("per_prefill_token", 1e-6),
    "per_prefill_square_ns": ("per_prefill_square", 1e-9),
}


_Text = Annotated[str, text(least=0)]
_Short = Annotated[str, text(200, 0)]
_Size = Annotated[int, whole(1, 10**12)]


class ProfileMismatch(ValueError):
    """A profile of one model was to be used with another one."""


@dataclass(frozen=True, slots=True)
class Loop:
    """What the planner's loop makes of an engine whose steps were measured alone, times in s.

    ``decode_step`` is a step at batch 1 in the middle of a plan, by which ``--time-scale auto``
    goes. Steps take ``mean_over_median`` times what was fitted to medians, in the mean, and the
    planner's own ``step``; handing a goal to the engine takes ``goal``.
    """

    decode_step: float
    mean_over_median: float = 1.0
    step: float = 0.0
    goal: float = 0.0


@dataclass(frozen=True, slots=True)
class ProfiledModel(Entry):
    """``config`` is the digest of the model's config.json, empty where it is no folder."""

    name: Annotated[str, text()]
    config: _Short


@dataclass(frozen=True, slots=True)
class ProfiledEngine(Entry):
    """What ran the model, and its sizes in sequences and tokens."""

    backend: Annotated[str, text()]
    version: Any
    grammar: _Short
    arguments: Any
    max_batch: _Size
    kv_tokens: _Size
    block_size: _Size
    max_model_len: _Size
    prefill_chunk: _Size


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile as read from ``path``: the model, the engine, its step times, how well they fit
    (``errors``, shares), and what the planner's loop makes of them."""

    path: str
    model: ProfiledModel
    engine: ProfiledEngine
    latency: StepLatency
    errors: Mapping[str, float]
    loop: Loop

    def check_model(self, model: str) -> None:
        """``ProfileMismatch`` unless this is a profile of ``model``, a folder or a name. Of two
        folders the config.json counts, which fixes how much is computed: weights may differ."""
        name, config = identify(model)
        own = self.model
        same = config == own.config if config and own.config else name == own.name
        if not same:
            raise ProfileMismatch(
                f"profile {self.path} is of model {own.name!r} (config {own.config or 'unknown'}"
                f"), not of {name!r} (config {config or 'unknown'}): make one with "
                f"timely-llm profile --model {model} --out FILE"
            )

    @property
    def engine_model(self) -> EngineModel:
        """The engine in the planner's loop as numbers, for the simulator."""
        loop = self.loop
        return EngineModel(
            name=Path(self.path).stem,
            latency=self.latency.in_loop(loop.mean_over_median, loop.step),
            kv_tokens=self.engine.kv_tokens,
            block_size=self.engine.block_size,
            prefill_chunk=self.engine.prefill_chunk,
            source=self.latency.source,
            decode_step=loop.decode_step,
            submit=loop.goal,
        )


def load(path: str | Path, model: str | None = None) -> EngineModel:
    """The engine that a profile describes. With ``model``, a profile of another one is refused.

    ``FileError`` names line and key, ``ProfileMismatch`` both models; ``OSError`` where the file
    cannot be read.
    """
    profile = load_profile(path)
    if model is not None:
        profile.check_model(model)
    return profile.engine_model


def load_profile(path: str | Path) -> Profile:
    """All that a profile says; errors as ``load``."""
    path = Path(os.path.expanduser(path))
    return read_profile(file_text(path), str(path))


@dataclass(frozen=True, slots=True)
class _Latency(Entry):
    decode_ms: Annotated[tuple[Annotated[float, _MS], ...], items(1)]
    per_sequence_ms: Annotated[float, number(0, _LONGEST / 1e-3, "", 1e-3)]
    per_kv_token_us: Annotated[float, number(0, _LONGEST / 1e-6, "", 1e-6)]
    prefill_alone_ms: Annotated[float, number(0, _LONGEST / 1e-3, "", 1e-3)]
    prefill_beside_ms: Annotated[float, number(0, _LONGEST / 1e-3, "", 1e-3)]
    per_prefill_token_us: Annotated[float, number(0, _LONGEST / 1e-6, "", 1e-6)]
    per_prefill_square_ns: Annotated[float, number(0, _LONGEST / 1e-9, "", 1e-9)]

    def checked(self, context: object) -> StepLatency:
        if not any(self.decode_ms):
            raise Fault("has no time above 0", "decode_ms")
        terms = {field: getattr(self, key) for key, (field, _) in _TERMS.items()}
        return StepLatency(self.decode_ms, **terms)


@dataclass(frozen=True, slots=True)
class _Planner(Entry):
    decode_step_ms: Annotated[float, number(1e-6, _LONGEST / 1e-3, " ms", 1e-3)]
    mean_over_median: Annotated[float, number(0.1, 10.0)]
    step_ms: Annotated[float, _MS]
    goal_ms: Annotated[float, _MS]

    def checked(self, context: object) -> Loop:
        return Loop(self.decode_step_ms, self.mean_over_median, self.step_ms, self.goal_ms)


@dataclass(frozen=True, slots=True)
class _File(Entry):
    format: Annotated[float, number(0, 1e6)]
    model: ProfiledModel
    machine: Mapping[str, _Text]
    engine: ProfiledEngine
    measured: Mapping[str, _Text]
    errors: Mapping[str, Annotated[float, number(0, 1e6)]]
    latency: Annotated[StepLatency, described_by(_Latency)]
    grid: Any
    planner: Annotated[Loop | None, described_by(_Planner)] = None

    def checked(self, context: object) -> _File:
        if self.format != FORMAT:
            raise Fault(f"is {self.format:g}: this version reads {FORMAT}", "format")
        if not self.measured.get("date"):
            raise Fault("'date' is missing", "measured")
        return self


def read_profile(content: str, source: str = "<profile>") -> Profile:
    """The profile in ``content``; ``source`` names it in errors."""
    file = parse_yaml(content, source).read(_File)
    measured = f"measured on {file.measured['date']} with {file.model.name}: profile {source}"
    latency = replace(file.latency, source=measured)
    loop = file.planner or Loop(latency(1))
    return Profile(source, file.model, file.engine, latency, file.errors, loop)


def identify(model: str) -> tuple[str, str]:
    """Name of a model, and the digest of its config.json where it is a folder that has one."""
    folder = Path(os.path.expanduser(model))
    config = folder / "config.json"
    if not config.is_file():
        return (folder.name if folder.exists() else model), ""
    try:
        text = json.dumps(json_value(config.read_bytes()), sort_keys=True)
    except ValueError as error:
        raise ProfileMismatch(f"{config} is not JSON: {error}") from None
    return folder.resolve().name, hashlib.sha256(text.encode()).hexdigest()[:16]


def write(
    path: str | Path,
    *,
    model: str,
    info: EngineInfo,
    prefill_chunk: int,
    arguments: Mapping[str, object],
    grammar: str,
    machine: Mapping[str, object],
    measured: Mapping[str, object],
    latency: StepLatency,
    report: FitReport,
    loop: Loop,
) -> None:
    """Write a profile."""
    name, config = identify(model)
    text = yaml.safe_dump(
        {
            "format": FORMAT,
            "model": {"name": name, "config": config},
            "machine": dict(machine),
            "engine": {
                "backend": info.backend,
                "version": info.version,
                "max_batch": info.max_batch,
                "kv_tokens": info.kv_blocks * info.block_size,
                "block_size": info.block_size,
                "max_model_len": info.max_model_len,
                "prefill_chunk": prefill_chunk,
                "grammar": grammar,
                "arguments": json.dumps(dict(arguments)),
            },
            "measured": dict(measured),
            "errors": _errors(report),
            "latency": {
                "decode_ms": [_round(time * 1e3) for time in latency.decode],
                **{
                    key: _round(getattr(latency, field) / unit)
                    for key, (field, unit) in _TERMS.items()
                },
            },
            "planner": {
                "decode_step_ms": _round(loop.decode_step * 1e3),
                "mean_over_median": _round(loop.mean_over_median),
                "step_ms": _round(loop.step * 1e3),
                "goal_ms": _round(loop.goal * 1e3),
            },
            "grid": [_grid_line(shape) for shape in report.shapes],
        },
        sort_keys=False,
        default_flow_style=None,
        width=100,
    )
    Path(path).write_text(text, encoding="utf-8")


def _errors(report: FitReport) -> dict[str, float]:
    """Mean absolute percentage errors of held-out steps, as shares."""
    errors = {f"unseen_{kind}": value for kind, value in report.unseen.items()}
    others = ("seen", "floor", "step", "step_floor", "online", "online_floor")
    errors |= {name: getattr(report, name) for name in others}
    return {name: _round(value) for name, value in errors.items()}


def _grid_line(report: ShapeReport) -> dict[str, float]:
    return {
        "batch": report.shape.batch,
        "prefill": _round(report.prefill),
        "kv": _round(report.kv),
        "steps": report.steps,
        "median_ms": _round(report.median * 1e3),
        "mean_ms": _round(report.mean * 1e3),
        "held_out_ms": _round(report.held_out * 1e3),
        "predicted_ms": _round(report.predicted * 1e3),
    }


def _round(value: float) -> float:
    return float(f"{value:.6g}")

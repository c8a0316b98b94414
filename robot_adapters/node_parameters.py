"""The robot node's parameters: names, defaults, units, ranges, and what becomes of them."""

from __future__ import annotations

from typing import Any

from rclpy.node import Node

from robot_adapters.adapter import AdapterParameter, adapter_class
from robot_adapters.executor.executor import Timing
from timely_llm.language.loader import load_skill_set
from timely_llm.language.skills import SkillSet
from timely_llm.paths import share
from timely_llm.ros.declare import Parameter, ParameterError, declare, refuse_unknown

DEFAULT_KIND = "tello"
PROBES = ("robot", "planner")

PARAMETERS: dict[str, Parameter] = {
    "robot_id": Parameter("", "id the planner knows the robot by; empty: the node's namespace"),
    "kind": Parameter("", f"kind of robot; empty: the skill set's, or {DEFAULT_KIND}"),
    "skill_set": Parameter("", "skill set file; empty: the bundled one of the kind"),
    "adapter": Parameter("simulated", "adapter by name, or module:class"),
    "planner_namespace": Parameter("", "namespace of the planner node; empty: the root"),
    "heartbeat_period": Parameter(0.2, "the robot is never silent for longer, s", (0.01, 10.0)),
    "planner_timeout": Parameter(2.0, "a planner silent for longer is lost, s", (0.1, 3600.0)),
    "register_timeout": Parameter(
        15.0, "a robot_id that is taken is asked for again for this long, s", (0.0, 3600.0)
    ),
    "probes": Parameter("robot", "who answers probes: robot, or planner (its model)"),
    "probe_timeout": Parameter(10.0, "a probe must be answered within, s", (0.01, 3600.0)),
    "overtime": Parameter(3.0, "a call may take this many times its expected time", (1.0, 100.0)),
    "patience": Parameter(15.0, "and this much more, s", (0.0, 3600.0)),
}


def declare_all(node: Node) -> tuple[dict[str, Any], dict[str, Any]]:
    """Declare the node's and its adapter's parameters; the values of all, and the adapter's own.

    ``ParameterError`` or ``AdapterError`` names the one that is unknown or out of its range.
    """
    values = declare(node, PARAMETERS)
    known = {p.name: _of_adapter(p) for p in adapter_class(values["adapter"]).PARAMETERS}
    refuse_unknown(node, (*PARAMETERS, *known))
    own = declare(node, known)
    return values | own, own


def _of_adapter(parameter: AdapterParameter) -> Parameter:
    low, high = parameter.minimum, parameter.maximum
    words = parameter.description + (f", {parameter.unit}" if parameter.unit else "")
    limits = (low, high) if low is not None and high is not None else None
    return Parameter(parameter.default, words, limits)


def names(values: dict[str, Any], namespace: str) -> tuple[str, str]:
    """The robot's id, and the namespace of its topics."""
    robot_id = values["robot_id"] or namespace.strip("/")
    if not robot_id:
        raise ParameterError("parameter 'robot_id': must be given where the node has no namespace")
    return robot_id, f"/{robot_id}" if namespace == "/" else namespace


def skill_set(values: dict[str, Any]) -> tuple[str, SkillSet]:
    """The text to register with (empty: the planner knows the kind), and the skills.

    Raises ``ParameterError``, ``FileError`` (it names file, line and field) or ``OSError``.
    """
    kind, path = values["kind"], values["skill_set"]
    if path:
        skills = load_skill_set(path)
        if kind not in ("", skills.kind):
            raise ParameterError(
                f"parameter 'kind' is {kind!r}, but the skill set's is {skills.kind!r}"
            )
        return skills.text, skills
    file = share("config", "skills", f"{kind or DEFAULT_KIND}.yaml")
    if not file.is_file():
        known = ", ".join(sorted(other.stem for other in file.parent.glob("*.yaml")))
        raise ParameterError(
            f"parameter 'kind': {kind!r} has no bundled skill set (known: {known}); "
            "give one with 'skill_set'"
        )
    return "", load_skill_set(file)


def timing(values: dict[str, Any]) -> Timing:
    """The executor's times."""
    same = ("heartbeat_period", "planner_timeout", "probe_timeout", "overtime", "patience")
    return Timing(**{name: values[name] for name in same})


def asks_model(values: dict[str, Any]) -> bool:
    """Whether probes go to the planner's model."""
    if values["probes"] not in PROBES:
        raise ParameterError(f"parameter 'probes': {values['probes']!r} is none of {PROBES}")
    return values["probes"] == "planner"

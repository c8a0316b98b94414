"""Who computes in the next engine step: the policies, and all that one is written with.

``docs/policies.md`` shows how to write one. ``batch`` has what policies share, such as ``fill``.
"""

from timely_llm.policies.base import Choose, Decision, EngineState, View
from timely_llm.policies.registry import Policy, UnknownPolicy, get, names, register

__all__ = [
    "Choose",
    "Decision",
    "EngineState",
    "Policy",
    "UnknownPolicy",
    "View",
    "get",
    "names",
    "register",
]

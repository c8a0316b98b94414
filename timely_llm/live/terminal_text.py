"""What ``timely-llm top`` says, as text with colours; from the values of ``live/view.py``."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from timely_llm.live.kept import LARGEST

_GOOD = ("alive", "done")
_PLAIN = (
    *("normal", "low", "background", "sent", "accepted", "queued", "suspended", "written"),
    *("evicted", "returned", "replanning"),
)
_STYLES = {"urgent": "bold dark_orange", "writing": "bold cyan", "critical": "bold red"}
_SEGMENTS = {
    **{"running": "bold reverse", "done": "dim", "sent": ""},
    **{"failed": "bold red", "dropped": "dim strike"},
}
_BAR = 12  # characters


def colour_of(word: str) -> str:
    """The style of a state, an urgency or a result: red is what somebody should look at."""
    if word in _PLAIN:
        return ""
    return "green" if word in _GOOD else _STYLES.get(word, "bold red")


def planner_text(planner: dict[str, Any], where: str) -> Text:
    """One line on the planner; ``where`` is empty or " in /NAMESPACE"."""
    text = Text.assemble(("timely_llm fleet", "bold"), where, "   ")
    if planner["state"] == "unheard":
        return text.append("no planner heard yet", style="bold red")
    if planner["state"] == "silent":
        text.append(f"the planner is silent for {planner['silent_s']:.0f} s   ", style="bold red")
    pace = f" · paced to {planner['pace']}" if planner["pace"] else ""
    return text.append(
        f"policy {planner['policy']} · {planner['model']} · {planner['engine']}{pace}"
    )


def engine_text(engine: dict[str, Any]) -> Text:
    """What the engine does, in one line."""
    if not engine:
        return Text()
    full = min(_BAR, round(_BAR * engine["kv_share"]))
    facts = (
        ("writing", str(engine["running"])),
        ("waiting", str(engine["waiting"])),
        ("suspended", str(engine["suspended"])),
        ("written", str(engine["executing"])),
        ("tokens/s", fixed(engine["tokens_per_s"], 1)),
        ("step", fixed(engine["step_ms"], 1, " ms")),
        ("ours", fixed(engine["overhead_ms"], 2, " ms")),
        ("computed again", str(engine["recomputed"])),
        ("KV", f"{'█' * full}{'░' * (_BAR - full)} {100 * engine['kv_share']:.1f} %"),
    )
    return Text("   ").join(
        Text.assemble((name, "dim"), " ", (value, "bold")) for name, value in facts
    )


def segments_text(plan: dict[str, Any]) -> Text:
    """The plan, with the segment that runs marked and what is done dimmed."""
    text = Text("…" if plan["skipped"] else "")
    for segment in plan["segments"]:
        text.append(segment["text"].replace("\n", " "), style=_SEGMENTS[segment["state"]])
    return text


def plan_text(plan: dict[str, Any], width: int) -> Text:
    """As much of the plan as ``width`` characters hold: up to the segment that runs and a
    character more, else its end."""
    text = segments_text(plan)
    if len(text) <= width:
        return text
    end, at = len(text), 1 if plan["skipped"] else 0
    for segment in plan["segments"]:
        at += len(segment["text"])
        if segment["state"] == "running":
            end = at
    start = min(max(0, end + 1 - width), len(text) - width)
    shown = text[start : start + width]
    if start:
        shown = Text("…") + shown[1:]
    return shown if start + width == len(text) else shown[:-1] + Text("…")


def detail_text(plan: dict[str, Any]) -> Text:
    """All of one plan."""
    result = plan.get("result")
    rows = [("instruction", Text(plan["instruction"]))]
    if plan["scene"]:
        rows.append(("scene", Text(plan["scene"])))
    rows.append(("urgency", Text(plan["urgency"], style=colour_of(plan["urgency"]))))
    rows.append(("plan id", Text(plan["plan_id"])))
    rows += [("replanned", Text(words)) for words in plan["failures"]]
    if plan["call"]:
        rows.append(("skill running", Text(plan["call"])))
    if result is None:
        rows.append(("waiting", Text(fixed(plan["waiting_s"], 2, " s"))))
        rows.append(("tokens", Text(str(plan["tokens"]))))
    else:
        rows += _result_rows(result)
    head = Text.assemble(
        (plan["robot"], "bold"), "   ",
        (plan["state"].replace("_", " "), colour_of(plan["state"])), "\n\n",
    )  # fmt: skip
    body = Text("\n").join(Text.assemble((name.ljust(15), "dim"), value) for name, value in rows)
    return head + body + Text("\n\n") + segments_text(plan)


def _result_rows(result: dict[str, Any]) -> list[tuple[str, Text]]:
    rows = []
    if not result["ok"]:
        rows.append(("error", Text(f"{result['code']}: {result['words']}", style="bold red")))
    if result["value"]:
        rows.append(("returned", Text(result["value"])))
    rows += [
        ("utility", Text(fixed(result["utility"], 3))),
        ("response", Text(seconds(result["response_s"]))),
        ("waiting", Text(fixed(result["waiting_s"], 2, " s"))),
        ("execution", Text(fixed(result["execution_s"], 2, " s"))),
        ("tokens", Text(str(result["tokens"]))),
    ]
    return rows


def fixed(value: float | None, places: int, unit: str = "") -> str:
    """A number of so many places; one that is not known, or cannot be, is a question mark."""
    known = value is not None and abs(value) <= LARGEST
    return f"{value:.{places}f}{unit}" if known else "?"


def seconds(value: float | None) -> str:
    """A time in s; None: there is none."""
    return "-" if value is None else fixed(value, 2, " s")

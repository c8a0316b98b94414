"""What an engine's outputs are to the plan that they belong to. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from timely_llm.language.parser import PlanError
from timely_llm.language.segmenter import CheckedSegment, Segmenter
from timely_llm.language.skills import SkillSet
from timely_llm.protocols.engine import Output
from timely_llm.protocols.messages import ErrorCode

OVERRULED = "the model meant another value or name than the plan language has room for"


@dataclass(slots=True)
class Taken:
    """The segments that are complete, and why there are no more: ``NONE`` as long as nothing is
    wrong. ``ended``: the plan is whole."""

    segments: list[CheckedSegment] = field(default_factory=list)
    code: ErrorCode = ErrorCode.NONE
    error: str = ""
    ended: bool = False


class Reader:
    """Reads one plan while an engine writes it. A plan may have ``max_tokens`` tokens; before
    anything moves, the mean log probability of its tokens must be at least ``min_logprob`` (None:
    whatever it is; as also where the engine does not know it)."""

    def __init__(
        self,
        segmenter: Segmenter,
        skills: SkillSet,
        max_tokens: int,
        min_logprob: float | None = None,
    ) -> None:
        self._segmenter, self._skills = segmenter, skills
        self._max_tokens, self._min_logprob = max_tokens, min_logprob
        self._logprob, self._tokens = 0.0, 0  # of those whose probability is known
        self.moves = False  # whether a segment with a motion was complete

    @property
    def mean_logprob(self) -> float | None:
        """Of the tokens so far, natural logarithms; None: not known."""
        return self._logprob / self._tokens if self._tokens else None

    def take(self, output: Output) -> Taken:
        """Cut and check the new text. The segments before a fault are good."""
        if output.logprob is not None:
            self._logprob += output.logprob
            self._tokens += 1
        if output.finish == "error":
            return Taken(code=ErrorCode.ENGINE_FAILED, error=output.error)
        if output.finish == "length":
            words = f"the plan reached the limit of {self._max_tokens} tokens"
            return Taken(code=ErrorCode.PLAN_TRUNCATED, error=words)
        if output.overruled and self._segmenter.inside:
            return Taken(code=ErrorCode.INVALID_PLAN, error=OVERRULED)
        taken = Taken(ended=output.finish == "stop")
        try:
            for segment in self._segmenter.feed(output.text, taken.ended):
                if doubt := self._doubt(segment):
                    return Taken(taken.segments, ErrorCode.REFUSED, doubt)
                taken.segments.append(segment)
        except PlanError as error:
            return Taken(taken.segments, ErrorCode.INVALID_PLAN, str(error))
        return taken

    def _doubt(self, segment: CheckedSegment) -> str:
        """Why a plan must not begin to move; empty: it may."""
        skills = (self._skills.get(call.name) for call in segment.calls)
        if self.moves or not any(skill is not None and skill.timed for skill in skills):
            return ""
        self.moves = True
        mean, least = self.mean_logprob, self._min_logprob
        if mean is None or least is None or mean >= least:
            return ""
        return (
            f"the model is in doubt: the mean log probability is {mean:.3f}, "
            f"must be at least {least:.3f} before anything moves"
        )

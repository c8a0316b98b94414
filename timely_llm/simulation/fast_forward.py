"""Steps taken together where nothing can come between them, on a simulated engine. Pure.

A policy that says until when its choice is valid and answers that are known beforehand: then these
steps are taken at once, and give to the last bit what they give one by one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from timely_llm.core.planner import Planner, Turn
from timely_llm.engine.simulated import Forwarded, SimulatedEngine
from timely_llm.policies import Decision
from timely_llm.simulation.known_plans import Playback


class FastForward:
    """Turns the loop of a planner whose plans are ``playbacks``, by plan id."""

    def __init__(
        self, planner: Planner, engine: SimulatedEngine, playbacks: Mapping[str, Playback]
    ) -> None:
        self._planner, self._engine, self._playbacks = planner, engine, playbacks

    def turn(self, now: float, until: float) -> Turn:
        """One turn: the steps that the policy's choice outlasts, up to ``until``, when the next
        event is known to come (s), and then one as every planner takes it."""
        planner = self._planner
        decision, begun = planner.schedule(now), now
        if now < until and decision.run and decision.valid_until is not None:
            until = min(until, decision.valid_until, planner.state.due)
            forwarded = self._forward(decision, now, until)
            if forwarded.durations:
                now = self._account(forwarded, now)
                if now >= until or not forwarded.can_continue:
                    return Turn(planner.state.drain(), True, now - begun, ended=now)
        return planner.dispatch(planner.step(decision, now), now)

    def _forward(self, decision: Decision, now: float, until: float) -> Forwarded:
        steps = self._steps_to_boundary(decision) if now < until else 0
        if steps < 1:
            return Forwarded()
        return self._engine.fast_forward(decision.run, steps, now, until, decision.kv_floor)

    def _steps_to_boundary(self, decision: Decision) -> int:
        """Tokens that everyone in the run set writes before one that may change anything."""
        state, steps = self._planner.state, math.inf
        for plan_id in decision.run:
            if plan_id not in state.generating:  # a robot's question, or a fixed prompt
                return 0
            request = state.requests[plan_id]
            if request.predicted >= 0:
                steps = min(steps, request.predict_at - request.tokens - 1)
            steps = min(steps, self._playbacks[plan_id].tokens_to_boundary)
            if steps < 1:
                return 0
        return int(steps)

    def _account(self, forwarded: Forwarded, now: float) -> float:
        """What the planner would have learned and written step by step; when they were over."""
        planner, state = self._planner, self._planner.state
        requests = [state.requests[plan_id] for plan_id in forwarded.texts]
        context = sum(request.prompt_tokens + request.tokens for request in requests)
        for duration in forwarded.durations:
            now += duration
            planner.busy += duration
            planner.latency.observe(len(requests), 0, context, duration)
            context += len(requests)
        count = len(forwarded.durations)
        planner.steps += count
        for request in requests:
            text = forwarded.texts[request.plan_id]
            state.wrote(request, text, count, forwarded.durations, now)
            self._playbacks[request.plan_id].skip(count)
        used = forwarded.kv_blocks_used
        planner.last_step = replace(planner.last_step, kv_blocks_used=used)
        return now

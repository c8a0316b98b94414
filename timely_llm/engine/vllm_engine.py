"""The engine protocol on a real vLLM, in this process, on a CPU or a GPU.

vLLM is imported when an engine is made, after its version was checked and its environment set.
Clock, model and files are touched here; the caller decides which requests run.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from timely_llm.engine.config import EngineConfig
from timely_llm.engine.encoding import PromptEncoder
from timely_llm.engine.model_files import model_folder
from timely_llm.engine.vllm_settings import (
    engine_arguments,
    one_line,
    sampling_parameters,
    set_environment,
    startup_error,
    tested_version,
    weights_size,
    without_collection,
)
from timely_llm.protocols.engine import (
    DuplicateRequest,
    EngineDead,
    EngineInfo,
    EngineRequest,
    GrammarError,
    InvalidArgument,
    Output,
    StepResult,
)

if TYPE_CHECKING:
    from vllm.sampling_params import SamplingParams

_COMPILE_WAIT = 0.05  # s to wait for a grammar when its request arrives
_GRAMMAR_WAIT = 0.01  # s to wait in a step in which nobody else can run
_PIN_TOKENS = 2  # a pin writes one and is never run to its second, which would end it


class VllmEngine:
    """vLLM, which runs exactly the given set: see ``protocols/engine.py``.

    With a ``native`` configuration vLLM decides by itself: a step then runs whatever it likes if
    ``run`` is not empty. An engine must be used by the thread that made it.
    """

    def __init__(self, config: EngineConfig) -> None:
        version = tested_version()
        if config.max_batch < 1:
            raise InvalidArgument(f"max_batch is {config.max_batch}: must be at least 1")
        folder = model_folder(config.model)
        size = weights_size(folder, config.engine_args) if folder is not None else None
        set_environment(size)
        self._segmented = not config.native
        self._dead = ""
        with without_collection():
            self._parameters = sampling_parameters(config.sampling)
            arguments = engine_arguments(str(folder or config.model), config.engine_args, size)
            arguments.max_num_seqs = config.max_batch
            arguments.disable_log_stats = True
            by_priority = config.native and config.priority
            arguments.scheduling_policy = "priority" if by_priority else "fcfs"
            scheduler = "NativeScheduler" if config.native else "SegmentedScheduler"
            arguments.scheduler_cls = f"timely_llm.engine.vllm_scheduler.{scheduler}"
            self._start(config.model, folder is not None, arguments)
        try:
            self._encoder = PromptEncoder(self._llm.get_tokenizer(), config.chat_template)
        except BaseException:
            self.close()
            raise
        self._ids: dict[str, str] = {}  # ours to vLLM's
        self._names: dict[str, str] = {}  # and back
        self._pin_blocks: dict[str, int] = {}
        self._grammars: set[str] = set()
        self._idle_steps = 0
        self.info = self._make_info(version, config)

    def _start(self, model: str, local: bool, arguments: Any) -> None:
        from timely_llm.engine import vllm_scheduler

        self._internals = vllm_scheduler
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._llm, self._scheduler = vllm_scheduler.start_engine(arguments)
        except Exception as error:  # vLLM and what it stands on raise what they like
            raise startup_error(model, local, error) from error

    def _make_info(self, version: str, config: EngineConfig) -> EngineInfo:
        from vllm.platforms import current_platform

        settled = self._llm.vllm_config
        return EngineInfo(
            backend="vllm-cpu" if current_platform.is_cpu() else "vllm-gpu",
            version=version,
            model=config.model,
            max_batch=config.max_batch,
            block_size=settled.cache_config.block_size,
            kv_blocks=self._scheduler.kv_blocks,
            max_model_len=settled.model_config.max_model_len,
            prefill_chunk=settled.scheduler_config.max_num_batched_tokens,
        )

    @property
    def pending(self) -> bool:
        return self._scheduler.in_flight > 0

    def close(self) -> None:
        if self._dead != "it was closed":
            self._dead = "it was closed"
            self._internals.stop_engine(self._llm)

    # Requests.

    def submit(self, request: EngineRequest) -> int:
        self._check_alive()
        if request.id in self._ids:
            raise DuplicateRequest(f"request '{request.id}' is live already")
        tokens = self._encoder.tokens(request.system, request.user, request.examples)
        shared = len(tokens) // self.info.block_size  # at best with a pin
        pinned = max(0, sum(self._pin_blocks.values()) - shared)
        blocks = self.info.blocks_needed(request, len(tokens), pinned)
        if request.grammar is not None:
            self._check_grammar(request.id, request.grammar)
        parameters = self._request_parameters(request)
        try:
            own = self._internals.add_request(
                self._llm, request.id, tokens, parameters, request.grammar, request.priority
            )
        except Exception as error:  # of several kinds, some of vLLM's own
            raise InvalidArgument(f"request '{request.id}': {one_line(error)}") from error
        if request.user is None:
            self._pin_blocks[request.id] = blocks
            self._scheduler.prefixes.add(own)
        if request.grammar is not None:
            self._internals.wait_for_grammar(self._scheduler, [own], _COMPILE_WAIT)
        self._ids[request.id], self._names[own] = own, request.id
        return len(tokens)

    def abort(self, request_id: str) -> None:
        own = self._forget(request_id)
        if own is not None and not self._dead:
            self._llm.abort_request([own], internal=True)

    def _forget(self, request_id: str) -> str | None:
        """It is over; vLLM's id of it, if it was live."""
        own = self._ids.pop(request_id, None)
        if own is not None:
            del self._names[own]
        self._pin_blocks.pop(request_id, None)
        return own

    def _request_parameters(self, request: EngineRequest) -> SamplingParams:
        parameters = self._parameters.clone()
        parameters.max_tokens = request.max_tokens
        if request.seed is not None:
            parameters.seed = request.seed
        if request.user is None:
            parameters.max_tokens = _PIN_TOKENS if self._segmented else 1
            parameters.ignore_eos = True
        return parameters

    def _check_grammar(self, request_id: str, grammar: str) -> None:
        if grammar not in self._grammars:
            try:
                self._internals.check_grammar(grammar)
            except Exception as error:
                words = f"request '{request_id}': grammar: {one_line(error)}"
                raise GrammarError(words) from error
            self._grammars.add(grammar)

    # The step.

    def step(
        self,
        run: Sequence[str],
        hold: Sequence[str] = (),
        evict: Sequence[str] = (),
        prefill_budget: int | None = None,
    ) -> StepResult:
        self._check_alive()
        scheduler, ids = self._scheduler, self._ids
        wanted = [ids[name] for name in run if name in ids]
        runs = scheduler.begin(
            wanted,
            [ids[name] for name in hold if name in ids],
            [ids[name] for name in evict if name in ids],
            prefill_budget,
        )
        if not runs and not scheduler.in_flight:
            if wanted:
                self._internals.wait_for_grammar(scheduler, wanted, _GRAMMAR_WAIT)
            return self._result({}, 0.0)
        begun = time.perf_counter()
        try:
            given = self._llm.step()
        except Exception as error:  # whatever breaks in there, nothing can be trusted any more
            self._dead = f"a step failed: {type(error).__name__}: {one_line(error)}"
            raise EngineDead(f"the engine is dead: {self._dead}") from error
        duration = time.perf_counter() - begun
        counts = scheduler.counts
        overruled = {self._names.get(own) for own in counts.overruled}
        logprobs = {self._names.get(own): value for own, value in counts.logprobs.items()}
        outputs = {
            one.request_id: _output(one, one.request_id in overruled, logprobs.get(one.request_id))
            for one in given
        }
        if runs:
            self._watch_progress(wanted, outputs)
        result = self._result(outputs, duration)
        for name, output in outputs.items():
            if output.finish is not None:
                self._forget(name)
        return result

    def _watch_progress(self, wanted: Sequence[str], outputs: dict[str, Output]) -> None:
        """End a request that can never run, because others keep the KV blocks that it needs."""
        counts = self._scheduler.counts
        if counts.scheduled or counts.evicted or outputs or self._scheduler.in_flight:
            self._idle_steps = 0
            return
        if self._internals.wait_for_grammar(self._scheduler, wanted, _GRAMMAR_WAIT):
            return
        self._idle_steps += 1
        live = [self._names[own] for own in wanted if own in self._names]
        if self._idle_steps > 1 and live:
            self.abort(live[0])
            outputs[live[0]] = Output("", 0, "error", "no KV blocks are left for it")

    def _result(self, outputs: dict[str, Output], duration: float) -> StepResult:
        scheduler, names = self._scheduler, self._names
        counts = scheduler.counts
        recomputed = {names.get(own, own): n for own, n in counts.recomputed.items()}
        return StepResult(
            outputs=outputs,
            duration=duration,
            scheduled={names.get(own, own): n for own, n in counts.scheduled.items()},
            prompt_tokens=counts.prompt_tokens,
            recomputed_tokens=sum(recomputed.values()),
            recomputed=recomputed,
            evicted=tuple(names.get(own, own) for own in counts.evicted),
            kv_blocks_used=scheduler.kv_blocks_used,
            kv_blocks_total=self.info.kv_blocks,
        )

    def _check_alive(self) -> None:
        if self._dead:
            raise EngineDead(f"the engine is dead: {self._dead}")


def _output(given: Any, overruled: bool, logprob: float | None) -> Output:
    """One generation's output out of vLLM's."""
    part = given.outputs[0]
    tokens, finish = len(part.token_ids), part.finish_reason
    if finish in (None, "stop", "length"):
        known = logprob if tokens == 1 else None
        return Output(part.text, tokens, finish, "", overruled and tokens > 0, known)
    return Output(part.text, tokens, "error", f"the engine ended it: {finish}")

"""vLLM's scheduler made to run a given set, and all else that is not vLLM's public interface.

Imported only after ``vllm_settings.tested_version()``. Written against 0.32.0; what it relies on:
requests that are not in ``running`` or ``waiting`` during ``schedule()`` are neither run nor
preempted, those in ``running`` are scheduled in order and preempted from its end, then those in
``waiting`` are admitted in order; ``allocate_slots`` gives None when KV blocks run out.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field

import xgrammar
from vllm.engine.arg_utils import EngineArgs
from vllm.inputs.engine import tokens_input
from vllm.sampling_params import SamplingParams, StructuredOutputsParams
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.core.sched.request_queue import FCFSRequestQueue
from vllm.v1.engine.core_client import InprocClient
from vllm.v1.engine.llm_engine import LLMEngine
from vllm.v1.request import Request, RequestStatus
from vllm.v1.worker import gpu_model_runner


@dataclass(slots=True)
class Counts:
    """What one step scheduled: tokens by vLLM's own request ids, and who lost its blocks."""

    scheduled: dict[str, int] = field(default_factory=dict)
    prompt_tokens: int = 0
    recomputed: dict[str, int] = field(default_factory=dict)
    evicted: list[str] = field(default_factory=list)
    overruled: set[str] = field(default_factory=set)  # whose first choice the grammar forbade
    logprobs: dict[str, float] = field(default_factory=dict)  # of first choices, before the mask


class NativeScheduler(AsyncScheduler):
    """vLLM's own decisions, only counted. Nothing is scheduled while ``open`` is False."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.open = False
        self.in_flight = 0  # steps whose outputs have not been taken in
        self.counts = Counts()
        self.prefixes: set[str] = set()
        self._highest: dict[str, int] = {}

    @property
    def kv_blocks(self) -> int:
        """Usable KV blocks: vLLM keeps one for itself."""
        return self.kv_cache_manager.block_pool.num_gpu_blocks - 1

    @property
    def kv_blocks_used(self) -> int:
        return self.kv_blocks - self.kv_cache_manager.block_pool.get_num_free_blocks()

    def begin(
        self,
        run: Sequence[str],
        hold: Sequence[str] = (),
        evict: Sequence[str] = (),
        prefill_budget: int | None = None,
    ) -> bool:
        """Prepare a step; whether it may schedule anything. Untouched, all or nothing is run."""
        self.counts = Counts()
        self.open = bool(run)
        return self.open

    def has_requests(self) -> bool:
        return self.open and super().has_requests()

    def schedule(self, throttle_prefills: bool = False) -> SchedulerOutput:
        output = super().schedule(throttle_prefills)
        self._count(output)
        return output

    def update_from_output(self, scheduler_output, model_runner_output):
        self.in_flight -= 1
        first = getattr(scheduler_output, "first_choices", None)
        if first is not None and len(first[0]) == len(first[1]):  # else it speculates
            names, forbidden, logprobs = first[0], first[1].tolist(), first[2].tolist()
            pairs = zip(names, forbidden, strict=True)
            self.counts.overruled |= {name for name, gone in pairs if gone}
            self.counts.logprobs |= zip(names, logprobs, strict=True)
        return super().update_from_output(scheduler_output, model_runner_output)

    def _count(self, output: SchedulerOutput) -> None:
        self.in_flight += 1
        counts = self.counts
        counts.scheduled = dict(output.num_scheduled_tokens)
        for name, tokens in counts.scheduled.items():
            request = self.requests[name]
            end = request.num_computed_tokens
            highest = self._highest.get(name, 0)
            known = min(end, max(request.num_prompt_tokens, highest))
            counts.prompt_tokens += max(0, known - (end - tokens))
            again = min(end, highest) - (end - tokens)
            if again > 0:
                counts.recomputed[name] = again
            self._highest[name] = max(highest, end)

    def _preempt_request(self, request: Request, *args, **kwargs) -> None:
        self.counts.evicted.append(request.request_id)
        super()._preempt_request(request, *args, **kwargs)

    def _free_request(self, request: Request, *args, **kwargs):
        self._highest.pop(request.request_id, None)
        self.prefixes.discard(request.request_id)
        return super()._free_request(request, *args, **kwargs)


class SegmentedScheduler(NativeScheduler):
    """Runs exactly the set that ``begin`` names; everyone else keeps its KV blocks.

    Between two steps all requests lie in vLLM's own queues, so that aborting, finishing and
    preempting work as ever. During ``schedule()`` only the run set does.
    """

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        if self.use_v2_model_runner:  # it keeps a slot for each request it ever ran
            raise ValueError("model runner V2 cannot suspend: set VLLM_USE_V2_MODEL_RUNNER=0")
        assert isinstance(self.waiting, FCFSRequestQueue)
        self._queue = self.waiting
        self._allocate = self.kv_cache_manager.allocate_slots
        self.kv_cache_manager.allocate_slots = self._allocate_or_evict  # type: ignore[method-assign]
        self.scheduler_reserve_full_isl = False  # a prompt takes blocks as it is computed
        self._token_limit = self.max_num_scheduled_tokens
        self._budget: int | None = None
        self._decodes: list[Request] = []
        self._prompts: list[Request] = []
        self._victims: list[Request] = []
        self._evicted: list[Request] = []
        self._rank: dict[str, int] = {}
        self._allocating: Request | None = None

    def begin(
        self,
        run: Sequence[str],
        hold: Sequence[str] = (),
        evict: Sequence[str] = (),
        prefill_budget: int | None = None,
    ) -> bool:
        """Evict whom ``evict`` names, and make out who runs: those that extend an answer first,
        then prompts, within the batch limit."""
        self.counts = Counts()
        self._budget = prefill_budget
        for request in self._live(evict):
            self._give_up(request)
        self._decodes, self._prompts, spare = [], [], []
        for request in self._live(run):
            if not self._can_run(request):
                continue
            if len(self._decodes) + len(self._prompts) == self.max_num_running_reqs:
                spare.append(request)
            elif request.status is RequestStatus.RUNNING and not request.is_prefill_chunk:
                self._decodes.append(request)
            else:
                self._prompts.append(request)
        # Who loses blocks first stands last.
        self._victims = spare + [r for r in self._live(reversed(hold)) if r not in spare]
        self.open = bool(self._decodes or (self._prompts and prefill_budget != 0))
        return self.open

    def schedule(self, throttle_prefills: bool = False) -> SchedulerOutput:
        late = self._late_prompts()
        self._victims = late + self._victims
        self._rank = {request.request_id: i for i, request in enumerate(self._prompts)}
        ours = {id(request) for request in self._decodes + self._prompts}
        held = [request for request in self.running if id(request) not in ours]
        parked = [request for request in self.waiting if id(request) not in ours]
        for request in late:
            request.status = RequestStatus.PREEMPTED  # with its blocks: admitted in its turn
        running = [r for r in self._prompts if r.status is RequestStatus.RUNNING]
        self.running = self._decodes + running
        self._queue.clear()
        self._queue.extend(r for r in self._prompts if r.status is not RequestStatus.RUNNING)
        self._evicted = []
        if self._budget is not None:
            limit = len(self._decodes) + self._budget
            self.max_num_scheduled_tokens = min(limit, self._token_limit)
        try:
            return super().schedule(throttle_prefills)
        finally:
            self.max_num_scheduled_tokens = self._token_limit
            self._allocating = None
            self._restore(late, held, parked)

    def _late_prompts(self) -> list[Request]:
        """Prompts in part computed that come after one not yet begun. vLLM would finish them first;
        they wait for their turn with it."""
        begun = [request.status is RequestStatus.RUNNING for request in self._prompts]
        first = begun.index(False) if False in begun else len(begun)
        return [
            request
            for request, yes in zip(self._prompts[first:], begun[first:], strict=True)
            if yes
        ]

    def _restore(self, late: list[Request], held: list[Request], parked: list[Request]) -> None:
        """Put everyone back into vLLM's queues."""
        for request in late:
            if request.status is RequestStatus.PREEMPTED and request.num_computed_tokens:
                request.status = RequestStatus.RUNNING
                self.waiting.remove_request(request)
                self.running.append(request)
        self.running += [r for r in held if r.status is RequestStatus.RUNNING]
        self._queue.extend(self._evicted)
        self._queue.extend(parked)

    # Giving up KV blocks.

    def _give_up(self, request: Request) -> None:
        if request.status is RequestStatus.RUNNING:
            self.running.remove(request)
            self._preempt_request(request, time.monotonic())

    def _allocate_or_evict(self, request: Request, *args, **kwargs):
        """As ``allocate_slots``; when blocks run out, the least urgent victim gives up its own."""
        self._allocating = request
        while True:
            blocks = self._allocate(request, *args, **kwargs)
            if blocks is not None or not self._take_from_a_victim(request):
                return blocks

    def _request_blocks_can_be_freed(self, request: Request) -> bool:
        """Whom vLLM may preempt: not the request that it wants a block for, which just waits."""
        return request is not self._allocating and super()._request_blocks_can_be_freed(request)

    def _take_from_a_victim(self, request: Request) -> bool:
        while self._victims:
            victim = self._victims[-1]
            rank = self._rank.get(victim.request_id)
            if rank is not None:
                if rank <= self._rank.get(request.request_id, -1):
                    return False
                self.waiting.remove_request(victim)
                victim.status = RequestStatus.RUNNING
            self._victims.pop()
            if victim.status is RequestStatus.RUNNING:
                self._preempt_request(victim, time.monotonic())
                # Not into the queue that is being worked through at this very moment.
                self.waiting.remove_request(victim)
                self._evicted.append(victim)
                return True
        return False

    def _can_run(self, request: Request) -> bool:
        """Not a pin that is computed, nor a request whose grammar is still being compiled."""
        if request.request_id in self.prefixes:
            computed = request.num_computed_tokens >= request.num_prompt_tokens
            return not computed and not request.num_output_tokens
        if request.status is RequestStatus.WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR:
            outputs = request.structured_output_request
            return outputs is not None and outputs.is_grammar_ready
        return True

    def _live(self, names: Iterable[str]) -> list[Request]:
        """The live requests of these ids, each once."""
        found = {name: self.requests.get(name) for name in names}
        return [request for request in found.values() if request is not None]


def _watch_first_choices() -> None:
    """Have each step say how likely the model's first choice was, and of which requests the grammar
    forbade it: vLLM's own log probabilities are taken after its mask."""
    apply = gpu_model_runner.apply_grammar_bitmask
    if hasattr(apply, "__wrapped__"):
        return

    @functools.wraps(apply)
    def watched(scheduler_output, grammar_output, input_batch, logits):
        highest, first = logits.max(dim=-1, keepdim=True)
        logprobs = (highest - logits.float().logsumexp(dim=-1, keepdim=True)).flatten()
        apply(scheduler_output, grammar_output, input_batch, logits)
        forbidden = logits.gather(-1, first).isneginf().flatten()
        scheduler_output.first_choices = (tuple(input_batch.req_ids), forbidden, logprobs)

    gpu_model_runner.apply_grammar_bitmask = watched


def start_engine(arguments: EngineArgs) -> tuple[LLMEngine, NativeScheduler]:
    """An engine in this process, and its scheduler, which ``arguments`` name."""
    _watch_first_choices()
    engine = LLMEngine.from_engine_args(arguments)
    assert isinstance(engine.engine_core, InprocClient)
    scheduler = engine.engine_core.engine_core.scheduler
    assert isinstance(scheduler, NativeScheduler)
    return engine, scheduler


def stop_engine(engine: LLMEngine) -> None:
    """Free the model, its workers and the KV cache."""
    engine.engine_core.shutdown()


def add_request(
    engine: LLMEngine,
    name: str,
    tokens: list[int],
    parameters: SamplingParams,
    grammar: str | None,
    priority: int,
) -> str:
    """Add a request; returns vLLM's own id of it. ``grammar`` is known to be well formed.

    The grammar joins only after vLLM's checks: they would parse it again for each request.
    """
    request = engine.input_processor.process_inputs(
        name,
        tokens_input(tokens),
        parameters,
        supported_tasks=engine.get_supported_tasks(),
        priority=priority,
    )
    own = request.sampling_params
    assert own is not None
    if grammar is not None:
        own.structured_outputs = StructuredOutputsParams(grammar=grammar)
        own.structured_outputs._backend = "xgrammar"
    engine.add_request(name, request, own)
    return request.request_id


def check_grammar(grammar: str) -> None:
    """Parse a grammar; whatever is wrong with it is raised."""
    xgrammar.Grammar.from_ebnf(grammar)


def wait_for_grammar(scheduler: NativeScheduler, names: Sequence[str], timeout: float) -> bool:
    """Wait up to ``timeout`` s until the first grammar of these requests is compiled; False where
    nobody's is being compiled."""
    for name in names:
        request = scheduler.requests.get(name)
        if request is not None and request.structured_output_request is not None:
            compiled = request.structured_output_request._grammar
            if isinstance(compiled, Future):
                wait([compiled], timeout)
                return True
    return False

"""Batches as tensors, one training step, and the exact score. Torch; no files, no options."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor

from timely_llm.language.skills import SkillSet
from timely_llm.prompts.template import PromptTemplate
from tools.planner.dataset import Example
from tools.planner.draw import Pair
from tools.planner.llama import Llama
from tools.planner.tokens import END

MICRO_TOKENS = 1024  # tokens of one forward pass, padding included
IGNORED = -100


@dataclass(frozen=True, slots=True)
class Micro:
    """Rows behind one prefix. ``targets`` are next tokens, IGNORED outside of the plan."""

    prefix: Tensor  # [P]
    rows: Tensor  # [B, L]
    targets: Tensor  # [B, L]
    indices: tuple[int, ...]  # of the rows' pairs


class Encoder:
    """Prompts and plans as the engine will see them."""

    def __init__(self, tokenizer: Tokenizer, template: PromptTemplate) -> None:
        self.tokenizer = tokenizer
        self.template = template
        self.end = tokenizer.get_vocab()[END]
        self._prefixes: dict[tuple[str, ...], list[int]] = {}

    def prefix(self, skills: SkillSet) -> list[int]:
        if skills.names not in self._prefixes:
            if len(self._prefixes) > 1000:
                self._prefixes.clear()
            system = self.template.system(skills)
            self._prefixes[skills.names] = self.tokenizer.encode(system).ids
        return self._prefixes[skills.names]

    def micros(self, skills: SkillSet, pairs: Sequence[Pair]) -> Iterator[Micro]:
        """The pairs sorted by length and cut into passes of at most MICRO_TOKENS."""
        users = [self.template.user(skills, pair.scene, pair.instruction) for pair in pairs]
        prompts = self.tokenizer.encode_batch(users)
        plans = self.tokenizer.encode_batch([pair.plan for pair in pairs])
        coded = [(i, prompts[i].ids, [*plans[i].ids, self.end]) for i in range(len(pairs))]
        coded.sort(key=lambda entry: len(entry[1]) + len(entry[2]))
        group: list[tuple[int, list[int], list[int]]] = []
        for entry in coded:
            longest = len(entry[1]) + len(entry[2]) - 1
            if group and longest * (len(group) + 1) > MICRO_TOKENS:
                yield self._tensors(skills, group)
                group = []
            group.append(entry)
        yield self._tensors(skills, group)

    def _tensors(self, skills: SkillSet, group: list[tuple[int, list[int], list[int]]]) -> Micro:
        length = max(len(prompt) + len(plan) for _, prompt, plan in group) - 1
        rows = torch.full((len(group), length), self.end)
        targets = torch.full((len(group), length), IGNORED)
        for row, (_, prompt, plan) in enumerate(group):
            tokens = torch.tensor(prompt + plan)
            rows[row, : len(tokens) - 1] = tokens[:-1]
            targets[row, len(prompt) - 1 : len(tokens) - 1] = tokens[len(prompt) :]
        indices = tuple(index for index, _, _ in group)
        return Micro(torch.tensor(self.prefix(skills)), rows, targets, indices)


def shares(micros: Iterable[Micro], workers: int) -> list[list[Micro]]:
    """The passes dealt out, the longest first, each to the worker with the fewest tokens so far."""
    dealt: list[list[Micro]] = [[] for _ in range(workers)]
    tokens = [0] * workers
    for micro in sorted(micros, key=lambda micro: micro.rows.numel(), reverse=True):
        least = tokens.index(min(tokens))
        dealt[least].append(micro)
        tokens[least] += micro.rows.numel() + len(micro.prefix)
    return dealt


class Trainer:
    """A bfloat16 model, as it will be served, with float32 weights behind it that are optimized.

    In a torch process group each process does its own passes, and the gradients are summed.
    """

    def __init__(self, model: Llama, rate: float, clip: float = 1.0) -> None:
        self.model = model
        self.clip = clip
        self.weights = [p.detach().float().clone() for p in model.parameters()]
        sizes = [weight.numel() for weight in self.weights]
        self._sums = torch.zeros(sum(sizes) + 2)  # of gradients, plan tokens and losses
        for weight, part in zip(self.weights, self._sums[:-2].split(sizes), strict=True):
            weight.grad = part.view_as(weight)
        named = list(zip(model.parameters(), self.weights, strict=True))
        inner = [w for p, w in named if p.dim() == 2 and p is not model.embed_tokens.weight]
        vectors = [w for p, w in named if p.dim() != 2]
        embedding = self.weights[0]
        groups = [
            {"params": [embedding], "weight_decay": 0.02},
            {"params": vectors, "weight_decay": 0.0},
        ]
        self.optimizers: tuple[torch.optim.Optimizer, ...] = (
            torch.optim.Muon(
                inner, lr=rate, weight_decay=0.05, adjust_lr_fn="match_rms_adamw", momentum=0.95
            ),
            torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), fused=True),
        )

    def step(self, micros: Iterable[Micro], rate: float) -> float:
        """One optimizer step over the passes; returns the mean loss of a plan token."""
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
        self._sums.zero_()
        for micro in micros:
            wanted = micro.targets != IGNORED
            logits = self.model.logits(self.model.hidden(micro.prefix, micro.rows, wanted))
            loss = F.cross_entropy(logits.float(), micro.targets[wanted], reduction="sum")
            loss.backward()
            self._sums[-2] += int(wanted.sum())
            self._sums[-1] += loss.item()
            for weight, parameter in zip(self.weights, self.model.parameters(), strict=True):
                assert weight.grad is not None and parameter.grad is not None
                weight.grad += parameter.grad
                parameter.grad = None
        if dist.is_initialized():
            dist.all_reduce(self._sums)
        tokens = self._sums[-2].item()
        self._sums /= tokens
        torch.nn.utils.clip_grad_norm_(self.weights, self.clip)
        for optimizer in self.optimizers:
            optimizer.step()
        self.copy_weights()
        return self._sums[-1].item()

    @torch.no_grad()
    def copy_weights(self) -> None:
        for weight, parameter in zip(self.weights, self.model.parameters(), strict=True):
            parameter.copy_(weight)

    def state(self, step: int) -> dict:
        states = [optimizer.state_dict() for optimizer in self.optimizers]
        return {"weights": self.weights, "optimizers": states, "step": step}

    @torch.no_grad()
    def restore(self, state: dict) -> int:
        """Go on from a saved state; returns the steps that were done."""
        for weight, saved in zip(self.weights, state["weights"], strict=True):
            weight.copy_(saved)
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.copy_weights()
        return state["step"]


@torch.no_grad()
def exact(model: Llama, micro: Micro) -> list[bool]:
    """For each row whether greedy decoding would give the plan: every next token is the best."""
    wanted = micro.targets != IGNORED
    best = model.logits(model.hidden(micro.prefix, micro.rows, wanted)).argmax(-1)
    right = torch.ones(len(micro.rows), dtype=torch.bool)
    right[wanted.nonzero()[best != micro.targets[wanted], 0]] = False
    return right.tolist()


def score(
    model: Llama, encoder: Encoder, examples: Iterable[Example]
) -> tuple[dict[str, tuple[int, int]], list[Example]]:
    """(exact, all) by family without a grammar, and the examples that were not exact."""
    groups: dict[int, list[Example]] = defaultdict(list)
    for example in examples:
        groups[id(example.skills)].append(example)
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    wrong: list[Example] = []
    for group in groups.values():
        pairs = [example.pair for example in group]
        for micro in encoder.micros(group[0].skills, pairs):
            for index, right in zip(micro.indices, exact(model, micro), strict=True):
                counts[pairs[index].family][0] += right
                counts[pairs[index].family][1] += 1
                if not right:
                    wrong.append(group[index])
    return {family: (right, all_) for family, (right, all_) in counts.items()}, wrong

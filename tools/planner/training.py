"""Batches as tensors, one training step, and the exact score. Torch; no files, no options."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor

from timely_llm.prompts import PromptTemplate
from timely_llm.skills import SkillSet
from tools.planner.dataset import Example
from tools.planner.draw import Pair
from tools.planner.llama import Llama
from tools.planner.tokens import END

MICRO_TOKENS = 4096  # tokens of one forward pass, padding included
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
        self.end = tokenizer.token_to_id(END)
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


class Trainer:
    """A bfloat16 model, as it will be served, with float32 weights behind it that are optimized."""

    def __init__(self, model: Llama, rate: float, clip: float = 1.0) -> None:
        self.model = model
        self.clip = clip
        self.weights = [p.detach().float().clone() for p in model.parameters()]
        matrices = [w for w in self.weights if w.dim() == 2]
        others = [w for w in self.weights if w.dim() != 2]
        groups = [
            {"params": matrices, "weight_decay": 0.05},
            {"params": others, "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), fused=True)

    def step(self, micros: Sequence[Micro], rate: float) -> float:
        """One optimizer step over the passes; returns the mean loss of a plan token."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        total = sum(int((micro.targets != IGNORED).sum()) for micro in micros)
        loss_sum = 0.0
        for micro in micros:
            hidden = self.model.hidden(micro.prefix, micro.rows)
            wanted = micro.targets != IGNORED
            logits = self.model.logits(hidden[wanted]).float()
            loss = F.cross_entropy(logits, micro.targets[wanted], reduction="sum") / total
            loss.backward()
            loss_sum += loss.item()
        self._update()
        return loss_sum

    def _update(self) -> None:
        for weight, parameter in zip(self.weights, self.model.parameters(), strict=True):
            weight.grad = parameter.grad.float()
            parameter.grad = None
        torch.nn.utils.clip_grad_norm_(self.weights, self.clip)
        self.optimizer.step()
        self.copy_weights()

    @torch.no_grad()
    def copy_weights(self) -> None:
        for weight, parameter in zip(self.weights, self.model.parameters(), strict=True):
            parameter.copy_(weight)

    def state(self, step: int) -> dict:
        return {"weights": self.weights, "optimizer": self.optimizer.state_dict(), "step": step}

    @torch.no_grad()
    def restore(self, state: dict) -> int:
        """Go on from a saved state; returns the steps that were done."""
        for weight, saved in zip(self.weights, state["weights"], strict=True):
            weight.copy_(saved)
        self.optimizer.load_state_dict(state["optimizer"])
        self.copy_weights()
        return state["step"]


@torch.no_grad()
def exact(model: Llama, micro: Micro) -> list[bool]:
    """For each row whether greedy decoding would give the plan: every next token is the best."""
    best = model.logits(model.hidden(micro.prefix, micro.rows)).argmax(-1)
    return ((best == micro.targets) | (micro.targets == IGNORED)).all(1).tolist()


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

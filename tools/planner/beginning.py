"""Weights to begin with: random ones, and among them a circuit that copies.

A plan repeats names of its prompt. From random weights a model takes hundreds of steps to find out
how (induction heads; Olsson et al., 2022, "In-context learning and induction heads"). Here they are
there from the start, and learn on as everything else does:

1. One head of the first layer looks at the token before, and writes it beside the own one.
2. The heads of the second layer look for a place whose token before is the own token, and write
   what stands there. Embeddings in and out are one matrix, so that this makes it the next token.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tools.planner.llama import Attention, Llama

SMALL = 0.02  # of random weights, embeddings included
CONSTANT = 3.0  # the first number of every embedding, in SMALL: the same for all tokens
FAST = 4  # pairs of a head that RoPE turns quickest: they tell neighbours apart
LOOK_BACK = 6.4  # strength of a query by place, and of a key
MATCH = 4.0  # strength of a query by token, and of a key
WRITE = 1.5  # strength of what is copied, in SMALL


@torch.no_grad()
def begin(model: Llama) -> None:
    """Small random weights; queries begin close to keys, so that what is alike attends to each
    other (mimetic initialization; Trockman and Kolter, 2023); then the circuit. By torch's seed."""
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            writes = "o_proj" in name or "down_proj" in name
            parameter.normal_(std=0.3 * SMALL if writes else SMALL)
    for layer in model.layers:
        query, key, _ = layer.self_attn.qkv_proj.weight.chunk(3)
        alike = torch.empty_like(query).normal_(std=3 * SMALL)
        for matrix in (query, key):
            matrix.copy_(alike + torch.empty_like(alike).normal_(std=SMALL))
    if len(model.layers) > 1:
        _copy(model)


def _copy(model: Llama) -> None:
    width, head = model.size.hidden_size, model.size.head_dim
    model.embed_tokens.weight[:, 0] = SMALL * CONSTANT
    frame = torch.zeros(width - 1, width)  # orthonormal rows that do not see the constant
    frame[:, 1:] = _orthonormal(width - 1)
    before = torch.zeros(width, head)  # where the token before is written
    before[1:] = _orthonormal(width - 1)[:, :head]
    first, second = (layer.self_attn for layer in model.layers[:2])
    _look_back(first, model, frame[:head], before)
    slow = [i for i in range(head) if i % (head // 2) >= head // 4]  # hardly turned by RoPE
    query, key, value = _heads(second)
    for number in range(second.heads):
        own = slice(number * head, (number + 1) * head)
        seen = MATCH * _orthonormal(head)[: len(slow)]
        query[number], key[number] = 0.0, 0.0
        query[number, slow] = seen @ frame[:head]
        key[number, slow] = seen @ before.T * (head / width) ** 0.5
        written = frame[torch.arange(own.start, own.stop) % (width - 1)]
        value[number] = written
        second.o_proj.weight[:, own] = SMALL * WRITE * written.T


def _look_back(attention: Attention, model: Llama, read: Tensor, write: Tensor) -> None:
    """The first head attends to the token before: query and key are the same for all tokens, and
    RoPE turns the key by one place more."""
    width, head = model.size.hidden_size, model.size.head_dim
    constant = CONSTANT / ((width - 1 + CONSTANT**2) / width) ** 0.5  # as the norm leaves it
    query, key, value = (matrix[0] for matrix in _heads(attention))
    query[:], key[:] = 0.0, 0.0
    strength = LOOK_BACK / constant
    query[:FAST, 0] = strength
    key[:FAST, 0] = strength * model.cos[1, :FAST]
    key[head // 2 : head // 2 + FAST, 0] = strength * model.sin[1, :FAST]
    value.copy_(read)
    attention.o_proj.weight[:, :head] = SMALL * (width / head) ** 0.5 * write


def _heads(attention: Attention) -> Tensor:
    """Query, key and value matrices by head, [3, heads, head size, width]."""
    return attention.qkv_proj.weight.view(3, attention.heads, attention.head_dim, -1)


def _orthonormal(size: int) -> Tensor:
    return torch.linalg.qr(torch.randn(size, size))[0]

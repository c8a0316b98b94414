"""A small Llama in plain torch, for training: its weights carry the names that vLLM expects.

All prompts of a batch begin with the same fixed part (the robot's skills). It is computed once, and
the rows attend to it: row positions continue behind it. Shapes: prefix [P], rows [B, L].
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class Size:
    """The sizes that a Llama configuration names so."""

    vocab_size: int
    hidden_size: int = 192
    intermediate_size: int = 512
    num_hidden_layers: int = 5
    num_attention_heads: int = 6
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10_000.0
    max_position_embeddings: int = 4096

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_attention_heads

    def config(self, end: int, dtype: str) -> dict:
        """The config.json of the model folder; ``end`` is the id of the token that ends a plan."""
        return {
            **asdict(self),
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "head_dim": self.head_dim,
            "num_key_value_heads": self.num_attention_heads,
            "hidden_act": "silu",
            "tie_word_embeddings": True,
            "attention_bias": False,
            "mlp_bias": False,
            "bos_token_id": None,
            "eos_token_id": end,
            "pad_token_id": end,
            "torch_dtype": dtype,
        }


_FUSED = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}
"""Matrices that are one here, for speed, and several in a checkpoint."""


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def _causal(length: int, dtype: torch.dtype) -> Tensor:
    """What to add to the scores: nothing up to the own position, minus infinity behind it."""
    return torch.full((length, length), -torch.inf, dtype=dtype).triu(1)


class Attention(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        width = size.hidden_size
        self.heads, self.head_dim = size.num_attention_heads, size.head_dim
        self.qkv_proj = nn.Linear(width, 3 * width, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(
        self, x: Tensor, rope: tuple[Tensor, Tensor], before: tuple[Tensor, Tensor] | None,
        mask: Tensor, wanted: Tensor | None = None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:  # fmt: skip
        """Attend to the own row as ``mask`` says, and to all of the shared part ``before``.

        Of the ``wanted`` positions [rows, length] only, if given: then the result is [N, width].
        """
        rows, length, width = x.shape
        parts = self.qkv_proj(x).view(rows, length, 3, self.heads, self.head_dim)
        query, key, value = parts.permute(2, 3, 0, 1, 4)  # each [heads, rows, length, head_dim]
        query, key = _rotate(query, *rope) * self.head_dim**-0.5, _rotate(key, *rope)
        scores = query @ key.transpose(-1, -2) + mask
        if before is None:
            out = scores.softmax(-1) @ value
        else:
            start = before[0].shape[2]
            flat = query.reshape(self.heads, rows * length, self.head_dim)
            shared = (flat @ before[0][:, 0].transpose(-1, -2)).view(*query.shape[:3], start)
            weights = torch.cat((shared, scores), dim=-1).softmax(-1)
            out = weights[..., start:] @ value
            flat = weights[..., :start].reshape(self.heads, rows * length, start)
            out = out + (flat @ before[1][:, 0]).view(query.shape)
        out = out.permute(1, 2, 0, 3).reshape(rows, length, width)
        return self.o_proj(out if wanted is None else out[wanted]), (key, value)


class Mlp(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.gate_up_proj = nn.Linear(size.hidden_size, 2 * size.intermediate_size, bias=False)
        self.down_proj = nn.Linear(size.intermediate_size, size.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
        return self.down_proj(F.silu(gate) * up)


class Layer(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.self_attn = Attention(size)
        self.mlp = Mlp(size)
        self.input_layernorm = nn.RMSNorm(size.hidden_size, size.rms_norm_eps)
        self.post_attention_layernorm = nn.RMSNorm(size.hidden_size, size.rms_norm_eps)

    def forward(
        self, x: Tensor, rope: tuple[Tensor, Tensor], before: tuple[Tensor, Tensor] | None,
        mask: Tensor, wanted: Tensor | None = None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:  # fmt: skip
        attended, own = self.self_attn(self.input_layernorm(x), rope, before, mask, wanted)
        x = (x if wanted is None else x[wanted]) + attended
        return x + self.mlp(self.post_attention_layernorm(x)), own


class Llama(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size = size
        self.embed_tokens = nn.Embedding(size.vocab_size, size.hidden_size)
        self.layers = nn.ModuleList(Layer(size) for _ in range(size.num_hidden_layers))
        self.norm = nn.RMSNorm(size.hidden_size, size.rms_norm_eps)
        half = torch.arange(0, size.head_dim, 2, dtype=torch.float32) / size.head_dim
        positions = torch.arange(size.max_position_embeddings, dtype=torch.float32)
        angles = torch.outer(positions, size.rope_theta**-half)
        self.cos = nn.Buffer(angles.cos(), persistent=False)
        self.sin = nn.Buffer(angles.sin(), persistent=False)
        self._begin()

    @torch.no_grad()
    def _begin(self) -> None:
        """Small random weights. Queries begin close to keys, so that from the first step on what is
        alike attends to each other: names are copied sooner (mimetic initialization; Trockman and
        Kolter, 2023)."""
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                scale = 0.02 if "o_proj" not in name and "down_proj" not in name else 0.006
                parameter.normal_(std=scale)
        for attention in (part for part in self.modules() if isinstance(part, Attention)):
            query, key, _ = attention.qkv_proj.weight.chunk(3)
            alike = torch.empty_like(query).normal_(std=0.06)
            for matrix in (query, key):
                matrix.copy_(alike + torch.empty_like(alike).normal_(std=0.02))

    def _rope(self, start: int, length: int) -> tuple[Tensor, Tensor]:
        return self.cos[start : start + length], self.sin[start : start + length]

    def hidden(self, prefix: Tensor, rows: Tensor, wanted: Tensor) -> Tensor:
        """Final hidden states [N, hidden] of the ``wanted`` positions [B, L] of the rows.

        The rows stand behind the prefix that all share. The last layer is computed for the wanted
        positions alone.
        """
        start, length = len(prefix), rows.shape[1]
        x, y = self.embed_tokens(prefix[None]), self.embed_tokens(rows)
        outer, inner = self._rope(0, start), self._rope(start, length)
        masks = _causal(start, x.dtype), _causal(length, x.dtype)
        for layer in self.layers:
            last = layer is self.layers[-1]
            x, before = layer(x, outer, None, masks[0])
            y, _ = layer(y, inner, before, masks[1], wanted if last else None)
        return self.norm(y)

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of the next token; input and output embeddings are one matrix."""
        return F.linear(hidden, self.embed_tokens.weight)

    def export(self, dtype: torch.dtype) -> dict[str, Tensor]:
        """The weights under the names of a Llama checkpoint."""
        weights: dict[str, Tensor] = {}
        for name, value in self.state_dict().items():
            for fused, names in _FUSED.items():
                if fused in name:
                    parts = value.chunk(len(names))
                    weights |= {
                        name.replace(fused, n): p for n, p in zip(names, parts, strict=True)
                    }
                    break
            else:
                weights[name] = value
        return {f"model.{k}": v.to(dtype).contiguous() for k, v in weights.items()}

    @torch.no_grad()
    def load(self, weights: dict[str, Tensor]) -> None:
        """Take over the weights of a checkpoint, as ``export`` names them; a ``RuntimeError`` where
        their shapes are not this model's."""
        own: dict[str, Tensor] = {}
        for name in self.state_dict():
            parts = [f"model.{name}"]
            for fused, names in _FUSED.items():
                if fused in name:
                    parts = [f"model.{name.replace(fused, n)}" for n in names]
            own[name] = torch.cat([weights[part] for part in parts])
        self.load_state_dict(own)

"""Makes a small Llama with random weights and a tokenizer of its own, for tests and benchmarks.

What it writes means nothing, so whatever is right about its plans comes from the grammar. The
weights are large enough that each token depends on all before it: a wrong or missing KV block
changes the text. The same seed gives the same files. Run: ``python tools/random_model.py FOLDER``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

END = "<|end|>"
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>\n{{ message.content }}" + END + "\n"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
_CORPUS = (
    "mf(100);tc(90);?s('apple')==True{g('apple');->True}->False",
    "?iv('keys')&iv('wallet')->{l('Yes');->True}l('No');->False",
    "mu(40);md(40);ml(20);mr(20);mb(20);tu(45);d(0.5);tp();3{mf(50);tc(120)}",
    "?sc('red box')==True{gt('red box');pi('red box');dr();};_1=ox('cat');?_1<0.4{tu(10)}",
    "Scene: [cat x:0.48 y:0.55 width:0.49 height:0.91]\nInstruction: move forward, find the cat",
    "You plan for a robot. The scene lists what the robot sees now: name, position and size.",
)


def make_random_model(
    folder: str | Path,
    seed: int = 0,
    *,
    layers: int = 2,
    width: int = 128,
    heads: int = 2,
    vocabulary: int = 512,
    length: int = 4096,
    chat_template: bool = False,
) -> Path:
    """Write a model that vLLM loads into ``folder``, which is made; returns it.

    ``layers`` of ``width``, with heads of ``width / heads`` (32 or 64 suit a CPU), for at most
    ``length`` tokens. With ``chat_template`` the tokenizer has one.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer(vocabulary)
    end = tokenizer.token_to_id(END)
    tokenizer.save(str(folder / "tokenizer.json"))
    _write(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": END,
            "pad_token": END,
            "clean_up_tokenization_spaces": False,
            "model_max_length": length,
        }
        | ({"chat_template": CHAT_TEMPLATE} if chat_template else {}),
    )
    _write(
        folder / "config.json",
        {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": width,
            "intermediate_size": 2 * width,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": heads,
            "vocab_size": tokenizer.get_vocab_size(),
            "max_position_embeddings": length,
            "hidden_act": "silu",
            "rms_norm_eps": 1e-5,
            "rope_theta": 10000.0,
            "tie_word_embeddings": False,
            "torch_dtype": "float32",
            "bos_token_id": end,
            "eos_token_id": end,
        },
    )
    weights = _weights(np.random.default_rng(seed), layers, width, tokenizer.get_vocab_size())
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    return folder


def _tokenizer(vocabulary: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_CORPUS, trainer)
    return tokenizer


def _weights(
    rng: np.random.Generator, layers: int, width: int, vocabulary: int
) -> dict[str, np.ndarray]:
    def matrix(rows: int, columns: int, gain: float = 1.0) -> np.ndarray:
        values = rng.standard_normal((rows, columns), dtype=np.float32)
        return values * np.float32(gain / columns**0.5)

    ones = np.ones(width, dtype=np.float32)
    weights = {
        "model.embed_tokens.weight": matrix(vocabulary, width, width**0.5),
        "model.norm.weight": ones,
        "lm_head.weight": matrix(vocabulary, width, 4.0),
    }
    for layer in range(layers):
        prefix = f"model.layers.{layer}"
        for name in ("q", "k", "v", "o"):
            weights[f"{prefix}.self_attn.{name}_proj.weight"] = matrix(width, width, 2.0)
        for name in ("gate", "up"):
            weights[f"{prefix}.mlp.{name}_proj.weight"] = matrix(2 * width, width, 2.0)
        weights[f"{prefix}.mlp.down_proj.weight"] = matrix(width, 2 * width)
        weights[f"{prefix}.input_layernorm.weight"] = ones
        weights[f"{prefix}.post_attention_layernorm.weight"] = ones
    return weights


def _write(path: Path, value: dict) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chat-template", action="store_true")
    arguments = parser.parse_args()
    print(
        make_random_model(arguments.folder, arguments.seed, chat_template=arguments.chat_template)
    )


if __name__ == "__main__":
    main()

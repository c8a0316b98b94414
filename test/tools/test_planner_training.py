"""The bundled planner's trainer: the model as it is saved, and a few of its steps. No vLLM."""

import random

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

from timely_llm.prompts.template import FILE_NAME, PromptTemplate
from tools.planner import dataset
from tools.planner.llama import Llama, Size
from tools.planner.training import Encoder, Trainer, score
from tools.train_planner import MODEL, per_step


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    return Encoder(tokenizer, PromptTemplate.from_file(MODEL / FILE_NAME))


def test_what_is_saved_is_what_is_loaded():
    size = Size(vocab_size=40, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                num_attention_heads=2)  # fmt: skip
    torch.manual_seed(0)
    model, other = Llama(size), Llama(size)
    other.load(model.export(torch.float32))
    for name, value in model.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name
    with pytest.raises(RuntimeError, match="size mismatch"):
        Llama(Size(vocab_size=41, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                   num_attention_heads=2)).load(model.export(torch.float32))  # fmt: skip


def test_the_bundled_weights_write_the_published_plans(encoder):
    """By the trainer's own forward pass: the same model that vLLM loads."""
    model = Llama(Size(encoder.tokenizer.get_vocab_size())).bfloat16()
    model.load(load_file(MODEL / "model.safetensors"))
    skills = dataset.load_skills()
    examples = [dataset.Example(pair, skills[kind]) for kind, pair in dataset.published()]
    counts, wrong = score(model, encoder, examples)
    assert counts == {"published": (11, 11)} and not wrong


@pytest.mark.parametrize("pairs", [3, 16, 64, 128])
def test_the_kinds_share_the_pairs_of_a_step(pairs):
    shared = per_step(pairs)
    assert sum(shared.values()) == pairs and set(shared) == set(dataset.KINDS)
    assert pairs != 64 or shared == {"tello": 34, "indy7": 18, "rover": 12}
    skills = dataset.load_skills()
    batch = next(dataset.batches(skills, random.Random(0), shared, 0.0))
    assert [len(drawn) for _, drawn in batch] == list(shared.values())


def test_a_few_steps_learn(encoder):
    torch.manual_seed(0)
    size = Size(encoder.tokenizer.get_vocab_size(), 64, 96, 1, 2)
    trainer = Trainer(Llama(size).bfloat16(), rate=3e-3)
    stream = dataset.batches(dataset.load_skills(), random.Random(0), {"indy7": 4}, 0.0)
    micros = [m for skills, pairs in next(stream) for m in encoder.micros(skills, pairs)]
    losses = [trainer.step(micros, 3e-3) for _ in range(12)]
    assert losses[-1] < 0.7 * losses[0]

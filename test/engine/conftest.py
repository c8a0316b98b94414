"""For tests of real vLLM on the CPU (test_vllm_*.py), with small models of random weights; they are
skipped where vLLM is not installed.

Engines start one after the other in this process: each module makes its own and closes it.
"""

import pytest

from timely_llm.engine.vllm_settings import installed_version
from tools.random_model import make_random_model


def pytest_collection_modifyitems(items):
    if installed_version() is None:
        for item in items:
            if not item.path.stem.startswith("test_vllm_"):
                continue
            item.add_marker(pytest.mark.skip(reason="vLLM is not installed"))


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """A model without a chat template."""
    return str(make_random_model(tmp_path_factory.mktemp("models") / "random", seed=1))


@pytest.fixture(scope="session")
def chat_model(tmp_path_factory):
    """Another one, with a chat template."""
    folder = tmp_path_factory.mktemp("models") / "chat"
    return str(make_random_model(folder, seed=2, chat_template=True))

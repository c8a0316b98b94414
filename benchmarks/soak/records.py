"""Records on disk: a line of JSON each, whole even where the process that writes is killed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MARK = 123_456_789  # ns of a message's stamp: forged or repeated by the hostile node


class Writer:
    """Appends records to ``path``."""

    def __init__(self, path: str | Path) -> None:
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115

    def write(self, event: str, **fields: Any) -> None:
        """One record, now."""
        record = {"t": round(time.monotonic(), 4), "event": event, **fields}
        self._file.write(json.dumps(record).encode() + b"\n")


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The records in a file; one that was cut off at the end is left out."""
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield json.loads(line)

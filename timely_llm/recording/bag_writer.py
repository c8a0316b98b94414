"""Writes rosbag2 bags (mcap) without ROS: our topics' types, their definitions and hashes. An edge.

What is not yet in the file when its writer is killed is lost, so ``flush`` puts whole chunks there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from rosbags.interfaces import Connection, Qos
from rosbags.rosbag2 import StoragePlugin, Writer, WriterError
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from timely_llm.paths import share

PACKAGE = "timely_llm"
VERSION = 9  # of rosbag2's metadata, as ROS 2 Jazzy and later write it


class BagError(ValueError):
    """A bag that cannot be written or read; the text names the path and says why."""


@cache
def typestore() -> Typestore:
    """The types of ROS 2 Kilted and this package's own, from its ``.msg`` files. Add none."""
    store = get_typestore(Stores.ROS2_KILTED)
    types: dict[str, Any] = {}
    for path in sorted(share("msg").glob("*.msg")):
        types |= get_types_from_msg(path.read_text(), f"{PACKAGE}/msg/{path.stem}")
    store.register(types)
    return store


class BagWriter:
    """A new bag in the folder ``path``, which must not exist; use it in a ``with``.

    Messages come serialized (CDR) with the time of their receipt in ns. ``BagError`` where the bag
    cannot be made.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._writer = Writer(path, version=VERSION, storage_plugin=StoragePlugin.MCAP)
            self._writer.open()
        except (WriterError, OSError) as error:
            raise BagError(f"cannot write the bag {path}: {error}") from error
        self.path = path
        self.types = typestore()
        self.messages = 0

    def topic(self, name: str, kind: str, qos: Sequence[Qos] = ()) -> Connection:
        """Add a topic of type ``kind`` ("timely_llm/msg/Segment"), offered with ``qos``."""
        return self._writer.add_connection(
            name, kind, typestore=self.types, offered_qos_profiles=qos
        )

    def write(self, topic: Connection, stamp: int, data: bytes | memoryview) -> None:
        """Add a serialized message, received at ``stamp`` (ns since the epoch)."""
        self._writer.write(topic, stamp, data)
        self.messages += 1

    def put(self, topic: Connection, stamp: int, message: Any) -> None:
        """Add a message of this writer's ``types``."""
        self.write(topic, stamp, self.types.serialize_cdr(message, topic.msgtype))

    def flush(self) -> None:
        """Put everything into the file. What is there outlives this process."""
        storage = self._writer.storage
        if storage.chunk.bio.tell():
            if not storage.chunk.msgs:  # a chunk without messages has no times
                return
            storage.close_chunk()
        storage.bio.flush()

    def close(self) -> None:
        """Write index and metadata. A bag without messages keeps its topics."""
        self._writer.close()

    def __enter__(self) -> BagWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

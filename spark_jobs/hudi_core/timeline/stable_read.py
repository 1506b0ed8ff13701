"""Reads files of a timeline that another process may be writing.

Hudi creates a file of the timeline atomically where the storage does (object stores) or by a rename (HDFS). On a plain
file system it creates the file and then writes it (HoodieStorage.createImmutableFileInPath, needCreateTempFile), so
that for a moment the file is empty, or has only the first of its buffers of 4.5 KiB. Read at that moment, a plan looks
damaged, and a completed commit looks like one that wrote nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from hudi_core.codec.avro.container import is_container, is_whole
from hudi_core.storage.base import Storage
from hudi_core.storage.one_look import is_small, once

YOUNG_SECONDS: Final = 10.0
"""Seconds after its last change for which a truncated file may still be written; later its writer is dead."""
PAUSES_SECONDS: Final[Sequence[float]] = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
"""How long to wait before each further look: 1.3 s in all."""


def read_stable(storage: Storage, path: str) -> bytes:
    """The content of a file; a truncated and recent file is read again until its writer has finished.

    A file that is still truncated after the last attempt is returned as it is: its meaning is for the caller to decide.
    Raises StorageNotFoundError.
    """

    def is_final(data: bytes) -> bool:
        return is_small(data) and not looks_cut_short(data)  # else its writer may still finish it

    return once(storage, path, lambda: _read_stable(storage, path), is_final)


def _read_stable(storage: Storage, path: str) -> bytes:
    data = storage.read(path)
    for pause in PAUSES_SECONDS:
        if not looks_cut_short(data) or abs(time.time() - storage.stat(path).modified) > YOUNG_SECONDS:
            break
        time.sleep(pause)
        data = storage.read(path)
    return data


def looks_cut_short(data: bytes) -> bool:
    """Whether the bytes are no whole Avro container and no JSON object; braces in its texts come in pairs."""
    if is_container(data):
        return not is_whole(data)
    text = data.rstrip()
    return not (text.startswith(b"{") and text.endswith(b"}") and text.count(b"{") == text.count(b"}"))

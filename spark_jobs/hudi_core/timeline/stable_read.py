"""Reads files of a timeline whose writer may be in the midst of them.

Hudi puts a file of the timeline there in one step where that step is the storage's own (object stores) or takes a
rename (HDFS). On a plain file system it creates the file and then writes it (HoodieStorage.createImmutableFileInPath,
needCreateTempFile), so that for a moment the file is there empty, or with the first of its buffers of 4.5 KiB. Read
then, a plan looks damaged, and a completed commit looks like one that wrote nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from hudi_core.codec.avro.container import is_container, is_whole
from hudi_core.storage.base import Storage

YOUNG_SECONDS: Final = 10.0
"""For so long after its last change a file that looks cut short may still be being written; later its writer has
died.
"""
PAUSES_SECONDS: Final[Sequence[float]] = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
"""How long to wait before each further look: 1.3 s in all."""


def read_stable(storage: Storage, path: str) -> bytes:
    """The content of a file that its writer fills: a file that looks cut short and is young is looked at again.

    What is still cut short after the last look is returned as it is: what it means is for the caller. Raises
    StorageNotFoundError.
    """
    data = storage.read(path)
    for pause in PAUSES_SECONDS:
        if not looks_cut_short(data) or abs(time.time() - storage.stat(path).modified) > YOUNG_SECONDS:
            break
        time.sleep(pause)
        data = storage.read(path)
    return data


def looks_cut_short(data: bytes) -> bool:
    """Whether the bytes are no whole Avro container and no whole JSON object; those of an empty file are neither.

    An object closes each brace: those in its texts, which are schemas, come in pairs as well.
    """
    if is_container(data):
        return not is_whole(data)
    text = data.rstrip()
    return not (text.startswith(b"{") and text.endswith(b"}") and text.count(b"{") == text.count(b"}"))

"""Small log files, each read by one request: the scan of their frames and the merge of their records share it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hudi_core.storage.base import ByteRange, Storage
from hudi_core.storage.recorded_changes import RecordingStorage
from hudi_core.view.file_group import DataFile

_SMALL: Final = 64 << 10
"""Bytes that the scan reads of a file at once (codec.log.frames)."""
_MOST_BYTES: Final = 8 << 20
"""Of all files that are kept for one slice."""


class SmallLogs(RecordingStorage):
    """The storage of one slice. Memory: _MOST_BYTES."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self._sizes: dict[str, int] = {}
        self._contents: dict[str, bytes] = {}

    def expect(self, files: Iterable[DataFile]) -> None:
        """Names the log files that are going to be read, with their sizes."""
        room = _MOST_BYTES
        for file in files:
            if file.size <= min(_SMALL, room):
                self._sizes[file.path] = file.size
                room -= file.size

    def read_range(self, path: str, span: ByteRange) -> bytes:
        """See Storage."""
        size = self._sizes.get(path)
        if size is None or span.start < 0:
            return super().read_range(path, span)
        if path not in self._contents:
            self._contents[path] = super().read_range(path, ByteRange(0, size))
        return self._contents[path][span.start : span.start + span.length]

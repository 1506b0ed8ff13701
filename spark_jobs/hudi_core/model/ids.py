"""Identities: of a file group, of a write attempt."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hudi_core.errors import FormatError

_TOKEN = re.compile(r"^(\d{1,18})-(\d{1,18})-(\d{1,18})\Z", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class FileGroupId:
    """A file group: the partition path (`""` when not partitioned) and the file id, `<uuid>-<n>`."""

    partition: str
    file_id: str


@dataclass(frozen=True, slots=True, order=True)
class WriteToken:
    """`<taskPartitionId>-<stageId>-<taskAttemptId>` (FSUtils.makeWriteToken).

    It makes the file name of every attempt unique.
    """

    partition_id: int
    stage_id: int
    attempt_id: int

    def __str__(self) -> str:
        return f"{self.partition_id}-{self.stage_id}-{self.attempt_id}"

    @staticmethod
    def parse(text: str) -> WriteToken:
        """Parses a token; raises FormatError for anything but three non-negative integers."""
        match = _TOKEN.match(text)
        if match is None:
            raise FormatError(f"not a write token: {text!r}")
        return WriteToken(*(int(part) for part in match.groups()))


ROLLBACK_TOKEN = WriteToken(1, 0, 1)
"""The token of rollback command blocks (HoodieLogFormat.rolloverLogWriteToken)."""

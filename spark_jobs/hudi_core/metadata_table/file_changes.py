"""What a clean, a rollback or a restore did to the data table's files: the input of the metadata table's updates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

MAX_DELETIONS: Final = 1 << 18
"""Deletions of statistics or filters that a clean writes into one partition of the metadata table; some 600 bytes each
while they are sorted.

Those of more files are omitted: readers use the statistics and filters of listed files only, and no file name comes
twice.
"""


@dataclass(frozen=True, slots=True)
class FileChanges:
    """Files that came and went, by partition path (`""`: a table without partitions) and plain file name.

    `written` gives sizes in bytes. `dropped_partitions` are those that a clean deleted as a whole: their files are in
    `deleted` as well.
    """

    written: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    deleted: Mapping[str, frozenset[str]] = field(default_factory=dict)
    dropped_partitions: frozenset[str] = frozenset()

"""What a clean, a rollback or a restore did to the data table's files: what the metadata table must learn of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FileChanges:
    """Files that came and went, by partition path (`""`: a table without partitions) and plain file name.

    `written` gives sizes in bytes. `dropped_partitions` are those that a clean deleted as a whole: their files are in
    `deleted` as well.
    """

    written: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    deleted: Mapping[str, frozenset[str]] = field(default_factory=dict)
    dropped_partitions: frozenset[str] = frozenset()

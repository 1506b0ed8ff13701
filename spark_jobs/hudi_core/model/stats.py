"""What a write reports of each file it wrote (HoodieWriteStat)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class WriteStat:
    """One file of a commit.

    Sizes are bytes; `path` is relative to the table's base path; `prev_commit` is "null" for a new file group. Field
    names are those of HoodieWriteStat in snake case; `timeline.actions.write_stats` has the JSON names.
    """

    file_id: str
    path: str
    partition_path: str
    prev_commit: str
    num_writes: int
    num_deletes: int
    num_update_writes: int
    num_inserts: int
    file_size_in_bytes: int
    total_write_bytes: int
    total_write_errors: int = 0
    total_log_records: int = 0
    total_log_files_compacted: int = 0
    total_log_size_compacted: int = 0
    total_updated_records_compacted: int = 0
    total_log_blocks: int = 0
    total_corrupt_log_block: int = 0
    total_rollback_blocks: int = 0
    total_scan_time_ms: int = 0
    total_upsert_time_ms: int = 0
    total_create_time_ms: int = 0
    log_version: int | None = None
    log_offset: int | None = None
    base_file: str | None = None
    log_files: tuple[str, ...] = ()
    cdc_stats: tuple[tuple[str, int], ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """JSON members without a field here, or with a value that no field holds (a null), by JSON name.

    They are kept so that a file round-trips.
    """

    @property
    def name(self) -> str:
        """The file's plain name."""
        return self.path.rpartition("/")[2]

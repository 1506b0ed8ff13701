"""What a commit reports of each file (HoodieWriteStat, HoodieDeltaWriteStat), with JSON keys in the order of 0.15."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, Final, NamedTuple

from hudi_core.errors import CorruptFileError
from hudi_core.frozen import dataclass
from hudi_core.model.names import refuse_external
from hudi_core.timeline.actions.content import member, texts

NULL_COMMIT: Final = "null"
"""prevCommit of a file that begins a file group (HoodieWriteStat.NULL_COMMIT)."""
WRITE_COUNTS: Final = (
    ("numWrites", "num_writes"),
    ("numDeletes", "num_deletes"),
    ("numUpdateWrites", "num_update_writes"),
    ("numInserts", "num_inserts"),
    ("totalWriteBytes", "total_write_bytes"),
    ("totalWriteErrors", "total_write_errors"),
)
LOG_COUNTS: Final = (
    ("totalLogRecords", "total_log_records"),
    ("totalLogFilesCompacted", "total_log_files_compacted"),
    ("totalLogSizeCompacted", "total_log_size_compacted"),
    ("totalUpdatedRecordsCompacted", "total_updated_records_compacted"),
    ("totalLogBlocks", "total_log_blocks"),
    ("totalCorruptLogBlock", "total_corrupt_log_block"),
    ("totalRollbackBlocks", "total_rollback_blocks"),
    ("fileSizeInBytes", "file_size_in_bytes"),
)
_TIMES: Final = (
    ("totalScanTime", "total_scan_time_ms"),
    ("totalUpsertTime", "total_upsert_time_ms"),
    ("totalCreateTime", "total_create_time_ms"),
)


@dataclass(frozen=True, slots=True)
class WriteStat:
    """A file of a commit. Sizes are bytes; `path` is below the base path; `prev_commit` is "null" for a new group."""

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
    """JSON members without a field here, or with a value that no field holds, so that a file round-trips."""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def sizes(self) -> dict[str, int]:
        """The bytes of the file and of its change-data logs, by path."""
        return {self.path: self.file_size_in_bytes, **dict(self.cdc_stats)}


def sizes_of(stats: Iterable[WriteStat]) -> dict[str, int]:
    """Returns the bytes of all files of a commit, by path."""
    return {path: size for stat in stats for path, size in stat.sizes.items()}


class WrittenFile(NamedTuple):
    """The members of a write stat that identify a file. Names and units are those of WriteStat."""

    file_id: str
    path: str
    file_size_in_bytes: int


def written_file(raw: Any, *, path: str) -> WrittenFile:
    """Parses a write stat like stat_from_json, at a twentieth of its cost."""
    if not isinstance(raw, dict):
        raise CorruptFileError("a write stat is not a JSON object", path=path)
    return WrittenFile(
        member(raw, "fileId", str, path=path, default=""),
        member(raw, "path", str, path=path, default=""),
        member(raw, "fileSizeInBytes", int, path=path, default=0),
    )


def stat_to_json(stat: WriteStat) -> dict[str, Any]:
    """Returns the JSON object of a write stat: the keys that real Hudi 0.15 writes, plus those of `stat.extra`."""
    raw = _known(stat)
    raw.update(stat.extra)
    return raw


def _known(stat: WriteStat) -> dict[str, Any]:
    raw: dict[str, Any] = {
        "fileId": stat.file_id,
        "path": stat.path,
        "cdcStats": dict(stat.cdc_stats) or None,
        "prevCommit": stat.prev_commit,
        **{name: getattr(stat, attr) for name, attr in WRITE_COUNTS},
        "tempPath": None,
        "partitionPath": stat.partition_path,
        **{name: getattr(stat, attr) for name, attr in LOG_COUNTS},
        "minEventTime": None,
        "maxEventTime": None,
        "runtimeStats": {name: getattr(stat, attr) for name, attr in _TIMES},
    }
    if stat.log_version is not None:
        raw["logVersion"] = stat.log_version
        raw["logOffset"] = stat.log_offset
        raw["baseFile"] = stat.base_file or ""
        raw["logFiles"] = list(stat.log_files)
    return raw


def stat_from_json(raw: Mapping[str, Any], *, path: str) -> WriteStat:
    """Parses a write stat. Raises CorruptFileError naming `path`, and the errors of refuse_external."""
    if not isinstance(raw, dict):
        raise CorruptFileError("a write stat is not a JSON object", path=path)
    numbers = {attr: member(raw, name, int, path=path, default=0) for name, attr in (*WRITE_COUNTS, *LOG_COUNTS)}
    runtime = member(raw, "runtimeStats", dict, path=path, default={})
    numbers |= {attr: member(runtime, name, int, path=path, default=0) for name, attr in _TIMES}
    values = {
        "file_id": member(raw, "fileId", str, path=path, default=""),
        "path": member(raw, "path", str, path=path, default=""),
        "partition_path": member(raw, "partitionPath", str, path=path, default=""),
        "prev_commit": member(raw, "prevCommit", str, path=path, default="null"),
        "log_version": member(raw, "logVersion", int, path=path),
        "log_offset": member(raw, "logOffset", int, path=path),
        "base_file": member(raw, "baseFile", str, path=path),
        "log_files": tuple(texts(raw, "logFiles", path=path)),
        "cdc_stats": tuple(member(raw, "cdcStats", dict, path=path, default={}).items()),
    }
    stat = WriteStat(**numbers, **values)
    refuse_external(stat.path)
    known = _known(stat)
    extra = {name: value for name, value in raw.items() if name not in known or known[name] != value}
    return stat if not extra else WriteStat(**numbers, **values, extra=extra)

"""Adds instants to the archive of layout 2: a Parquet file of level 0 and a snapshot with it (LSMTimelineWriter)."""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from hudi_core.config.services.retention_config import ArchiveConfig
from hudi_core.errors import CorruptFileError, StorageExistsError
from hudi_core.frozen import dataclass
from hudi_core.history.archived_instant import ArchivedInstant, InstantKey, key_of, lsm_metadata, lsm_plan
from hudi_core.history.lsm import (
    ACTION,
    COMPLETION,
    METADATA,
    PLAN,
    REMEDY,
    ROW_VERSION,
    SCHEMA,
    TIME,
    VERSION,
    LsmHistory,
    read_batches,
    write_batches,
)
from hudi_core.history.manifest import (
    Guard,
    HistoryFile,
    history_files,
    latest_version,
    manifest_versions,
    overtaken,
    publish_snapshot,
    read_manifest,
    read_snapshot,
)
from hudi_core.storage.base import Storage
from hudi_core.timeline.instant import Instant

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LsmWriter:
    """Adds to the archive in `folder` (archiving.archive_writer)."""

    storage: Storage
    folder: str
    guard: Guard
    config: ArchiveConfig

    def held(self, instants: Sequence[Instant]) -> frozenset[InstantKey]:
        """Returns the instants that are archived. Reads times and actions of files whose range overlaps."""
        times = sorted(instant.requested_time for instant in instants)
        if not times:
            return frozenset()
        # `after` is exclusive: the time without its last digit sorts before it, and after all much older ones.
        archived = LsmHistory(self.storage, self.folder).instants(after=times[0][:-1], up_to=times[-1])
        return frozenset(map(key_of, archived)).intersection(map(key_of, instants))

    def write(self, instants: Sequence[ArchivedInstant]) -> None:
        """Adds the instants in a new file. Raises ConflictError where another process archives, too."""
        ordered = sorted(instants, key=lambda item: item.instant.sort_key)
        begin, end = ordered[0].instant.requested_time, ordered[-1].instant.requested_time
        path = f"{self.folder}/{begin}_{end}_0.parquet"
        if self._is_named(path):
            # The archive would hold its first and last instant, and so these would not be here.
            what = "the archive's file does not hold the instants in its name"
            raise CorruptFileError(what, path=path, remedy="restore the file from a copy")
        data = encode_history(ordered, path=path)
        self.guard()
        try:
            self.storage.create_exclusive(path, data)
        except StorageExistsError as error:
            if self._is_named(path):
                raise overtaken(path) from error
            self.guard()
            self.storage.write(path, data)
        added = HistoryFile(path, begin, end, 0, len(data))
        publish_snapshot(self.storage, self.folder, lambda files: [*files, added], self.guard)
        log.info("%s holds %d instants", path, len(ordered))

    def finish(self) -> None:
        batch, most_bytes = self.config.history_batch, self.config.history_file_bytes
        merged = compact_levels(self.storage, self.folder, self.guard, batch=batch, most_bytes=most_bytes)
        self.guard()
        remove_unused(self.storage, self.folder, keep=self.config.manifests_retained + merged)

    def _is_named(self, path: str) -> bool:
        return any(file.path == path for file in read_snapshot(self.storage, self.folder))


def encode_history(instants: Sequence[ArchivedInstant], *, path: str) -> bytes:
    """Returns the Parquet file of these instants, in their order. Raises CorruptFileError for a damaged commit file."""
    rows = [
        {
            TIME: item.instant.requested_time,
            COMPLETION: item.instant.completed_at,
            ACTION: item.instant.action,
            METADATA: lsm_metadata(item),
            PLAN: lsm_plan(item),
            VERSION: ROW_VERSION,
        }
        for item in instants
    ]
    out = io.BytesIO()
    write_batches(out, [pa.RecordBatch.from_pylist(rows, schema=SCHEMA)], path=path)
    return out.getvalue()


_BATCH_ROWS = 64
"""How many rows are read at once: a commit of a wide table can have some megabytes."""
_TOP_LEVEL = 9
"""The highest level: Hudi reads one digit of a file's level."""


def compact_levels(storage: Storage, folder: str, guard: Guard, *, batch: int, most_bytes: int) -> int:
    """Merges the oldest `batch` files of level 0, and so on level by level. Returns the number of merges. A level is
    merged when it has `batch` files. Called under the table lock. When this is killed, the archive holds what it held:
    the sources count until a snapshot names the merged file. Memory: one row group of 16 MiB, its Parquet pages and the
    requested times of the merged instants, about 100 bytes each.
    """
    level = 0
    while level < _TOP_LEVEL:
        files = read_snapshot(storage, folder)
        sources = candidates([file for file in files if file.level == level], batch, most_bytes)
        if not sources:
            break
        guard()
        merged = _merge(storage, folder, sources)
        publish_snapshot(storage, folder, partial(_replace, sources, merged), guard)
        log.info("%s holds what was in %d files", merged.path, len(sources))
        level += 1
    return level


def candidates(files: Sequence[HistoryFile], batch: int, most_bytes: int) -> list[HistoryFile]:
    """Returns one level's files to merge, oldest first, up to the one that exceeds `most_bytes` (getCandidateFiles)."""
    if len(files) < batch:
        return []
    chosen: list[HistoryFile] = []
    total = 0
    for file in sorted(files, key=lambda item: (item.begin, item.end)):
        chosen.append(file)
        total += file.size
        if len(chosen) >= batch:
            break
        if total > most_bytes:
            if len(chosen) > 1:
                break
            chosen, total = [], 0
    return chosen if len(chosen) > 1 else []


def remove_unused(storage: Storage, folder: str, *, keep: int) -> int:
    """Removes snapshots except the latest `keep`, then files that none of the kept ones names. Returns how many of
    both. A manifest later than the latest belongs to no snapshot (see manifest), and stays until it is older. A
    manifest that was cut off while it was written is deleted: Hudi's own clean reads all that it keeps.
    """
    latest = latest_version(storage, folder) or 0
    versions = sorted(manifest_versions(storage, folder), reverse=True)
    older = [version for version in versions if version <= latest]
    gone, named = older[keep:], set[str]()
    for version in versions[: len(versions) - len(gone)]:
        try:
            named.update(file.name for file in read_manifest(storage, folder, version))
        except CorruptFileError:
            if version == latest:
                raise
            gone += [version] if version < latest else []
    if not gone:
        return 0
    unused = [name for name in history_files(storage, folder) if name not in named]
    paths = [*(f"{folder}/manifest_{version}" for version in sorted(gone)), *(f"{folder}/{name}" for name in unused)]
    return sum(storage.delete(path) for path in paths)


def _replace(sources: Sequence[HistoryFile], merged: HistoryFile, files: Sequence[HistoryFile]) -> list[HistoryFile]:
    return [*(file for file in files if file not in sources), merged]


def _merge(storage: Storage, folder: str, sources: Sequence[HistoryFile]) -> HistoryFile:
    begin, end = min(file.begin for file in sources), max(file.end for file in sources)
    level = sources[0].level + 1
    path = f"{folder}/{begin}_{end}_{level}.parquet"
    storage.delete(path)  # what a crash left; no snapshot names it
    seen: set[tuple[str, str]] = set()
    stored = ((file, rows) for file in sources for rows in read_batches(storage, file.path, SCHEMA.names, _BATCH_ROWS))
    merged = (_unseen(rows.select(SCHEMA.names).cast(SCHEMA), seen, file) for file, rows in stored)
    with storage.open_output(path) as out:
        write_batches(out, merged, path=path)
    return HistoryFile(path, begin, end, level, storage.stat(path).size)


def _unseen(rows: pa.RecordBatch, seen: set[tuple[str, str]], file: HistoryFile) -> pa.RecordBatch:
    """Returns the rows of instants that did not occur yet: an archiver that died may have archived them twice."""
    if rows.column(TIME).null_count or rows.column(ACTION).null_count:
        raise CorruptFileError("an archived instant has no time or no action", path=file.path, remedy=REMEDY)
    keys = list(zip(rows.column(TIME).to_pylist(), rows.column(ACTION).to_pylist(), strict=True))
    fresh = [row for row, key in enumerate(keys) if key not in seen]
    seen.update(keys)
    return rows if len(fresh) == len(keys) else rows.take(pa.array(fresh, pa.int64()))

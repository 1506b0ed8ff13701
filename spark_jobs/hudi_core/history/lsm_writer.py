"""Adds instants to the archive of layout 2: a Parquet file of level 0 and a snapshot with it (LSMTimelineWriter)."""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudi_core.config.services.archive_config import ArchiveConfig
from hudi_core.errors import CorruptFileError, StorageExistsError
from hudi_core.history.archived_instant import ArchivedInstant, InstantKey, key_of, lsm_metadata, lsm_plan
from hudi_core.history.lsm import LsmHistory
from hudi_core.history.lsm_compaction import compact_levels, remove_unused
from hudi_core.history.lsm_file import (
    ACTION,
    COMPLETION,
    METADATA,
    PLAN,
    ROW_VERSION,
    SCHEMA,
    TIME,
    VERSION,
    write_batches,
)
from hudi_core.history.manifest import Guard, HistoryFile, overtaken, publish_snapshot, read_snapshot
from hudi_core.storage.base import Storage
from hudi_core.timeline.instant import Instant

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LsmWriter:
    """Adds to the archive in `folder`; see archiving.ArchiveWriter. `history_batch` files of a level are merged, of
    `history_file_bytes` at most; `manifests_retained` snapshots are kept for readers that started before the latest.
    """

    storage: Storage
    folder: str
    guard: Guard
    config: ArchiveConfig

    def held(self, instants: Sequence[Instant]) -> frozenset[InstantKey]:
        """See ArchiveWriter. Reads times and actions of the files whose range overlaps."""
        times = sorted(item.requested_time for item in instants)
        if not times:
            return frozenset()
        # `after` is exclusive: a time without its last digit sorts before it, and behind everything that is older by
        # more.
        found = LsmHistory(self.storage, self.folder).instants(after=times[0][:-1], up_to=times[-1])
        return frozenset(map(key_of, found)).intersection(map(key_of, instants))

    def write(self, instants: Sequence[ArchivedInstant]) -> None:
        """See ArchiveWriter. A file that a crash left without a snapshot is replaced: no reader uses it. Raises
        ConflictError where another process archives, too.
        """
        ordered = sorted(instants, key=lambda item: item.instant.sort_key)
        begin, end = ordered[0].instant.requested_time, ordered[-1].instant.requested_time
        path = f"{self.folder}/{begin}_{end}_0.parquet"
        if self._is_named(path):
            # Its first and last instant would be in the archive, and so not here.
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
        """See ArchiveWriter: merges levels that have too many files, removes old snapshots and their files."""
        batch, most_bytes = self.config.history_batch, self.config.history_file_bytes
        merged = compact_levels(self.storage, self.folder, self.guard, batch=batch, most_bytes=most_bytes)
        self.guard()
        remove_unused(self.storage, self.folder, keep=self.config.manifests_retained + merged)

    def _is_named(self, path: str) -> bool:
        return any(file.path == path for file in read_snapshot(self.storage, self.folder))


def encode_history(instants: Sequence[ArchivedInstant], *, path: str) -> bytes:
    """The Parquet file of these instants, in their order. Raises CorruptFileError naming a commit file that is none."""
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

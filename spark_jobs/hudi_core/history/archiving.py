"""The rounds of an archival, and the writer of the archive of layout 1: log files of Avro blocks, with records of
archived_instant.py (HoodieTimelineArchiver of Hudi 0.15). lsm_writer.py writes the archive of layout 2.

In layout 1 every call writes one whole new file of the next number, created exclusively. Nothing is ever appended: a
crash may have cut the last file, and readers lose what follows a cut block.

Hudi 0.15 merges small files. It writes the plan `mergeArchivePlan` and the merged file, then deletes the source files,
and last the plan. While the plan exists, the merged file may be half written, or hold the only copy of instants whose
own file is deleted. This engine merges none and finishes such a merge (verifyLastMergeArchiveFilesIfNecessary).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from hudi_core.codec.avro.datum import codec_of
from hudi_core.codec.log.blocks import BlockType, HeaderKey, encode_block
from hudi_core.codec.log.content import encode_avro_block
from hudi_core.config.services.retention_config import ArchiveConfig
from hudi_core.config.versions import TableVersion
from hudi_core.errors import CorruptFileError, FormatError, StorageExistsError, StorageNotFoundError
from hudi_core.frozen import dataclass
from hudi_core.history.archived_instant import ArchivedInstant, InstantKey, StateFile, archived_entry, key_of
from hudi_core.history.log_archive import MERGE_PLAN, LogArchive, archive_files, check_whole
from hudi_core.history.lsm_writer import LsmWriter
from hudi_core.history.manifest import Guard
from hudi_core.model.names import ROLLBACK_TOKEN
from hudi_core.model.partition import check_file_name
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.content import decode_datum, load_schema, text, texts
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Instant, State
from hudi_core.timeline.instant_time import of_epoch_seconds

log = logging.getLogger(__name__)

ROUND_INSTANTS: Final = 1000
ROUND_BYTES: Final = 16 << 20
_ATTEMPTS: Final = 10
_REMEDY: Final = "restore the files that the plan names from a copy; the instants in them are nowhere else"


def archive_writer(
    storage: Storage, features: TableVersion, folder: str, config: ArchiveConfig, guard: Guard
) -> LsmWriter | LogArchiveWriter:
    """Returns the writer of the archive in `folder` by its timeline's layout. `guard` raises without the table lock.

    The writer is called under that lock, by one process at a time. `held` returns those of the instants, which are in
    timeline order, that an interrupted run has already left in the archive. `write` adds instants in the order of the
    plan: then every reader has them. Memory: their contents about three times over. Every method may be repeated after
    a crash.
    """
    if features.completion_time_in_name:
        return LsmWriter(storage, folder, guard, config)
    return LogArchiveWriter(storage, folder, config.batch)


def rounds(
    storage: Storage, active: ActiveTimeline, zone: str, instants: Sequence[Instant], *, most: int | None = None
) -> Iterator[list[ArchivedInstant]]:
    """Yields the instants in their order with the contents of all their state files: `most` at once (ROUND_INSTANTS by
    default), or as many as have 16 MiB, which an archival holds in memory. `zone` is that of instants. Raises
    StorageNotFoundError where a completed file is gone, which only an archiver without a lock can have done.
    """
    modified = active.modified()
    limit = ROUND_INSTANTS if most is None else most
    taken: list[ArchivedInstant] = []
    size = 0
    for instant in instants:
        archived = ArchivedInstant(instant, tuple(_files(storage, active, instant, modified, zone)))
        if taken and (len(taken) >= limit or size + archived.size > ROUND_BYTES):
            yield taken
            taken, size = [], 0
        taken.append(archived)
        size += archived.size
    if taken:
        yield taken


def _files(
    storage: Storage, active: ActiveTimeline, instant: Instant, modified: dict[str, float], zone: str
) -> Iterator[StateFile]:
    """Yields the files of the instant's states. A run that was cut off may have removed pending ones already."""
    pending = [
        (instant.pending_action, state, active.path(instant.requested_time, instant.pending_action, state))
        for state in (State.REQUESTED, State.INFLIGHT)
    ]
    completed = (instant.action, State.COMPLETED, active.path_of(instant))
    for action, state, path in [*(item for item in pending if item[2] in modified), completed]:
        at = modified[path] if path in modified else storage.stat(path).modified
        yield StateFile(action, state, storage.read(path), path, of_epoch_seconds(at, zone))


@dataclass(frozen=True, slots=True)
class LogArchiveWriter:
    """Adds to the archive in `folder` (archive_writer). `batch` is how many records a block has."""

    storage: Storage
    folder: str
    batch: int

    def held(self, instants: Sequence[Instant]) -> frozenset[InstantKey]:
        """Returns the instants that are archived. Only the newest file can hold those of an interrupted run."""
        return LogArchive(self.storage, self.folder).newest().intersection(map(key_of, instants))

    def write(self, instants: Sequence[ArchivedInstant]) -> None:
        """Adds the instants in a new file. Raises CorruptFileError; StorageExistsError while others add files."""
        data = encode_archive(instants, self.batch)
        for _ in range(_ATTEMPTS):
            number = max((number for number, _ in archive_files(self.storage, self.folder)), default=0) + 1
            path = f"{self.folder}/.commits_.archive.{number}_{ROLLBACK_TOKEN}"
            try:
                self.storage.create_exclusive(path, data)
            except StorageExistsError:
                continue
            log.info("%s holds %d instants", path, len(instants))
            return
        raise StorageExistsError(
            "other archivers add files all the time", path=self.folder, remedy="give all writers one lock provider"
        )

    def finish(self) -> None:
        """Does nothing: small files are not merged, as in Hudi 1.x. finish_merge ends a merge of Hudi 0.15."""


def encode_archive(instants: Sequence[ArchivedInstant], batch: int) -> bytes:
    """Returns the file of these instants: a record for each state file, `batch` records in a block with the schema."""
    schema = load_schema("HoodieArchivedMetaEntry")
    codec = codec_of(schema)
    headers = {HeaderKey.SCHEMA: json.dumps(schema, separators=(",", ":"))}

    def encoded(time: str, file: StateFile) -> bytes:
        try:
            return codec.encode(archived_entry(time, file))
        except FormatError as error:
            error.path = error.path or file.path
            error.remedy = error.remedy or "the file is not as Hudi writes it: restore it from a copy"
            raise

    records = (encoded(item.instant.requested_time, file) for item in instants for file in item.files)
    blocks = []
    while chunk := list(islice(records, batch)):
        blocks.append(encode_block(BlockType.AVRO_DATA, headers, encode_avro_block(chunk)))
    return b"".join(blocks)


def finish_merge(storage: Storage, folder: str) -> bool:
    """Rolls an unfinished merge back, or finishes it when a file is deleted already. Returns False when there is none.
    Called under the table lock; may be repeated after a kill. Raises CorruptFileError, with nothing deleted, when files
    are missing and the merged file is missing or damaged. Of the plan's paths only the names count.
    """
    path = f"{folder}/{MERGE_PLAN}"
    try:
        data = storage.read(path)
    except StorageNotFoundError:
        return False
    try:
        plan = decode_datum(data, path=path)
        merged = _name(text(plan, "mergedArchiveFileName", path=path), path)
        candidates = [_name(item, path) for item in texts(plan, "candidate", path=path)]
    except CorruptFileError:
        log.warning("%s was not written to its end: nothing was merged yet, it is removed", path)
        storage.delete(path)
        return True
    there = {info.name: info for _, info in archive_files(storage, folder)}
    if merged in candidates:
        raise FormatError(f"the plan merges {merged} into itself", path=path, remedy=_REMEDY)
    if all(name in there for name in candidates):
        log.info("the merge into %s is rolled back", merged)
        storage.delete(f"{folder}/{merged}")
    else:
        merged_file = there.get(merged)
        if merged_file is None:
            what = f"files of the merge are deleted, and {merged}, which should hold their content, is missing"
            raise CorruptFileError(what, path=path, remedy=_REMEDY)
        check_whole(storage, merged_file)
        log.info("the merge into %s is ended", merged)
        for name in candidates:
            storage.delete(f"{folder}/{name}")
    storage.delete(path)
    return True


def _name(value: str, path: str) -> str:
    """Returns the plain name of a file of the archive. Raises FormatError for any other."""
    name = value.rsplit("/", 1)[-1]
    check_file_name(name, source=path)
    if not name.startswith(".commits_.archive."):
        raise FormatError(f"{value!r} is no file of the archive", path=path, remedy=_REMEDY)
    return name

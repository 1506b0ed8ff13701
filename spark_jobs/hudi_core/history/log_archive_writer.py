"""Writes the archive of layout 1: log files of Avro blocks (HoodieTimelineArchiver of Hudi 0.15).

Every call writes one whole new file of the next number, created exclusively. Nothing is ever appended: the last file
may be one that a crash has cut, and what follows a cut block is lost to readers.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from hudi_core.codec.avro.datum import codec_of
from hudi_core.codec.log.blocks import BlockType, HeaderKey
from hudi_core.codec.log.content import encode_avro_block
from hudi_core.codec.log.frames import encode_block
from hudi_core.errors import StorageExistsError
from hudi_core.history.archived_entry import archived_entry
from hudi_core.history.archiving import ArchivedInstant, InstantKey
from hudi_core.history.log_archive import LogArchive, archive_files
from hudi_core.model.ids import ROLLBACK_TOKEN
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.container import load_schema
from hudi_core.timeline.instant import Instant

log = logging.getLogger(__name__)

SCHEMA: Final = "HoodieArchivedMetaEntry"
_ATTEMPTS: Final = 10


class LogArchiveWriter:
    """Adds to the archive in `folder`; see archiving.ArchiveWriter. `batch` are the records of a block."""

    def __init__(self, storage: Storage, folder: str, batch: int) -> None:
        self._storage = storage
        self._folder = folder
        self._batch = batch

    def held(self, instants: Sequence[Instant]) -> frozenset[InstantKey]:
        """See ArchiveWriter.

        Only the newest file can hold instants of an interrupted run, which the next run removes first.
        """
        newest = LogArchive(self._storage, self._folder).newest()
        return frozenset((item.requested_time, item.action) for item in instants) & newest

    def write(self, instants: Sequence[ArchivedInstant]) -> None:
        """See ArchiveWriter.

        Raises CorruptFileError naming a state file that is none, StorageExistsError while others keep adding files.
        """
        data = encode_archive(instants, self._batch)
        for _ in range(_ATTEMPTS):
            number = max((number for number, _ in archive_files(self._storage, self._folder)), default=0) + 1
            path = f"{self._folder}/.commits_.archive.{number}_{ROLLBACK_TOKEN}"
            try:
                self._storage.create_exclusive(path, data)
            except StorageExistsError:
                continue
            log.info("%s holds %d instants", path, len(instants))
            return
        raise StorageExistsError(
            "other archivers add files all the time", path=self._folder, remedy="give all writers one lock provider"
        )

    def finish(self) -> None:
        """See ArchiveWriter. Small files are not merged, as in Hudi 1.x; archive_merge ends a merge of Hudi 0.15."""


def encode_archive(instants: Sequence[ArchivedInstant], batch: int) -> bytes:
    """The file of these instants: a record for each state file, `batch` records in a block.

    The header of a block has the schema alone.
    """
    schema = load_schema(SCHEMA)
    codec = codec_of(schema)
    headers = {HeaderKey.SCHEMA: json.dumps(schema, separators=(",", ":"))}
    records = _records(instants)
    blocks = []
    while chunk := [codec.encode(record) for record in islice(records, batch)]:
        blocks.append(encode_block(BlockType.AVRO_DATA, headers, encode_avro_block(chunk)))
    return b"".join(blocks)


def _records(instants: Sequence[ArchivedInstant]) -> Iterator[dict[str, Any]]:
    for item in instants:
        for file in item.files:
            yield archived_entry(item.instant.requested_time, file)

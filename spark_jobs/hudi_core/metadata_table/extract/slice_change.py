"""What a commit did to the rows of one file group, read from its files: the slice before and the slice after it.

Base and log files are merged, as any reader merges them, with the key column and those that are asked for alone
(filegroup.read.slice_reader).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.errors import UnsupportedError
from hudi_core.filegroup.merge.record_keys import record_keys
from hudi_core.filegroup.read.log_scan import CommittedInstants
from hudi_core.filegroup.read.read_spec import ReaderSpec
from hudi_core.filegroup.read.slice_reader import SliceReader
from hudi_core.model.names import RECORD_KEY
from hudi_core.storage.base import Storage
from hudi_core.view.file_group import FileSlice


@dataclass(frozen=True, slots=True)
class SliceChange:
    """A file group's slice before and after a commit: `before` None is a new group, `after` None one that was replaced.

    `instant` is the commit's; None, when an index begins, is the slice's own base instant, as real Hudi takes it.
    """

    before: FileSlice | None
    after: FileSlice | None
    instant: str | None = None


class ChangeReader:
    """Reads the rows of a change: those before it without the commit's log blocks, those after it with them, completed
    or not.
    """

    def __init__(self, storage: Storage, spec: ReaderSpec, instant: str | None) -> None:
        """`spec` is that of a snapshot query over the timeline as it stands; `instant` the change's."""
        self._config = spec.config
        if instant is None:
            self.before = self.after = SliceReader(storage, spec)
            return
        known = spec.committed
        around = spec.up_to(max(spec.latest_instant or instant, instant))
        without = CommittedInstants(known.completed - {instant}, known.inflight | {instant}, known.start)
        within = CommittedInstants(known.completed | {instant}, known.inflight - {instant}, known.start)
        self.before = SliceReader(storage, around, committed=without)
        self.after = SliceReader(storage, around, committed=within)

    def rows(
        self, reader: SliceReader, item: FileSlice, columns: Sequence[str] = ()
    ) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
        """The record keys (string) of a slice's rows, batch by batch, with the wanted columns beside them."""
        fields = (RECORD_KEY,) if self._config.populate_meta_fields else self._config.record_key_fields
        if not fields:
            raise UnsupportedError(
                "a table without _hoodie_ columns and without record key fields has no record keys",
                path=self._config.path,
            )
        path = item.files[0].path if item.files else item.file_group.file_id
        for batch in reader.read(item, list(dict.fromkeys([*fields, *columns]))):
            yield record_keys(batch, fields, path=path), batch


def difference(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.ChunkedArray:
    """The texts of `left` that `right` does not hold."""
    return left.filter(pc.invert(pc.is_in(left, value_set=right.combine_chunks())))

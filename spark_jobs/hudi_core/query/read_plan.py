"""A planned query: splits that may be read anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_core.query.execute import read_split

if TYPE_CHECKING:
    from hudi_core.engine.protocol import Json
    from hudi_core.storage.base import Storage


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """A query ready to run: `read_split(common, split)` gives the rows of one split; the result is all splits' rows.

    `common` and each split are JSON. A split has `bytes`, the size of the files it reads. `files_read` counts base and
    log files, `files_pruned` those that the predicate excluded; `report` says by which index.
    """

    schema: pa.Schema
    common: Json
    splits: tuple[Json, ...]
    files_read: int
    files_pruned: int = 0
    report: Json = field(default_factory=dict)

    def batches(self, storage: Storage | None = None) -> Iterator[pa.RecordBatch]:
        """All rows, split by split, read in this process.

        `storage` is the table's data path when it is open already.
        """
        for split in self.splits:
            yield from read_split(self.common, split, storage)

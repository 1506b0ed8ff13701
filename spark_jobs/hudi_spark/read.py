"""The part of a planned read that a Spark task runs: it reads the splits of one bin as Arrow batches."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from hudi_core.engine.protocol import PackedUnits, pack_units
from hudi_core.errors import HudiError
from hudi_core.frozen import dataclass
from hudi_core.query.read_plan import read_split
from hudi_core.storage.arrow_store import open_data_storage
from hudi_spark.tasks import TaskFailure, numbers_of

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_core.engine.protocol import Json


log = logging.getLogger(__name__)

_LOOK_AT = 64


def bins_of(splits: Sequence[Json], bytes_per_task: int) -> list[list[Json]]:
    """Returns the splits in bins of about `bytes_per_task` bytes, the largest first. Only a bin with a single larger
    split exceeds this size.

    It uses first fit in descending order: all bins but one are at least half full, and the largest work starts first.
    """
    bins: list[list[Json]] = []
    room: list[int] = []
    first_open = 0
    for split in sorted(splits, key=lambda split: int(split["bytes"]), reverse=True):
        size = int(split["bytes"])
        # Splits come in descending size, so a full bin stays full. A look at 64 open bins is enough and keeps this
        # linear.
        for index in range(first_open, min(first_open + _LOOK_AT, len(bins))):
            if size <= room[index]:
                bins[index].append(split)
                room[index] -= size
                break
        else:
            bins.append([split])
            room.append(bytes_per_task - size)
        while first_open < len(bins) and room[first_open] <= 0:
            first_open += 1
    return bins


@dataclass(frozen=True, slots=True)
class ReadBin:
    """The input of one task: the part of a plan that its splits share, and the splits."""

    common: dict[str, Any]
    splits: list[Any]


@dataclass(frozen=True, slots=True)
class SplitReader:
    """Reads the bins whose numbers it gets. It is pickled by reference, so the executor needs hudi_spark (--py-files,
    addArtifacts). It holds one batch at a time, in addition to the memory of hudi_core's reader for a file slice. Its
    repr omits `bins`, so that no plan or log shows the storage options.
    """

    bins: PackedUnits[ReadBin] = field(repr=False)

    @staticmethod
    def of(common: Json, bins: Sequence[Sequence[Json]]) -> SplitReader:
        """Makes the reader of a plan's `common` part and its splits."""
        return SplitReader(pack_units([ReadBin(common, list(splits)) for splits in bins], compress=True))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes rows with one column, the numbers of bins, and yields the rows of these bins' splits."""
        for index in numbers_of(batches):
            unit = self.bins.unit(index)
            try:
                storage = open_data_storage(unit.common["uri"], unit.common["storage_options"])
                for split in unit.splits:
                    yield from read_split(unit.common, split, storage)
            except HudiError as error:
                # In a lazy read only the text of the task's failure reaches the driver. Spark Connect keeps 2 KiB of
                # it, so the error's own traceback stays in the executor's log.
                log.error("%s", error, exc_info=error)
                raise TaskFailure(error) from None

"""The columns of candidates hold the numbers of the operations' metrics; operations come in the order of the rows."""

from __future__ import annotations

import numpy as np
import pytest

from hudi_core.services.compaction.candidates import Candidates
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.actions.compaction import IO_MB, LOG_BYTES
from hudi_core.timeline.naming import timeline_of
from hudi_core.view.latest_slices import latest_slices
from hudi_core.view.slice_columns import LatestSlices
from hudi_core.view.slicing import Slicing
from tests.support.listed_names import base, log

MIB = 1 << 20


def part(*partitions: str) -> LatestSlices:
    """Slices of each partition: with a base file, with an empty one, with none and a change-data log."""
    sizes = {
        base("1", file_id="a"): 5 * MIB // 2,
        log("1", file_id="a"): 3 * MIB // 4,
        log("1", 2, file_id="a"): 5 * MIB,
        base("1", file_id="b"): 0,
        log("1", file_id="b"): 9,
        log("1", file_id="c"): MIB,
        log("1", 2, file_id="c", tail=".cdc"): MIB // 2,
    }
    listed = [
        (partition, [FileInfo(f"{partition}/{name}", size, 0.0) for name, size in sorted(sizes.items())])
        for partition in partitions
    ]
    return latest_slices(listed, Slicing(timeline_of(["1.deltacommit"])), {}, {})


@pytest.fixture
def found() -> Candidates:
    return Candidates(["p", "q", "r"], [part("p"), part("q", "r")], no_base_bytes=7 * MIB)


def test_numbers_are_those_of_the_metrics(found: Candidates) -> None:
    operations = found.operations(np.arange(len(found)))
    assert [(item.partition, item.file_id) for item in operations] == [(p, i) for p in "pqr" for i in "abc"]
    assert found.io_mb.tolist() == [item.metrics[IO_MB] for item in operations]
    assert found.log_bytes.tolist() == [item.metrics[LOG_BYTES] for item in operations]
    assert found.log_counts.tolist() == [item.metrics["TOTAL_LOG_FILES"] for item in operations] == [2, 1, 2] * 3
    assert found.data_bytes.tolist() == [33 * MIB // 4, 9, MIB] * 3
    assert found.io_mb.tolist()[:3] == [8 + 2, 7, 1 + 7]


def test_operations_come_in_the_order_of_rows(found: Candidates) -> None:
    operations = found.operations(np.array([7, 0, 5]))
    assert [(item.partition, item.file_id) for item in operations] == [("r", "b"), ("p", "a"), ("q", "c")]
    assert operations[2].log_files == (log("1", file_id="c"),)
    assert operations[2].cdc_files == (log("1", 2, file_id="c", tail=".cdc"),)
    assert found.partitions_beside(np.array([0, 1, 2, 4])) == {"q", "r"}


def test_without_parts_there_is_no_candidate() -> None:
    empty = Candidates([], [], no_base_bytes=1)
    assert (len(empty), empty.operations(np.arange(0)), empty.partitions_beside(np.arange(0))) == (0, [], set())

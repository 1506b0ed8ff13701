"""Columns of slices: which logs and names they keep, and their objects. test_latest_slices.py compares numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hudi_core.model.names import FileGroupId
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.naming import timeline_of
from hudi_core.view.latest_slices import latest_slices
from hudi_core.view.slice_columns import LatestSlices, ids_by_partition
from hudi_core.view.slicing import Slicing
from tests.support.listed_names import base, log


def columns(sizes: Mapping[str, int]) -> LatestSlices:
    infos = [FileInfo(f"p/{name}", size, 0.0) for name, size in sorted(sizes.items())]
    return latest_slices([("p", infos)], Slicing(timeline_of(["001.deltacommit", "003.deltacommit"])), {}, {})


def test_logs_are_taken_by_their_instant() -> None:
    asked: list[str] = []

    def takes(instant: str) -> bool:
        asked.append(instant)
        return instant == "001"

    names = [base("001"), log("001", 1), log("001", 2), base("003", file_id="g-0"), log("003", file_id="g-0")]
    found = columns(dict.fromkeys(names, 10))
    kept = found.with_logs(takes)
    assert (asked, kept.log_counts.tolist(), kept.data_bytes.tolist()) == (["001", "003"], [2, 0], [30, 10])
    assert found.with_logs(lambda instant: True) is found


def test_names_of_files_that_are_left_out_are_not_kept() -> None:
    found = columns({base("001"): 1, base("003"): 2, log("003"): 3, base("003", file_id="g-0"): 4, "notes.txt": 5})
    assert dict(zip(found.names.to_pylist(), found.sizes.tolist(), strict=True)) == {
        base("003"): 2,
        log("003"): 3,
        base("003", file_id="g-0"): 4,
    }
    assert found.where(np.array([False, True])).names.to_pylist() == [base("003", file_id="g-0")]


def test_objects_have_their_log_files_in_scan_order() -> None:
    names = [log("001", 10), log("001", 2), log("001", 2, "0-1-1"), log("001", 3, tail=".cdc"), base("001")]
    (item,) = columns(dict.fromkeys(names, 10)).slices(np.array([0]))
    assert [file.name for file in item.log_files] == [log("001", 2, "0-1-1"), log("001", 2), log("001", 10)]
    assert [file.name for file in item.cdc_files] == [log("001", 3, tail=".cdc")]
    assert item.size == 40


def test_file_ids_by_partition() -> None:
    groups = [FileGroupId("p", "a"), FileGroupId("q", "b"), FileGroupId("p", "c")]
    assert ids_by_partition(groups) == {"p": ["a", "c"], "q": ["b"]}

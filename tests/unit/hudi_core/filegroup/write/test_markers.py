from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.errors import ConflictError, CorruptFileError, FormatError
from hudi_core.filegroup.write.markers import (
    Marker,
    MarkerType,
    check_attempt,
    create_marker,
    delete_markers,
    list_markers,
)
from hudi_core.model.names import ClaimFolder
from hudi_core.storage.local import LocalStorage
from tests.support.golden_data import GoldenCase
from tests.support.memory_storage import MemoryStorage
from tests.support.running_attempts import let_run


def test_direct_markers_are_listed_and_deleted() -> None:
    storage = MemoryStorage()
    deep = create_marker(storage, "007", "a=1/b=2", "f-0_0-1-2_007.parquet", MarkerType.MERGE)
    flat = create_marker(storage, "007", "", "g-0_0-1-2_007.parquet", MarkerType.CREATE)
    create_marker(storage, "008", "", "h-0_0-1-2_008.parquet", MarkerType.CREATE)
    assert storage.exists(".hoodie/.temp/007/a=1/b=2/f-0_0-1-2_007.parquet.marker.MERGE")
    assert list_markers(storage, "007") == sorted([deep, flat])
    assert {marker.partition for marker in list_markers(storage, "007")} == {"", "a=1/b=2"}
    assert deep.data_path == "a=1/b=2/f-0_0-1-2_007.parquet"
    delete_markers(storage, "007")
    assert list_markers(storage, "007") == []
    assert len(list_markers(storage, "008")) == 1


ENDS: dict[str, Callable[[MemoryStorage], object]] = {
    "decided or succeeded": lambda storage: storage.write(ClaimFolder("007").decision(2), b""),
    "claims removed": lambda storage: storage.delete(ClaimFolder("007").claim(2)),
    "claims removed, and claimed anew": lambda storage: delete_markers(storage, "007"),
}


@pytest.mark.parametrize("end", ENDS)
def test_what_an_attempt_wrote_that_is_over_is_deleted(end: str) -> None:
    storage = MemoryStorage()
    marker = create_marker(storage, "007", "p", "f-0_0-2-1_007.parquet", MarkerType.CREATE)
    other = create_marker(storage, "008", "p", "f-0_0-2-1_008.parquet", MarkerType.CREATE)
    let_run(storage, "007", 1, 2, 3)
    storage.write(ClaimFolder("007").decision(1), b"")
    for path in (marker.data_path, other.data_path):
        storage.write(path, b"rows")
    check_attempt(storage, "007", 2, marker, closed=True)
    assert storage.exists(marker.data_path)
    ENDS[end](storage)
    with pytest.raises(ConflictError, match="run 2 of instant 007 has ended") as caught:
        check_attempt(storage, "007", 2, marker, closed=True)
    assert caught.value.path == marker.data_path
    assert not storage.exists(marker.data_path)
    assert storage.exists(other.data_path)
    assert (list_markers(storage, "007"), list_markers(storage, "008")) == ([], [other])


def test_markers_batched_by_a_timeline_server() -> None:
    storage = MemoryStorage()
    storage.write(".hoodie/.temp/007/MARKERS.type", b"TIMELINE_SERVER_BASED")
    storage.write(".hoodie/.temp/007/MARKERS0", b"p/f-0_0-1-2_007.parquet.marker.MERGE\n")
    storage.write(
        ".hoodie/.temp/007/MARKERS12", b"g-0_0-1-2_007.parquet.marker.CREATE\nq/.x-0_001.log.1_0-1-2.marker.APPEND\n"
    )
    assert list_markers(storage, "007") == [
        Marker("", "g-0_0-1-2_007.parquet", "CREATE"),
        Marker("p", "f-0_0-1-2_007.parquet", "MERGE"),
        Marker("q", ".x-0_001.log.1_0-1-2", "APPEND"),
    ]


@pytest.mark.parametrize(
    "line",
    [b"../f.marker.MERGE", b"/etc/f.marker.MERGE", b".hoodie/f.marker.MERGE", b"p/f.marker.WHAT", b"p/f.parquet"],
)
def test_markers_that_point_elsewhere_are_refused(line: bytes) -> None:
    storage = MemoryStorage()
    storage.write(".hoodie/.temp/007/MARKERS0", line + b"\n")
    with pytest.raises(FormatError, match="MARKERS0"):
        list_markers(storage, "007")


@pytest.mark.parametrize("partition", ["a\u2028b", "a\x85b", "a\rb", "a\x0cb", "a\tb", "a\\b"])
def test_a_partition_of_a_list_may_have_any_separator_but_a_line_feed(partition: str) -> None:
    storage = MemoryStorage()
    line = f"{partition}/f-0_0-1-2_007.parquet.marker.MERGE\n"
    storage.write(".hoodie/.temp/007/MARKERS0", line.encode())
    assert list_markers(storage, "007") == [Marker(partition, "f-0_0-1-2_007.parquet", "MERGE")]


def test_a_line_feed_is_refused_in_a_list_alone() -> None:
    """The list, as Hudi writes it, does not say where a partition with a line feed starts."""
    storage = MemoryStorage()
    made = create_marker(storage, "007", "a\nb", "f-0_0-1-2_007.parquet", MarkerType.CREATE)
    assert list_markers(storage, "007") == [made]
    storage.write(".hoodie/.temp/008/MARKERS0", b"p/f.parquet.marker.MERGE\na\nb/f.parquet.marker.MERGE\n")
    with pytest.raises(FormatError, match="not a marker: 'a'") as caught:
        list_markers(storage, "008")
    assert "hoodie.rollback.using.markers=false" in str(caught.value.remedy)


def test_a_line_that_was_cut_as_it_was_written_announces_nothing() -> None:
    storage = MemoryStorage()
    storage.write(
        ".hoodie/.temp/007/MARKERS0", b"p/f-0_0-1-2_007.parquet.marker.MERGE\np/g-0_0-1-2_007.parquet.marker.CREA"
    )
    assert [marker.file_name for marker in list_markers(storage, "007")] == ["f-0_0-1-2_007.parquet"]
    storage.write(
        ".hoodie/.temp/007/MARKERS0", b"p/f-0_0-1-2_007.parquet.marker.MERGE\np/g-0_0-1-2_007.parquet.marker.CREATE"
    )
    assert len(list_markers(storage, "007")) == 2


def test_a_type_that_a_crash_left_empty_is_none() -> None:
    storage = MemoryStorage()
    storage.write(".hoodie/.temp/007/MARKERS.type", b"")
    storage.write(".hoodie/.temp/007/MARKERS0", b"p/f-0_0-1-2_007.parquet.marker.MERGE\n")
    assert list_markers(storage, "007") == [Marker("p", "f-0_0-1-2_007.parquet", "MERGE")]


def test_unknown_marker_type_and_broken_text_are_refused() -> None:
    storage = MemoryStorage()
    storage.write(".hoodie/.temp/007/MARKERS.type", b"OTHER")
    with pytest.raises(FormatError, match="OTHER"):
        list_markers(storage, "007")
    storage.write(".hoodie/.temp/008/MARKERS1", b"\xff")
    with pytest.raises(CorruptFileError, match="MARKERS1"):
        list_markers(storage, "008")


@pytest.mark.parametrize("case", ["failed_inflight_cow_direct_markers", "failed_inflight_mor"])
def test_markers_of_real_hudi(golden: Callable[[str, str], GoldenCase], case: str) -> None:
    table = golden("6", case).table
    storage = LocalStorage(str(table))
    found = [
        marker
        for folder in storage.list_folders(".hoodie/.temp")
        for marker in list_markers(storage, folder.rsplit("/", 1)[-1])
    ]
    assert found
    assert {marker.kind for marker in found} <= {"CREATE", "MERGE", "APPEND"}
    assert all((table / marker.partition).is_dir() for marker in found)


def test_marker_folders_that_nest_deeper_than_partitions_are_refused() -> None:
    storage = MemoryStorage()
    storage.write(f".hoodie/.temp/007/{'a/' * 40}f-0_0-1-2_007.parquet.marker.MERGE", b"")
    with pytest.raises(FormatError, match="more than 32 levels"):
        list_markers(storage, "007")

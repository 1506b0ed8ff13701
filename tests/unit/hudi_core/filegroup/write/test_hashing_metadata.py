"""The hashing metadata of partitions, by the files that real Hudi wrote, and by what its releases do with them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hudi_core.errors import FormatError
from hudi_core.filegroup.write.buckets import Ring
from hudi_core.filegroup.write.hashing_metadata import create_ring, first_content, folder_of, ids_of, ring_of
from hudi_core.storage.local import LocalStorage
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
CASE = "bucket_index_consistent_mor"
DAY = "2024-01-01"
FIRST = "00000000000000.hashing_meta"


def ring(table: Path, partition: str = DAY) -> Ring | None:
    context = open_context(table)
    return ring_of(context.storage, context.view(context.active.load()), partition)


def later(table: Path, instant: str, prefixes: Sequence[str]) -> None:
    """A file as a clustering at that instant leaves it."""
    nodes = [{"value": end + 1, "fileIdPrefix": prefix, "tag": "NORMAL"} for end, prefix in enumerate(prefixes)]
    (table / folder_of(DAY)).mkdir(parents=True, exist_ok=True)
    (table / folder_of(DAY) / f"{instant}.hashing_meta").write_text(json.dumps({"nodes": nodes}))


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_new_partition_gets_what_real_hudi_writes(golden: Golden, version: str) -> None:
    table = golden(version, CASE).table
    context = open_context(table)
    for name in context.view(context.active.load()).partitions():
        there = (table / folder_of(name) / FIRST).read_bytes()
        assert first_content(name, 4) == there
        found = ring(table, name)
        assert found is not None
        assert {f"{node['fileIdPrefix']}-0" for node in json.loads(there)["nodes"]} == {*ids_of(found)}


@pytest.mark.parametrize("count", [1, 3, 256])
@pytest.mark.parametrize("partition", ["", "dt=2024-01-01/place=ä b", 'a"b\\c'])
def test_it_is_made_once(tmp_path: Path, partition: str, count: int) -> None:
    """The second writer takes what the first one made, whatever its options say."""
    storage = LocalStorage(tmp_path)
    made = create_ring(storage, partition, count)
    assert (len(made.ends), made.ends[-1]) == (count, 0x7FFFFFFF)
    assert create_ring(storage, partition, count + 1) == made
    assert [path.name for path in (tmp_path / folder_of(partition)).iterdir()] == [FIRST]


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_completed_clustering_has_resized_the_buckets(golden: Golden, version: str) -> None:
    """Completed on the timeline, or marked by Hudi; its file is there before that."""
    table = golden(version, "clustered_cow").table
    replaced = next(item for item in open_context(table).active.load().commits() if item.action == "replacecommit")
    later(table, "29990101000000001", ["c"])
    assert ring(table) is None
    first = create_ring(LocalStorage(table), DAY, 2)
    assert ring(table) == first
    later(table, replaced.requested_time, ["a", "b"])
    assert ring(table) == Ring((1, 2), ("a", "b"))
    (table / folder_of(DAY) / "29990101000000001.commit").touch()
    assert ring(table) == Ring((1,), ("c",))


@pytest.mark.parametrize("version", ["6", "9"])
def test_base_files_show_what_the_timeline_no_longer_does(golden: Golden, version: str) -> None:
    """As in Hudi. A pending clustering has not resized them yet."""
    table = golden(version, "clustering_requested_cow").table
    context = open_context(table)
    timeline = context.active.load()
    (pending,) = timeline.pending()
    (base, *_) = context.view(timeline).latest_base_files(DAY)
    prefix = base.name.partition("_")[0].removesuffix("-0")
    first = create_ring(context.storage, DAY, 2)
    later(table, pending.requested_time, [prefix])
    later(table, "29990101000000001", ["a"])
    assert ring(table) == first
    later(table, "20200101000000001", ["b", prefix])
    assert ring(table) == Ring((1, 2), ("b", prefix))


def node(**changes: Any) -> dict[str, Any]:
    return {"value": 1, "fileIdPrefix": "a", "tag": "NORMAL", **changes}


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "is no hashing metadata"),
        (b"{}", "is no hashing metadata"),
        (b'{"nodes": []}', "not apart"),
        (b'{"nodes": 3}', "is no hashing metadata"),
        ([node(), node()], "not apart"),
        ([node(), node(value=2)], "not apart"),
        ([node(value="1")], "is no bucket"),
        ([node(value=True)], "is no bucket"),
        ([node(value=-1)], "is no bucket"),
        ([node(value=1 << 31)], "is no bucket"),
        ([node(tag="REPLACE")], "is no bucket"),
        ([node(fileIdPrefix="a_b")], "is no bucket"),
        ([node(fileIdPrefix="../a")], "path '../a'"),
        ([node(fileIdPrefix="a/b")], "is not a file name"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes | list[Any], match: str) -> None:
    path = tmp_path / folder_of(DAY) / FIRST
    path.parent.mkdir(parents=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps({"nodes": content}).encode())
    with pytest.raises(FormatError, match=match) as raised:
        create_ring(LocalStorage(tmp_path), DAY, 4)
    assert raised.value.path == f"{folder_of(DAY)}/{FIRST}"

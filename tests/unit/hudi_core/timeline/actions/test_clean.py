"""The Avro files of cleans, against those that real Hudi wrote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hudi_core.codec.avro.container import read_container, write_container
from hudi_core.errors import CorruptFileError, FormatError, UnsupportedError
from hudi_core.timeline.actions.clean import (
    CleanedPartition,
    CleanMetadata,
    CleanPlan,
    LastClean,
    RetainedInstant,
    decode_clean_plan,
    decode_last_clean,
    encode_clean_metadata,
    encode_clean_plan,
)
from hudi_core.timeline.actions.content import decode_datum, load_schema
from hudi_core.timeline.actions.rollback import encode_rollback_plan
from tests.support.golden_timelines import VERSIONS, every_table, load_timelines

BASE, LOG = "g-0_0-1-2_20260101000000000.parquet", ".g-0_20260101000000000.log.1_0-1-2"
PLAN = CleanPlan(
    "KEEP_LATEST_COMMITS",
    {"2024/01": (BASE, LOG), "": ()},
    "20260105000000000",
    RetainedInstant("20260103000000000", "commit"),
    ("2024/02",),
    {"savepointed_timestamps": "20260101000000000"},
)


def golden_files(ending: str) -> Iterator[tuple[str, bytes]]:
    """Every file of the data timelines with this ending and content."""
    for folder, name in every_table(*VERSIONS):
        if "clean" not in name and "archived" not in name:
            continue
        storage = load_timelines(name, folder)
        for base in (".hoodie", ".hoodie/timeline"):
            for info in storage.list_files(base):
                if info.name.endswith(ending) and info.size:
                    yield f"{folder}/{name}/{info.name}", storage.read(info.path)


def without_doc(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: without_doc(value) for key, value in schema.items() if key != "doc"}
    return [without_doc(item) for item in schema] if isinstance(schema, list) else schema


@pytest.mark.parametrize(
    ("ending", "schema"), [(".clean.requested", "HoodieCleanerPlan"), (".clean", "HoodieCleanMetadata")]
)
def test_the_schemas_are_those_of_real_hudi(ending: str, schema: str) -> None:
    """Field by field, in order, with defaults; without the texts of the documentation."""
    files = list(golden_files(ending))
    assert len(files) >= 30
    for name, data in files:
        assert without_doc(read_container(data, path=name)[0]) == load_schema(schema), name


def test_every_golden_plan_is_read_and_written_back() -> None:
    """Decoded, encoded with the paths of its writer, decoded as a plain record: the same as real Hudi's, whatever of
    it.
    """
    files = list(golden_files(".clean.requested"))
    assert len(files) >= 50
    for name, data in files:
        raw = decode_datum(data, path=name)
        addresses = {
            f"{partition}/{path.rsplit('/', 1)[1]}".lstrip("/"): path
            for partition, items in raw["filePathsToBeDeletedPerPartition"].items()
            for path in (item["filePath"] for item in items)
        }
        plan = decode_clean_plan(data, path=name)
        assert plan.file_count == len(addresses) > 0
        assert decode_datum(encode_clean_plan(plan, addresses.__getitem__), path=name) == raw


def test_every_golden_metadata_is_written_back() -> None:
    files = list(golden_files(".clean"))
    assert len(files) >= 50
    for name, data in files:
        raw = decode_datum(data, path=name)
        parts = {
            key: CleanedPartition(tuple(part["successDeleteFiles"]), part["isPartitionDeleted"])
            for key, part in raw["partitionMetadata"].items()
        }
        (policy,) = {part["policy"] for part in raw["partitionMetadata"].values()}
        metadata = CleanMetadata(
            raw["startCleanTime"],
            policy,
            parts,
            raw["earliestCommitToRetain"],
            raw["lastCompletedCommitTimestamp"],
            raw["timeTakenInMillis"],
            raw["extraMetadata"],
        )
        assert decode_datum(encode_clean_metadata(metadata), path=name) == raw


def test_a_plan_survives_the_round_trip() -> None:
    data = encode_clean_plan(PLAN, lambda path: f"s3://bucket/table/{path}")
    raw = decode_datum(data, path="p")
    assert raw["filePathsToBeDeletedPerPartition"]["2024/01"][0] == {
        "filePath": f"s3://bucket/table/2024/01/{BASE}",
        "isBootstrapBaseFile": False,
    }
    assert decode_clean_plan(data, path="p") == PLAN
    assert encode_clean_plan(PLAN, lambda path: f"s3://bucket/table/{path}") == data


def plan_bytes(**changes: Any) -> bytes:
    raw = decode_datum(encode_clean_plan(PLAN, lambda path: f"/t/{path}"), path="p")
    return write_container(load_schema("HoodieCleanerPlan"), [{**raw, **changes}])


def test_a_plan_of_version_1_names_files_alone() -> None:
    data = plan_bytes(
        version=1, filesToBeDeletedPerPartition={"2024/01": [BASE]}, filePathsToBeDeletedPerPartition=None
    )
    assert decode_clean_plan(data, path="p").files == {"2024/01": (BASE,)}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"version": 3}, UnsupportedError, "version 3"),
        (
            {"filePathsToBeDeletedPerPartition": {"p": [{"filePath": None, "isBootstrapBaseFile": False}]}},
            CorruptFileError,
            "has no path",
        ),
        (
            {"filePathsToBeDeletedPerPartition": {"p": [{"filePath": f"/t/p/{BASE}", "isBootstrapBaseFile": True}]}},
            UnsupportedError,
            "bootstrap",
        ),
        (
            {"filePathsToBeDeletedPerPartition": {"p": [{"filePath": f"/t/q/{BASE}"}]}},
            FormatError,
            "does not lie in partition",
        ),
        (
            {"filePathsToBeDeletedPerPartition": {"p": [{"filePath": f"/t/xp/{BASE}"}]}},
            FormatError,
            "does not lie in partition",
        ),
        (
            {"filePathsToBeDeletedPerPartition": {"p": [{"filePath": f"/t/p/../p/{BASE}"}]}},
            FormatError,
            "does not lie in partition",
        ),
        (
            {"filePathsToBeDeletedPerPartition": {"p": [{"filePath": "/t/p/.hoodie_partition_metadata"}]}},
            FormatError,
            "neither a base file",
        ),
        ({"filePathsToBeDeletedPerPartition": {"p": [{"filePath": "/t/p/a\0b"}]}}, FormatError, "zero byte"),
        ({"filePathsToBeDeletedPerPartition": {"p": [{"filePath": f"/t/p/{BASE}"}] * 2}}, FormatError, "twice"),
        ({"filePathsToBeDeletedPerPartition": {"../p": [{"filePath": f"/t/../p/{BASE}"}]}}, FormatError, "segment"),
        (
            {"filePathsToBeDeletedPerPartition": {".hoodie": [{"filePath": f"/t/.hoodie/{BASE}"}]}},
            FormatError,
            r"\.hoodie folder",
        ),
        ({"partitionsToBeDeleted": ["/abs"]}, FormatError, "not relative"),
        ({"partitionsToBeDeleted": ["a/.."]}, FormatError, "segment"),
        ({"partitionsToBeDeleted": [".hoodie/metadata"]}, FormatError, r"\.hoodie folder"),
    ],
)
def test_a_plan_that_cannot_be_this_tables_is_refused(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        decode_clean_plan(plan_bytes(**changes), path=".hoodie/1.clean.requested")
    assert ".hoodie/1.clean.requested" in str(caught.value)


def test_the_partition_of_a_table_without_partitions_is_never_dropped() -> None:
    assert decode_clean_plan(plan_bytes(partitionsToBeDeleted=["", "a"]), path="p").dropped_partitions == ("a",)


@pytest.mark.parametrize("data", [b"", b"Obj\x01", encode_rollback_plan("1", "commit", []), b"{}"])
def test_bytes_that_are_no_plan_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match="p"):
        decode_clean_plan(data, path="p")
    with pytest.raises(CorruptFileError, match="p"):
        decode_last_clean(data, "1", path="p")


def test_what_the_next_clean_needs_of_the_last() -> None:
    metadata = CleanMetadata(
        "5",
        "KEEP_LATEST_COMMITS",
        {"p": CleanedPartition((BASE,), True)},
        "3",
        "4",
        12,
        {"savepointed_timestamps": "1,2"},
    )
    assert decode_last_clean(encode_clean_metadata(metadata), "5", path="p") == LastClean(
        "5", "3", "4", frozenset({"1", "2"})
    )
    assert decode_last_clean(encode_clean_metadata(CleanMetadata("5", "x", {})), "5", path="p") == LastClean(
        "5", "", ""
    )

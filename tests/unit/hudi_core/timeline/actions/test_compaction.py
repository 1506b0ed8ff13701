"""A compaction plan names files of its own file group and nothing else; every refusal names the plan's file."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.codec.avro.container import write_container
from hudi_core.errors import CorruptFileError, FormatError, UnsupportedError
from hudi_core.timeline.actions.compaction import (
    CompactionOperation,
    CompactionPlan,
    decode_compaction_plan,
    encode_compaction_plan,
)
from hudi_core.timeline.actions.content import decode_datum, encode_datum, load_schema
from tests.support.golden_timelines import load_table

PATH = ".hoodie/20261120214905004.compaction.requested"
FILE_ID = "4652d6bf-c0f4-475f-a166-3f16aedb31a3-0"
BASE = f"{FILE_ID}_0-114-139_20261120214719030.parquet"
LOG = f".{FILE_ID}_20261120214719030.log.1_0-140-171"


def _operation(**changes: Any) -> dict[str, Any]:
    return {
        "baseInstantTime": "20261120214719030",
        "deltaFilePaths": [LOG],
        "dataFilePath": BASE,
        "fileId": FILE_ID,
        "partitionPath": "2024-01-02",
        "metrics": {"TOTAL_LOG_FILES": 1.0},
        "bootstrapFilePath": None,
    } | changes


def _plan(*operations: dict[str, Any], version: int = 2) -> bytes:
    return encode_datum(
        "HoodieCompactionPlan",
        {
            "operations": list(operations),
            "extraMetadata": None,
            "version": version,
            "strategy": None,
            "preserveHoodieMetadata": False,
        },
    )


def test_a_plan_of_real_hudi() -> None:
    storage = load_table("mor_compaction_requested")
    plan = decode_compaction_plan(storage.read(PATH), path=PATH)
    assert [operation.partition for operation in plan.operations] == ["2024-01-01", "2024-01-02", "2024-01-03"]
    operation = plan.operations[1]
    assert operation == CompactionOperation(
        "2024-01-02",
        FILE_ID,
        "20261120214719030",
        BASE,
        (LOG, f".{FILE_ID}_20261120214719030.log.2_0-173-204"),
        operation.metrics,
    )
    assert operation.metrics["TOTAL_LOG_FILES_SIZE"] == 6054.0
    for each in plan.operations:
        assert storage.exists(f"{each.partition}/{each.base_file}")
        assert all(storage.exists(f"{each.partition}/{log}") for log in each.log_files)


def test_the_schema_is_the_one_of_real_hudi_without_its_doc_texts() -> None:
    data = load_table("mor_compaction_requested").read(PATH)
    assert b'"avro.java.string":"String"' in data
    written = _plan(_operation())
    assert b'"avro.java.string":"String"' in written
    assert load_schema("HoodieCompactionPlan")["namespace"] == "org.apache.hudi.avro.model"


HOSTILE = [
    {"partitionPath": "../../etc"},
    {"partitionPath": "/etc"},
    {"partitionPath": "a/../../b"},
    {"partitionPath": "a//b"},
    {"partitionPath": ".hoodie"},
    {"partitionPath": ".hoodie/metadata/files"},
    {"partitionPath": "file:/etc"},
    {"partitionPath": "a\\..\\b"},
    {"partitionPath": "a\x00b"},
    {"dataFilePath": "../../etc/x"},
    {"dataFilePath": f"../{BASE}"},
    {"dataFilePath": f"/abs/{BASE}"},
    {"dataFilePath": f"s3://other/{BASE}"},
    {"dataFilePath": f"{BASE}\x00"},
    {"dataFilePath": "passwd"},
    {"dataFilePath": BASE.replace("4652d6bf", "ffffffff")},
    {"dataFilePath": BASE.replace("20261120214719030", "20261120214719031")},
    {"dataFilePath": LOG},
    {"deltaFilePaths": ["../../etc/x"]},
    {"deltaFilePaths": [f"/abs/{LOG}"]},
    {"deltaFilePaths": [f"x/{LOG}"]},
    {"deltaFilePaths": [f"{LOG}\x00"]},
    {"deltaFilePaths": [LOG, LOG]},
    {"deltaFilePaths": [LOG.replace("4652d6bf", "ffffffff")]},
    {"deltaFilePaths": [LOG.replace("20261120214719030", "20261120214719031")]},
    {"deltaFilePaths": [BASE]},
    {"deltaFilePaths": [], "dataFilePath": None},
    {"fileId": None},
    {"fileId": ""},
    {"baseInstantTime": None},
    {"bootstrapFilePath": "/x/y.parquet"},
]


@pytest.mark.parametrize("changes", HOSTILE, ids=[repr(changes) for changes in HOSTILE])
def test_a_plan_that_names_foreign_files_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(FormatError) as refusal:
        decode_compaction_plan(_plan(_operation(**changes)), path=PATH)
    assert PATH in str(refusal.value)
    assert refusal.value.exit_code == 2


LOG_2 = LOG.replace("20261120214719030", "20261120214719999")


def test_in_layout_2_a_log_carries_its_own_instant() -> None:
    older = LOG.replace("20261120214719030", "20261120214719000")
    plan = decode_compaction_plan(_plan(_operation(deltaFilePaths=[LOG_2, older])), path=PATH, layout=2)
    assert plan.operations[0].log_files == (older, LOG_2)
    with pytest.raises(FormatError, match="at 20261120214719030"):
        decode_compaction_plan(_plan(_operation(deltaFilePaths=[LOG_2])), path=PATH, layout=1)


LAYOUT_2_HOSTILE = [
    {"deltaFilePaths": [LOG_2.replace("4652d6bf", "ffffffff")]},
    {"deltaFilePaths": [LOG_2.replace("20261120214719999", "")]},
    {"deltaFilePaths": [f"../{LOG_2}"]},
    {"deltaFilePaths": [LOG_2, LOG_2]},
    {"deltaFilePaths": [BASE]},
    {"dataFilePath": BASE.replace("20261120214719030", "20261120214719031")},
    {"partitionPath": "../x"},
]


@pytest.mark.parametrize("changes", LAYOUT_2_HOSTILE, ids=[repr(changes) for changes in LAYOUT_2_HOSTILE])
def test_in_layout_2_foreign_files_are_refused_too(changes: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match=PATH):
        decode_compaction_plan(_plan(_operation(**changes)), path=PATH, layout=2)


def test_a_file_group_stands_once_in_a_plan() -> None:
    with pytest.raises(FormatError, match="twice"):
        decode_compaction_plan(_plan(_operation(), _operation(dataFilePath=None)), path=PATH)


@pytest.mark.parametrize("folder", ["2024-01-02", "/warehouse/t/2024-01-02", "file:/warehouse/t/2024-01-02", ""])
def test_version_1_paths_count_by_partition_and_name_only(folder: str) -> None:
    base = f"{folder}/{BASE}" if folder else BASE
    plan = decode_compaction_plan(
        _plan(_operation(dataFilePath=base, deltaFilePaths=[f"{folder}/{LOG}" if folder else LOG]), version=1),
        path=PATH,
    )
    assert (plan.operations[0].base_file, plan.operations[0].log_files) == (BASE, (LOG,))


@pytest.mark.parametrize(
    "path",
    [
        f"/warehouse/t/2024-01-03/{BASE}",
        f"/warehouse/../2024-01-02/{BASE}",
        f"/warehouse/x2024-01-02/{BASE}",
        "/etc/passwd",
    ],
)
def test_version_1_paths_outside_the_partition_are_refused(path: str) -> None:
    with pytest.raises(FormatError, match=PATH):
        decode_compaction_plan(_plan(_operation(dataFilePath=path), version=1), path=PATH)


def test_a_container_holds_one_record() -> None:
    two = write_container(load_schema("HoodieCompactionPlan"), [{"operations": None}, {"operations": None}])
    with pytest.raises(CorruptFileError, match="2 Avro records"):
        decode_compaction_plan(two, path=PATH)


def test_other_versions_and_other_records_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="version 3"):
        decode_compaction_plan(_plan(version=3), path=PATH)
    rollback = encode_datum("HoodieRollbackPlan", {"instantToRollback": None, "RollbackRequests": None, "version": 1})
    with pytest.raises(CorruptFileError, match="no compaction plan"):
        decode_compaction_plan(rollback, path=PATH)
    for data in (b"", b"{}", _plan(_operation())[:-3]):
        with pytest.raises(FormatError, match=PATH):
            decode_compaction_plan(data, path=PATH)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ({"type": "array", "items": "int"}, [1]),
        ("string", "x"),
        (
            {"type": "array", "items": {"type": "record", "name": "O", "fields": [{"name": "fileId", "type": "int"}]}},
            [{"fileId": 1}],
        ),
        (
            {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "O",
                    "fields": [{"name": "partitionPath", "type": {"type": "array", "items": "int"}}],
                },
            },
            [{"partitionPath": [1]}],
        ),
    ],
)
def test_a_plan_of_other_types_is_refused(kind: Any, value: Any) -> None:
    schema = {"type": "record", "name": "P", "fields": [{"name": "operations", "type": kind}]}
    with pytest.raises(FormatError, match=PATH):
        decode_compaction_plan(write_container(schema, [{"operations": value}]), path=PATH)


def test_change_data_logs_are_kept_apart_and_come_back_in_place() -> None:
    cdc = f".{FILE_ID}_20261120214759999.log.1_0-1-2.cdc"
    raw = _operation(deltaFilePaths=[LOG, cdc])
    plan = decode_compaction_plan(_plan(raw), path=PATH)
    assert (plan.operations[0].log_files, plan.operations[0].cdc_files) == ((LOG,), (cdc,))
    assert decode_datum(encode_compaction_plan(plan), path=PATH)["operations"] == [raw]


_digits = st.from_regex(r"\A[0-9]{17}\Z")


@st.composite
def _operations(draw: st.DrawFn) -> CompactionOperation:
    file_id = f"{draw(st.uuids())}-{draw(st.integers(0, 9))}"
    instant = draw(_digits)
    logs = tuple(f".{file_id}_{instant}.log.{version}_1-2-3" for version in range(1, draw(st.integers(0, 12)) + 1))
    base = (
        draw(st.sampled_from([None, f"{file_id}_0-0-0_{instant}.parquet"]))
        if logs
        else f"{file_id}_0-0-0_{instant}.parquet"
    )
    sizes = st.floats(-(2.0**62), 2.0**62)
    metrics = draw(st.dictionaries(st.sampled_from(["TOTAL_IO_MB", "TOTAL_LOG_FILES"]), sizes))
    return CompactionOperation(
        draw(st.sampled_from(["", "2024-01-01", "a=1/b=\u00d6"])), file_id, instant, base, logs, metrics
    )


@settings(max_examples=40)
@given(
    st.lists(_operations(), max_size=4, unique_by=lambda operation: operation.file_group),
    st.none() | st.dictionaries(st.text(), st.text(), max_size=2),
)
def test_plans_round_trip(operations: list[CompactionOperation], extra: dict[str, str] | None) -> None:
    plan = CompactionPlan(tuple(operations), extra_metadata=extra)
    again = decode_compaction_plan(encode_compaction_plan(plan), path=PATH)
    assert again == plan
    assert [dict(operation.metrics) for operation in again.operations] == [
        dict(operation.metrics) for operation in operations
    ]
    assert dataclasses.replace(again) == plan

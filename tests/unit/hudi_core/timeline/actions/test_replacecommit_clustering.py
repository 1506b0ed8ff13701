"""A clustering plan names file groups of this table and nothing else; an overwrite's requested file is no such plan."""

from __future__ import annotations

import copy
import io
from typing import Any

import fastavro
import pytest

from hudi_core.codec.avro.container import read_container, write_container
from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.model.names import FileGroupId
from hudi_core.timeline.actions.commit import decode_commit
from hudi_core.timeline.actions.content import decode_datum, encode_datum
from hudi_core.timeline.actions.replacecommit import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    decode_clustering_plan,
    encode_clustering_plan,
    encode_inflight_clustering,
)
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import is_clustering, read_clustering_plan, read_clustering_plans
from tests.support.golden_views import load_table, open_table
from tests.support.memory_storage import MemoryStorage

PATH = ".hoodie/20261120222304872.replacecommit.requested"
PARTITION = "2024-01-01"
FILE_ID = "8f829093-d820-44ab-8681-a6611aa030eb-0"
BASE = f"{FILE_ID}_1-2373-3435_20261120222300988.parquet"
LOG = f".{FILE_ID}_20261120222300988.log.1_1-2391-3456"
ROOT = "file:/warehouse/t/2024-01-01"
REAL = "6/clustering_requested_mor"


def _content(**changes: Any) -> tuple[Any, dict[str, Any]]:
    """The schema and the record of real Hudi's plan, its first slice changed."""
    schema, (raw,) = read_container(load_table(REAL).read(PATH), path=PATH)
    raw = copy.deepcopy(raw)
    raw["clusteringPlan"]["inputGroups"][0]["slices"][0].update(changes)
    return schema, raw


def _plan(**changes: Any) -> bytes:
    schema, raw = _content(**changes)
    return write_container(schema, [raw])


def test_a_plan_of_real_hudi() -> None:
    plan = decode_clustering_plan(load_table(REAL).read(PATH), path=PATH)
    assert plan is not None
    assert len(plan.slices) == 6
    first = plan.slices[0]
    assert (first.partition, first.file_id, first.base_file, first.log_files) == (PARTITION, FILE_ID, BASE, (LOG,))
    assert FileGroupId(PARTITION, FILE_ID) in set(plan.file_groups())
    assert len(set(plan.file_groups())) == 6


@pytest.mark.parametrize("root", [ROOT, "/warehouse/t/2024-01-01", "s3://bucket/t/2024-01-01"])
def test_of_a_path_only_the_name_counts(root: str) -> None:
    plan = decode_clustering_plan(_plan(dataFilePath=f"{root}/{BASE}", deltaFilePaths=[f"{root}/{LOG}"]), path=PATH)
    assert plan is not None
    assert (plan.slices[0].base_file, plan.slices[0].log_files) == (BASE, (LOG,))


def test_a_slice_may_be_all_logs() -> None:
    plan = decode_clustering_plan(_plan(dataFilePath=""), path=PATH)
    assert plan is not None
    assert plan.slices[0].base_file is None


HOSTILE = [
    {"partitionPath": "../../etc"},
    {"partitionPath": ".hoodie"},
    {"partitionPath": "2024-01-02"},
    {"fileId": None},
    {"fileId": ""},
    {"fileId": "ffffffff-0"},
    {"dataFilePath": "/etc/passwd"},
    {"dataFilePath": f"{ROOT}/../2024-01-01/{BASE}"},
    {"dataFilePath": f"{ROOT}/passwd"},
    {"dataFilePath": f"{ROOT}/{BASE}\x00"},
    {"dataFilePath": f"{ROOT}/{BASE.replace('8f829093', 'ffffffff')}"},
    {"deltaFilePaths": [f"{ROOT}/{LOG.replace('8f829093', 'ffffffff')}"]},
    {"deltaFilePaths": [f"/elsewhere/{LOG}"]},
    {"deltaFilePaths": [f"{ROOT}/{BASE}"]},
]


@pytest.mark.parametrize("changes", HOSTILE, ids=[repr(changes) for changes in HOSTILE])
def test_a_plan_that_names_foreign_files_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(FormatError) as refusal:
        decode_clustering_plan(_plan(**changes), path=PATH)
    assert PATH in str(refusal.value)


def test_a_file_group_stands_once_in_a_plan() -> None:
    schema, raw = _content()
    groups = raw["clusteringPlan"]["inputGroups"]
    groups[1]["slices"].append(groups[0]["slices"][0])
    with pytest.raises(FormatError, match="twice"):
        decode_clustering_plan(write_container(schema, [raw]), path=PATH)


def test_what_plans_no_clustering_is_none() -> None:
    schema, raw = _content()
    assert decode_clustering_plan(b"", path=PATH) is None
    assert decode_clustering_plan(write_container(schema, [dict.fromkeys(raw)]), path=PATH) is None
    assert (
        decode_clustering_plan(
            write_container(schema, [raw | {"operationType": "DELETE_PARTITION", "clusteringPlan": None}]), path=PATH
        )
        is None
    )


def test_other_records_and_broken_bytes_are_refused() -> None:
    rollback = encode_datum("HoodieRollbackPlan", {"instantToRollback": None, "RollbackRequests": None, "version": 1})
    for data in (rollback, b"{}", _plan()[:-3]):
        with pytest.raises(CorruptFileError, match="replacecommit"):
            decode_clustering_plan(data, path=PATH)


@pytest.mark.parametrize(
    ("name", "action"),
    [("6/clustering_requested_mor", Action.REPLACE_COMMIT), ("9/clustering_requested_mor", Action.CLUSTERING)],
)
def test_a_clustering_is_known_by_its_plan_or_its_name(name: str, action: str) -> None:
    _, active, view = open_table(name)
    (pending,) = view.timeline.pending()
    assert pending.action == action
    assert is_clustering(active, pending)
    assert set(read_clustering_plans(active, view.timeline)) == {pending.requested_time}
    _, after, done = open_table(f"{name}.after")
    (replace,) = done.timeline.of_actions(Action.REPLACE_COMMIT)
    assert is_clustering(after, replace)
    assert read_clustering_plans(after, done.timeline) == {}
    assert read_clustering_plan(after, replace) == read_clustering_plan(active, pending)


def test_overwrites_and_instants_that_are_gone_are_no_clusterings() -> None:
    for version in ("6", "9"):
        _, active, view = open_table(f"{version}/insert_overwrite_table")
        (replace,) = view.timeline.of_actions(Action.REPLACE_COMMIT)
        assert not is_clustering(active, replace)
    storage = MemoryStorage()

    class Layout:
        layout_version = 1
        timeline_folder = ".hoodie"

    gone = Instant("001", Action.REPLACE_COMMIT, State.REQUESTED, None, Action.REPLACE_COMMIT)
    active = ActiveTimeline(storage, Layout())
    assert not is_clustering(active, gone)
    storage.write(".hoodie/001.replacecommit.requested", b"")
    timeline = active.load()
    assert read_clustering_plans(active, timeline) == {}
    storage.delete(".hoodie/001.replacecommit.requested")
    assert read_clustering_plans(active, timeline) == {}


@pytest.mark.parametrize(
    ("field", "kind", "value"),
    [
        ("inputGroups", {"type": "array", "items": "int"}, [1]),
        ("inputGroups", "string", "x"),
    ],
)
def test_a_plan_of_other_types_is_refused(field: str, kind: Any, value: Any) -> None:
    plan = {"type": "record", "name": "P", "fields": [{"name": field, "type": kind}]}
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "operationType", "type": "string"}, {"name": "clusteringPlan", "type": plan}],
    }
    data = write_container(schema, [{"operationType": "CLUSTER", "clusteringPlan": {field: value}}])
    with pytest.raises(CorruptFileError, match=PATH):
        decode_clustering_plan(data, path=PATH)


def test_the_reference_reads_the_same_groups() -> None:
    data = load_table("9/clustering_requested_cow")
    (path,) = (info.path for info in data.list_files(".hoodie/timeline") if info.name.endswith(".clustering.requested"))
    (raw,) = fastavro.reader(io.BytesIO(data.read(path)))
    plan = decode_clustering_plan(data.read(path), path=path)
    assert plan is not None
    named = {
        (item["partitionPath"], item["fileId"])
        for group in raw["clusteringPlan"]["inputGroups"]
        for item in group["slices"]
    }
    assert {(group.partition, group.file_id) for group in plan.file_groups()} == named


@pytest.mark.parametrize("missing", [None, (), ("a", "b")])
def test_a_plan_comes_back_as_it_was_encoded(missing: tuple[str, ...] | None) -> None:
    slices = (
        ClusteringSlice(PARTITION, FILE_ID, BASE, (LOG,)),
        ClusteringSlice("", "f-0", None, (".f-0_20261120222300988.log.1_1-2391-3456",)),
    )
    plan = ClusteringPlan(
        (ClusteringGroup(slices[:1], 3, {"TOTAL_IO_MB": 2.0}), ClusteringGroup(slices[1:], 1)),
        "some.Strategy",
        {"hoodie.clustering.plan.strategy.sort.columns": "a,b"},
        extra_metadata={"run": "1"},
        missing_partitions=missing,
    )
    data = encode_clustering_plan(plan, lambda path: f"s3://bucket/table/{path}")
    assert decode_clustering_plan(data, path=PATH) == plan
    (group, other) = decode_datum(data, path=PATH)["clusteringPlan"]["inputGroups"]
    assert group["slices"][0]["dataFilePath"] == f"s3://bucket/table/{PARTITION}/{BASE}"
    assert other["slices"][0]["dataFilePath"] == ""
    assert other["slices"][0]["deltaFilePaths"] == [f"s3://bucket/table/{slices[1].log_files[0]}"]
    assert (b"missingSchedulePartitions" in data) == (missing is not None), "0.15 has no such field"


@pytest.mark.parametrize("layout", [1, 2])
def test_the_inflight_file_names_the_file_groups_and_the_files_that_they_have(layout: int) -> None:
    slices = (
        ClusteringSlice(PARTITION, FILE_ID, BASE, (LOG,)),
        ClusteringSlice("", "logs-only-0", None, (".logs-only-0_20261120222300988.log.1_1-2391-3456",)),
    )
    plan = ClusteringPlan((ClusteringGroup(slices, 1),))
    found = decode_commit(encode_inflight_clustering(plan, layout=layout), path="T.inflight")
    assert found.operation_type == "CLUSTER"
    assert {
        partition: [(stat.file_id, stat.prev_commit, stat.num_inserts) for stat in stats]
        for partition, stats in found.partition_to_write_stats.items()
    } == {PARTITION: [(FILE_ID, "20261120222300988", 0)], "": [("logs-only-0", "null", 0)]}

"""Which slices each policy lets go, and what keeps one whatever the policy says."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from hudi_core.config.services.retention_config import (
    KEEP_LATEST_BY_HOURS,
    KEEP_LATEST_COMMITS,
    KEEP_LATEST_FILE_VERSIONS,
    CleanConfig,
)
from hudi_core.model.names import FileGroupId
from hudi_core.services.clean import retention as policies
from hudi_core.services.clean.retention import PartitionDeletes, PartitionState, deletes
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.view.file_group import DataFile, FileGroup, FileSlice

POLICIES = (KEEP_LATEST_COMMITS, KEEP_LATEST_BY_HOURS, KEEP_LATEST_FILE_VERSIONS)
GROUP = FileGroupId("p", "g")


def config(policy: str, retained: int = 1) -> CleanConfig:
    return CleanConfig.of({"hoodie.cleaner.policy": policy, "hoodie.cleaner.fileversions.retained": str(retained)})


def slice_at(
    instant: str, logs: Iterable[str] = (), *, base: bool = True, cdc: Iterable[str] = (), group: FileGroupId = GROUP
) -> FileSlice:
    def data(name: str) -> DataFile:
        return DataFile("p", name, 10)

    first = data(f"{group.file_id}_0-0-0_{instant}.parquet") if base else None
    return FileSlice(group, instant, first, tuple(map(data, logs)), tuple(map(data, cdc)))


def group_of(*slices: FileSlice, group: FileGroupId = GROUP) -> FileGroup:
    return FileGroup(group, tuple(sorted(slices, key=lambda item: item.base_instant, reverse=True)))


def instants_of(found: PartitionDeletes) -> list[str]:
    """The base instants of the base files to delete."""
    return sorted(file.name.rsplit("_", 1)[1].split(".")[0] for file in found.files if file.name.endswith(".parquet"))


FIVE = group_of(*(slice_at(str(time)) for time in range(1, 6)))


@pytest.mark.parametrize(
    ("policy", "earliest", "gone"),
    [
        (KEEP_LATEST_COMMITS, "4", ["1", "2"]),
        (KEEP_LATEST_COMMITS, "1", []),
        (KEEP_LATEST_COMMITS, "9", ["1", "2", "3", "4"]),
        (KEEP_LATEST_BY_HOURS, "4", ["1", "2"]),
        (KEEP_LATEST_FILE_VERSIONS, None, ["1", "2", "3", "4"]),
    ],
)
def test_the_slice_before_the_earliest_commit_stays(policy: str, earliest: str | None, gone: list[str]) -> None:
    assert instants_of(deletes(PartitionState("p", (FIVE,)), config(policy), earliest)) == gone


def test_hudi_7226_by_hours_keeps_the_slice_that_a_query_is_reading() -> None:
    """t0 is far older than the hours to keep; a query reads it when a compaction makes t1 and the next clean begins at
    t1.
    """
    group = group_of(slice_at("t0", [".g_t0.log.1_0-0-0"]), slice_at("t1"))
    assert deletes(PartitionState("p", (group,)), config(KEEP_LATEST_BY_HOURS), "t1").files == ()
    later = group_of(*group.slices, slice_at("t2"))
    assert instants_of(deletes(PartitionState("p", (later,)), config(KEEP_LATEST_BY_HOURS), "t2")) == ["t0"]


@pytest.mark.parametrize(("retained", "gone"), [(1, ["1", "2", "3", "4"]), (3, ["1", "2"]), (5, []), (9, [])])
def test_versions_are_slices_of_each_group(retained: int, gone: list[str]) -> None:
    assert instants_of(deletes(PartitionState("p", (FIVE,)), config(KEEP_LATEST_FILE_VERSIONS, retained), None)) == gone


def test_what_a_pending_compaction_needs_is_one_of_the_versions() -> None:
    """The plan's slice and everything newer stay and count as one version
    (isFileGroupInPendingMajorOrMinorCompaction).
    """
    inputs = PartitionState("p", (FIVE,), compacting={GROUP: ("4",)})
    assert instants_of(deletes(inputs, config(KEEP_LATEST_FILE_VERSIONS, 2), None)) == ["1", "2"]
    assert instants_of(deletes(inputs, config(KEEP_LATEST_FILE_VERSIONS, 1), None)) == ["1", "2", "3"]


def test_a_slice_goes_with_its_logs_and_change_data() -> None:
    old = slice_at("1", [".g_1.log.1_0-0-0"], cdc=[".g_1.log.2_0-0-0.cdc"])
    found = deletes(PartitionState("p", (group_of(old, slice_at("2")),)), config(KEEP_LATEST_FILE_VERSIONS), None)
    assert [file.name for file in found.files] == ["g_0-0-0_1.parquet", ".g_1.log.1_0-0-0", ".g_1.log.2_0-0-0.cdc"]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ["g_0-0-0_1.parquet", ".g_1.log.1_0-0-0"])
def test_a_savepoint_keeps_the_whole_slice(policy: str, name: str) -> None:
    group = group_of(slice_at("1", [".g_1.log.1_0-0-0"]), slice_at("2"), slice_at("3"), slice_at("4"))
    inputs = PartitionState("p", (group,), kept=frozenset({name}))
    assert instants_of(deletes(inputs, config(policy), "4")) == [] + (
        ["2", "3"] if policy == KEEP_LATEST_FILE_VERSIONS else ["2"]
    )


PENDING = PartitionState(
    "p",
    (group_of(slice_at("1", [".g_1.log.1_0-0-0"]), slice_at("2"), slice_at("3"), slice_at("4")),),
    compacting={GROUP: ("4",)},
    needed=frozenset({".g_1.log.1_0-0-0"}),
)
"""A pending plan on the slice at 4 names a log file that the view has in the slice at 1."""


@pytest.mark.parametrize("policy", POLICIES)
def test_hudi_19290_a_file_of_a_pending_plan_stays_wherever_the_view_has_it(policy: str) -> None:
    found = deletes(PENDING, config(policy), "4")
    assert ".g_1.log.1_0-0-0" not in {file.name for file in found.files}
    assert "2" in instants_of(found)


@pytest.mark.parametrize("policy", POLICIES)
def test_hudi_19290_happens_without_the_guard(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: with Hudi's own rule alone, by base instants, the file is planned to be deleted."""
    monkeypatch.setattr(policies, "is_needed", lambda item, needed: False)
    assert ".g_1.log.1_0-0-0" in {file.name for file in deletes(PENDING, config(policy), "4").files}


def replaced_at(time: str) -> Instant:
    return Instant(time, Action.REPLACE_COMMIT, State.COMPLETED)


@pytest.mark.parametrize(
    ("policy", "earliest", "gone"),
    [(KEEP_LATEST_COMMITS, "6", 5), (KEEP_LATEST_COMMITS, "5", 0), (KEEP_LATEST_FILE_VERSIONS, None, 5)],
)
def test_a_replaced_group_goes_as_a_whole(policy: str, earliest: str | None, gone: int) -> None:
    """Once its replacecommit is older than the earliest commit to retain; by versions at once."""
    inputs = PartitionState(
        "p", (FIVE,), replaced={GROUP: replaced_at("5")}, stored=lambda: [item.files[0].name for item in FIVE.slices]
    )
    found = deletes(inputs, config(policy), earliest)
    assert len(found.files) == gone
    assert found.drop == bool(gone)


def test_a_file_of_a_pending_clustering_stays_in_a_replaced_group() -> None:
    inputs = PartitionState("p", (FIVE,), replaced={GROUP: replaced_at("5")}, needed=frozenset({"g_0-0-0_3.parquet"}))
    assert instants_of(deletes(inputs, config(KEEP_LATEST_COMMITS), "6")) == ["1", "2", "4", "5"]


OTHER = FileGroupId("p", "h")
THIRD = "g_0-0-0_3.parquet"


@pytest.mark.parametrize(
    ("inputs", "drop"),
    [
        (PartitionState("p", (FIVE,), replaced={GROUP: replaced_at("1")}, stored=lambda: ["g_0-0-0_9.parquet"]), False),
        (
            PartitionState(
                "p", (FIVE, group_of(slice_at("2", group=OTHER), group=OTHER)), replaced={GROUP: replaced_at("1")}
            ),
            False,
        ),
        (PartitionState("p", (FIVE,), replaced={GROUP: replaced_at("7")}), False),
        (
            PartitionState(
                "p", (FIVE,), replaced={GROUP: replaced_at("1")}, kept=frozenset({THIRD}), stored=lambda: [THIRD]
            ),
            False,
        ),
        (PartitionState("", (), stored=list), False),
        (PartitionState("p", (), stored=list), True),
        (PartitionState("p", (FIVE,), replaced={GROUP: replaced_at("1")}, stored=lambda: [THIRD]), True),
    ],
    ids=["uncommitted file", "live group", "replaced too late", "savepointed", "no partitions", "empty", "all deleted"],
)
def test_a_partition_goes_when_nothing_is_left_of_it(inputs: PartitionState, drop: bool) -> None:
    assert deletes(inputs, config(KEEP_LATEST_COMMITS), "6").drop is drop

"""Plans that name other files than the table has, or files elsewhere: nothing is read or deleted by them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_core.codec.avro.container import read_container, write_container
from tests.hostile.refusals import LOCAL, HostileTable
from tests.hostile.table_copies import tree_of
from tests.support.rows import assert_same_rows

Hostile = Callable[[str, str], HostileTable]
Plan = dict[str, Any]
COMPACTIONS = {"6": ".hoodie/*.compaction.requested", "9": ".hoodie/timeline/*.compaction.requested"}


def replan(table: HostileTable, pattern: str, change: Callable[[Plan], None]) -> Path:
    """Changes the record of a plan in place."""

    def changed(data: bytes) -> bytes:
        schema, (plan,) = read_container(data, path="seed")
        change(plan)
        return write_container(schema, [plan])

    return table.change(pattern, changed)


def merged(plan: Plan) -> Plan:
    """An operation with a base file and two log files or more."""
    found: Plan = next(item for item in plan["operations"] if item["dataFilePath"] and len(item["deltaFilePaths"]) > 1)
    return found


def without_base_file(plan: Plan) -> None:
    merged(plan)["dataFilePath"] = None


def without_a_log_file(plan: Plan) -> None:
    merged(plan)["deltaFilePaths"].pop()


def without_log_files(plan: Plan) -> None:
    merged(plan)["deltaFilePaths"] = merged(plan)["deltaFilePaths"][:1]


def with_a_log_file_twice(plan: Plan) -> None:
    merged(plan)["deltaFilePaths"].append(merged(plan)["deltaFilePaths"][0])


def with_logs_of_another_group(plan: Plan) -> None:
    one = merged(plan)
    other = next(item for item in plan["operations"] if item["fileId"] != one["fileId"])
    one["deltaFilePaths"] = other["deltaFilePaths"]


def of_another_base_instant(plan: Plan) -> None:
    merged(plan)["baseInstantTime"] = "20260101000000000"


def of_a_group_twice(plan: Plan) -> None:
    plan["operations"].append(dict(merged(plan)))


def of_another_partition(plan: Plan) -> None:
    one = merged(plan)
    one["partitionPath"] = next(
        item["partitionPath"] for item in plan["operations"] if item["partitionPath"] != one["partitionPath"]
    )


def outside_of_the_table(plan: Plan) -> None:
    merged(plan)["partitionPath"] = "../outside"


def with_a_path_for_a_name(plan: Plan) -> None:
    merged(plan)["dataFilePath"] = "../../outside/" + merged(plan)["dataFilePath"]


def with_an_endless_name(plan: Plan) -> None:
    merged(plan)["deltaFilePaths"][0] = ".x" + "y" * 5000 + ".log.1_0-0-0"


CHANGES = (
    *(without_base_file, without_a_log_file, without_log_files, with_a_log_file_twice, with_logs_of_another_group),
    *(of_another_base_instant, of_a_group_twice, of_another_partition, outside_of_the_table),
    *(with_a_path_for_a_name, with_an_endless_name),
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("version", sorted(COMPACTIONS))
def test_a_compaction_is_of_the_slices_that_the_table_has(
    hostile: Hostile, version: str, change: Callable[[Plan], None]
) -> None:
    table = hostile(version, "mor_compaction_requested")
    rows = table.rows("--metadata", "off")
    replan(table, COMPACTIONS[version], change)
    assert table.refuses("run compaction", *LOCAL, codes=(2,))["path"]
    if version != "6":  # where a pending plan says which log files belong to which slice
        table.keeps_rows(rows, "--metadata", "off")


@pytest.mark.parametrize("version", sorted(COMPACTIONS))
@pytest.mark.parametrize("first", [0, 1])
def test_a_file_group_in_two_plans_loses_no_row(hostile: Hostile, version: str, first: int) -> None:
    """Hudi plans none twice (CompactionUtils.getAllPendingCompactionOperations). One of the plans can be dropped."""
    table = hostile(version, "mor_compaction_requested")
    rows = table.rows("--metadata", "off")
    plan = table.path(COMPACTIONS[version])
    instant = plan.name.split(".")[0]
    instants = (instant, str(int(instant) + 1))
    plan.with_name(plan.name.replace(*instants)).write_bytes(plan.read_bytes())
    ended = [table.run("run compaction", *LOCAL, "--instant", instants[number]) for number in (first, 1 - first)]
    assert any(run.code for run in ended), "both plans of one slice were carried out"
    table.keeps_rows(rows, "--metadata", "off")
    assert table.run("unschedule", instants[1]).code == 0
    assert table.run("run compaction", *LOCAL).code == 0
    assert_same_rows(table.rows(), rows)
    assert table.run("metadata validate").code == 0


CLEANS = {"6": ".hoodie/*.clean.requested", "9": ".hoodie/timeline/*.clean.requested"}


def last_deleted(plan: Plan) -> Plan:
    """The file that the plan deletes last."""
    found: Plan = plan["filePathsToBeDeletedPerPartition"][sorted(plan["filePathsToBeDeletedPerPartition"])[-1]][-1]
    return found


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../../outside/x.parquet",
        "2024-01-01/.hoodie_partition_metadata",
        ".hoodie/hoodie.properties",
        "x" * 5000,
        "2024-01-01/\x1b[31m.parquet",
        "",
    ],
)
@pytest.mark.parametrize("version", sorted(CLEANS))
def test_all_names_of_a_clean_are_checked_before_the_first_file_goes(hostile: Hostile, version: str, name: str) -> None:
    table = hostile(version, "clean_requested_mor")
    path = replan(table, CLEANS[version], lambda plan: last_deleted(plan).update(filePath=name))
    table.refuses("run clean", *LOCAL, names=path.name, codes=(2,))


@pytest.mark.parametrize("version", sorted(CLEANS))
def test_a_clean_leaves_what_queries_read(hostile: Hostile, version: str) -> None:
    table = hostile(version, "clean_requested_mor")
    rows = table.rows("--metadata", "off")
    newest = max(tree for tree in tree_of(table.base) if tree.endswith(".parquet"))
    newest = max(
        (path for path in tree_of(table.base) if path.endswith(".parquet") and path.startswith(newest[:10])),
        key=lambda path: path.rsplit("_", 1)[-1],
    )
    replan(table, CLEANS[version], lambda plan: last_deleted(plan).update(filePath=newest))
    table.refuses("run clean", *LOCAL, names=newest.rsplit("/", 1)[-1], codes=(1, 2, 3))
    assert_same_rows(table.rows("--metadata", "off"), rows)

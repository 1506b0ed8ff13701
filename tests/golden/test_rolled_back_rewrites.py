"""Overwrites, deletions of partitions and clusterings of ours are rolled back on tables of all partition types: the
rows are those of before, and every partition of the metadata table is true.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from hudi_core.services.restore.verb import restore
from hudi_core.services.rollback.verb import rollback
from tests.support.changed_tables import an_owner, open_context
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.overwrites import delete, overwrite, own_rows, put_source, within
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, pending_instants, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
OPTIONS = (
    "hoodie.time.generator.max_expected_clock_skew_ms=0",
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled=true",
    "hoodie.clustering.plan.strategy.sort.columns=name",
    "spark.sql.session.timeZone=UTC",
)


def first_partition(table: Path) -> str:
    return str(min(read_rows(table, "off").column("_hoodie_partition_path").to_pylist()))


def insert_overwrite(table: Path, scratch: Path) -> None:
    rows = own_rows(table, within(read_rows(table, "off"), first_partition(table)))
    overwrite(table, put_source(rows.slice(0, rows.num_rows // 2), scratch))


def delete_partition(table: Path, scratch: Path) -> None:
    delete(table, first_partition(table))


def clustering(table: Path, scratch: Path) -> None:
    options = [word for option in OPTIONS for word in ("--option", option)]
    done = hudictl("run", "clustering", str(table), "--schedule", "--engine", "local", *options, "--json")
    assert done.code == 0, done.err


Rewrite = Callable[[Path, Path], None]
REWRITES: dict[str, tuple[Rewrite, ...]] = {
    "insert_overwrite": (insert_overwrite,),
    "delete_partition": (delete_partition,),
    "clustering": (clustering,),
    "all": (clustering, insert_overwrite, delete_partition),
}


def commits(table: Path) -> list[str]:
    return [item.requested_time for item in open_context(table).active.load().commits().completed()]


def roll_back(table: Path, instants: list[str]) -> None:
    for instant in reversed(instants[1:]):
        rollback(open_context(table), instant, an_owner())


def restore_to_the_first(table: Path, instants: list[str]) -> None:
    restore(open_context(table), instants[0], an_owner())


@pytest.mark.parametrize(
    ("version", "case", "name", "remove"),
    tiered(
        product(["6", "8", "9"], ["mdt_all_cow", "mdt_all_mor"], REWRITES, [roll_back, restore_to_the_first]),
        [
            ("6", "mdt_all_mor", "all", roll_back),
            ("8", "mdt_all_cow", "delete_partition", roll_back),
            ("9", "mdt_all_mor", "all", restore_to_the_first),
        ],
    ),
)
def test_what_is_rolled_back_leaves_no_trace(
    golden: Golden, tmp_path: Path, version: str, case: str, name: str, remove: Callable[[Path, list[str]], None]
) -> None:
    table = golden(version, case).table
    kinds, rows, last = open_context(table).config.metadata_partitions, read_rows(table), commits(table)[-1]
    for rewrite in REWRITES[name]:
        rewrite(table, tmp_path)
    made = commits(table)
    made = made[made.index(last) :]
    assert len(made) == 1 + len(REWRITES[name])
    remove(table, made)
    assert commits(table)[-1] == last
    assert pending_instants(table) == set()
    assert open_context(table).config.metadata_partitions == kinds
    assert_same_rows(read_rows(table, "on"), rows)
    assert_same_rows(read_rows(table, "off"), rows)
    assert_metadata_true(table)

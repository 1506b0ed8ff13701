"""Every service on tables of all partition types: afterwards `validate` finds nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.changed_tables import an_owner, data_files, leftovers, listed, open_context
from tests.support.fully_indexed_tables import RUNS, SUBJECTS, assert_true
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows
from tests.support.service_calls import perform
from tests.support.table_invariants import has_metadata_table, read_rows

Golden = Callable[[str, str], GoldenCase]


@pytest.mark.parametrize(("name", "version", "case"), RUNS)
def test_the_metadata_table_stays_true(golden: Golden, name: str, version: str, case: str) -> None:
    subject, table = SUBJECTS[name], golden(version, case).table
    kinds = open_context(table).config.metadata_partitions
    instant = subject.begins(table)
    rows, before = read_rows(table, "off"), sorted(path.name for path in table.joinpath(".hoodie").rglob("*"))
    perform(table, subject.act(instant), an_owner(), options=subject.options)
    assert sorted(path.name for path in table.joinpath(".hoodie").rglob("*")) != before, "it did something"
    after = open_context(table).config.metadata_partitions
    assert after == kinds or (subject.may_drop and after == frozenset())
    assert_true(table)
    if has_metadata_table(table):
        found = {path: size for path, size in data_files(table).items() if not path.endswith("_partition_metadata")}
        assert {path: found[path] if size == 1 else size for path, size in listed(table).items()} == found
    if subject.keeps_rows:
        assert_same_rows(read_rows(table, "off"), rows)
    pending = {item.requested_time for item in open_context(table).active.load().pending()}
    assert [path for path in leftovers(table, instant) if not any(time in path for time in pending)] == []

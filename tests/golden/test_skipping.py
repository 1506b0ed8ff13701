"""Data skipping on tables that real Hudi wrote: no row that matches is lost, and every index rules out something."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.expr.bind import bind
from hudi_core.expr.bound import row_mask
from hudi_core.expr.tree import EQ, GT, LT, And, Call, Column, Compare, Expr, In, IsNull, Literal, Not, Or, StartsWith
from hudi_core.filegroup.read.slice_reader import SliceReader
from hudi_core.index.skipping import SkippingPlan
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.schemas import schema_of
from hudi_core.view.file_group import FileSlice
from tests.support.golden_data import GoldenCase
from tests.support.predicate_text import to_sql
from tests.support.random_predicates import holds
from tests.support.slice_readers import made_up_spec, spec_of
from tests.support.tiers import tiered
from tests.support.views import view_of

Open = Callable[[str, str], GoldenCase]
CASES = ("mdt_all_cow", "mdt_all_cow_compacted", "mdt_all_mor", "mdt_all_mor_compacted", "mdt_record_index_lookup")
FOOTERS = {"airflow_hudi.read.footer_skipping": "true"}


class Table:
    """A golden table's newest slices, each with its rows."""

    def __init__(self, case: GoldenCase) -> None:
        self.storage = LocalStorage(str(case.table))
        self.config = TableConfig.load(self.storage)
        active = ActiveTimeline(self.storage, self.config)
        timeline = active.load()
        self.metadata = MetadataTable(self.storage, self.config, timeline)
        view = view_of(active, self.metadata, timeline)
        self.slices = [item for partition in view.partitions() for item in view.latest_merged_slices(partition)]
        schema = schema_of(timeline, active.read_details)
        reader = SliceReader(self.storage, spec_of(self.config, schema, timeline))
        self.schema = reader.output_schema(None)
        self.batches = {item: list(reader.read(item)) for item in self.slices}
        self.rows = {
            item: [row for batch in found for row in batch.to_pylist()] for item, found in self.batches.items()
        }

    def column(self, name: str) -> list[Any]:
        return [row[name] for rows in self.rows.values() for row in rows]

    def check(
        self, expr: Expr, used: Counter[str], *, renamed: Collection[str] = (), footers: bool = False, **more: Any
    ) -> list[FileSlice]:
        """Prunes, checks that nothing that matches is lost, and counts by which index files were ruled out."""
        bound = bind(expr, self.schema, zone="UTC")
        spec = made_up_spec(self.config, renamed=renamed, options=FOOTERS if footers else {})
        given = {"current": True, "metadata": self.metadata, **more}
        left, report = SkippingPlan(bound, spec, **given).prune(self.slices)
        for item, rows in self.rows.items():
            expected = [row for row in rows if holds(expr, row) is True] if not _calls(expr) else None
            found = [row for batch in self.batches[item] for row in batch.filter(row_mask(bound, batch)).to_pylist()]
            assert expected is None or repr(found) == repr(expected), expr
            assert item in left or not found, expr
        assert (
            sum(len(item.log_files) + (item.base_file is not None) for item in left)
            == report.files - report.files_pruned
        )
        used.update(report.by_kind)
        return left


def _calls(expr: Expr) -> bool:
    return isinstance(expr, Compare) and isinstance(expr.left, Call)


def _predicates(name: str, values: Sequence[Any]) -> list[Expr]:
    """Equality, ranges, lists, prefixes and nulls of one column, within and beyond its values."""
    column = Column((name,))
    present = sorted({value for value in values if value is not None})
    found: list[Expr] = [IsNull(column), Not(IsNull(column))]
    if not present:
        return found
    picked = [Literal.of(present[at]) for at in sorted({0, len(present) // 3, len(present) // 2, len(present) - 1})]
    found += [Compare(operator, column, literal) for literal in picked for operator in (EQ, LT, GT)]
    found += [In(column, tuple(picked[:2])), Not(In(column, (picked[0],)))]
    if isinstance(present[0], str):
        found += [
            Compare(EQ, column, Literal.of("~none")),
            StartsWith(column, present[-1][:3]),
            Not(StartsWith(column, present[0][:2])),
        ]
    else:
        found += [Compare(GT, column, Literal.of(present[-1])), Compare(LT, column, Literal.of(present[0]))]
    return found


@pytest.mark.parametrize(
    ("version", "case"),
    tiered(
        [(version, case) for version in ("6", "8", "9") for case in CASES],
        [("6", "mdt_all_cow"), ("9", "mdt_all_mor_compacted")],
    ),
)
def test_filters_on_every_column_give_the_rows_of_a_full_scan(golden: Open, version: str, case: str) -> None:
    table = Table(golden(version, case))
    used: Counter[str] = Counter()
    for name in table.schema.names:
        for number, expr in enumerate(_predicates(name, table.column(name))):
            table.check(expr, used)
            if number % 5 == 0 and name != "qty":
                quantity = Compare(GT, Column(("qty",)), Literal.of(50))
                table.check(And((expr, quantity)), used)
                table.check(Or((expr, quantity)), used)
    expected = {"partition_path", "record_index"}
    if version == "9" or (version == "8" and not table.config.is_merge_on_read):
        expected |= {"partition_stats"}
    else:
        assert "partition_stats" not in used, "its ranges may be too narrow"
    if "all" in case:
        expected |= {"secondary_index"} if version != "6" else set()
        expected |= {"column_stats"} if case.startswith("mdt_all_cow") else set()
    assert expected <= set(used), used


@pytest.mark.parametrize("case", ["mdt_all_cow", "mdt_all_cow_compacted"])
@pytest.mark.parametrize("version", ["8", "9"])
def test_expression_indexes_are_asked_for_their_expressions(golden: Open, version: str, case: str) -> None:
    table = Table(golden(version, case))
    name = table.column("name")[7]
    day, text = Call("from_unixtime", (Column(("ts",)), Literal.of("yyyy-MM-dd"))), Literal.of
    used: Counter[str] = Counter()
    left = table.check(Compare(EQ, Call("lower", (Column(("name",)),)), Literal.of(name.lower())), used)
    assert len(left) < len(table.slices)
    assert table.check(Compare(EQ, Call("lower", (Column(("name",)),)), Literal.of("~none")), used) == []
    assert table.check(Compare(EQ, day, text("1970-01-01")), used) == []
    # Written as milliseconds, these are seconds of the year 55840, which Java prints with a sign.
    assert table.check(Compare(GT, day, text("+55840")), used) == table.slices
    assert set(used) == {"expr_index"}
    other: Counter[str] = Counter()
    table.check(Compare(EQ, Call("from_unixtime", (Column(("ts",)), Literal.of("yyyy"))), Literal.of("1970")), other)
    table.check(Compare(EQ, Call("upper", (Column(("name",)),)), Literal.of("~NONE")), other)
    assert not other


def test_an_index_of_local_time_is_asked_only_in_a_zone_that_was_given(golden: Open) -> None:
    table = Table(golden("9", "mdt_all_cow"))
    expr = Compare(EQ, Call("from_unixtime", (Column(("ts",)), Literal.of("yyyy-MM-dd"))), Literal.of("1970-01-01"))
    for zone, left in ((None, table.slices), ("UTC", [])):
        plan = SkippingPlan(
            bind(expr, table.schema, zone=zone), made_up_spec(table.config), current=True, metadata=table.metadata
        )
        assert plan.prune(table.slices)[0] == left


class OnlyKinds:
    """A metadata table that has some of its kinds only."""

    def __init__(self, metadata: MetadataTable, *kinds: str) -> None:
        self._metadata = metadata
        self.partition_types = frozenset(kinds)

    def has_index(self, name: str) -> bool:
        return name in self.partition_types

    def __getattr__(self, name: str) -> Any:
        return getattr(self._metadata, name)


@pytest.mark.parametrize("kind", ["column_stats", "bloom_filters", "footers"])
@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["8"]))
def test_keys_are_found_without_a_record_index(golden: Open, version: str, kind: str) -> None:
    table = Table(golden(version, "mdt_all_cow"))
    options: dict[str, Any] = {"metadata": OnlyKinds(table.metadata, kind)}
    if kind == "footers":
        options = {"metadata": None, "storage": table.storage, "footers": True}
    used: Counter[str] = Counter()
    for key in table.column("id")[::10]:
        for expr in (
            Compare(EQ, Column(("id",)), Literal.of(key)),
            Compare(EQ, Column(("_hoodie_record_key",)), Literal.of(key)),
        ):
            left = table.check(expr, used, **options)
            assert kind == "column_stats" or len(left) == 1
    assert table.check(In(Column(("id",)), (Literal.of("~none"), Literal.of("~nobody"))), used, **options) == []
    assert set(used) == {kind}


@pytest.mark.parametrize("version", ["6", "9"])
def test_log_files_are_not_ruled_out_by_filters_over_base_files(golden: Open, version: str) -> None:
    table = Table(golden(version, "mdt_all_mor"))
    assert all(item.log_files for item in table.slices)
    used: Counter[str] = Counter()
    expr = Compare(EQ, Column(("id",)), Literal.of("~none"))
    assert table.check(expr, used, metadata=OnlyKinds(table.metadata, "bloom_filters")) == table.slices
    assert table.check(expr, used, metadata=None, storage=table.storage, footers=True) == table.slices
    assert not used


@pytest.mark.parametrize("version", ["8", "9"])
def test_an_earlier_state_is_not_asked_of_indexes_of_the_newest_one(golden: Open, version: str) -> None:
    table = Table(golden(version, "mdt_all_cow"))
    used: Counter[str] = Counter()
    for name in ("id", "name", "amount"):
        for expr in _predicates(name, table.column(name)):
            table.check(expr, used, current=False)
    assert set(used) == {"column_stats", "bloom_filters"}


def test_a_column_of_another_name_in_older_files_is_not_asked_of_statistics(golden: Open) -> None:
    table = Table(golden("9", "mdt_all_cow"))
    used: Counter[str] = Counter()
    assert table.check(Compare(LT, Column(("amount",)), Literal.of(-1.0)), used, renamed={"amount"}) == table.slices
    assert table.check(Compare(LT, Column(("amount",)), Literal.of(-1.0)), used) == []


PATHS = (
    "complex_keygen",
    "custom_keygen",
    "drop_partition_columns",
    "hive_style",
    "int_key",
    "multilevel_encoded",
    "multilevel_encoded_hive",
    "multilevel_plain_mor",
    "timestamp_keygen_epochmillis",
    "timestamp_keygen_string",
)


@pytest.mark.parametrize(
    ("version", "case"),
    tiered(
        [(version, case) for version in ("6", "8", "9") for case in PATHS],
        [
            ("6", "custom_keygen"),
            ("8", "drop_partition_columns"),
            ("8", "int_key"),
            ("9", "complex_keygen"),
            ("9", "multilevel_encoded_hive"),
            ("9", "timestamp_keygen_epochmillis"),
        ],
    ),
)
def test_reads_by_partition_and_key_columns(golden: Open, version: str, case: str) -> None:
    """Every way to make a partition path: what a predicate leaves of a read is what it leaves of its rows."""
    opened = HudiTable.open(str(golden(version, case).table))
    full = opened.read()
    rows = [row for batch in full.batches for row in batch.to_pylist()]
    pruned = 0
    for name in {*opened.config.partition_fields, *opened.config.record_key_fields, "_hoodie_partition_path"}:
        for expr in _predicates(name, [row[name] for row in rows]):
            read = opened.read(where=to_sql(expr))
            assert sorted(repr(row) for batch in read.batches for row in batch.to_pylist()) == sorted(
                repr(row) for row in rows if holds(expr, row)
            )
            assert read.files_read + read.files_pruned == full.files_read
            pruned += read.files_pruned
    assert pruned > 0

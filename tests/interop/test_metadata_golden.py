"""Golden tables whose metadata table we rebuilt, with every partition type: real Hudi reads what it read before, by
predicates that ask each index, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
import pytest

from hudi_core.config.metadata_config import PARTITIONED_RECORD_INDEX_ENABLE
from hudi_core.config.table_config import TableConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.metadata_table.indexed_table import load_index_definitions
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action
from hudi_core.verbs.request import verb_class
from hudi_health.table import validate_metadata
from tests.interop.fully_indexed_table import OURS
from tests.interop.judged import JUDGES, OTHERS
from tests.interop.real_hudi import RealHudi
from tests.support.golden_data import GoldenCase, golden_cases, golden_root
from tests.support.rows import PHYSICAL, assert_same_rows, read_parquet
from tests.support.table_invariants import has_metadata_table

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]

Golden = Callable[[str, str], GoldenCase]
LABELS = {**JUDGES, **OTHERS}
MOST = 8
"""Rows of a table that real Hudi is asked for by their values."""
BROKEN = ("log_", "empty_table")
"""Damaged on purpose, or without a commit: the metadata table lists what is there, which real Hudi's own tests of them
do without.
"""
SPARK_TYPES: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pt.is_string, "STRING"),
    (pt.is_boolean, "BOOLEAN"),
    (pt.is_int8, "TINYINT"),
    (pt.is_int16, "SMALLINT"),
    (pt.is_int32, "INT"),
    (pt.is_int64, "BIGINT"),
    (pt.is_float32, "FLOAT"),
    (pt.is_float64, "DOUBLE"),
    (pt.is_date32, "DATE"),
)


def cases() -> Iterator[Any]:
    """Every golden table that its own version of real Hudi has read."""
    for label in LABELS:
        for case in golden_cases(label):
            if (
                not case.startswith(BROKEN)
                and (golden_root() / label / f"{case}.expected" / "snapshot.parquet").exists()
            ):
                yield pytest.param(label, case, id=f"{label} {case}")


@pytest.mark.parametrize(("label", "case"), cases())
def test_real_hudi_reads_by_a_metadata_table_that_we_made(
    golden: Golden, request: pytest.FixtureRequest, label: str, case: str
) -> None:
    chosen = golden(label, case)
    expected = read_parquet(chosen.expected / "snapshot.parquet")
    rebuilt(chosen.table, unique_keys=has_unique_keys(expected))
    hudi: RealHudi = request.getfixturevalue(LABELS[label])
    assert_same_rows(hudi.snapshot(chosen.table, metadata=True), expected)
    mixed = any(name in case for name in ("partial_update", "nondefaults"))
    predicates = list(predicates_of(chosen.table, expected, unique_keys=has_unique_keys(expected), mixed=mixed))
    answers = hudi.ask("skipping", base=str(chosen.table), predicates=predicates)
    different = [answer for answer in answers if not answer["same"]]
    assert not different, json.dumps(different, indent=1)
    assert [answer for answer in answers if not answer["rows"] and " AND " in answer["where"]] == []
    assert len(answers) == len(predicates) >= min(1, expected.num_rows)
    answer = hudi.ask("validate_metadata", base=str(chosen.table))
    assert answer["wrong"] == []


def rebuilt(table: Path, *, unique_keys: bool) -> None:
    """Drops the metadata table, where there is one, and creates one with every partition type; it is valid.

    Without `unique_keys` there is a record index of each data partition where the version has that, none elsewhere.
    """
    storage = LocalStorage(table)
    config = TableConfig.load(storage)
    if config.features.metadata_needs_rest:
        finish_pending(table)
    defined = table / ".hoodie" / ".index_defs" / "index.json"
    definitions = defined.read_bytes() if defined.exists() else None
    requirements = {"column_stats", "bloom_filters"} - refused_of(config, table) | config.metadata_partitions - {
        "files"
    }
    has_keys = config.raw.get("hoodie.populate.meta.fields") != "false"
    # With an index of keys of several fields 0.15 fails at every equality, its own index or ours
    # (RecordLevelIndexSupport: `None.get`).
    has_keys &= len(config.record_key_fields) <= 1 or not config.features.indexes_all_columns
    requirements |= {"record_index"} if has_keys and (unique_keys or config.features.defines_record_index) else set()
    requirements |= {"partition_stats"} if config.partition_fields and config.features.has_all_indexes else set()
    if has_metadata_table(table):
        run(table, "metadata_drop")
        if definitions is not None:
            defined.parent.mkdir(exist_ok=True)
            defined.write_bytes(definitions)
            listed = load_index_definitions(storage, TableConfig.load(storage))
            assert listed.keys() == json.loads(definitions)["indexDefinitions"].keys()
    options = OURS if unique_keys else {**OURS, PARTITIONED_RECORD_INDEX_ENABLE.name: "true"}
    run(table, "metadata_create", partitions=tuple(sorted(requirements)), options=options)
    assert TableConfig.load(storage).metadata_partitions == requirements | {"files"}
    assert validate_metadata(HudiTable.open(str(table), options={"airflow_hudi.read.zone": "UTC"})).differences == ()


def refused_of(config: TableConfig, table: Path) -> set[str]:
    """Version 6 with decimals that its statistics cannot store: see
    tests/golden/test_metadata_rebuild.py.
    """
    return {"column_stats"} if config.features.indexes_all_columns and "types" in table.name else set()


def finish_pending(table: Path) -> None:
    """Runs what is planned, rolls back what failed, abandons plans of clustering: without that the metadata table of
    version 6 cannot begin.
    """
    storage = LocalStorage(table)
    for item in ActiveTimeline(storage, TableConfig.load(storage)).load().pending():
        if item.action in (Action.COMPACTION, Action.CLEAN):
            run(table, "run", service=item.action, instant=item.requested_time)
        elif item.action != Action.INDEXING:
            run(
                table, "unschedule" if item.action == Action.REPLACE_COMMIT else "rollback", instant=item.requested_time
            )


def run(table: Path, verb: str, *, options: Mapping[str, str] = OURS, **request: Any) -> None:
    """One verb of ours."""
    requested = verb_class(verb)(str(table), owner="the tests", options=options, **request)
    result = HudiTable.open(str(table)).run(requested, LocalEngine(1))
    assert result.exit_code == 0, result


def has_unique_keys(rows: pa.Table) -> bool:
    """Whether no record key is in two partitions; nor, without meta columns, is it known."""
    return (
        "_hoodie_record_key" not in rows.column_names
        or pc.count_distinct(rows["_hoodie_record_key"]).as_py() == rows.num_rows
    )


def predicates_of(table: Path, rows: pa.Table, *, unique_keys: bool, mixed: bool) -> Iterator[str]:
    """Some rows by all their columns but the keys: each column's statistics are asked, and one that is wrong loses the
    row. Others by each index.

    Real Hudi asks the first index alone that a predicate fits: statistics only where no key and no column of another
    index is named. It has no pruning by a record index of each data partition; and by a column that its keys make
    partitions of by a format (TIMESTAMP, CUSTOM), it compares the column's values with those of the paths, with the
    metadata table or without. And it leaves a slice out that has no file with all values of a predicate: where rows are
    `mixed` of those of several files, each column is asked alone.
    """
    config = TableConfig.load(LocalStorage(table))
    generator = config.raw.get("hoodie.table.keygenerator.type") or config.raw.get(
        "hoodie.table.keygenerator.class", ""
    )
    formatted = set(config.partition_fields) if re.search("TIMESTAMP|CUSTOM", generator.upper()) else set()
    kinds = {
        name: kind
        for name, kind in zip(rows.column_names, map(spark_type, rows.schema.types), strict=True)
        if kind and name not in PHYSICAL
    }
    defined = load_index_definitions(LocalStorage(table), config)
    secondary, expressions = (
        {field for name, item in defined.items() if name.startswith(prefix) for field in item.source_fields}
        for prefix in ("secondary_", "expr_")
    )
    keys = {"_hoodie_record_key", *config.record_key_fields}
    plain = {name: kind for name, kind in kinds.items() if name not in keys | secondary | expressions | formatted}
    for row in telling_rows(rows, plain)[: 2 if mixed else MOST]:
        known = {name: kind for name, kind in plain.items() if row[name] == row[name]}
        terms = [
            f"`{name}` IS NULL" if row[name] is None else f"`{name}` = {literal(row[name], kind)}"
            for name, kind in known.items()
        ]
        yield from terms if mixed else [" AND ".join(terms)]
    if "COMPLEX" in generator.upper() or len(config.record_key_fields) > 1:
        # 1.0.2 and 1.2.0 take such a key apart and look for another one: no row is found, by an index that they made
        # themselves neither.
        keys.discard("_hoodie_record_key")
    for name in sorted((keys if unique_keys else set()) | secondary | expressions):
        values = pc.drop_null(rows[name]).sort() if name in kinds else ()
        if len(values):
            first, middle = (literal(values[at].as_py(), kinds[name]) for at in (0, len(values) // 2))
            # An equal sign with the plain column of an expression index is one with the expression to real Hudi, which
            # fails on its type.
            yield from (
                (f"`{name}` {operator} {middle}" for operator in ("<", ">"))
                if name in expressions
                else (f"`{name}` IN ({first}, {middle})",)
            )


def telling_rows(rows: pa.Table, columns: Iterable[str]) -> list[dict[str, Any]]:
    """Up to MOST rows that hold, together, the most of each column's nulls and bounds in each file."""
    found: dict[int, set[tuple[str | None, str, str]]] = {}
    listed = rows.to_pylist()
    files = rows["_hoodie_file_name"].to_pylist() if "_hoodie_file_name" in rows.column_names else [None] * len(listed)
    for file in dict.fromkeys(files):
        metadata_timeline = [number for number, name in enumerate(files) if name == file]
        for column in columns:
            missing = [number for number in metadata_timeline if listed[number][column] is None]
            values = sorted(
                (number for number in metadata_timeline if listed[number][column] is not None),
                key=lambda number: listed[number][column],
            )
            for what, numbers in (("null", missing), ("least", values), ("greatest", values[::-1])):
                found.setdefault((numbers or metadata_timeline)[0], set()).add((file, column, what))
    chosen: list[dict[str, Any]] = []
    while len(chosen) < MOST and any(found.values()):
        best = max(found, key=lambda number: len(found[number]))
        recorded = found.pop(best)
        found = {number: statistics - recorded for number, statistics in found.items()}
        chosen.append(listed[best])
    return chosen


def spark_type(kind: pa.DataType) -> str | None:
    """Spark's name of a type, None for one that predicates are not made for here."""
    if pt.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pt.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz else "TIMESTAMP_NTZ"
    return next((name for is_it, name in SPARK_TYPES if is_it(kind)), None)


def literal(value: Any, kind: str) -> str:
    """A value in Spark's SQL."""
    text = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"CAST('{text}' AS {kind})"

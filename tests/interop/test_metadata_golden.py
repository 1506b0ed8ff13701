"""Golden tables whose metadata table we made anew, with every kind: real Hudi reads what it read before, by predicates on every column, too.

`make test` takes a few tables of each version, `make soak` all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.metadata_table.index_definitions import load_index_definitions
from hudi_core.request.model import RunRequest
from hudi_core.services.local_engine import LocalEngine
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from tests.consistency import has_metadata_table
from tests.golden_data import GoldenCase, golden_cases, golden_root
from tests.interop.every_kind import OURS
from tests.interop.judged import JUDGES, OTHERS
from tests.interop.real_hudi import RealHudi
from tests.rows import assert_same_rows, read_parquet

pytestmark = [pytest.mark.hudi, pytest.mark.slow]

Golden = Callable[[str, str], GoldenCase]
LABELS = {**JUDGES, **OTHERS}
IN_TEST = ("mdt_all_mor_compacted", "types_3level_lists_mor")
BROKEN = ("log_", "empty_table")
"""Damaged on purpose, or without a commit: the metadata table lists what is there, which real Hudi's own tests of them do without."""
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
            if not case.startswith(BROKEN) and (golden_root() / label / f"{case}.expected" / "snapshot.parquet").exists():
                chosen = label in JUDGES and case in IN_TEST
                yield pytest.param(label, case, id=f"{label} {case}", marks=() if chosen else pytest.mark.soak)


@pytest.mark.parametrize(("label", "case"), cases())
def test_real_hudi_reads_by_a_metadata_table_that_we_made(golden: Golden, request: pytest.FixtureRequest, label: str, case: str) -> None:
    chosen = golden(label, case)
    made_anew(chosen.table)
    hudi: RealHudi = request.getfixturevalue(LABELS[label])
    expected = read_parquet(chosen.expected / "snapshot.parquet")
    assert_same_rows(hudi.snapshot(chosen.table, metadata=True), expected)
    predicates = list(predicates_of(expected))
    answers = hudi.ask("skipping", base=str(chosen.table), predicates=predicates)
    assert [answer for answer in answers if not answer["same"]] == []
    assert len(answers) == len(predicates) > 0
    answer = hudi.ask("validate_metadata", base=str(chosen.table))
    assert answer["wrong"] == []


def made_anew(table: Path) -> None:
    """Drops the metadata table, where there is one, and makes one with every kind; it is true."""
    storage = LocalStorage(table)
    config = TableConfig.load(storage)
    defined = table / ".hoodie" / ".index_defs" / "index.json"
    definitions = defined.read_bytes() if defined.exists() else None
    wanted = {"column_stats", "bloom_filters"} | config.metadata_partitions - {"files"}
    wanted |= {"record_index"} if config.raw.get("hoodie.populate.meta.fields") != "false" else set()
    wanted |= {"partition_stats"} if config.partition_fields and config.features.merge_modes else set()
    if has_metadata_table(table):
        run(table, "metadata_drop")
        if definitions is not None:
            defined.parent.mkdir(exist_ok=True)
            defined.write_bytes(definitions)
            listed = load_index_definitions(storage, TableConfig.load(storage))
            assert listed.keys() == json.loads(definitions)["indexDefinitions"].keys()
    run(table, "metadata_create", tuple(sorted(wanted)))
    assert TableConfig.load(storage).metadata_partitions == wanted | {"files"}
    assert HudiTable.open(str(table), options={"airflow_hudi.read.zone": "UTC"}).validate_metadata().differences == ()


def run(table: Path, verb: str, names: tuple[str, ...] = ()) -> None:
    """One verb of the metadata table."""
    HudiTable.open(str(table)).run(RunRequest(str(table), verb=verb, owner="the tests", options=OURS, partitions=names), LocalEngine(1))


def predicates_of(rows: pa.Table) -> Iterator[str]:
    """For each column of a plain type: rows without a value, those of its middle value, those above and those below it."""
    for field in rows.schema:
        kind = spark_type(field.type)
        if kind is None or field.name in ("_hoodie_commit_seqno", "_hoodie_file_name"):
            continue
        name = f"`{field.name}`"
        yield f"{name} IS NULL"
        values = pc.drop_null(rows[field.name]).sort()
        if len(values):
            middle = literal(values[len(values) // 2].as_py(), kind)
            yield from (f"{name} {operator} {middle}" for operator in ("=", ">", "<"))
            yield f"{name} IN ({middle}, {literal(values[0].as_py(), kind)})"


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

"""Real Hudi judges tables that we created: it opens them, writes to them by its own options, and leaves the properties
that a table of its own has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.config.properties import parse_properties
from hudi_core.config.table_config import CREATE_SCHEMA, PROPERTIES
from hudi_core.driver import run_on_target
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import UnsupportedError
from hudi_core.storage.local import LocalStorage
from hudi_core.storage.registry import open_storage
from hudi_core.table import HudiTable
from hudi_core.verbs.create import CreateRequest
from hudi_core.verbs.write import WriteRequest
from tests.contract.racing_servers import racing_server
from tests.interop.bundle import S3A, fetched
from tests.interop.changes import after_upsert, upsert_rows, user_columns, write_parquet
from tests.interop.judged import BASE_OPTIONS, JUDGES, KINDS, MOR, ON_TOP, Judged, first_rows
from tests.interop.real_hudi import RealHudi, RealHudiError
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered

pytestmark = [pytest.mark.hudi, pytest.mark.slow]

WRITE = "hoodie.datasource.write."
TIMES = "hoodie.keygen.timebased."
BY_MILLIS = {f"{TIMES}timestamp.type": "EPOCHMILLISECONDS", f"{TIMES}timezone": "UTC"}
LISTED = {"hoodie.metadata.enable": "false"}
EVERY = [*product(JUDGES, KINDS)]
CORE = [("9", MOR)]


def options_of(version: str, kind: str, more: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """Those of a writer that makes the table; None takes one out."""
    pinned = {} if version == "6" else {"hoodie.write.table.version": version, "hoodie.write.auto.upgrade": "false"}
    chosen = {**BASE_OPTIONS, **pinned, f"{WRITE}table.type": kind, **(more or {})}
    return {name: text for name, text in chosen.items() if text is not None}


def create(base: Path, version: str, options: Mapping[str, str], **given: Any) -> None:
    """Ours, by the options of the writer."""
    chosen = {**options, "hoodie.write.table.version": version}
    CreateRequest(str(base), options=chosen, **given).run_on_storage(LocalStorage(base))


def properties(base: Path) -> dict[str, str]:
    found = parse_properties((base / PROPERTIES).read_bytes(), path=PROPERTIES)
    return {name: text for name, text in found.items() if name != CREATE_SCHEMA}


def fresh(hudi: RealHudi, base: Path, version: str, kind: str, rows: pa.Table | None = None) -> Judged:
    """Our table without rows, for the rows of `rows` and those that they become."""
    given = first_rows() if rows is None else rows
    like = write_parquet(given, base.parent, f"{base.name}-like")
    create(base, version, options_of(version, kind), like=like)
    return Judged(hudi, base, given.slice(0, 0), dict(ON_TOP))


def ours(table: Judged, rows: pa.Table) -> None:
    """Upserts the rows."""
    source = write_parquet(rows, table.base.parent, f"{table.base.name}-ours")
    table.run("write", operation="upsert", source=source)
    table.rows = after_upsert(table.rows, rows) if table.rows.num_rows else rows


def theirs(table: Judged, rows: pa.Table) -> None:
    table.steps += 1
    table.write(rows)
    table.rows = after_upsert(table.rows, rows) if table.rows.num_rows else rows


@pytest.mark.parametrize(("version", "kind"), tiered(EVERY, CORE))
def test_real_hudi_writes_to_it_as_to_a_table_of_its_own(
    request: pytest.FixtureRequest, tmp_path: Path, version: str, kind: str
) -> None:
    """Its first write leaves the properties that it gives its own table; we read it and write on; it reads that."""
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    table = fresh(hudi, tmp_path / "table", version, kind)
    assert hudi.snapshot(table.base, metadata=False).num_rows == 0
    theirs(table, first_rows())
    own = Judged.create(hudi, tmp_path / "own", kind, version)
    assert properties(table.base) == properties(own.base)
    assert own.config.create_schema is None, "the one property that ours has alone"
    assert HudiTable.open(str(table.base)).schema() == HudiTable.open(str(own.base)).schema()
    table.check()
    ours(table, upsert_rows(table.rows, 5, "ours"))
    table.check()
    assert_metadata_true(table.base)
    table.goes_on()
    again = CreateRequest(
        str(table.base),
        like=str(tmp_path / "table-like.parquet"),
        options={**options_of(version, kind), "hoodie.write.table.version": version},
    )
    assert (again.run_on_storage(LocalStorage(table.base)).document or {})["created"] is False


@pytest.mark.conformance
@pytest.mark.parametrize("with_metadata", [True, False])
@pytest.mark.parametrize(("version", "kind"), EVERY)
def test_real_hudi_goes_on_behind_our_first_write(
    request: pytest.FixtureRequest, tmp_path: Path, version: str, kind: str, with_metadata: bool
) -> None:
    """With a metadata table that we created before any row, or one that it creates later."""
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    table = fresh(hudi, tmp_path / "table", version, kind)
    if with_metadata:
        table.run("metadata_create")
    ours(table, first_rows())
    assert_same_rows(user_columns(hudi.snapshot(table.base, metadata=False)), table.rows)
    if with_metadata:
        table.check()
    theirs(table, upsert_rows(table.rows, 5, "theirs"))
    table.check()
    ours(table, upsert_rows(table.rows, 5, "ours"))
    table.check()
    table.goes_on()


@pytest.mark.conformance
@pytest.mark.parametrize(("version", "kind"), EVERY)
def test_a_first_write_makes_the_table_that_real_hudis_makes(
    request: pytest.FixtureRequest, tmp_path: Path, version: str, kind: str
) -> None:
    """With the same properties and indexes; real Hudi reads it, writes to it and serves it."""
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    base, source = tmp_path / "table", write_parquet(first_rows(), tmp_path, "first")
    chosen = {**options_of(version, kind), "hoodie.write.table.version": version}
    write = WriteRequest(str(base), operation="insert", source=source, options=chosen)
    done = run_on_target(write, {}, lambda made: made.run(write, LocalEngine(1))).document or {}
    assert (done["created"], done["inserted"]) == (True, first_rows().num_rows)
    table = Judged(hudi, base, first_rows(), dict(ON_TOP))
    assert properties(base) == properties(Judged.create(hudi, tmp_path / "own", kind, version).base)
    table.check()
    assert_metadata_true(base)
    theirs(table, upsert_rows(table.rows, 5, "theirs"))
    table.check()
    table.goes_on()


def timed_rows() -> pa.Table:
    rows = first_rows()
    millis = [1_700_000_000_000 + 86_400_000 * (row % 3) for row in range(rows.num_rows)]
    rows = rows.append_column("ms", pa.array(millis, pa.int64()))
    return rows.append_column("city", pa.array(["New York", "a/b", "é=%"][row % 3] for row in range(rows.num_rows)))


MODELS = "org.apache.hudi.common.model."
SHAPES: dict[str, dict[str, str | None]] = {
    "without partitions": {f"{WRITE}partitionpath.field": ""},
    "hive style": {f"{WRITE}hive_style_partitioning": "true"},
    "two keys": {f"{WRITE}recordkey.field": "id,city"},
    "two keys without partitions": {f"{WRITE}recordkey.field": "id,city", f"{WRITE}partitionpath.field": ""},
    "two partition columns": {f"{WRITE}partitionpath.field": "dt,ms"},
    "two partition columns in hive style": {
        f"{WRITE}partitionpath.field": "dt,ms",
        f"{WRITE}hive_style_partitioning": "true",
    },
    "escaped": {f"{WRITE}partitionpath.field": "city", f"{WRITE}partitionpath.urlencode": "true"},
    "a complex key of one column": {f"{WRITE}keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator"},
    "without order": {f"{WRITE}precombine.field": None},
    "commit time": {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"},
    "a payload class of a merge mode": {f"{WRITE}payload.class": f"{MODELS}DefaultHoodieRecordPayload"},
    "a payload class that fills": {f"{WRITE}payload.class": f"{MODELS}PartialUpdateAvroPayload"},
    "without meta columns": {"hoodie.populate.meta.fields": "false"},
    "dropped partition columns": {
        f"{WRITE}drop.partition.columns": "true",
        f"{WRITE}hive_style_partitioning": "true",
    },
    "change logs": {"hoodie.table.cdc.enabled": "true"},
    "change logs of keys": {
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": "OP_KEY_ONLY",
    },
    "timeline in UTC": {"hoodie.table.timeline.timezone": "UTC"},
    "a database": {"hoodie.database.name": "sales"},
    "times": {
        **BY_MILLIS,
        f"{WRITE}partitionpath.field": "ms",
        f"{WRITE}keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        f"{TIMES}output.dateformat": "yyyy/MM/dd",
    },
    "a custom key generator": {
        **BY_MILLIS,
        f"{WRITE}partitionpath.field": "dt:SIMPLE,ms:TIMESTAMP",
        f"{WRITE}keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
        f"{TIMES}output.dateformat": "yyyyMMdd",
    },
}


MATRIX = [(*key, shape) for key, shape in product(EVERY, SHAPES) if not (key[1] == MOR and shape.startswith("dropped"))]


@pytest.mark.conformance
@pytest.mark.parametrize(("version", "kind", "shape"), MATRIX)
def test_the_properties_are_those_of_real_hudi_by_the_same_options(
    request: pytest.FixtureRequest, tmp_path: Path, version: str, kind: str, shape: str
) -> None:
    """Also behind its first write; both tables then have the same rows, in the same partitions."""
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    options = {**options_of(version, kind, SHAPES[shape]), **LISTED, f"{WRITE}operation": "upsert"}
    rows = write_parquet(timed_rows(), tmp_path, "rows")
    hudi.ask("create", base=str(tmp_path / "own"), parquet=rows, options=options)
    create(tmp_path / "table", version, options, like=rows)
    assert properties(tmp_path / "table") == properties(tmp_path / "own")
    hudi.ask("append", base=str(tmp_path / "table"), parquet=rows, options=options)
    assert properties(tmp_path / "table") == properties(tmp_path / "own")
    found, expected = (hudi.snapshot(tmp_path / name, metadata=False) for name in ("table", "own"))
    assert found.schema.names == expected.schema.names
    assert_same_rows(found, expected, ignore=("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"))


@pytest.mark.conformance
@pytest.mark.parametrize("version", list(JUDGES))
def test_real_hudi_refuses_its_second_write_where_we_refuse_to_create(
    request: pytest.FixtureRequest, tmp_path: Path, version: str
) -> None:
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    options = {**options_of(version, MOR, SHAPES["dropped partition columns"]), **LISTED}
    rows = write_parquet(first_rows(3), tmp_path, "rows")
    hudi.ask("create", base=str(tmp_path / "own"), parquet=rows, options=options)
    with pytest.raises(RealHudiError, match="Config conflict"):
        hudi.ask("append", base=str(tmp_path / "own"), parquet=rows, options=options)
    with pytest.raises(UnsupportedError, match=r"drop\.partition\.columns"):
        create(tmp_path / "table", version, options, like=rows)


@pytest.mark.conformance
@pytest.mark.parametrize("mode", ["", "EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"])
@pytest.mark.parametrize(("version", "kind"), EVERY)
def test_rows_are_merged_as_the_table_says(
    request: pytest.FixtureRequest, tmp_path: Path, version: str, kind: str, mode: str
) -> None:
    """By real Hudi and by us, whichever writes; no option of the writer says it again."""
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    by_event_time = mode == "EVENT_TIME_ORDERING" or (not mode and version != "6")
    first = first_rows(4)
    older = first.set_column(2, "ts", pa.array([1] * 4, pa.int64())).set_column(3, "name", pa.array(["older"] * 4))
    like = write_parquet(first, tmp_path, "like")
    for writers in ((theirs, theirs), (ours, ours), (theirs, ours), (ours, theirs)):
        base = tmp_path / "-".join(writer.__name__ for writer in writers)
        create(base, version, options_of(version, kind), like=like, merge_mode=mode)
        table = Judged(hudi, base, first.slice(0, 0), {**ON_TOP, **LISTED})
        for writer, rows in zip(writers, (first, older), strict=True):
            writer(table, rows)
        expected = first if by_event_time else older
        assert_same_rows(user_columns(hudi.snapshot(base, metadata=False)), expected)
        assert_same_rows(user_columns(read_rows(base)), expected)


def nullable(kind: Any) -> dict[str, Any]:
    return {"name": "v", "type": ["null", kind], "default": None}


MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
AMOUNTS = pa.array([Decimal("1.25"), None], pa.decimal128(10, 2))
COLUMNS: dict[str, tuple[dict[str, Any], pa.Array]] = {
    "null second": ({"name": "v", "type": ["string", "null"]}, pa.array(["x", None])),
    "required": ({"name": "v", "type": "long"}, pa.array([1, 2])),
    "default": ({"name": "v", "type": "int", "default": 7}, pa.array([1, 2], pa.int32())),
    "decimal as bytes": (nullable(MONEY), AMOUNTS),
    "decimal as fixed": (nullable({**MONEY, "type": "fixed", "name": "money", "size": 8}), AMOUNTS),
    "enum": (nullable({"type": "enum", "name": "colour", "symbols": ["RED", "BLUE"]}), pa.array(["RED", None])),
    "fixed": (nullable({"type": "fixed", "name": "four", "size": 4}), pa.array([b"abcd", None])),
    "uuid": (nullable({"type": "string", "logicalType": "uuid"}), pa.array(["x", None])),
    "struct": (
        nullable({"type": "record", "name": "Address", "fields": [{"name": "zip", "type": "int"}]}),
        pa.array([{"zip": 1}, None], pa.struct([("zip", pa.int32())])),
    ),
    "array": ({"name": "v", "type": {"type": "array", "items": "long"}}, pa.array([[1], [2, 3]])),
    "map": (
        {"name": "v", "type": {"type": "map", "values": "long"}},
        pa.array([[("a", 1)], [("b", 2)]], pa.map_(pa.string(), pa.int64())),
    ),
    "milliseconds": (
        nullable({"type": "long", "logicalType": "timestamp-millis"}),
        pa.array([1_700_000_000_123, None], pa.timestamp("ms", "UTC")),
    ),
}


@pytest.mark.conformance
@pytest.mark.parametrize(("version", "kind"), EVERY)
def test_columns_of_an_avro_schema_are_written_in_turns(
    request: pytest.FixtureRequest, tmp_path: Path, version: str, kind: str
) -> None:
    """Real Hudi compares our schema with the one that Spark makes of its rows."""
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    for number, (name, (field, column)) in enumerate(COLUMNS.items()):
        fields = [{"name": "id", "type": "string"}, {"name": "dt", "type": "string"}, {"name": "ts", "type": "long"}]
        schema = json.dumps({"type": "record", "name": "Order", "namespace": "com.acme", "fields": [*fields, field]})
        base = tmp_path / f"table-{number}"
        create(base, version, options_of(version, kind), schema=schema)
        rows = pa.table({"id": ["a", "b"], "dt": ["1", "1"], "ts": [1, 2], "v": column})
        table = Judged(hudi, base, rows.slice(0, 0), {**ON_TOP, **LISTED})
        for writer in (ours, ours, theirs, ours, theirs):
            writer(table, rows)
            table = replace(table, rows=rows)
            found = user_columns(hudi.snapshot(base, metadata=False))
            assert found.num_rows == 2, name
            assert_same_rows(found, user_columns(read_rows(base)))
            assert found["v"].null_count == column.null_count, name


@pytest.mark.conformance
@pytest.mark.parametrize("version", list(JUDGES))
def test_spark_sql_inserts_into_it(request: pytest.FixtureRequest, tmp_path: Path, version: str) -> None:
    """Its columns are known before the first commit, so that SQL needs no list of them."""
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    table = fresh(hudi, tmp_path / "table", version, MOR)
    name = f"created_{version}"
    hudi.ask("sql", statement=f"CREATE TABLE {name} USING hudi LOCATION '{table.base}'")
    hudi.ask("sql", statement=f"INSERT INTO {name} (id, ts, name, amount, dt) VALUES ('a', 1, 'x', 0.5, '2024-01-01')")
    assert user_columns(read_rows(table.base)).select(["id", "dt", "ts"]).to_pylist() == [
        {"id": "a", "dt": "2024-01-01", "ts": 1}
    ]
    ours(replace(table, rows=first_rows(0)), first_rows(4))
    assert hudi.snapshot(table.base, metadata=True).num_rows == 5


@pytest.mark.soak
@pytest.mark.parametrize("release", ["0.15.0", "1.0.2", "1.2.0"])
def test_real_hudi_opens_it_on_an_object_store(tmp_path: Path, release: str) -> None:
    """Hudi 1.x fails where nothing is below the folder of the timeline."""
    version = {"0.15.0": "6", "1.0.2": "8", "1.2.0": "9"}[release]
    rows = write_parquet(first_rows(4), tmp_path, "rows")
    options = {**options_of(version, MOR), **LISTED, f"{WRITE}operation": "upsert"}
    address = f"s3://bucket/created-{version}"
    with racing_server("moto") as server:
        settings = {
            "endpoint": server.url,
            "path.style.access": "true",
            "access.key": server.options["key"],
            "secret.key": server.options["secret"],
        }
        conf = {f"spark.hadoop.fs.s3a.{name}": text for name, text in settings.items()}
        hudi = RealHudi(release, jars=[fetched(jar) for jar in S3A], conf=conf)
        try:
            storage = open_storage(address, server.options)
            stated = {**options, "hoodie.write.table.version": version}
            CreateRequest(address, options=stated, like=rows).run_on_storage(storage)
            assert hudi.snapshot(f"s3a://bucket/created-{version}", metadata=False).num_rows == 0
            hudi.ask("append", base=f"s3a://bucket/created-{version}", parquet=rows, options=options)
            request = WriteRequest(address, operation="upsert", source=rows)
            done = HudiTable.open(address, server.options).run(request, LocalEngine(1))
            assert (done.document or {})["updated"] == 4
            assert hudi.snapshot(f"s3a://bucket/created-{version}", metadata=False).num_rows == 4
        finally:
            hudi.close()


@pytest.mark.conformance
@pytest.mark.parametrize("name", ["9 lives", "a-b.c", "naïve"])
@pytest.mark.parametrize("version", list(JUDGES))
def test_a_name_that_avro_does_not_allow_names_the_record_as_by_hudi(
    request: pytest.FixtureRequest, tmp_path: Path, version: str, name: str
) -> None:
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    options = {**options_of(version, MOR), **LISTED, "hoodie.table.name": name, f"{WRITE}operation": "insert"}
    rows = write_parquet(first_rows(3), tmp_path, "rows")
    hudi.ask("create", base=str(tmp_path / "own"), parquet=rows, options=options)
    create(tmp_path / "table", version, options, like=rows)
    assert properties(tmp_path / "table") == properties(tmp_path / "own")
    schemas = [HudiTable.open(str(tmp_path / folder)).schema() for folder in ("table", "own")]
    assert schemas[0] == schemas[1]
    hudi.ask("append", base=str(tmp_path / "table"), parquet=rows, options=options)
    assert hudi.snapshot(tmp_path / "table", metadata=False).num_rows == 3

"""Real Hudi judges tables that we overwrote and whose partitions we deleted: rows, metadata table, filters through
every index, and what it writes next.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.codec.avro.arrow_types import spark_field
from hudi_core.config.concurrency_config import FAILED_WRITES_POLICY
from hudi_core.config.table_config import DROP_PARTITION
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.model.names import IS_DELETED
from hudi_core.timeline.instant import Action
from tests.interop.changes import after_upsert, upsert_rows, user_columns, write_parquet
from tests.interop.fully_indexed_golden_table import WITH_INDEXES, Served
from tests.interop.judged import BASE_OPTIONS, COW, EVERY_JUDGE, JUDGES, KINDS, ON_TOP, Judged, first_rows
from tests.interop.real_hudi import RealHudi, RealHudiError
from tests.support.golden_clusterings import SORT_COLUMNS, cluster, plan_of_all
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import delete, in_buckets, overwrite, own_rows, places, put_source, within
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, read_rows

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]

Golden = Callable[[str, str], GoldenCase]


def overwrite_half(table: Judged, scratch: Path, partition: str) -> None:
    """Half of the rows of a partition stay, with other values, and one of them moves to a new partition."""
    of_partition = pc.equal(table.rows["dt"], partition)
    rows = table.rows.filter(of_partition)
    rows = rows.slice(0, max(2, rows.num_rows // 2))
    at = rows.schema.get_field_index("amount")
    rows = rows.set_column(at, rows.schema.field(at), pc.add(rows["amount"], 1000.0))
    moved, stay = rows.slice(0, 1), rows.slice(1)
    at = rows.schema.get_field_index("dt")
    rows = pa.concat_tables([stay, moved.set_column(at, moved.schema.field(at), [["2031-05-05"]])])
    overwrite(table.base, put_source(rows, scratch, files=2, name=f"source-{partition}"))
    table.rows = pa.concat_tables([table.rows.filter(pc.invert(of_partition)), rows])


@pytest.mark.parametrize(("version", "name"), WITH_INDEXES)
def test_every_index_leads_to_the_new_rows_and_to_none_that_went(
    golden: Golden, request: pytest.FixtureRequest, tmp_path: Path, version: str, name: str
) -> None:
    """Real Hudi answers by the indexes what a scan answers, finds by them the rows that it changes, deletes, compacts
    and cleans the file groups that were replaced.
    """
    hudi: RealHudi = request.getfixturevalue(EVERY_JUDGE[version])
    table = Served.of(hudi, golden(version, name))
    partitions = sorted(set(table.rows["dt"].to_pylist()))
    overwrite_half(table, tmp_path, partitions[0])
    delete(table.base, partitions[1])
    table.rows = table.rows.filter(pc.not_equal(table.rows["dt"], partitions[1]))
    assert user_columns(read_rows(table.base)).num_rows == table.rows.num_rows
    table.judge()
    table.go_on()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", list(JUDGES))
def test_real_hudi_goes_on_with_columns_that_an_overwrite_added(
    request: pytest.FixtureRequest, tmp_path: Path, version: str, kind: str
) -> None:
    """New columns of text, of decimals, of lists and of types that Spark reads as others, and a number that became
    wider: in the partition that was written, null in the other, then in upserts, a compaction and a clean of real Hudi.
    """
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    rows = first_rows()
    rows = rows.append_column("qty", pa.array(range(rows.num_rows), pa.int32()))
    statistics = {"hoodie.metadata.index.column.stats.enable": "true"}
    table = Judged.create(hudi, tmp_path / "table", kind, version, statistics, rows)
    of_partition = pc.equal(rows["dt"], "2024-01-01")
    given, kept = rows.filter(of_partition), rows.filter(pc.invert(of_partition))
    count = given.num_rows
    wide = pa.array([2**40 + at for at in range(count)], pa.int64())
    given = given.set_column(given.schema.get_field_index("qty"), "qty", wide)
    given = given.append_column("note", pa.array([f"n{at}" for at in range(count)]))
    given = given.append_column("price", pa.array([Decimal(at) for at in range(count)], pa.decimal128(12, 2)))
    given = given.append_column("tags", pa.array([["a", str(at)] for at in range(count)]))
    given = given.append_column("seen", pa.array(range(count), pa.timestamp("ms", "UTC")))
    given = given.append_column("code", pa.array([b"%04d" % at for at in range(count)], pa.binary(4)))
    nested = pa.struct([("seen", pa.timestamp("ms", "UTC")), ("code", pa.binary(1))])
    given = given.append_column("nested", pa.array([{"seen": at, "code": b"x"} for at in range(count)], nested))
    if version == "9":
        given = given.append_column("local", pa.array(range(count), pa.timestamp("ms")))
    overwrite(table.base, put_source(given, tmp_path / "source"))
    given = given.cast(pa.schema(list(map(spark_field, given.schema))))
    kept = kept.set_column(kept.schema.get_field_index("qty"), "qty", kept["qty"].cast(pa.int64()))
    table.rows = pa.concat_tables([given, kept], promote_options="default")
    table.check()
    table.goes_on()


@pytest.mark.parametrize("combine", ["true", "false"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", list(JUDGES))
def test_real_hudi_writes_the_same_of_rows_with_one_key_and_of_deleted_ones(
    request: pytest.FixtureRequest, tmp_path: Path, version: str, kind: str, combine: str
) -> None:
    """Its own insert_overwrite of the same source, on a copy of the table."""
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    rows = first_rows()
    rows = rows.append_column(IS_DELETED, pa.array([False] * rows.num_rows))
    table = Judged.create(hudi, tmp_path / "table", kind, version, rows=rows)
    theirs = table.copy(tmp_path / "theirs")
    of_partition = rows.filter(pc.equal(rows["dt"], "2024-01-01"))

    def version_of(first: int, end: int, ts: int, *, deleted: bool = False) -> pa.Table:
        found = of_partition.slice(first, end - first)
        columns = {
            "ts": pc.add(found["ts"], ts),
            "name": pa.array([f"{name} {ts}" for name in found["name"].to_pylist()]),
            IS_DELETED: pa.array([deleted] * found.num_rows),
        }
        return pa.table({name: columns.get(name, found[name]) for name in found.schema.names})

    given = pa.concat_tables(
        [
            version_of(0, 20, 5),
            version_of(5, 25, -5),
            version_of(0, 4, 9, deleted=True),
            version_of(6, 9, -9, deleted=True),
            version_of(12, 15, 7),
        ]
    )
    options = {"hoodie.combine.before.insert": combine}
    hudi.ask(
        "write",
        base=str(theirs.base),
        operation="insert_overwrite",
        parquet=write_parquet(given, tmp_path, "given"),
        options={**theirs.options, **options},
    )
    overwrite(table.base, put_source(given, tmp_path, files=3), options)
    expected = user_columns(hudi.snapshot(theirs.base, metadata=True))
    assert expected.num_rows == 30 + (21 if combine == "true" else 43)
    assert_same_rows(user_columns(read_rows(table.base)), expected)
    table.rows = expected
    table.check()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", list(JUDGES))
def test_real_hudi_writes_on_top(request: pytest.FixtureRequest, tmp_path: Path, version: str, kind: str) -> None:
    """Upserts into what we wrote, our overwrite of what it wrote, its rows in a partition that we deleted, an emptied
    table.
    """
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    table = Judged.create(hudi, tmp_path / "table", kind, version)
    table.upsert(fresh=False)
    overwrite_half(table, tmp_path / "1", "2024-01-01")
    table.check()
    table.upsert()
    table.check()
    gone = pc.equal(table.rows["dt"], "2024-01-02")
    again = table.rows.filter(gone).slice(0, 5)
    delete(table.base, "2024-01-02")
    table.rows = table.rows.filter(pc.invert(gone))
    table.check()
    table.write(again)
    table.rows = pa.concat_tables([table.rows, again])
    table.check()
    rows = table.rows
    overwrite(table.base, put_source(rows.slice(0, 0), tmp_path / "2"), whole_table=True)
    table.rows = rows.slice(0, 0)
    assert read_rows(table.base).num_rows == 0
    table.write(rows)
    table.rows = rows
    table.check()
    assert len(table.instants(Action.REPLACE_COMMIT)) == 3
    table.goes_on()


@pytest.mark.parametrize("name", ["failed_inflight_cow", "failed_inflight_mor"])
@pytest.mark.parametrize("version", list(JUDGES))
def test_an_eager_writer_goes_on_whose_failed_write_came_before(
    golden: Golden, request: pytest.FixtureRequest, tmp_path: Path, version: str, name: str
) -> None:
    """We roll that back first, as real Hudi does. Behind a commit over it every write fails: what the LAZY policy
    would leave, which this writer does not have.
    """
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    case, passed_over = golden(version, name), golden(version, name)
    rows = read_rows(case.table)
    options = {
        **case.info["write_options"],
        **ON_TOP,
        "hoodie.table.name": case.info["table_config"]["hoodie.table.name"],
    }
    first = min(rows["_hoodie_partition_path"].to_pylist())
    kept = user_columns(within(rows, first, outside=True))
    given = write_parquet(kept.slice(0, 3).replace_schema_metadata(None), tmp_path, "given")
    empty = put_source(own_rows(case.table, rows).slice(0, 0), tmp_path)
    for table, policy in ((case.table, {}), (passed_over.table, {FAILED_WRITES_POLICY.name: "LAZY"})):
        overwrite(table, empty, policy, partitions=(first,))
        assert_same_rows(user_columns(hudi.snapshot(table, metadata=True)), kept)
    with pytest.raises(RealHudiError, match="Found commits after time"):
        hudi.ask("write", base=str(passed_over.table), operation="upsert", parquet=given, options=options)
    hudi.ask("write", base=str(case.table), operation="upsert", parquet=given, options=options)
    for metadata in (True, False):
        assert_same_rows(user_columns(hudi.snapshot(case.table, metadata=metadata)), kept)
    assert_metadata_true(case.table)


@pytest.mark.parametrize("key", ["id", "id,dt"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", list(JUDGES))
def test_real_hudi_finds_its_rows_in_the_buckets_that_we_wrote(
    request: pytest.FixtureRequest, tmp_path: Path, version: str, kind: str, key: str
) -> None:
    """By the hash of their keys alone: a row in another bucket would be there twice behind an upsert."""
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    buckets = {
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "5",
        "hoodie.bucket.index.hash.field": "id",
        "hoodie.datasource.write.recordkey.field": key,
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen."
        + ("ComplexKeyGenerator" if "," in key else "SimpleKeyGenerator"),
        "hoodie.storage.layout.type": "BUCKET",
        "hoodie.storage.layout.partitioner.class": "org.apache.hudi.table.action.commit.SparkBucketIndexPartitioner",
    }
    table = Judged.create(hudi, tmp_path / "table", kind, version, buckets)
    table.upsert()
    theirs = table.copy(tmp_path / "theirs")
    gone = pc.equal(table.rows["dt"], "2024-01-01")
    given, kept = table.rows.filter(gone).slice(3), table.rows.filter(pc.invert(gone))
    overwrite(table.base, put_source(given, tmp_path, files=2), buckets)
    table.rows = pa.concat_tables([given, kept])
    table.check()
    hudi.ask(
        "write",
        base=str(theirs.base),
        operation="insert_overwrite",
        parquet=write_parquet(given, tmp_path, "given"),
        options={**theirs.options, **buckets},
    )
    ours = sorted(in_buckets(read_rows(table.base)).items())
    assert ours == sorted(in_buckets(read_rows(theirs.base)).items())
    assert len({bucket for _, bucket in ours}) == 5
    table.upsert()
    table.check()
    table.write(table.rows.slice(0, 20))
    table.check()
    if kind == KINDS[1]:
        table.compact()
        table.check()


@pytest.mark.parametrize("columns", ["dt", "a, dt"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("version", list(JUDGES))
def test_real_hudi_finds_its_rows_where_spark_sql_partitions_by_a_timestamp(
    request: pytest.FixtureRequest, tmp_path: Path, version: str, kind: str, columns: str
) -> None:
    """Its own INSERT OVERWRITE of the same rows makes the same partitions, and an upsert finds each row in its own: in
    another one it would be there twice.
    """
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    base, name = tmp_path / "table", f"timed_{version}_{kind}_{len(columns)}"

    def sql(statement: str) -> None:
        hudi.ask("sql", statement=statement)

    values = "(1, {0}, 'x', timestamp'2024-01-01 00:00:00'), (2, {0}, 'x', timestamp'2024-07-02 10:20:30.5')"
    sql(
        f"CREATE TABLE {name} (id int, v int, a string, dt timestamp) USING hudi PARTITIONED BY ({columns})"
        f" TBLPROPERTIES (primaryKey = 'id', preCombineField = 'v', type = '{kind}') LOCATION '{base}'"
    )
    sql(f"INSERT INTO {name} VALUES {values.format(1)}")
    shutil.copytree(base, tmp_path / "theirs")
    times = [datetime(2024, 1, 1), datetime(2024, 7, 2, 10, 20, 30, 500_000), datetime(2025, 1, 1, 1)]
    given = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int32()),
            "v": pa.array([2, 2, 2], pa.int32()),
            "a": ["x"] * 3,
            "dt": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )
    assert overwrite(base, put_source(given, tmp_path)).replaced_file_groups == 2
    sql(f"CREATE TABLE {name}_theirs USING hudi LOCATION '{tmp_path / 'theirs'}'")
    new = f"{values.format(2)}, (3, 2, 'x', timestamp'2025-01-01 01:00:00')"
    sql(f"INSERT OVERWRITE {name}_theirs PARTITION ({columns}) VALUES {new}")
    found, expected = hudi.snapshot(base, metadata=True), hudi.snapshot(tmp_path / "theirs", metadata=True)
    assert places(found) == places(expected)
    assert_same_rows(user_columns(found), user_columns(expected))
    sql("SET hoodie.spark.sql.insert.into.operation = upsert")
    try:
        sql(f"REFRESH TABLE {name}")
        sql(f"INSERT INTO {name} VALUES {values.format(3)}")
    finally:
        sql("RESET hoodie.spark.sql.insert.into.operation")
    for metadata in (True, False):
        rows = hudi.snapshot(base, metadata=metadata)
        assert sorted(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True)) == [(1, 3), (2, 3), (3, 2)]
    assert places(read_rows(base)) == places(expected)


TIMES = "hoodie.keygen.timebased."
OWN_OFFSETS = {
    "timestamp.type": "DATE_STRING",
    "input.dateformat": "yyyy-MM-dd'T'HH:mm:ssZ, yyyy-MM-dd'T'HH:mm:ss.SSSZ",
    "output.dateformat": "yyyyMMddHH",
}
DAYS = {
    "timestamp.type": "SCALAR",
    "timestamp.scalar.time.unit": "days",
    "output.dateformat": "yyyy-MM-dd hh",
    "timezone": "GMT+8:00",
}


@pytest.mark.parametrize("version", ["9", "6"])
def test_real_hudi_finds_its_rows_where_partitions_are_times(
    request: pytest.FixtureRequest, tmp_path: Path, version: str
) -> None:
    """Texts with offsets where no zone is set, and days in a zone that is an offset: an overwrite by the same rows
    puts each where real Hudi had it, and an upsert finds it there.
    """
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    texts = ["2024-01-01T01:30:00+0800", "2024-01-01T12:30:00.428Z", "2024-01-01T23:30:00-05:00"]
    for name, settings, values in (("texts", OWN_OFFSETS, texts), ("days", DAYS, [19723, 19724, -1])):
        times = {TIMES + key: value for key, value in settings.items()}
        keys = {"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator"}
        rows = first_rows(3)
        rows = rows.set_column(rows.schema.get_field_index("dt"), "dt", pa.array(values))
        table = Judged.create(hudi, tmp_path / name, KINDS[0], version, {**keys, **times}, rows)
        before = places(read_rows(table.base))
        assert len({path for _, path in before}) == 3
        overwrite(table.base, put_source(rows, tmp_path / f"source-{name}"), times)
        assert places(read_rows(table.base)) == before
        table.write(rows)
        assert places(read_rows(table.base)) == before
        if (name, version) != ("days", "6"):  # 0.15.0 casts the path to the column's type, and fails.
            assert places(hudi.snapshot(table.base, metadata=True)) == before


@pytest.mark.parametrize("version", list(JUDGES))
def test_real_hudi_finds_rows_by_complex_keys_of_one_field(
    request: pytest.FixtureRequest, tmp_path: Path, version: str
) -> None:
    """Whose values begin with the name of the field: 0.15.0 and 1.0.2 do not put the name before them, 1.2.0 does."""
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    rows = first_rows()
    rows = rows.set_column(0, "id", pa.array([f"id:{key}" for key in rows["id"].to_pylist()]))
    keys = {"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator"}
    table = Judged.create(hudi, tmp_path / "table", KINDS[0], version, keys, rows)
    overwrite(table.base, put_source(rows, tmp_path), whole_table=True)
    table.check()
    table.write(rows.slice(0, 20))
    table.check()
    found = read_rows(table.base)
    before = "id:" if version == "9" else ""
    assert found["_hoodie_record_key"].to_pylist() == [f"{before}{value}" for value in found["id"].to_pylist()]


def test_numbers_of_buckets_of_single_partitions_show_in_the_partition_that_is_written(
    hudi_1_2: RealHudi, tmp_path: Path
) -> None:
    """More files than are looked at have four buckets, the last partition has two."""
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
    expressions = {"hoodie.bucket.index.partition.expressions": "2024-01-09,2"}
    days = [f"2024-01-0{day}" for day in range(3, 10)]
    rows = pa.concat_tables([first_rows().set_column(1, "dt", pa.array([day] * 60)) for day in days])
    table = Judged.create(hudi_1_2, tmp_path / "table", KINDS[0], "9", {**buckets, **expressions}, rows)
    last = put_source(rows.filter(pc.equal(rows["dt"], days[-1])), tmp_path)
    with pytest.raises(ConfigError, match="by 4 buckets of id the rows of the file are in another bucket"):
        overwrite(table.base, last, buckets)
    with pytest.raises(UnsupportedError, match="partitions have different numbers of buckets"):
        overwrite(table.base, last, {**buckets, **expressions})
    table.check()


@pytest.mark.parametrize("version", list(JUDGES))
def test_files_without_partition_columns_that_the_schema_names(
    request: pytest.FixtureRequest, tmp_path: Path, version: str
) -> None:
    """After a bulk_insert by Hudi's row writer (0.15.0, 1.0.2): real Hudi reads what an overwrite and a clustering, by
    sort columns that Spark finds as well, leave of the table, and writes on.
    """
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    table = tmp_path / "table"
    rows = pa.table(
        {
            "id": [f"k{number}" for number in range(8)],
            "name": ["x"] * 8,
            "ts": pa.array(range(8), pa.int64()),
            "dt": ["2024-01-01", "2024-01-02"] * 4,
        }
    )
    options = {**BASE_OPTIONS, DROP_PARTITION.name: "true", "hoodie.datasource.write.table.type": COW}
    created = {**options, "hoodie.datasource.write.operation": "bulk_insert"}
    hudi.ask("create", base=str(table), parquet=write_parquet(rows, tmp_path, "rows"), options=created)
    assert_same_rows(user_columns(read_rows(table)), rows, ignore=())
    new = rows.slice(0, 3)
    overwrite(table, put_source(new, tmp_path))
    cluster(table, plan_of_all(table, {SORT_COLUMNS: "DT,Name"}))
    for metadata in (True, False):
        assert_same_rows(user_columns(hudi.snapshot(table, metadata=metadata)), new, ignore=())
    later = upsert_rows(new, 2, "later")
    parquet = write_parquet(later, tmp_path, "later")
    hudi.ask("write", base=str(table), operation="upsert", parquet=parquet, options=options)
    for found in (hudi.snapshot(table, metadata=True), read_rows(table)):
        assert_same_rows(user_columns(found), after_upsert(new, later), ignore=())

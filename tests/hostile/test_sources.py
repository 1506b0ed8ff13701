"""Hostile rows and files as the source of a write. Each is written, and read back equal, or refused by a typed error
that names the file and a remedy; then the table is as it was, and no instant is pending.
"""

from __future__ import annotations

import datetime
import decimal
import json
import math
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_core.errors import CorruptFileError, HudiError
from tests.hostile.change import Nature, NotApplicableError
from tests.hostile.parquet_footers import ThriftReader, change_parquet, encode_struct
from tests.hostile.refusals import LOCAL, HostileTable, refused
from tests.support.changed_tables import data_files
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, leftovers, pending_instants, read_rows
from tests.support.tiers import tiered
from tests.support.writes import base_files, like, own_columns, staged, write

Golden = Callable[[str, str], GoldenCase]
Hostile = Callable[[str, str], HostileTable]
TABLES = [(version, case) for version in ("6", "8", "9") for case in ("cow_basic", "mor_basic")]
DAY = "2031-01-01"


def put(rows: pa.Table, folder: Path, name: str = "source") -> Path:
    path = folder / f"{name}.parquet"
    pq.write_table(rows, path)
    return path


def tried(table: Path, given: Path, sent: pa.Table, options: Mapping[str, str] | None = None) -> HudiError | None:
    """Upserts `sent`, which is in the file `given`; the error where it is refused."""
    before, files = read_rows(table), set(data_files(table))
    error = refusal(table, given, options)
    after = read_rows(table)
    if error is not None:
        assert error.path or "metadata table" in error.message, error
        assert error.remedy, error
        assert pending_instants(table) == set()
        assert (leftovers(table, ""), staged(table)) == ([], [])
        left = {name for name in set(data_files(table)) - files if not name.endswith(".hoodie_partition_metadata")}
        assert left == set()
        assert_same_rows(after, before, ignore=())
        return error
    keys = sent.column("id").combine_chunks()
    assert_same_rows(short(within(after, keys).select(sent.column_names)), short(sent), ignore=())
    kept = within(before, keys, outside=True)
    assert_same_rows(short(within(after, keys, outside=True).select(kept.column_names)), short(kept))
    assert staged(table) == []
    assert_metadata_true(table)
    return None


def within(rows: pa.Table, keys: pa.Array, *, outside: bool = False) -> pa.Table:
    """The rows with these keys, or all others."""
    is_there = pc.is_in(rows.column("id"), value_set=keys)
    return rows.filter(pc.invert(is_there) if outside else is_there)


def short(rows: pa.Table) -> pa.Table:
    """Large rows with the hashes of their texts."""
    for at, field in enumerate(rows.schema):
        if pa.types.is_string(field.type) and rows.nbytes > 1 << 20:
            texts = rows.column(at).cast(pa.binary()).to_pylist()
            rows = rows.set_column(at, field.name, pa.array([text and sha256(text).hexdigest() for text in texts]))
    return rows


def refusal(table: Path, given: Path, options: Mapping[str, str] | None) -> HudiError | None:
    try:
        write(table, "upsert", given, options)
    except HudiError as error:
        return error
    return None


def new_rows(table: Path, count: int = 3, **values: Any) -> pa.Table:
    """Rows with keys of their own, of a new partition unless `values` name one."""
    rows = own_columns(read_rows(table))
    return like(rows, *({"dt": DAY, **values, "id": f"new {at}"} for at in range(count)))


NOW = datetime.datetime(2026, 11, 30, 12, 0, 1)
KINDS: dict[str, tuple[pa.DataType, Any]] = {
    "int8": (pa.int8(), -128),
    "uint8": (pa.uint8(), 255),
    "uint64": (pa.uint64(), 2**64 - 1),
    "float16": (pa.float16(), 0.5),
    "decimal38": (pa.decimal128(38, 38), decimal.Decimal("0." + "9" * 38)),
    "decimal76": (pa.decimal256(76, 0), decimal.Decimal("9" * 76)),
    "date64": (pa.date64(), datetime.date(9999, 12, 31)),
    "time": (pa.time64("ns"), datetime.time(1)),
    "duration": (pa.duration("us"), datetime.timedelta(1)),
    "seconds": (pa.timestamp("s"), NOW),
    "nanoseconds": (pa.timestamp("ns", "UTC"), NOW.replace(tzinfo=datetime.timezone.utc)),
    "another zone": (pa.timestamp("us", "Asia/Kolkata"), NOW.replace(tzinfo=datetime.timezone.utc)),
    "views": (pa.string_view(), "a text that is longer than twelve bytes"),
    "bytes of one length": (pa.binary(3), b"\0\xff\n"),
    "categories": (pa.dictionary(pa.int8(), pa.string()), "red"),
    "null": (pa.null(), None),
    "list of null": (pa.list_(pa.null()), [None]),
    "list of one length": (pa.list_(pa.float32(), 2), [1.0, math.nan]),
    "map of numbers": (pa.map_(pa.int32(), pa.string()), [(1, "a")]),
    "deep": (pa.list_(pa.map_(pa.string(), pa.struct([("a", pa.list_(pa.int64()))]))), [[("k", {"a": [1, None]})]]),
    "lone surrogate": (pa.string(), b"\xed\xa0\x80"),
    "zero byte": (pa.string(), "a\0b"),
}
WRITTEN = {"date64", "categories", "bytes of one length", "views", "deep", "int8", "zero byte", "another zone"}


@pytest.mark.parametrize(("version", "case"), tiered(TABLES, [("9", "cow_basic")]))
@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_a_type_that_no_table_has(
    golden: Golden, tmp_path: Path, version: str, case: str, kind: str
) -> None:
    table = golden(version, case).table
    rows = new_rows(table)
    of, value = KINDS[kind]
    if isinstance(value, bytes) and of == pa.string():
        odd = pa.array([value] * 3, pa.binary()).view(of)
    elif pa.types.is_dictionary(of):
        odd = pa.array([value] * 3).dictionary_encode()
    else:
        odd = pa.array([value, None, value], of)
    sent = rows.append_column("odd", odd)
    error = tried(table, put(sent, tmp_path), sent)
    assert (error is None) or kind not in WRITTEN, error
    assert error is None or "odd" in str(error), error


@pytest.mark.slow
@pytest.mark.parametrize(("version", "case"), tiered(TABLES, [("9", "cow_basic")]))
@pytest.mark.parametrize("columns", tiered([200, 1000, 10_000], [200]))
def test_hudi_8416_rows_of_many_columns(golden: Golden, tmp_path: Path, version: str, case: str, columns: int) -> None:
    """Each row keeps its own values, as rows come, change, and are compared with what is there."""
    table = golden(version, case).table
    rows = new_rows(table, 5)
    for step in range(2):
        sent = rows
        for at in range(columns):
            sent = sent.append_column(f"c{at}", pa.array([at * row + step for row in range(5)], pa.int64()))
        assert tried(table, put(sent, tmp_path, str(step)), sent) is None


@pytest.mark.slow
@pytest.mark.parametrize(("version", "case"), tiered(TABLES, [("6", "mor_basic")]))
@pytest.mark.parametrize("mebibytes", tiered([12, 64], [12]))
def test_rows_of_many_mebibytes(golden: Golden, tmp_path: Path, version: str, case: str, mebibytes: int) -> None:
    table = golden(version, case).table
    for step in "ab":
        sent = new_rows(table, 3, name=step * (mebibytes << 20))
        assert tried(table, put(sent, tmp_path, step), sent, {"airflow_hudi.memory.bytes": str(64 << 20)}) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "case"),
    tiered([*TABLES, ("6", "mdt_all_cow"), ("8", "mdt_all_mor"), ("9", "mdt_all_cow")], []),
)
def test_keys_of_a_megabyte(golden: Golden, tmp_path: Path, version: str, case: str) -> None:
    """They are found again. A row-level index takes none."""
    table = golden(version, case).table
    rows = new_rows(table)
    keys = pa.array([f"{at}" + "k" * 1_000_000 for at in range(3)])
    for step in range(2):
        sent = rows.set_column(rows.schema.get_field_index("id"), "id", keys)
        sent = sent.set_column(
            sent.schema.get_field_index("qty"),
            sent.schema.field("qty"),
            pa.array([step] * 3, sent.schema.field("qty").type),
        )
        error = tried(table, put(sent, tmp_path, str(step)), sent)
        assert (error is None) is (case[:3] != "mdt"), error


@pytest.mark.parametrize("key", ["", None])
def test_a_row_without_a_key(golden: Golden, tmp_path: Path, key: str | None) -> None:
    table = golden("9", "cow_basic").table
    rows = new_rows(table)
    sent = rows.set_column(rows.schema.get_field_index("id"), "id", pa.array(["a", key, "b"], pa.string()))
    error = tried(table, put(sent, tmp_path), sent)
    assert "1 rows have no record key in id" in str(error)


REFUSED_PATHS = [".", "..", "a/../b", "a//b", "/a", "a/", "s3://x", ".hoodie", ".hoodie/x", "a\0b", "x" * 300]
WRITTEN_PATHS = [
    "",
    "a/b",
    "a%2Fb",
    "a%b",
    "a\nb",
    "a=b",
    " ",
    "..a",
    "é",
    "__HIVE_DEFAULT_PARTITION__",
    "_a",
    ".a",
    "a.parquet",
]

READ_AS = {"": None, "__HIVE_DEFAULT_PARTITION__": None, "a%2Fb": "a/b"}
"""Partition columns are read from the path, as in Spark; in version 6 from rows, where log files are merged."""


@pytest.mark.parametrize(("version", "case"), tiered(TABLES, [("9", "cow_basic")]))
@pytest.mark.parametrize("value", [*REFUSED_PATHS, *WRITTEN_PATHS])
def test_hudi_7454_hudi_2970_partition_values_that_are_odd_paths(
    golden: Golden, tmp_path: Path, version: str, case: str, value: str
) -> None:
    table = golden(version, case).table
    sent = new_rows(table, dt=value)
    given = put(sent, tmp_path)
    at = sent.schema.get_field_index("dt")
    read = value if (version, case) == ("6", "mor_basic") else READ_AS.get(value, value)
    error = tried(table, given, sent.set_column(at, "dt", pa.array([read] * 3, pa.string())))
    assert (error is None) is (value in WRITTEN_PATHS), error


def created(folder: Path, columns: Mapping[str, str], *arguments: str) -> Any:
    """The table of `hudictl create`."""
    fields = [{"name": name, "type": ["null", kind], "default": None} for name, kind in columns.items()]
    schema = json.dumps({"type": "record", "name": "t", "fields": fields})
    return hudictl("create", folder / "t", "--schema", schema, "--name", "t", *arguments, "--json")


ODD = [math.nan, math.inf, -math.inf, 0.0, -0.0, None]


@pytest.mark.parametrize("role", ["--record-key", "--partition-by"])
def test_fractions_make_no_keys_and_no_paths(tmp_path: Path, role: str) -> None:
    other = "--partition-by" if role == "--record-key" else "--record-key"
    columns = {"x": "double", "id": "string"}
    done = created(tmp_path, columns, role, "x", other, "id", "--version", "9")
    if done.code == 0:
        given = put(pa.table({"x": ODD, "id": [str(at) for at in range(len(ODD))]}), tmp_path)
        done = hudictl("write", tmp_path / "t", "--operation", "upsert", "--source", given, *LOCAL, "--json")
        assert pending_instants(tmp_path / "t") == set()
    assert done.code == 2, done
    assert "'x'" in done.error["message"] or " x" in done.error["message"], done.error
    assert done.error["remedy"]


@pytest.mark.parametrize(
    ("version", "kind"), tiered([(v, k) for v in "689" for k in ("cow", "mor")], [("9", "mor"), ("6", "cow")])
)
def test_nan_and_infinity_order_rows_as_in_java(tmp_path: Path, version: str, kind: str) -> None:
    """NaN is the greatest, and -0.0 is below 0.0."""
    columns = {"id": "string", "dt": "string", "x": "double", "n": "int"}
    arguments = ("--record-key", "id", "--partition-by", "dt", "--ordering", "x", "--type", kind, "--version", version)
    assert created(tmp_path, columns, *arguments, "--merge-mode", "EVENT_TIME_ORDERING").code == 0
    table = tmp_path / "t"
    ascending = [-math.inf, -1.0, -0.0, 0.0, 1.0, math.inf, math.nan]
    pairs = [(low, high) for at, low in enumerate(ascending) for high in ascending[at + 1 :]]
    for number, flipped in enumerate((False, True)):
        first, second = ([pair[side] for pair in pairs] for side in ((1, 0) if flipped else (0, 1)))
        ids = [f"{number} {at}" for at in range(len(pairs))]
        for n, values in enumerate((first, second)):
            sent = pa.table({"id": ids, "dt": ["d"] * len(ids), "x": values, "n": pa.array([n] * len(ids), pa.int32())})
            write(table, "upsert", put(sent, tmp_path, f"{number} {n}"))
        rows = {row["id"]: row["n"] for row in read_rows(table).to_pylist()}
        assert [rows[name] for name in ids] == [0 if flipped else 1] * len(ids)
    null = pa.table({"id": ["null"], "dt": ["d"], "x": pa.array([None], pa.float64()), "n": pa.array([1], pa.int32())})
    error = tried(table, put(null, tmp_path), null)
    assert "no value in 'x'" in str(error)


def test_no_rows_and_no_columns(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    rows = new_rows(table)
    result = write(table, "upsert", put(rows.slice(0, 0), tmp_path))
    assert (result.instant, result.reason) == (None, "the source has no rows")
    bare = pa.table({})
    assert "no column" in str(tried(table, put(bare, tmp_path, "bare"), rows))


@pytest.mark.parametrize(
    "content",
    [b"", b"PAR1", b"PAR1PAR1", b"PAR1" + b"x" * 64 + b"PAR1", b"id,dt\n1,2\n", b"PAR1" + b"\xff" * 16 + b"PAR1"],
)
def test_a_source_that_is_no_parquet(golden: Golden, tmp_path: Path, content: bytes) -> None:
    table = golden("9", "cow_basic").table
    given = tmp_path / "source.parquet"
    given.write_bytes(content)
    assert tried(table, given, new_rows(table)) is not None


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
def test_a_source_that_is_cut(golden: Golden, tmp_path: Path, part: float) -> None:
    table = golden("9", "cow_basic").table
    rows = new_rows(table)
    given = put(rows, tmp_path)
    whole = given.read_bytes()
    given.write_bytes(whole[: int(len(whole) * part)])
    assert tried(table, given, rows) is not None


def with_unknown_page(content: bytes, column: str) -> bytes:
    """The Parquet file with a page header that names no type of page that there is."""
    group = pq.ParquetFile(pa.BufferReader(content)).metadata.row_group(0)
    (chunk,) = (group.column(at) for at in range(group.num_columns) if group.column(at).path_in_schema == column)
    reader = ThriftReader(content, chunk.data_page_offset)
    header = reader.struct()
    header[0].value = 7
    return content[: chunk.data_page_offset] + encode_struct(header) + content[reader.position :]


@pytest.mark.parametrize("column", ["id", "dt", "name"])
def test_a_page_at_which_arrow_ends_early(golden: Golden, tmp_path: Path, column: str) -> None:
    """Without a word: a source would seem to have no rows, and a query would miss those of a base file."""
    table = golden("9", "cow_basic").table
    rows = new_rows(table)
    given = put(rows, tmp_path)
    given.write_bytes(with_unknown_page(given.read_bytes(), column))
    error = tried(table, given, rows)
    assert isinstance(error, CorruptFileError)
    assert "pages lack 3 rows" in error.message
    (base, *_) = base_files(table)
    base.write_bytes(with_unknown_page(base.read_bytes(), column))
    with pytest.raises(CorruptFileError, match=f"{base.name}: the Parquet file's pages lack"):
        read_rows(table)


@pytest.mark.parametrize("seed", tiered(range(400), range(4)))
def test_a_source_whose_footer_lies(hostile: Hostile, seed: int) -> None:
    """What shows no lie is written: a changed value, name or type."""
    table = hostile("9", "cow_basic")
    before = table.rows()
    rows = like(own_columns(before), *({"id": f"new {at}", "dt": DAY} for at in range(40)))
    given = put(rows, table.scratch)
    try:
        changed = change_parquet(given.read_bytes(), Random(seed))
    except NotApplicableError:
        return
    given.write_bytes(changed.data)
    ended = table.run("write", "--operation", "upsert", "--source", str(given), *LOCAL)
    assert pending_instants(table.base) == set()
    if ended.code:
        refused(ended, names=given.name)
        assert_same_rows(table.rows(), before, ignore=())
        return
    after = table.rows()
    if changed.what.startswith("page"):  # Arrow ends early at some of them
        assert after.num_rows == before.num_rows + 40
    if changed.nature is Nature.DAMAGE:
        sent = after.filter(pc.equal(after.column("dt"), DAY)).select(rows.column_names)
        assert_same_rows(sent, rows, ignore=())

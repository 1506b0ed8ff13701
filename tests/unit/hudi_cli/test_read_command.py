"""hudictl read: the file that it writes, against what real Hudi reads."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.process_zone import in_zone
from tests.support.rows import assert_same_rows, read_parquet
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]


@pytest.mark.parametrize("query", ["snapshot", "read_optimized"])
@pytest.mark.parametrize("metadata", ["on", "off"])
def test_rows_are_those_of_real_hudi(golden: Golden, tmp_path: Path, query: str, metadata: str) -> None:
    case = golden("6", "mor_compaction_requested")
    target = tmp_path / "rows.parquet"
    done = hudictl("read", case.table, "--query", query, "--metadata", metadata, "--output", target, "--json")
    assert (done.code, done.err) == (0, "")
    expected = read_parquet(case.expected / f"{query}.parquet")
    actual = read_parquet(target)
    assert_same_rows(actual, expected, ignore=())
    assert actual.schema.names[:5] == [name for name in expected.schema.names if name.startswith("_hoodie_")]
    assert done.document == {
        "rows": expected.num_rows,
        "files_read": 15 if query == "snapshot" else 3,
        "files_pruned": 0,
        "corrupt_log_blocks": 0,
    }


def test_columns_are_chosen(golden: Golden, tmp_path: Path) -> None:
    table, target = golden("6", "mor_compaction_requested").table, tmp_path / "rows.parquet"
    assert hudictl("read", table, "--columns", "_hoodie_record_key, name", "--output", target).code == 0
    assert pq.read_schema(target).names == ["_hoodie_record_key", "name"]


def test_the_first_rows_are_printed(golden: Golden) -> None:
    table = golden("9", "types_mor").table
    whole = hudictl("read", table, "--limit", "1000", "--json").document
    assert whole["rows"] == len(whole["data"]) > 3
    three = hudictl("read", table, "--limit", "3", "--json").document
    assert (three["rows"], three["data"]) == (3, whole["data"][:3])
    printed = hudictl("read", table, "--limit", "3", "--format", "json")
    assert (printed.code, json.loads(printed.out)) == (0, three["data"])
    rows = list(csv.DictReader(hudictl("read", table, "--limit", "3", "--format", "csv").out.splitlines()))
    assert [row["_hoodie_record_key"] for row in rows] == [row["_hoodie_record_key"] for row in three["data"]]
    assert list(rows[0]) == list(three["data"][0])
    shown = hudictl("read", table, "--limit", "3", "--columns", "id").out.splitlines()
    assert [line.split() for line in shown] == [["id"], *([str(row["id"])] for row in three["data"])]
    assert "_hoodie" not in hudictl("read", table, "--limit", "3").out


def test_read_wants_a_file_or_a_limit(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    for more in ((), ("--limit", "1", "--output", tmp_path / "f.parquet")):
        done = hudictl("read", table, *more, "--json")
        assert (done.code, "--limit" in done.error["message"]) == (2, True)


@pytest.mark.parametrize("columns", ["", "name,", "name,name", "no_such_column"])
def test_wrong_columns_are_refused(golden: Golden, tmp_path: Path, columns: str) -> None:
    done = hudictl(
        "read",
        golden("6", "mor_compaction_requested").table,
        "--columns",
        columns,
        "--output",
        tmp_path / "rows.parquet",
        "--json",
    )
    assert (done.code, done.error["type"]) == (2, "ConfigError")
    assert list(tmp_path.glob("*.parquet")) == []


def query_of(name: str) -> list[str]:
    """The options that ask for what an expected file holds."""
    query, begin, end = name.removesuffix(".parquet").rsplit("_", 2)
    return ["--as-of", end] if query == "as" else ["--query", query, "--begin", begin, "--end", end]


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("6", "cow_basic"),
        ("6", "mor_basic"),
        ("9", "cow_basic"),
        ("9", "mor_basic"),
        ("9", "cdc_cow"),
        ("9", "cdc_mor"),
    ],
)
def test_every_query_of_real_hudi(golden: Golden, tmp_path: Path, version: str, name: str) -> None:
    case, target = golden(version, name), tmp_path / "rows.parquet"
    requested = [
        path
        for path in sorted(case.expected.glob("*.parquet"))
        if path.name.startswith(("as_of_", "incremental_", "cdc_"))
    ]
    assert len(requested) >= 3
    for path in requested:
        done = hudictl("read", case.table, *query_of(path.name), "--output", target, "--json")
        assert (done.code, done.err) == (0, "")
        assert_same_rows(read_parquet(target), read_parquet(path), ignore=())
        assert done.document["rows"] == pq.read_metadata(path).num_rows


@pytest.mark.parametrize(
    ("dialect", "where"),
    [
        ("spark", "dt = '2024-01-01' AND `qty` >= 50"),
        ("hive", "`dt` = '2024-01-01' AND NOT qty < 50"),
        ("presto", '"dt" IN (\'2024-01-01\') AND "qty" BETWEEN 50 AND 1000000'),
        ("trino", '"dt" = \'2024-01-01\' AND "qty" > 49'),
    ],
)
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_predicates_in_every_dialect(golden: Golden, tmp_path: Path, version: str, dialect: str, where: str) -> None:
    case, target = golden(version, "cow_basic"), tmp_path / "rows.parquet"
    done = hudictl("read", case.table, "--where", where, "--dialect", dialect, "--output", target, "--json")
    whole = read_parquet(case.expected / "snapshot.parquet")
    expected = whole.filter((pc.field("dt") == "2024-01-01") & (pc.field("qty") >= 50))
    assert 0 < expected.num_rows < whole.num_rows
    assert_same_rows(read_parquet(target), expected, ignore=())
    assert done.document == {"rows": expected.num_rows, "files_read": 1, "files_pruned": 2, "corrupt_log_blocks": 0}
    people = hudictl("read", case.table, "--where", where, "--dialect", dialect, "--output", target)
    assert "1 files (2 pruned)" in people.out


def test_a_predicate_reads_columns_that_are_not_selected(golden: Golden, tmp_path: Path) -> None:
    case, target = golden("9", "mor_basic"), tmp_path / "rows.parquet"
    assert hudictl("read", case.table, "--where", "qty < 10", "--columns", "id", "--output", target).code == 0
    expected = read_parquet(case.expected / "snapshot.parquet")
    assert_same_rows(read_parquet(target), expected.filter(pc.field("qty") < 10).select(["id"]))


def test_options_reach_the_query(golden: Golden, tmp_path: Path) -> None:
    case, target = golden("6", "insert_overwrite_partition_cow"), tmp_path / "rows.parquet"
    arguments = ["read", case.table, "--query", "incremental", "--begin", "000", "--output", target, "--json"]
    plain = hudictl(*arguments).document["rows"]
    assert hudictl(*arguments, "--option", "airflow_hudi.incremental.report_replaced=true").document["rows"] > plain
    assert pq.read_schema(target).names[-1] == "_hoodie_is_deleted"
    refused = hudictl(*arguments, "--option", "airflow_hudi.incremental.report_replaced=maybe")
    assert (refused.code, refused.error["type"]) == (2, "ConfigError")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--query", "incremental"], "begin"),
        (["--query", "cdc"], "begin"),
        (["--begin", "000"], "begin"),
        (["--end", "2024"], "end"),
        (["--query", "incremental", "--begin", "000", "--as-of", "20240101000000000"], "as_of"),
        (["--query", "incremental", "--begin", "3", "--end", "2"], "before it begins"),
        (["--as-of", "2024"], "2024"),
        (["--where", "id >"], "id >"),
        (["--where", "nowhere = 1"], "nowhere"),
        (["--where", "qty = 'many'"], "qty"),
    ],
    ids=" ".join,
)
def test_what_makes_no_query_is_refused(golden: Golden, tmp_path: Path, options: list[str], word: str) -> None:
    target = tmp_path / "rows.parquet"
    done = hudictl("read", golden("6", "mor_compaction_requested").table, *options, "--output", target, "--json")
    assert (done.code, done.error["type"]) == (2, "ConfigError")
    assert word in done.error["message"]
    assert not target.exists()


def test_a_result_is_replaced_whole_or_not_at_all(golden: Golden, tmp_path: Path) -> None:
    case, target = golden("6", "mor_compaction_requested"), tmp_path / "out" / "rows.parquet"
    target.parent.mkdir()
    target.write_text("an older result")
    damaged = next(case.table.rglob("*.parquet"))
    content = damaged.read_bytes()
    damaged.write_bytes(content[: len(content) // 2])
    done = hudictl("read", case.table, "--metadata", "off", "--output", target, "--json")
    assert (done.code, done.error["type"]) == (2, "CorruptFileError")
    assert done.error["path"].endswith(damaged.name)
    assert target.read_text() == "an older result"
    damaged.write_bytes(content)
    assert hudictl("read", case.table, "--output", target).code == 0
    assert [path.name for path in target.parent.iterdir()] == ["rows.parquet"]
    assert target.stat().st_mode & 0o777 == 0o666 & ~_umask()


def test_a_folder_that_is_not_there_is_named(golden: Golden, tmp_path: Path) -> None:
    done = hudictl(
        "read", golden("6", "mor_compaction_requested").table, "--output", tmp_path / "no" / "rows.parquet", "--json"
    )
    assert done.code == 2
    assert done.error["path"] == str(tmp_path / "no" / "rows.parquet")


@pytest.mark.parametrize(("name", "blocks"), [("log_corrupt_middle", 6), ("log_corrupt_tail", 3), ("mor_basic", 0)])
def test_a_corrupt_log_block_is_counted_and_warned_of(golden: Golden, tmp_path: Path, name: str, blocks: int) -> None:
    table, target = golden("6", name).table, tmp_path / "rows.parquet"
    done = hudictl("read", table, "--output", target, "--json")
    assert (done.code, done.document["corrupt_log_blocks"]) == (0, blocks)
    warnings = [line for line in done.err.splitlines() if "corrupt log block" in line]
    assert len(warnings) == blocks
    assert all(".log." in line for line in warnings)
    target.unlink()
    strict = hudictl("read", table, "--strict", "--output", target, "--json")
    assert strict.code == (2 if blocks else 0)
    if blocks:
        assert (strict.error["type"], target.exists()) == ("CorruptFileError", False)
        assert ".log." in strict.error["path"]
        assert "--strict" in strict.error["remedy"]


@pytest.mark.parametrize("place", [".hoodie/hoodie.properties", "rows.parquet", "new/rows.parquet"])
@pytest.mark.parametrize("by", ["path", "uri", "link"])
def test_nothing_is_written_into_the_table(golden: Golden, tmp_path: Path, place: str, by: str) -> None:
    table = golden("6", "mor_compaction_requested").table
    (tmp_path / "link").symlink_to(table)
    before = {path: path.read_bytes() for path in table.rglob("*") if path.is_file()}
    address = {"path": str(table), "uri": f"file://{table}", "link": str(table)}[by]
    target = (tmp_path / "link" if by == "link" else table) / place
    done = hudictl("read", address, "--output", target, "--json")
    assert (done.code, done.error["type"]) == (2, "ConfigError")
    assert "below the table's folder" in done.error["message"]
    assert {path: path.read_bytes() for path in table.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("by", ["name", "link"])
def test_a_pipe_stays_one(golden: Golden, tmp_path: Path, by: str) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    named = pipe if by == "name" else link
    done = hudictl("read", golden("6", "mor_basic").table, "--output", named, "--json")
    assert (done.code, done.error["type"], done.error["path"]) == (2, "ConfigError", str(named))
    assert "a pipe" in done.error["message"]
    assert (pipe.is_fifo(), link.is_symlink()) == (True, True)
    assert list(tmp_path.glob("*.parquet*")) == list(tmp_path.glob(".*")) == []


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_followed(golden: Golden, tmp_path: Path, there: bool) -> None:
    target, link = tmp_path / "folder" / "rows.parquet", tmp_path / "link"
    target.parent.mkdir()
    if there:
        target.write_bytes(b"older")
    link.symlink_to(target)
    assert hudictl("read", golden("6", "mor_basic").table, "--output", link).code == 0
    assert (link.is_symlink(), target.is_symlink(), link.readlink()) == (True, False, target)
    assert pq.read_metadata(target).num_rows > 0
    assert [path.name for path in target.parent.iterdir()] == ["rows.parquet"]


def test_a_link_into_the_table_is_not_followed(golden: Golden, tmp_path: Path) -> None:
    table, link = golden("6", "mor_basic").table, tmp_path / "link"
    link.symlink_to(table / ".hoodie" / "hoodie.properties")
    done = hudictl("read", table, "--output", link, "--json")
    assert (done.code, "below the table's folder" in done.error["message"]) == (2, True)


def test_a_link_to_itself_is_no_file(golden: Golden, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(link)
    done = hudictl("read", golden("6", "mor_basic").table, "--output", link, "--json")
    assert (done.code, done.error["type"], link.is_symlink()) == (2, "ConfigError", True)


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Tokyo"])
@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6"]))
def test_the_ends_of_the_calendar_bound_a_range(golden: Golden, tmp_path: Path, version: str, zone: str) -> None:
    table, target = golden(version, "mor_basic").table, tmp_path / "rows.parquet"

    def rows(*options: str) -> int:
        done = hudictl("read", table, *options, "--output", target, "--json")
        assert done.code == 0, done.err
        return int(done.document["rows"])

    with in_zone(zone):
        ranged = ("--query", "incremental", "--begin")
        for first in ("00010101000000", "00010101000000000"):
            assert rows(*ranged, first) == rows(*ranged, "000") > 0
        assert rows(*ranged, "000", "--end", "99991231235959999") == rows(*ranged, "000")
        assert rows(*ranged, "99991231235959999") == 0
        assert rows("--as-of", "99991231235959999") == rows("--as-of", "99991231235959") == rows()
        assert rows("--as-of", "00010101000000") == 0


def _umask() -> int:

    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_file_may_have_the_longest_name(golden: Golden, tmp_path: Path) -> None:
    target = tmp_path / ("n" * 247 + ".parquet")
    assert hudictl("read", golden("6", "mor_compaction_requested").table, "--output", target).code == 0
    assert list(tmp_path.glob("*.parquet")) == [target]

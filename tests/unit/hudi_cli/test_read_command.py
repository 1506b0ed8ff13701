"""hudictl read: the file that it writes, against what real Hudi reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.golden_data import GoldenCase
from tests.rows import assert_same_rows, read_parquet
from tests.unit.hudi_cli.runner import hudictl

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
    assert done.document == {"rows": expected.num_rows, "files_read": 15 if query == "snapshot" else 3, "files_pruned": 0}


def test_columns_are_chosen(golden: Golden, tmp_path: Path) -> None:
    table, target = golden("6", "mor_compaction_requested").table, tmp_path / "rows.parquet"
    assert hudictl("read", table, "--columns", "_hoodie_record_key, name", "--output", target).code == 0
    assert pq.read_schema(target).names == ["_hoodie_record_key", "name"]


@pytest.mark.parametrize("columns", ["", "name,", "name,name", "no_such_column"])
def test_wrong_columns_are_refused(golden: Golden, tmp_path: Path, columns: str) -> None:
    done = hudictl("read", golden("6", "mor_compaction_requested").table, "--columns", columns, "--output", tmp_path / "rows.parquet", "--json")
    assert (done.code, done.error["type"]) == (2, "ConfigError")
    assert list(tmp_path.glob("*.parquet")) == []


@pytest.mark.parametrize(
    ("option", "word"),
    [
        (["--query", "incremental"], "incremental"),
        (["--query", "cdc"], "cdc"),
        (["--as-of", "2024"], "--as-of"),
        (["--begin", "000"], "--begin"),
        (["--end", "2024"], "--end"),
        (["--where", "id > 1"], "--where"),
    ],
)
def test_what_this_release_lacks_is_refused_in_words(golden: Golden, tmp_path: Path, option: list[str], word: str) -> None:
    target = tmp_path / "rows.parquet"
    done = hudictl("read", golden("6", "mor_compaction_requested").table, *option, "--output", target, "--json")
    assert (done.code, done.error["type"]) == (2, "UnsupportedError")
    assert f"{word} is not in this release" in done.error["message"]
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
    done = hudictl("read", golden("6", "mor_compaction_requested").table, "--output", tmp_path / "no" / "rows.parquet", "--json")
    assert done.code == 2
    assert done.error["path"] == str(tmp_path / "no" / "rows.parquet")


def _umask() -> int:
    import os

    mask = os.umask(0)
    os.umask(mask)
    return mask

"""hudictl run, with the engine that needs no Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.golden_data import GoldenCase
from tests.rows import assert_same_rows, read_parquet
from tests.unit.hudi_cli.runner import hudictl

Golden = Callable[[str, str], GoldenCase]


def names(table: Path) -> list[str]:
    return sorted(str(path.relative_to(table)) for path in table.rglob("*"))


def test_the_oldest_pending_compaction_is_run(golden: Golden, tmp_path: Path) -> None:
    case = golden("6", "mor_compaction_requested")
    done = hudictl("run", "compaction", case.table, "--engine", "local", "--json")
    assert done.code == 0
    (result,) = done.document["instants"]
    assert sorted(result) == ["action", "bytes_written", "files_written", "instant", "records", "seconds", "state"]
    assert (result["action"], result["state"], result["files_written"]) == ("compaction", "completed", 3)
    for query in ("snapshot", "read_optimized"):
        target = tmp_path / f"{query}.parquet"
        assert hudictl("read", case.table, "--query", query, "--output", target).code == 0
        assert_same_rows(read_parquet(target), read_parquet(case.expected / f"after_{query}.parquet"))


def test_nothing_to_do_is_no_error(golden: Golden) -> None:
    table = golden("6", "mor_basic").table
    before = names(table)
    done = hudictl("run", "compaction", table, "--json")
    assert (done.code, done.document) == (0, {"instants": []})
    assert "nothing to do" in hudictl("run", "compaction", table, "--all-pending").out
    assert names(table) == before


def test_people_see_a_table_and_where_it_stands(golden: Golden) -> None:
    done = hudictl("run", "compaction", golden("6", "mor_compaction_requested").table, "--engine", "local", "--all-pending")
    assert done.code == 0
    assert "completed" in done.out
    assert "3 of 3 file groups written" in done.err


def test_a_failed_instant_keeps_its_state_and_error(golden: Golden) -> None:
    case = golden("6", "mor_compaction_requested")
    lost = next(case.table.glob("2024-*/.*.log.1_*"))
    lost.unlink()
    done = hudictl("run", "compaction", case.table, "--engine", "local", "--all-pending", "--json")
    (result,) = done.document["instants"]
    assert (done.code, result["state"]) == (2, "requested")
    assert lost.name in result["error"]
    assert lost.name in done.err


def test_a_named_instant_that_fails_is_the_error(golden: Golden) -> None:
    case = golden("6", "mor_compaction_requested")
    lost = next(case.table.glob("2024-*/.*.log.1_*"))
    lost.unlink()
    before = names(case.table)
    (plan,) = (case.table / ".hoodie").glob("*.compaction.requested")
    done = hudictl("run", "compaction", case.table, "--engine", "local", "--instant", plan.name.split(".")[0], "--json")
    assert done.code == 2
    assert done.error["path"].endswith(lost.name)
    assert names(case.table) == before


@pytest.mark.parametrize("service", ["log_compaction", "clustering", "clean", "indexing", "rollback", "archive"])
def test_a_service_of_a_later_release_is_refused_in_words(golden: Golden, service: str) -> None:
    done = hudictl("run", service, golden("6", "mor_basic").table, "--json")
    assert (done.code, done.error["type"]) == (2, "UnsupportedError")
    assert done.error["message"] == f"the service {service} is not in this release"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--schedule"], "--schedule"),
        (["--instant", "1", "--all-pending"], "exclude"),
        (["--instant", "../../etc"], "not an instant time"),
        (["--option", "novalue"], "key=value"),
        (["--option", "a=1", "--option", "a=2"], "twice"),
        (["--storage-option", "secret=hidden"], "secret"),
        (["--option", "fs.s3a.secret.key=hidden"], "secret"),
        (["--storage-options-file", "/nowhere/at/all.json"], "cannot be read"),
        (["--max-minutes", "0"], "max-minutes"),
        (["--engine", "flink"], "flink"),
        (["--master", "local", "--spark-conf", "novalue"], "key=value"),
    ],
)
def test_wrong_usage_changes_nothing_and_shows_no_secret(golden: Golden, arguments: list[str], word: str) -> None:
    table = golden("6", "mor_compaction_requested").table
    before = names(table)
    done = hudictl("run", "compaction", table, "--json", *arguments)
    assert done.code == 2
    assert word in done.error["message"]
    assert "hidden" not in done.out + done.err
    assert names(table) == before


def test_secrets_may_come_from_the_file(golden: Golden, tmp_path: Path) -> None:
    file = tmp_path / "options.json"
    file.write_text('{"secret": "hidden"}')
    done = hudictl("run", "compaction", golden("6", "mor_compaction_requested").table, "--engine", "local", "--storage-options-file", file, "--json")
    assert done.code == 0
    assert "hidden" not in done.out + done.err

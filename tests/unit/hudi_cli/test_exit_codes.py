"""Exit code 2 means that nothing was written, whatever is damaged, and whenever a command finds it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.damaged_files import COMMANDS, Command, arguments_of, damaged_copies, tree
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
PARTS = 96
"""Of all damages of all files; `make test` has one part for each command, `make conformance` all."""


def check_every_damage(case: GoldenCase, command: Command, scratch: Path, part: int) -> None:
    for path, damage, table in damaged_copies(case.table, scratch, part, PARTS):
        before = tree(table)
        done = hudictl(*arguments_of(command, case, table), "--json")
        where = f"{path} {damage}: exit code {done.code}, {done.err}"
        assert "defect of hudictl" not in done.err, where
        changed = tree(table) != before
        if done.code == 2:
            assert not changed, where
        elif done.code != 0 and "error" in done.document:
            assert done.error["message"], where
            assert not changed or "still there" in done.err or "found after" not in done.err, where


@pytest.mark.slow
@pytest.mark.parametrize("version", tiered(["6", "9"], ["6"]))
@pytest.mark.parametrize(("number", "command"), list(enumerate(COMMANDS)), ids=lambda item: getattr(item, "name", ""))
def test_bad_input_leaves_the_table_as_it_was(
    golden: Golden, tmp_path: Path, version: str, number: int, command: Command
) -> None:
    check_every_damage(golden(version, command.case), command, tmp_path, (number + int(version)) % PARTS)


@pytest.mark.conformance
@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_damage_leaves_the_table_as_it_was(
    golden: Golden, tmp_path: Path, version: str, command: Command
) -> None:
    for part in range(PARTS):
        check_every_damage(golden(version, command.case), command, tmp_path, part)


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_base_file_that_shows_as_damaged_when_it_is_read_is_a_failure_that_says_what_is_left(
    golden: Golden, version: str
) -> None:
    table = golden(version, "mor_compaction_requested").table
    base = min(path for path in table.glob("2024-01-02/*.parquet") if not path.name.startswith("."))
    base.write_bytes(base.read_bytes()[:-100] + bytes(100))
    before = tree(table)
    done = hudictl("run", "compaction", table, "--engine", "local", "--json")
    assert (done.code, done.error["type"], done.error["path"]) == (1, "CorruptFileError", f"2024-01-02/{base.name}")
    message = done.error["message"]
    assert "found after the run had begun: rolled back: " in message
    assert "still there: .hoodie/.airflow_hudi/claims/" in message
    left = set(tree(table)) - set(before)
    assert {path for path in left if "/claims/" not in path} == set()
    assert set(before) <= set(tree(table))


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("column", ["ts", "n"])
def test_a_row_without_a_value_is_found_before_a_write_begins(tmp_path: Path, version: str, column: str) -> None:
    """It has no ordering value, or none in a column that the table requires."""
    kinds: dict[str, Any] = {"id": "string", "ts": ["null", "long"], "n": "long"}
    schema = json.dumps({"type": "record", "name": "t", "fields": [{"name": n, "type": t} for n, t in kinds.items()]})
    table, source = tmp_path / "t", tmp_path / "source"
    made = ("--schema", schema, "--name", "t", "--version", version, "--record-key", "id", "--ordering", "ts")
    assert hudictl("create", table, *made, "--json").code == 0
    source.mkdir()
    for name in ("a", "b"):
        rows = {"id": [f"{name}{at}" for at in range(9)], "ts": [*range(9)], "n": [*range(9)]}
        rows[column][-1] = None if name == "b" else 1
        pq.write_table(pa.table(rows), source / f"{name}.parquet")
    before = tree(table)
    write = ("--operation", "upsert", "--source", source, "--engine", "local", "--json")
    done = hudictl("write", table, *write)
    assert (done.code, done.error["type"]) == (2, "FormatError")
    assert (column in done.error["message"], done.error["path"]) == (True, str(source / "b.parquet"))
    assert tree(table) == before


def test_what_cannot_be_listed_is_found_before_a_savepoint_is_claimed(golden: Golden) -> None:
    table = golden("9", "mor_basic").table
    (metadata,) = (table / ".hoodie" / "metadata" / "files").glob("*.hfile")
    metadata.write_bytes(b"")
    before = tree(table)
    done = hudictl("savepoint", "create", table, "--json")
    assert (done.code, done.error["type"]) == (2, "CorruptFileError")
    assert tree(table) == before


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("read", "TABLE", "--where", "city = '\udcff'", "--output", "x.parquet"), "ConfigError"),
        (("read", "TABLE", "--output", "a\0b"), "ConfigError"),
        (("read", "TABLE", "--output", "x" * 300), "FormatError"),
        (("timeline", "nonsense://host/table"), "ConfigError"),
        (("timeline", "simplecache::file:///table"), "ConfigError"),
        (("timeline", "/tmp/" + "x" * 300), "FormatError"),
        (("timeline", "/tmp/" + "x/" * 3000), "FormatError"),
        (("run", "clean", "TABLE", "--max-minutes", "9" * 400), "UsageError"),
        (("metadata", "create", "TABLE", "--column", "\udcff"), "ConfigError"),
        (("timeline", "TABLE", "--storage-option", "nothing"), "ConfigError"),
    ],
    ids=lambda item: " ".join(item)[:40].encode("ascii", "replace").decode() if isinstance(item, tuple) else "",
)
def test_absurd_arguments_are_bad_input(golden: Golden, arguments: tuple[str, ...], kind: str) -> None:
    table = golden("9", "mor_basic").table
    before = tree(table)
    done = hudictl(*(str(table) if part == "TABLE" else part for part in arguments), "--json")
    assert (done.code, done.error["type"]) == (2, kind)
    assert done.error["remedy"]
    assert tree(table) == before

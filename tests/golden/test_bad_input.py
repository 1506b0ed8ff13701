"""Damaged and foreign input to version 6, by the command that a user types: exit 2, one typed error that names the
file, nothing written.

Of versions 8 and 9: test_bad_input_layout2.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.codec.avro.container import read_container, write_container
from tests.golden.damages import PROPERTIES, Damage, content_of
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import Done, hudictl

CASE = "mor_compaction_requested"
INSTANT = "20261120214905004"


def no_table(table: Path) -> str:
    (table / PROPERTIES).unlink()
    return PROPERTIES


def version(number: int) -> Damage:
    def damage(table: Path) -> str:
        replace(table / PROPERTIES, b"hoodie.table.version=6", f"hoodie.table.version={number}".encode())
        return PROPERTIES

    return damage


def wrong_checksum(table: Path) -> str:
    replace(table / PROPERTIES, b"hoodie.table.checksum=3017370519", b"hoodie.table.checksum=3017370518")
    return PROPERTIES


def truncated_hfile(table: Path) -> str:
    (hfile,) = (table / ".hoodie" / "metadata" / "files").glob("*.hfile")
    hfile.write_bytes(hfile.read_bytes()[:-100])
    return hfile.name


def log_without_magic(table: Path) -> str:
    log = planned(table, "log.1")
    log.write_bytes(b"PK\x03\x04??" + log.read_bytes()[6:])
    return log.name


def missing_base_file(table: Path) -> str:
    base = planned(table, "parquet")
    base.unlink()
    return base.name


def missing_log_file(table: Path) -> str:
    log = planned(table, "log.2")
    log.unlink()
    return log.name


def hostile(field: str, value: object) -> Damage:
    """A plan whose first operation names something outside the table."""

    def damage(table: Path) -> str:
        plan = table / ".hoodie" / f"{INSTANT}.compaction.requested"
        schema, (content,) = read_container(plan.read_bytes(), path=plan.name)
        content["operations"][0][field] = value
        plan.write_bytes(write_container(schema, [content]))
        return plan.name

    return damage


def replace(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))


def planned(table: Path, mark: str) -> Path:
    """A file that the plan merges: of the slices before the plan's instant."""
    return sorted(path for path in (table / "2024-01-01").iterdir() if mark in path.name and INSTANT not in path.name)[
        0
    ]


SEEN_BY_TASKS = "log without magic"
"""The content of log files: a look at each of them before the run would be a request a file."""
DAMAGES: dict[str, Damage] = {
    "not a table": no_table,
    "version 5": version(5),
    "version 7": version(7),
    "version 8": version(8),
    "version 10": version(10),
    "version 99": version(99),
    "wrong checksum": wrong_checksum,
    "truncated HFile": truncated_hfile,
    SEEN_BY_TASKS: log_without_magic,
    "missing base file": missing_base_file,
    "missing log file": missing_log_file,
    "plan names ../../etc/x as partition": hostile("partitionPath", "../../etc/x"),
    "plan names ../../etc/x as base file": hostile("dataFilePath", "../../etc/x"),
    "plan names ../../etc/x as log file": hostile("deltaFilePaths", ["../../etc/x"]),
    "plan names /etc/passwd as base file": hostile("dataFilePath", "/etc/passwd"),
}


def refused(done: Done, named: str) -> None:
    """Whether the command ended as bad input does: exit 2, and one error that names the file and a remedy, without a
    traceback.
    """
    assert done.code == 2, done.out + done.err
    error = done.error
    assert named in f"{error['path']} {error['message']}", error
    assert error["remedy"], error
    assert "Traceback" not in done.err


@pytest.mark.parametrize("what", sorted(DAMAGES.keys() - {SEEN_BY_TASKS}))
def test_a_run_is_refused_before_anything_is_written(golden: Callable[[str, str], GoldenCase], what: str) -> None:
    table = golden("6", CASE).table
    named = DAMAGES[what](table)
    before = content_of(table)
    refused(hudictl("run", "compaction", table, "--engine", "local", "--json"), named)
    assert content_of(table) == before


def test_what_tasks_alone_see_ends_a_run_that_leaves_the_table_as_it_was(
    golden: Callable[[str, str], GoldenCase],
) -> None:
    table = golden("6", CASE).table
    named = DAMAGES[SEEN_BY_TASKS](table)
    before = {path: path.read_bytes() for path in files_of(table)}
    done = hudictl("run", "compaction", table, "--engine", "local", "--json")
    assert (done.code, done.error["type"]) == (1, "CorruptFileError"), done.err
    assert named in done.error["path"]
    assert "restore the file from a copy" in done.error["remedy"]
    assert {path: path.read_bytes() for path in files_of(table)} == before


def files_of(table: Path) -> list[Path]:
    """The files of a table, without our claims."""
    return [path for path in sorted(table.rglob("*")) if path.is_file() and ".airflow_hudi" not in path.parts]


READS = [SEEN_BY_TASKS, "missing base file", "missing log file", "truncated HFile", "wrong checksum"]


@pytest.mark.parametrize("what", READS)
def test_a_read_is_refused_alike(golden: Callable[[str, str], GoldenCase], tmp_path: Path, what: str) -> None:
    table = golden("6", CASE).table
    named = DAMAGES[what](table)
    before = content_of(table)
    output = tmp_path / "rows.parquet"
    refused(hudictl("read", table, "--metadata", "on", "--output", output, "--json"), named)
    assert not output.exists()
    assert content_of(table) == before

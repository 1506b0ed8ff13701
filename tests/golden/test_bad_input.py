"""Damaged and foreign input, by the command that a user types: exit 2, one typed error that names the file, and not a byte written."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.codec.avro.container import read_container, write_container
from tests.golden_data import GoldenCase

CASE = "mor_compaction_requested"
INSTANT = "20261120214905004"
PROPERTIES = ".hoodie/hoodie.properties"
Damage = Callable[[Path], str]
"""Damages the table and returns a part of the name of the file that the error must speak of."""


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
    return sorted(path for path in (table / "2024-01-01").iterdir() if mark in path.name and INSTANT not in path.name)[0]


DAMAGES: dict[str, Damage] = {
    "not a table": no_table,
    "version 5": version(5),
    "version 8": version(8),
    "version 99": version(99),
    "wrong checksum": wrong_checksum,
    "truncated HFile": truncated_hfile,
    "log without magic": log_without_magic,
    "missing base file": missing_base_file,
    "missing log file": missing_log_file,
    "plan names ../../etc/x as partition": hostile("partitionPath", "../../etc/x"),
    "plan names ../../etc/x as base file": hostile("dataFilePath", "../../etc/x"),
    "plan names ../../etc/x as log file": hostile("deltaFilePaths", ["../../etc/x"]),
    "plan names /etc/passwd as base file": hostile("dataFilePath", "/etc/passwd"),
}


def content_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes()) for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("what", sorted(DAMAGES))
def test_a_run_is_refused_before_anything_is_written(golden: Callable[[str, str], GoldenCase], what: str) -> None:
    table = golden("6", CASE).table
    named = DAMAGES[what](table)
    before = content_of(table)
    command = [str(Path(sys.executable).parent / "hudictl"), "run", "compaction", str(table), "--engine", "local", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2, done.stdout + done.stderr
    error = json.loads(done.stdout)["error"]
    assert named in f"{error['path']} {error['message']}", error
    assert error["remedy"], error
    assert content_of(table) == before


@pytest.mark.parametrize("what", ["log without magic", "missing base file", "truncated HFile", "wrong checksum"])
def test_a_read_is_refused_alike(golden: Callable[[str, str], GoldenCase], tmp_path: Path, what: str) -> None:
    table = golden("6", CASE).table
    named = DAMAGES[what](table)
    output = tmp_path / "rows.parquet"
    command = [str(Path(sys.executable).parent / "hudictl"), "read", str(table), "--metadata", "on", "--output", str(output), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2, done.stdout + done.stderr
    error = json.loads(done.stdout)["error"]
    assert named in f"{error['path']} {error['message']}", error
    assert not output.exists()

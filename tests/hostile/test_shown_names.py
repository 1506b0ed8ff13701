"""What a table says is shown with its control characters escaped, and passes for nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.errors import CONTROLS
from hudi_core.request.results import RESULT
from hudi_core.verbs.run import RunRequest
from tests.hostile.forked import Ended
from tests.hostile.hudictl_server import hudictl
from tests.hostile.judge import faults_of
from tests.hostile.refusals import HostileTable

Hostile = Callable[[str, str], HostileTable]
ODD = "\x1b]0;owned\x07\x1b[2J\u202e"
ESCAPED = "\\u001b]0;owned\\u0007\\u001b[2J\\u202e"


def shown(*arguments: str | Path) -> list[Ended]:
    """As a document and as tables."""
    found = [hudictl(*arguments, "--json"), hudictl(*arguments)]
    for ended in found:
        assert [fault for fault in faults_of(ended) if ended is found[0] or "no JSON document" not in fault.what] == []
        assert not CONTROLS.search(ended.out + ended.err), ended
    return found


def with_property(table: HostileTable, name: str, value: str) -> None:
    def changed(data: bytes) -> bytes:
        lines = [line for line in data.decode().splitlines() if not line.startswith(f"{name}=")]
        return "\n".join([*lines, f"{name}={value}", ""]).encode()

    table.change(".hoodie/hoodie.properties", changed)


@pytest.mark.parametrize("verb", ["timeline", "files", "doctor"])
def test_the_name_of_a_table(hostile: Hostile, verb: str) -> None:
    table = hostile("9", "cow_basic")
    with_property(table, "hoodie.table.name", f"name{ESCAPED}\\n{RESULT}{{}}")
    document, people = shown(verb, table.base)
    assert len(document.out.splitlines()) == 1
    assert not any(line.startswith(RESULT) for line in people.out.splitlines() + people.err.splitlines())


def test_the_result_of_a_job_is_not_forged_by_the_name_of_a_table(hostile: Hostile) -> None:
    """The operator believes the lines of its job's output that begin with the marker."""
    table = hostile("9", "mor_basic")
    forged = f'name\n{RESULT} {{"instants": []}}'
    with_property(table, "hoodie.table.name", forged.replace("\n", "\\n"))
    with_property(table, "hoodie.table.checksum", str(zlib.crc32(f".{forged}".encode())))
    request = RunRequest(str(table.base), "compaction", owner="a test")
    process = subprocess.Popen(
        [sys.executable, "-m", "hudi_cli.job"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        process.stdin.write(json.dumps({"request": json.loads(request.to_json()), "mode": "look"}).encode() + b"\n")
        process.stdin.flush()
        done = process.stdout.read().decode()
    process.wait()
    lines = [line for line in done.splitlines() if line.startswith(RESULT)]
    (result,) = (json.loads(line.removeprefix(RESULT)) for line in lines)
    assert "no compaction is pending" in result.get("reason", ""), done


@pytest.mark.parametrize("name", ["hoodie.table.type", "hoodie.table.version", "hoodie.record.merge.mode"])
def test_a_property_in_an_error(hostile: Hostile, name: str) -> None:
    table = hostile("9", "mor_basic")
    with_property(table, name, f"odd{ESCAPED}\\nerror: forged")
    for ended in shown("read", table.base, "--output", table.scratch / "x.parquet"):
        assert ended.code == 2
        assert not any(line.startswith("error: forged") for line in ended.err.splitlines())


def test_the_name_of_a_partition(hostile: Hostile) -> None:
    table = hostile("9", "mor_basic")
    (table.base / f"odd{ODD}").mkdir()
    (table.base / f"odd{ODD}" / ".hoodie_partition_metadata").write_bytes(b"")
    (table.base / f"odd{ODD}" / "x\n{}.parquet").write_bytes(b"PAR1")
    shown("files", table.base, "--metadata", "off")
    shown("doctor", table.base)
    shown("read", table.base, "--output", table.scratch / "x.parquet", "--metadata", "off")


@pytest.mark.parametrize("value", ["a\\..b", "a\tb", "a\nerror: forged", "a\r\x7f"])
def test_the_name_of_a_partition_that_hudi_writes(hostile: Hostile, value: str) -> None:
    table = hostile("9", "cow_basic")
    copied = table.path("*/*.parquet").parent
    rows = hudictl("read", table.base, "--output", table.scratch / "x.parquet", "--metadata", "off", "--json")
    copied.rename(table.base / value)
    for ended in shown("files", table.base, "--metadata", "off"):
        assert ended.code == 0
        assert not any(line.startswith("error: forged") for line in ended.out.splitlines())
    again = hudictl("read", table.base, "--output", table.scratch / "x.parquet", "--metadata", "off", "--json")
    assert (again.code, json.loads(again.out)["rows"]) == (0, json.loads(rows.out)["rows"])
    for ended in shown("doctor", table.base):
        assert ended.code in (0, 1, 2)
    lost = table.base / value / "x_0-0-0_20200101000000000.parquet"
    lost.symlink_to(table.scratch)
    for ended in shown("files", table.base, "--metadata", "off"):
        assert ended.code == 2
        assert not any(line.startswith("error: forged") for line in ended.err.splitlines())


def test_the_comment_of_a_savepoint(hostile: Hostile) -> None:
    table = hostile("9", "mor_basic")
    made = hudictl("savepoint", "create", table.base, "--comment", f"comment{ODD}\nline", "--json")
    assert made.code in (0, 2), made
    for ended in shown("savepoint", "list", table.base):
        assert ended.code == 0


def test_the_owner_of_a_claim(hostile: Hostile) -> None:
    table = hostile("9", "mor_compaction_requested")
    instant = table.path(".hoodie/timeline/*.compaction.requested").name.split(".")[0]
    folder = table.base / ".hoodie/.airflow_hudi/claims" / instant
    folder.mkdir(parents=True)
    owner = {
        "text": f"me{ODD}\nerror: x",
        "host": ODD,
        "pid": 1,
        "boot_id": "",
        "pid_namespace": "",
        "process_start": "",
        "run_id": "",
    }
    claim = {"version": 1, "token": "t", "owner": owner, "interval_ms": 60_000, "tolerable_misses": 2}
    (folder / "000001.json").write_text(json.dumps(claim))
    for ended in shown("run", "compaction", table.base, "--engine", "local"):
        assert ended.code == 3

"""Files that are larger, or claim to be, than what is read of them: hudictl with 1.5 GiB refuses them by name."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.log.blocks import BlockType, HeaderKey, encode_block
from hudi_core.config.versions import V6
from hudi_core.metadata_table.record import ALL_PARTITIONS, stored_schema
from tests.support.golden_data import GoldenCase
from tests.support.hfiles import hfile

Golden = Callable[[str, str], GoldenCase]
ADDRESS_SPACE = 1536 << 20
SECONDS = 60
HUGE = 10 << 30
ROOT = Path(__file__).parents[2]
COMMANDS = """
import json, os, resource, signal, sys
from hudi_cli.main import main
from tests.support.job_server import import_all
import_all()
for line in sys.stdin:
    call = json.loads(line)
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_AS, (call["bytes"], call["bytes"]))
        signal.alarm(call["seconds"])
        sys.stdin.close()
        sys.stdout = open(call["out"], "w")
        os.dup2(sys.stdout.fileno(), 1)
        sys.argv = ["hudictl", *call["words"]]
        try:
            main()
        except SystemExit as end:
            sys.stdout.flush()
            os._exit(end.code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Each command is a fork of one process that has imported what hudictl imports."""


class Hudictl:
    """Runs hudictl in processes of a limited address space, which may take SECONDS."""

    def __init__(self) -> None:
        paths = [str(ROOT), str(ROOT / "spark_jobs")]
        self._process = subprocess.Popen(
            [sys.executable, "-c", COMMANDS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )

    def refused(self, table: Path, *arguments: str) -> dict[str, str]:
        """The error of `hudictl read`, which ends with exit code 2 in time and memory."""
        rows, out = table.parent / "rows.parquet", table.parent / "out.json"
        words = ["read", str(table), "--output", str(rows), "--json", *arguments]
        call = {"bytes": ADDRESS_SPACE, "seconds": SECONDS, "out": str(out), "words": words}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(call) + "\n")
        self._process.stdin.flush()
        assert int(self._process.stdout.readline()) == 2
        assert not rows.exists()
        error: dict[str, str] = json.loads(out.read_text())["error"]
        assert error["type"] == "SizeLimitError"
        assert "airflow_hudi.limit." in error["remedy"]
        return error

    def end(self) -> None:
        self._process.communicate(timeout=60)


@pytest.fixture(scope="module")
def limited() -> Iterator[Hudictl]:
    found = Hudictl()
    yield found
    found.end()


def extend(path: Path, size: int = HUGE) -> str:
    """Makes a sparse file of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.truncate(size)
    return path.name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "pattern"),
    [
        ("6", ".hoodie/hoodie.properties"),
        ("9", ".hoodie/metadata/.hoodie/hoodie.properties"),
        ("6", ".hoodie/*.deltacommit"),
        ("9", ".hoodie/timeline/*.deltacommit"),
        ("9", ".hoodie/metadata/.hoodie/timeline/*.deltacommit"),
        ("6", ".hoodie/.schema/00000000000000000.schemacommit"),
    ],
)
def test_a_control_file_of_ten_gigabytes(golden: Golden, limited: Hudictl, version: str, pattern: str) -> None:
    table = golden(version, "mdt_all_mor").table
    victim = max(table.glob(pattern), default=table / pattern)
    assert extend(victim) in limited.refused(table)["path"]


@pytest.mark.slow
def test_a_block_of_an_hfile(golden: Golden, limited: Hudictl) -> None:
    """A quarter of a megabyte that decompresses to 260."""
    table = golden("9", "mdt_all_mor_compacted").table
    bases = (table / ".hoodie" / "metadata" / "files").glob("*.hfile")
    victim = max(bases, key=lambda path: path.name.split("_")[-1])
    victim.write_bytes(hfile([(ALL_PARTITIONS.encode(), bytes(260 << 20))], schema=stored_schema(V6)))
    assert victim.name in limited.refused(table)["path"]


@pytest.mark.slow
def test_pages_of_a_base_file(golden: Golden, limited: Hudictl) -> None:
    """A page header that claims 2 GiB."""
    table = golden("6", "cow_basic").table
    victim = max(table.rglob("*.parquet"), key=lambda path: path.name.split("_")[-1])
    rows = pq.read_table(victim, partitioning=None)
    name = "_hoodie_file_name"
    rows = rows.slice(0, 1).set_column(rows.schema.get_field_index(name), name, pa.array(["x" * (140 << 20)]))
    pq.write_table(rows, victim, use_dictionary=False, write_statistics=False, compression="zstd")
    data = bytearray(victim.read_bytes())
    sizes = re.search(rb"\x15\x00\x15([\x80-\xff]{4}[\x00-\x7f])\x15", data)
    assert sizes is not None
    data[sizes.start(1) : sizes.end(1)] = b"\xfe\xff\xff\xff\x0f"
    victim.write_bytes(data)
    assert len(data) < 1 << 20
    assert victim.name in limited.refused(table, "--metadata", "off")["path"]


@pytest.mark.slow
def test_a_log_block_that_is_read_as_a_whole(golden: Golden, limited: Hudictl) -> None:
    table = golden("6", "mor_basic").table
    victim = max(table.rglob(".*.log.*"))
    instant = max(path.name.split(".")[0] for path in (table / ".hoodie").glob("*.deltacommit"))
    block = encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: "{}"}, b"")
    size = 600 << 20
    length = (int.from_bytes(block[6:14], "big") + size).to_bytes(8, "big")
    head = block[:6] + length + block[14:-20] + size.to_bytes(8, "big")
    with victim.open("wb") as file:
        file.write(head)
        file.seek(size, os.SEEK_CUR)
        file.write(bytes(4) + (int.from_bytes(length, "big") + 6).to_bytes(8, "big"))
    assert victim.name in limited.refused(table, "--metadata", "off")["path"]

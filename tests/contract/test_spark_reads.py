"""`HudiTable.to_spark` on golden tables of every version, by every query type, on classic Spark and on Spark
Connect.

The rows and columns are those of hudi_core's own read, which tests/golden compares with real Hudi.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.errors import CorruptFileError, StorageNotFoundError
from hudi_core.request.java import find_java
from hudi_core.request.results import error_from_json
from hudi_core.table import HudiTable
from tests.contract.spark_reader import SETTINGS, read
from tests.interop.bundle import CONNECT, fetched
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows
from tests.support.tiers import tiered

pytestmark = [pytest.mark.spark, pytest.mark.slow]
Golden = Callable[[str, str], GoldenCase]
Reader = Callable[[dict[str, Any]], dict[str, Any]]
READS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("6", "mor_basic", {"query": "snapshot"}),
    ("6", "mor_basic", {"query": "read_optimized"}),
    ("6", "types_mor", {"query": "snapshot"}),
    ("6", "mdt_all_mor", {"query": "snapshot", "where": "amount > 50", "columns": ["id", "amount"]}),
    ("6", "cdc_mor", {"query": "cdc", "begin": "000"}),
    ("8", "mor_basic", {"query": "snapshot"}),
    ("8", "types_mor", {"query": "snapshot"}),
    ("8", "mor_basic", {"query": "incremental", "begin": "000"}),
    ("8", "cdc_cow", {"query": "cdc", "begin": "000"}),
    ("9", "mor_basic", {"query": "snapshot"}),
    ("9", "mor_basic", {"query": "read_optimized"}),
    ("9", "types_mor", {"query": "snapshot"}),
    ("9", "types_3level_lists_mor", {"query": "snapshot"}),
    ("9", "mdt_all_cow", {"query": "snapshot", "where": "id = 'no such key'"}),
    ("9", "mdt_all_mor", {"query": "snapshot", "metadata": "off", "where": "dt = '2024-01-01'"}),
    ("9", "no_meta_fields_mor", {"query": "snapshot"}),
    ("9", "mor_basic", {"query": "incremental", "begin": "000", "columns": ["_hoodie_commit_time", "id"]}),
    ("9", "cdc_mor", {"query": "cdc", "begin": "000"}),
    ("9", "empty_table_no_commits", {"query": "snapshot"}),
)


class ConnectClient:
    """A Spark Connect server, and a client of it, each a process."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        here = Path(__file__).parent
        # No PYTHONPATH and another folder: the server's Python workers get this project's code from the client's zip,
        # or from nowhere.
        environment = {**os.environ, "JAVA_HOME": find_java(), "TZ": "UTC"}
        environment.pop("PYTHONPATH", None)
        self._log = (folder / "connect.log").open("w+b")
        self._server = self._start(
            [str(here / "connect_server.py"), str(fetched(CONNECT)), str(port)], folder, environment
        )
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == "listening\n", self.log()
        root = here.parents[1]
        client = {**environment, "PYTHONPATH": os.pathsep.join((str(root), str(root / "spark_jobs")))}
        self._client = self._start(["-m", "tests.contract.spark_reader", f"sc://127.0.0.1:{port}"], folder, client)

    def _start(self, arguments: list[str], folder: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=folder,
            env=environment,
        )

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read()[-4000:].decode(errors="replace")

    def ask(self, request: dict[str, Any] | None) -> dict[str, Any]:
        assert self._client.stdin is not None
        assert self._client.stdout is not None
        self._client.stdin.write(json.dumps(request) + "\n")
        self._client.stdin.flush()
        line = self._client.stdout.readline()
        assert line, self.log()
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        for process in (self._client, self._server):
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
        self._log.close()


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectClient]:
    client = ConnectClient(tmp_path_factory.mktemp("connect"))
    yield client
    client.close()


@pytest.fixture(params=["classic", "connect"])
def reader(request: pytest.FixtureRequest) -> Iterator[Reader]:
    if request.param == "connect":
        yield request.getfixturevalue("connect").ask
        return
    spark = request.getfixturevalue("spark")
    before = {key: spark.conf.get(key) for key in SETTINGS}
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    yield lambda requested: read(spark, requested)
    for key, value in before.items():
        spark.conf.set(key, value)


def column_types(schema: dict[str, Any]) -> dict[str, Any]:
    return {field["name"]: field["type"] for field in schema["fields"]}


def on_both(**quick: Collection[tuple[str, str]]) -> list[Any]:
    """Every read; in `make test` only those of some tables."""
    return [
        pytest.param(kind, *read, marks=() if read[:2] in tables else pytest.mark.conformance)
        for kind, tables in quick.items()
        for read in READS
    ]


@pytest.mark.parametrize(
    ("reader", "version", "case", "query"),
    on_both(
        classic={
            ("6", "mor_basic"),
            *(("9", case) for case in ("mor_basic", "types_mor", "mdt_all_cow", "no_meta_fields_mor", "cdc_mor")),
        },
        connect={("6", "cdc_mor"), ("8", "types_mor"), ("9", "mor_basic")},
    ),
    ids=lambda value: value if isinstance(value, str) else "-".join(map(str, value.values())),
    indirect=["reader"],
)
def test_rows_are_those_of_the_engine(
    golden: Golden, tmp_path: Path, reader: Reader, version: str, case: str, query: dict[str, Any]
) -> None:
    table = golden(version, case).table
    result = HudiTable.open(str(table)).read(**query)
    expected = pa.Table.from_batches(result.batches, result.schema)
    answer = reader({"table": str(table), "query": query, "output": str(tmp_path / "rows")})
    assert list(column_types(answer["schema"])) == expected.column_names
    found = pq.read_table(tmp_path / "rows")
    assert found.num_rows == expected.num_rows
    assert_same_rows(found, expected, ignore=())


def test_time_travel(golden: Golden, tmp_path: Path, reader: Reader) -> None:
    for version in ("6", "8", "9"):
        table = golden(version, "mor_basic").table
        first = HudiTable.open(str(table)).timeline().completed().first()
        assert first is not None
        query = {"query": "snapshot", "as_of": first.requested_time}
        result = HudiTable.open(str(table)).read(**query)  # type: ignore[arg-type]
        expected = pa.Table.from_batches(result.batches, result.schema)
        reader({"table": str(table), "query": query, "output": str(tmp_path / version)})
        assert expected.num_rows > 0
        assert_same_rows(pq.read_table(tmp_path / version), expected, ignore=())


def test_types(golden: Golden, tmp_path: Path, reader: Reader) -> None:
    answer = reader({"table": str(golden("9", "types_mor").table), "query": {}, "output": str(tmp_path / "rows")})
    kinds = {
        str(kind if isinstance(kind, str) else kind["type"]).split("(")[0]
        for kind in column_types(answer["schema"]).values()
    }
    assert kinds >= {
        "string",
        "integer",
        "long",
        "float",
        "double",
        "boolean",
        "binary",
        "date",
        "timestamp",
        "decimal",
        "array",
        "map",
        "struct",
    }


def test_an_executor_says_what_is_wrong_with_a_file(golden: Golden, reader: Reader) -> None:
    """By an action that reads. Of one that writes, too, Spark Connect keeps only the first 2 KiB of the failure, which
    are Java's frames.
    """
    table = golden("9", "mor_basic").table
    base, *_ = sorted(table.glob("*/*.parquet"))
    base.write_bytes(base.read_bytes()[:-50])
    error = error_from_json(reader({"table": str(table), "query": {"metadata": "off"}})["error"])
    assert isinstance(error, CorruptFileError), error
    assert error.path is not None
    assert base.name in error.path


@pytest.mark.parametrize("reader", ["classic"], indirect=True)
@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
def test_a_corrupt_log_block_is_an_error_where_the_option_says_so(
    golden: Golden, tmp_path: Path, reader: Reader, version: str
) -> None:
    case = golden(version, "log_corrupt_middle")
    request = {"table": str(case.table), "query": {"metadata": "off"}}
    reader({**request, "output": str(tmp_path / "rows")})
    assert pq.read_table(tmp_path / "rows").num_rows == pq.read_metadata(case.expected / "snapshot.parquet").num_rows
    error = error_from_json(reader({**request, "options": {"airflow_hudi.read.strict": "true"}})["error"])
    assert isinstance(error, CorruptFileError), error
    assert ".log." in str(error.path)


def test_a_file_that_is_gone_when_an_action_runs(golden: Golden, tmp_path: Path, spark: Any) -> None:
    from hudi_spark import table as spark_table
    from hudi_spark.failure import SPARK_FAILURES, translate

    table = golden("6", "cow_basic").table
    frame = spark_table.HudiTable(str(table)).to_spark(spark)
    base, *_ = sorted(table.glob("*/*.parquet"))
    for path in table.glob("*/*.parquet"):
        path.unlink()
    with pytest.raises(SPARK_FAILURES) as raised:
        frame.count()
    error = translate(raised.value)
    assert isinstance(error, StorageNotFoundError)
    assert str(error.path).endswith(".parquet"), base


def test_on_connect_the_engine_comes_from_the_zip(connect: ConnectClient) -> None:
    assert ".zip/hudi_core/" in connect.ask(None)["file"]


def test_a_slice_is_a_task_and_small_ones_share_one(golden: Golden, spark: Any) -> None:
    from hudi_spark import table as spark_table

    table = spark_table.HudiTable(str(golden("6", "bulk_insert_multi_groups").table))
    splits = len(HudiTable.open(table._uri).plan().splits)
    assert splits > 1
    assert table.to_spark(spark).rdd.getNumPartitions() == 1
    assert table.to_spark(spark, bytes_per_task=1).rdd.getNumPartitions() == splits

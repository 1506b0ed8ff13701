"""`hudictl probe-store` and `hudictl doctor` on s3:// by the same code: the server of the races (moto behind one lock,
or versitygw).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hudi_core.storage.registry import open_storage
from hudi_health.probe import probe
from tests.contract.racing import CheckThenPut
from tests.contract.racing_servers import RacingServer, racing_server
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl


@pytest.fixture(scope="module")
def server() -> Iterator[RacingServer]:
    with racing_server() as running:
        yield running


@pytest.fixture
def options(server: RacingServer, tmp_path: Path) -> Path:
    file = tmp_path / "options.json"
    file.write_text(json.dumps(dict(server.options)))
    return file


def test_an_atomic_server_passes_and_nothing_is_left(server: RacingServer, options: Path) -> None:
    done = hudictl(
        "probe-store",
        "s3://bucket/probed",
        "--storage-options-file",
        options,
        "--writers",
        "16",
        "--rounds",
        "3",
        "--json",
    )
    assert done.code == 0
    assert (done.document["can_carry_timeline"], done.document["can_carry_lease"]) == (True, True)
    left = open_storage("s3://bucket/probed", server.options)
    assert (left.list_files(""), left.list_folders("")) == ([], [])


def test_the_same_server_behind_check_then_put_fails(server: RacingServer) -> None:
    report = probe(CheckThenPut(open_storage("s3://bucket/raced", server.options)), 8, 3)
    assert (report.can_carry_timeline, report.can_carry_lease) == (False, False)


def test_the_doctor_on_s3(server: RacingServer, options: Path, golden: Callable[[str, str], GoldenCase]) -> None:
    table = golden("9", "failed_inflight_mor").table
    storage = open_storage("s3://bucket/t", server.options)
    for path in table.rglob("*"):
        if path.is_file():
            storage.write(path.relative_to(table).as_posix(), path.read_bytes())
    document = hudictl(
        *(
            "doctor",
            "s3://bucket/t",
            "--storage-options-file",
            options,
            "--option",
            "airflow_hudi.doctor.stuck_minutes=0",
            "--json",
        )
    ).document
    assert {"stuck_instant", "store_unproven"} <= {finding["rule"] for finding in document["findings"]}
    assert {wheel["name"] for wheel in document["wheels"]} == {"pyarrow", "numpy", "polars", "isal", "s3fs"}
    assert document["store"]["scheme"] == "s3"

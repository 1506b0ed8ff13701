"""What executors lack, and the doctor and the probe of a store as requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_core.codec import gzip
from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import Json, UnitTask
from hudi_core.errors import ConfigError, ExecutionError, HudiError
from hudi_core.table import HudiTable
from hudi_health.doctor.wheels import (
    ExecutorObservations,
    Wheel,
    executor_modules,
    missing_wheels,
    needed_wheels,
    read_executors,
)
from hudi_health.verbs import DoctorRequest, ProbeStoreRequest
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
FULL = {
    "python": "3.11.7",
    "pyarrow": "26.0.1",
    "numpy": "2.1",
    "polars": "2.1",
    "fastavro": "compiled",
    "gzip": "isal",
}
LIBRARY = "airflow_hudi.parquet.gzip.library"


class Remote:
    """An engine whose executors answer with set-ups, or with an error."""

    name = "remote"

    def __init__(self, *answers: Json | HudiError) -> None:
        self._answers = answers

    def setups(self) -> tuple[Json, ...]:
        for answer in self._answers:
            if isinstance(answer, HudiError):
                raise answer
        return tuple(answer for answer in self._answers if not isinstance(answer, HudiError))

    def run(
        self,
        task: UnitTask,
        units: Sequence[Json],
        *,
        run_epoch: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Json]:
        raise AssertionError("the doctor gives executors no units")


def examined(table: Path, engine: Any, **requested: Any) -> dict[str, Any]:
    result = HudiTable.open(str(table)).run(DoctorRequest(str(table), **requested), engine)
    assert result.exit_code == 0
    return result.to_dict()


def test_only_remote_executors_are_read() -> None:
    assert read_executors(LocalEngine(1)) is None
    assert read_executors(Remote(FULL)) == ExecutorObservations((FULL,))
    gone = ConfigError("no Python module pyarrow", remedy="ship it")
    assert read_executors(Remote(gone)) == ExecutorObservations((), "no Python module pyarrow", "ship it")
    with pytest.raises(ExecutionError):
        read_executors(Remote(ExecutionError("no executor came")))


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_the_document_says_what_executors_have(golden: Golden, version: str) -> None:
    table = golden(version, "mor_compacted").table
    here = examined(table, LocalEngine(1))
    assert (here["executors"], here["findings"], here["files_looked_at"]) == (None, [], True)
    there = examined(table, Remote(FULL), timeline_only=True)
    assert (there["executors"], there["findings"], there["files_looked_at"]) == (
        {"setups": [FULL], "problem": None, "remedy": None},
        [],
        False,
    )


@pytest.mark.parametrize(
    ("lacks", "rule", "severity", "fix"),
    [
        ({"pyarrow": None}, "executor_wheel", "error", "airflow-hudi-engine on every"),
        ({"numpy": None}, "executor_wheel", "error", "airflow-hudi-engine on every"),
        ({"fastavro": None}, "executor_wheel", "error", "--py-files"),
        ({"fastavro": "pure"}, "executor_slow", "info", "install fastavro"),
        ({"polars": None}, "executor_slow", "info", "airflow-hudi-engine[polars]"),
    ],
)
def test_one_executor_that_lacks_a_module_is_enough(
    golden: Golden, lacks: Json, rule: str, severity: str, fix: str
) -> None:
    (finding,) = examined(golden("9", "mor_compacted").table, Remote(FULL, {**FULL, **lacks}))["findings"]
    assert (finding["rule"], finding["severity"], next(iter(lacks)) in finding["what"], fix in finding["fix"]) == (
        rule,
        severity,
        True,
        True,
    )


def test_executors_without_a_gzip_library_matter_where_base_files_are_gzip(golden: Golden) -> None:
    table, lacking = golden("9", "mor_compacted").table, Remote(FULL, {**FULL, "gzip": "pyarrow"})
    (finding,) = examined(table, lacking)["findings"]
    assert (finding["rule"], finding["severity"]) == ("executor_slow", "info")
    assert finding["fix"].startswith("install airflow-hudi-engine[isal] on every executor")
    zstd = {"hoodie.parquet.compression.codec": "zstd"}
    assert examined(table, lacking, options=zstd)["findings"] == []
    assert examined(table, Remote(FULL, {**FULL, "gzip": "libdeflate"}))["findings"] == []
    assert examined(table, lacking, timeline_only=True)["findings"] == []


@pytest.mark.parametrize(
    ("library", "expected"),
    [
        ("auto", [("executor_slow", "info", "airflow-hudi-engine[isal]")]),
        ("isal", [("executor_wheel", "error", "airflow-hudi-engine[isal]")]),
        ("libdeflate", [("executor_wheel", "error", "airflow-hudi-engine[libdeflate]")]),
        ("pyarrow", []),
    ],
)
def test_what_executors_lack_of_the_library_of_the_options(library: str, expected: list[tuple[str, str, str]]) -> None:
    executors = ExecutorObservations(({**FULL, "gzip": "pyarrow"},))
    findings = executor_modules(executors, "GZIP", {LIBRARY: library})
    found = [(finding.rule, finding.severity, finding.fix.split()[1]) for finding in findings]
    assert found == expected


def gzip_wheels(options: dict[str, str], codec: str | None = "GZIP") -> list[Wheel]:
    return [wheel for wheel in needed_wheels("file", options, codec) if wheel.name in ("isal", "deflate")]


@pytest.mark.parametrize(("missing", "name"), [((), "isal"), (("isal",), "deflate")])
def test_the_gzip_library_that_is_there_is_enough(
    monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...], name: str
) -> None:
    monkeypatch.setattr(gzip, "find_spec", lambda module: None if module in missing else module)
    (wheel,) = gzip_wheels({})
    assert (wheel.name, wheel.version is None, wheel.is_optional) == (name, False, True)
    assert (gzip_wheels({}, "ZSTD"), gzip_wheels({}, None), gzip_wheels({LIBRARY: "pyarrow"})) == ([], [], [])


def test_where_no_gzip_library_is_there_isal_is_named(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.setattr(gzip, "find_spec", lambda module: None)
    table = golden("9", "cow_basic").table
    (finding,) = examined(table, LocalEngine(1))["findings"]
    assert (finding["rule"], finding["severity"]) == ("missing_wheel", "info")
    assert finding["what"] == "isal is not installed here; driver and executors are faster with it: base files of gzip"
    assert finding["fix"] == "pip install 'airflow-hudi-engine[isal]'"
    assert examined(table, LocalEngine(1), options={"hoodie.parquet.compression.codec": "zstd"})["findings"] == []


def test_a_gzip_library_that_the_options_name_is_needed() -> None:
    (wheel,) = gzip_wheels({LIBRARY: "libdeflate"})
    assert (wheel.name, wheel.is_optional, wheel.install) == ("deflate", False, "airflow-hudi-engine[libdeflate]")
    (finding,) = missing_wheels((replace(wheel, version=None),))
    assert (finding.rule, finding.severity) == ("missing_wheel", "error")


def test_what_is_missing_here_is_named_by_what_it_is_for() -> None:
    s3 = Wheel("s3fs", "driver", "s3", "airflow-hudi-engine[s3]", None)
    polars = Wheel("polars", "driver", "logs", "airflow-hudi-engine[polars]", None, is_optional=True)
    findings = missing_wheels((s3, replace(s3, version="2025.7"), polars))
    assert [(finding.rule, finding.severity) for finding in findings] == [
        ("missing_wheel", "error"),
        ("missing_wheel", "info"),
    ]


def test_executors_that_cannot_be_reached(golden: Golden) -> None:
    error = ConfigError("Spark's executors run another Python release than the driver", remedy="set PYSPARK_PYTHON")
    (finding,) = examined(golden("9", "mor_compacted").table, Remote(error))["findings"]
    assert (finding["rule"], finding["severity"], error.message in finding["what"], finding["fix"]) == (
        "executor_wheel",
        "error",
        True,
        error.remedy,
    )


def test_the_store_below_a_table_is_probed_and_left_as_it_was(golden: Golden) -> None:
    table = golden("9", "mor_compacted").table
    before = sorted(table.rglob("*"))
    request = ProbeStoreRequest(str(table), writers=3, rounds=2)
    document = HudiTable.open(str(table)).run(request, LocalEngine(1)).to_dict()
    assert (document["can_carry_timeline"], document["can_carry_lease"], document["replaces"]["rounds"]) == (
        True,
        True,
        2,
    )
    assert sorted(table.rglob("*")) == before

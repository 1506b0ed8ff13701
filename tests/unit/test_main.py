"""The file that spark-submit runs."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hudi_core.config.engine_config import NEEDED_MODULES

MAIN = Path(__file__).resolve().parents[2] / "spark_jobs" / "main.py"


def run(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    monkeypatch.setitem(sys.modules, "hudi_spark.job", SimpleNamespace(main=lambda _: code))  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "argv", [str(MAIN), "--request", "{}"])
    runpy.run_path(str(MAIN), run_name="__main__")


def test_a_job_that_went_well_ends_as_a_script_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python task of Databricks that calls sys.exit(0) was seen as failed (kedro-org/kedro#1807)."""
    run(monkeypatch, 0)


@pytest.mark.parametrize("code", [1, 2, 3])
def test_a_job_that_failed_ends_with_its_code(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, code)
    assert ended.value.code == code


def test_the_remedy_names_every_module_that_a_run_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "hudi_spark.job", None)  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "argv", [str(MAIN), "--request", "{}"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(MAIN), run_name="__main__")
    assert ended.value.code == 2
    remedy = json.loads(capsys.readouterr().out.removeprefix("HUDI_RESULT "))["error"]["remedy"]
    assert [name for name in NEEDED_MODULES if name not in remedy] == []

"""How a session is configured; what it does is tested in tests/contract."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest

from hudi_core.errors import ConfigError, ExecutionError
from hudi_spark import session
from hudi_spark.engine import SessionEngine, SparkEngine
from hudi_spark.session import classic_conf, open_session
from hudi_spark.tasks import WithoutPandas

ZIP = Path("/cache/hudi-jobs.zip")


def test_the_zip_reaches_executors_and_the_ui_is_off() -> None:
    conf = classic_conf("spark://host:7077", ZIP, {}, None)
    assert conf["spark.submit.pyFiles"] == str(ZIP)
    assert conf["spark.ui.enabled"] == "false"
    assert "spark.driver.extraJavaOptions" not in conf
    assert "spark.driver.host" not in conf


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2,3]"])
def test_a_local_driver_only_coordinates(master: str) -> None:
    conf = classic_conf(master, ZIP, {}, None)
    assert conf["spark.driver.extraJavaOptions"] == "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    assert conf["spark.driver.host"] == "127.0.0.1"


def test_a_log_configuration_is_given_as_a_uri(tmp_path: Path) -> None:
    conf = classic_conf("local[2]", ZIP, {}, tmp_path / "a b.properties")
    assert conf["spark.driver.extraJavaOptions"].endswith(
        f"-Dlog4j2.configurationFile=file://{tmp_path}/a%20b.properties"
    )


def test_the_callers_configuration_wins() -> None:
    conf = classic_conf("local[2]", ZIP, {"spark.ui.enabled": "true", "spark.executor.memory": "2g"}, None)
    assert (conf["spark.ui.enabled"], conf["spark.executor.memory"]) == ("true", "2g")


@pytest.mark.parametrize("missing", ["pyspark", "pandas", "pyarrow"])
def test_a_driver_that_lacks_a_module_says_which_and_what_to_do(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setattr(session, "find_spec", lambda name: None if name == missing else object())
    with pytest.raises(ConfigError, match=f"no Python module {missing}") as caught:
        open_session("local[2]", ZIP, conf={})
    assert "--engine local" in str(caught.value.remedy)


class Session:
    """What a SessionEngine stops."""

    stopped = False

    def stop(self) -> None:
        """As SparkSession's."""
        self.stopped = True


@pytest.mark.parametrize("of_databricks", [False, True])
def test_a_session_of_the_cluster_is_not_stopped(monkeypatch: pytest.MonkeyPatch, of_databricks: bool) -> None:
    if of_databricks:
        monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "15.4")
    session: Any = Session()
    with SessionEngine(lambda: session, lambda _: None) as engine:
        assert engine.open() is session
    assert session.stopped is not of_databricks


def test_only_workers_of_an_own_session_are_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    session: Any = Session()

    def is_hidden(is_alone: bool) -> bool:
        return isinstance(SessionEngine(lambda: session, print, is_alone=is_alone)._in_worker(iter), WithoutPandas)

    assert (is_hidden(True), is_hidden(False)) == (True, False)
    assert SparkEngine(session)._in_worker(iter) is iter
    monkeypatch.setattr("pyspark.sql.utils.is_remote", lambda: True)
    assert not is_hidden(True)
    monkeypatch.undo()
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "15.4")
    assert not is_hidden(True)


class Unreachable:
    """A builder of sessions that quotes what it was given."""

    def __init__(self, text: str) -> None:
        self.builder = self
        self.remote = self.appName = self.config = lambda *given, **named: self
        self._text = text

    def getOrCreate(self) -> None:
        from pyspark.errors import PySparkValueError

        raise PySparkValueError(self._text)


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ("/;use_ssl=true;token=hunter2==", "Parameter 'token=hunter2==' should be a key-value pair"),
        (";token=hunter2", "Target destination 'spark:443;token=hunter2' should match"),
        ("/;token=hunter%2F2;user_id=me", "no answer for me with hunter/2"),
        ("/;x-api-key=hunter2", "no answer for hunter2"),
    ],
)
def test_the_token_of_a_server_is_not_shown(monkeypatch: pytest.MonkeyPatch, parameters: str, text: str) -> None:
    monkeypatch.setattr("pyspark.sql.SparkSession", Unreachable(text))
    with pytest.raises(ExecutionError, match="no Spark Connect session at sc://spark:443") as caught:
        open_session(f"sc://spark:443{parameters}", ZIP, conf={})
    shown = "".join(traceback.format_exception(caught.value))
    assert "hunter" not in shown
    assert "***" in shown

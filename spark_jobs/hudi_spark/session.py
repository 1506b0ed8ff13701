"""Opens a Spark session that can run the job zip: local, on a cluster, or by Spark Connect."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from hudi_core.errors import ConfigError, ExecutionError
from hudi_core.request.java import JVM_OPTIONS, spark_environment
from hudi_core.request.secrets import is_secret_key

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The JVM only coordinates, so an optimising compiler and a parallel collector cost more than they save (measured in
# docs/internals/benchmarks.md).
_LOCAL_JVM_FLAGS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def open_session(
    master: str, zip_file: Path, *, conf: Mapping[str, str], log_config: Path | None = None, app_name: str = "hudictl"
) -> SparkSession:
    """Opens a new session on `master` whose executors have `zip_file`.

    `master` is `local[*]`, `spark://…`, `yarn`, or `sc://…` for Spark Connect. `conf` is Spark's own configuration and
    overrides the defaults set here. `log_config` is a log4j2 file for the driver's JVM. Sets JAVA_HOME, SPARK_HOME and
    PYSPARK_PYTHON of this process if they are needed and not set. Raises ConfigError if pyspark or Java is missing,
    ExecutionError if Spark does not start.
    """
    require_pyspark()
    if master.startswith("sc://"):
        return _connect(master, zip_file, conf, app_name)
    return _classic(master, classic_conf(master, zip_file, conf, log_config), app_name)


def require_pyspark() -> None:
    """Raises ConfigError if a module that the driver needs is not installed. Imports nothing."""
    # Spark 3.5's mapInArrow requires pandas, only on the driver. The engine itself does not use it.
    missing = [name for name in ("pyspark", "pandas", "pyarrow") if find_spec(name) is None]
    if missing:
        remedy = "pip install 'airflow-hudi-engine[spark3]', or run with --engine local"
        raise ConfigError(f"Spark cannot start: no Python module {', '.join(missing)}", remedy=remedy)


def classic_conf(master: str, zip_file: Path, conf: Mapping[str, str], log_config: Path | None) -> dict[str, str]:
    """Returns the configuration of a classic session: hudictl's defaults, overridden by `conf`."""
    settings = {
        # pyspark starts its JVM by spark-submit, which reads this property: the zip reaches the driver and the
        # executors without a call of SparkContext.
        "spark.submit.pyFiles": str(zip_file),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    flags = []
    if master.startswith("local"):
        settings["spark.driver.bindAddress"] = settings["spark.driver.host"] = "127.0.0.1"
        flags.append(_LOCAL_JVM_FLAGS)
    if log_config is not None:
        flags.append(f"-Dlog4j2.configurationFile={log_config.resolve().as_uri()}")
    if flags:
        settings["spark.driver.extraJavaOptions"] = " ".join(flags)
    settings.update(conf)
    return settings


def _classic(master: str, settings: Mapping[str, str], app_name: str) -> SparkSession:
    from pyspark.sql import SparkSession

    from hudi_spark.failure import SPARK_FAILURES

    environment = spark_environment()
    for name in ("JAVA_HOME", "SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PATH", JVM_OPTIONS):
        if name in environment:
            os.environ[name] = environment[name]
    try:
        return SparkSession.builder.master(master).appName(app_name).config(map=dict(settings)).getOrCreate()
    except SPARK_FAILURES as error:
        lines = str(error).strip().splitlines() or ["no reason given"]
        raise ExecutionError(
            f"Spark did not start on {master}: {lines[0]}", remedy="see the log above, or --debug"
        ) from error


def _connect(url: str, zip_file: Path, conf: Mapping[str, str], app_name: str) -> SparkSession:
    from pyspark.sql import SparkSession

    from hudi_spark.failure import SPARK_FAILURES

    try:
        spark = SparkSession.builder.remote(url).appName(app_name).config(map=dict(conf)).getOrCreate()
        spark.addArtifacts(str(zip_file), pyfile=True)
    except ImportError as error:
        raise ConfigError(f"Spark Connect cannot start: {error}", remedy="pip install 'pyspark[connect]'") from error
    except SPARK_FAILURES as error:
        address, _, parameters = url.partition(";")
        what = f"no Spark Connect session at {address}: {_without_secrets(str(error), parameters)}"
        remedy = "is the server running, and the address right?"
        raise ExecutionError(what, remedy=remedy) from None  # The cause may quote the token of the address.
    return spark


def _without_secrets(text: str, parameters: str) -> str:
    """Returns the text with `***` for the secrets in the parameters of a Spark Connect address (`token=…;…`)."""
    for name, _, value in (item.partition("=") for item in parameters.split(";")):
        if value and is_secret_key(name):
            text = text.replace(value, "***").replace(unquote(value), "***")
    return text

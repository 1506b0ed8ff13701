"""An Airflow of its own for the tests that run one."""

from __future__ import annotations

import json
import os

import pytest

from tests.airflow.airflow_forks import ROOT


@pytest.fixture(scope="session")
def airflow_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of an Airflow with an empty home, our DAG folder, SQLite and a local Spark."""
    spark_conf = tmp_path_factory.mktemp("spark-conf")
    spark_conf.joinpath("spark-defaults.conf").write_text(
        "spark.ui.enabled false\n"
        "spark.driver.bindAddress 127.0.0.1\n"
        "spark.driver.host 127.0.0.1\n"
        "spark.driver.extraJavaOptions -XX:+UseSerialGC -XX:TieredStopAtLevel=1\n"
    )
    spark_conf.joinpath("log4j2.properties").write_text("rootLogger.level = warn\n")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")}
    return {
        **clean,
        "AIRFLOW_HOME": str(tmp_path_factory.mktemp("airflow")),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(
            {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}
        ),
        "AIRFLOW_HUDI_POLL_SECONDS": "0.2",
        "SPARK_CONF_DIR": str(spark_conf),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }

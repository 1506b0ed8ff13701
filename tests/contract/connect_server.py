"""A Spark Connect server of one process: `connect_server.py JAR PORT`. Prints one line when it listens; ends when its
standard input does.
"""

from __future__ import annotations

import os
import sys

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

from pyspark.sql import SparkSession


def main(jar: str, port: str) -> None:
    """Serves until it is stopped."""
    settings = {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.jars": jar,
        "spark.connect.grpc.binding.port": port,
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    sys.stdout.write("listening\n")
    sys.stdout.flush()
    sys.stdin.read()
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

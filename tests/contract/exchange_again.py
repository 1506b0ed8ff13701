"""Run by test_engine: an exchange in a Spark that tries failed tasks again, in which every unit and every shard fails
once.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(folder: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from pyspark import cloudpickle
    from pyspark.sql import SparkSession

    from hudi_spark.engine import SparkEngine
    from tests.contract import test_engine

    builder = (
        SparkSession.builder.master("local[2,8]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
    )
    session = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    cloudpickle.register_pickle_by_value(test_engine)
    test_engine.exchange_at_last(SparkEngine(session), folder)
    session.stop()
    print("ok")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

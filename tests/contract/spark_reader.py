"""Reads Hudi tables by `to_spark` and leaves what Spark wrote of them as Parquet. The same function serves classic
Spark and Spark Connect.

As a program, `spark_reader.py ADDRESS`, it is a client of a Spark Connect server in a process of its own: one JSON
request a line, one answer a line. A process can have only one kind of session.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from hudi_core.request.results import error_to_json
from hudi_spark.failure import SPARK_FAILURES, translate
from hudi_spark.session import open_session
from hudi_spark.table import HudiTable
from hudi_submit.zip import publish_zip

SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}


def read(spark: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Reads `table` by `query`, writes the rows below `output` or counts them; answers Spark's schema, or the
    executors' error, typed.
    """
    table = HudiTable(request["table"], options=request.get("options"))
    frame = table.to_spark(spark, **request["query"])
    try:
        if "output" in request:
            frame.write.parquet(request["output"])
        else:
            frame.count()
    except SPARK_FAILURES as error:
        return {"error": error_to_json(translate(error))}
    return {"schema": frame.schema.jsonValue()}


def where_is_the_engine(spark: Any) -> str:
    """The file of hudi_core that Spark's Python workers import."""
    (row,) = spark.range(0, 1, 1, 1).mapInArrow(_own_file, "file string").collect()
    return str(row["file"])


def _own_file(batches: Any) -> Any:
    import pyarrow as pa

    import hudi_core

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"file": [hudi_core.__file__]})


def main(address: str) -> None:
    """Answers until standard input ends."""
    spark = open_session(address, publish_zip(), conf=SETTINGS)
    for line in sys.stdin:
        request = json.loads(line)
        answer = {"file": where_is_the_engine(spark)} if request is None else read(spark, request)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])

"""New tables as operators; the job's own code runs without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_hudi.operators.create import HudiCreateTableOperator
from airflow_hudi.operators.write import HudiWriteOperator
from hudi_core.errors import ConfigError
from hudi_core.table import HudiTable
from hudi_core.verbs.create import CreateRequest
from tests.support.fake_spark_submit import RENDERED, context, real_job, requests
from tests.support.table_invariants import read_rows

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Trip",
        "fields": [{"name": name, "type": "string"} for name in ("id", "sub", "day")] + [{"name": "ts", "type": "long"}],
    }
)
GIVEN: dict[str, Any] = {
    "schema": SCHEMA,
    "table_name": "trips",
    "table_version": 9,
    "record_key": ["id"],
    "partition_by": "day",
    "ordering": ["ts"],
}


def made(table: Path | str, **arguments: Any) -> HudiCreateTableOperator:
    fields = {"task_id": "create", "table": str(table), "hudi_conn_id": None, **GIVEN}
    return HudiCreateTableOperator(**{**fields, **arguments})

"""A request and files with templates, and what they are when an operator has rendered them."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from airflow_hudi.submission.job_files import JobFiles
from hudi_core.verbs.batch import BatchRequest
from hudi_core.verbs.run import RunRequest

RUN_ID = "scheduled__2026-11-26T00:00:00+00:00"
REQUEST = RunRequest(
    "s3://lake/my trips",
    "compaction",
    owner="airflow:{{ run_id }}",
    run_id="{{ run_id }}",
    options={"hoodie.note": 'a "quoted" text with a \\ and a `tick`'},
    when={"commits": "5"},
)
RENDERED = replace(REQUEST, owner=f"airflow:{RUN_ID}", run_id=RUN_ID)
BATCH = BatchRequest((REQUEST, replace(REQUEST, table="s3://lake/fares")))
RENDERED_BATCH = BatchRequest((RENDERED, replace(RENDERED, table="s3://lake/fares")))

FILES = JobFiles("s3://code/hudi-main-1.py", "s3://code/hudi-jobs-1.zip", "s3://code/hudi_jobs-1-py3-none-any.whl")
FILES_OF_TASK = JobFiles.of_task("publish")
CONTEXT: dict[str, Any] = {"run_id": RUN_ID, "results": {"publish": asdict(FILES)}}
"""The context of the run in which a task `publish` has returned FILES."""


def long_request(bytes_at_least: int) -> BatchRequest:
    """A batch whose JSON is longer."""
    return BatchRequest(tuple(replace(REQUEST, table=f"s3://lake/{n:0200}") for n in range(bytes_at_least // 200)))

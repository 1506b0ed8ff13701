"""The real operators take the arguments with `deferrable=True`, and send the same (decision 0024)."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_hudi.submission.platforms import (
    databricks_arguments,
    dataproc_batch_arguments,
    dataproc_job_arguments,
    emr_arguments,
    emr_serverless_arguments,
    livy_arguments,
    spark_kubernetes_arguments,
)
from tests.support.submission_operators import SubmissionOperators
from tests.support.submissions import CONTEXT, FILES_OF_TASK, REQUEST

GIVEN: dict[str, dict[str, Any]] = {
    "livy": livy_arguments(REQUEST, FILES_OF_TASK),
    "emr": emr_arguments(REQUEST, FILES_OF_TASK, job_flow_id="j"),
    "emr_serverless": emr_serverless_arguments(
        REQUEST, FILES_OF_TASK, application_id="00f1r2a3n4s5", execution_role_arn="arn:aws:iam::123456789012:role/hudi"
    ),
    "databricks": databricks_arguments(REQUEST, FILES_OF_TASK, existing_cluster_id="c"),
    "dataproc_job": dataproc_job_arguments(REQUEST, FILES_OF_TASK, region="r", cluster_name="c"),
    "dataproc_batch": dataproc_batch_arguments(REQUEST, FILES_OF_TASK, region="r"),
    "spark_kubernetes": spark_kubernetes_arguments(REQUEST, FILES_OF_TASK, image="i", spark_version="3.5.8"),
}


@pytest.mark.slow
@pytest.mark.parametrize("operator", GIVEN)
def test_the_operator_defers(operators: SubmissionOperators, operator: str) -> None:
    given = GIVEN[operator]
    assert "deferrable" not in given
    assert operators.attribute(operator, {**given, "deferrable": True}, "deferrable") is True
    sent = operators.sent(operator, given, CONTEXT)
    deferred = operators.sent(operator, {**given, "deferrable": True}, CONTEXT)
    assert without_random(deferred) == without_random(sent)


def without_random(call: dict[str, Any]) -> dict[str, Any]:
    """Without the token of a call, and the end of a name, that are new for each operator."""
    found = {name: value for name, value in call.items() if name != "clientToken"}
    if "body" in found:
        found["body"] = {**found["body"], "metadata": {}}
    return found

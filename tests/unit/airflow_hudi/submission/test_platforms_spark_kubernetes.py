"""A SparkApplication, as the real operator creates it, and the Spark operator's own types take it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from airflow_hudi.submission.platforms import spark_kubernetes_arguments
from hudi_core.errors import ConfigError
from hudi_core.verbs.batch import JobRequest
from hudi_core.verbs.run import ScheduleRequest
from hudi_spark.job import read_request
from tests.support.submission_operators import OperatorError, SubmissionOperators
from tests.support.submissions import (
    BATCH,
    CONTEXT,
    FILES,
    FILES_OF_TASK,
    RENDERED,
    RENDERED_BATCH,
    REQUEST,
    long_request,
)

SPARK = {"image": "registry/spark-hudi:1", "spark_version": "3.5.8"}
SECRET = {"envFrom": [{"secretRef": {"name": "lake"}}]}


@pytest.mark.slow
@pytest.mark.parametrize(("job", "rendered"), [(REQUEST, RENDERED), (BATCH, RENDERED_BATCH)])
def test_the_operator_creates_the_application(
    operators: SubmissionOperators, job: JobRequest, rendered: JobRequest
) -> None:
    given = spark_kubernetes_arguments(
        job,
        FILES_OF_TASK,
        **SPARK,
        namespace="lake",
        conf={"spark.executor.memoryOverhead": "1g"},
        driver={"cores": 1, "memory": "2g", **SECRET},
        executor={"instances": 3, "cores": 2, "memory": "4g"},
    )
    created = operators.sent("spark_kubernetes", given, CONTEXT)
    assert (created["group"], created["plural"]) == ("sparkoperator.k8s.io", "sparkapplications")
    assert created["body"]["metadata"]["namespace"] == "lake"
    specification = created["body"]["spec"]
    assert read_request(specification.pop("arguments")) == rendered
    assert specification == {
        "type": "Python",
        "pythonVersion": "3",
        "mode": "cluster",
        "sparkVersion": "3.5.8",
        "image": "registry/spark-hudi:1",
        "mainApplicationFile": FILES.entry,
        "deps": {"pyFiles": [FILES.zip]},
        "sparkConf": {"spark.executor.memoryOverhead": "1g"},
        "restartPolicy": {"type": "Never"},
        "driver": {"serviceAccount": "spark", "cores": 1, "memory": "2g", **SECRET},
        "executor": {"instances": 3, "cores": 2, "memory": "4g"},
    }


@pytest.mark.slow
def test_the_name_is_one_that_kubernetes_takes(operators: SubmissionOperators) -> None:
    for job in (
        replace(REQUEST, instant="20260102000000000", when={}),
        ScheduleRequest("s3://lake/trips", "log_compaction"),
    ):
        body = operators.sent("spark_kubernetes", spark_kubernetes_arguments(job, FILES, **SPARK), CONTEXT)["body"]
        name = body["metadata"]["name"]
        assert re.fullmatch(r"hudi-[a-z0-9-]*[a-z0-9]", name)
        assert len(name) <= 63


@pytest.mark.slow
def test_the_operator_renders_the_field_of_the_request(operators: SubmissionOperators) -> None:
    assert {"template_spec", "namespace"} <= set(operators.template_fields("spark_kubernetes"))


@pytest.mark.slow
def test_the_spark_operator_refuses_other_members(operators: SubmissionOperators) -> None:
    given = spark_kubernetes_arguments(REQUEST, FILES, **SPARK)
    given["template_spec"]["spec"]["pyFiles"] = [FILES.zip]
    with pytest.raises(OperatorError, match="the interface knows"):
        operators.sent("spark_kubernetes", given, CONTEXT)


def test_what_does_not_fit_an_argument_is_refused() -> None:
    with pytest.raises(ConfigError, match="longer than an argument"):
        spark_kubernetes_arguments(long_request(400_000), FILES, **SPARK)


def test_a_secret_in_conf_is_refused_and_a_reference_to_one_is_not() -> None:
    with pytest.raises(ConfigError, match="conf must not hold secrets"):
        spark_kubernetes_arguments(REQUEST, FILES, **SPARK, conf={"spark.hadoop.fs.s3a.secret.key": "hunter2"})
    reference = {"spark.kubernetes.driver.secretKeyRef.AWS_SECRET_ACCESS_KEY": "lake:secret"}
    given = spark_kubernetes_arguments(REQUEST, FILES, **SPARK, conf=reference)
    assert given["template_spec"]["spec"]["sparkConf"] == reference

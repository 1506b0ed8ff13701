"""A batch of Livy, as the real LivyOperator posts it."""

from __future__ import annotations

import pytest

from airflow_hudi.submission.platforms import livy_arguments
from hudi_core.errors import ConfigError
from hudi_core.verbs.batch import JobRequest
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("job", "rendered", "name"),
    [(REQUEST, RENDERED, "hudi-compaction"), (BATCH, RENDERED_BATCH, "hudi-2-tables")],
)
def test_the_operator_posts_the_batch(
    operators: SubmissionOperators, job: JobRequest, rendered: JobRequest, name: str
) -> None:
    body = operators.sent("livy", livy_arguments(job, FILES_OF_TASK, conf={"spark.executor.cores": "2"}), CONTEXT)
    assert read_request(body.pop("args")) == rendered
    assert body == {
        "file": FILES.entry,
        "pyFiles": [FILES.zip],
        "conf": {"spark.app.name": name, "spark.executor.cores": "2"},
    }


@pytest.mark.slow
def test_the_operator_renders_the_field_of_the_request(operators: SubmissionOperators) -> None:
    assert "spark_params" in operators.template_fields("livy")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "error"), [({"pyfiles": []}, r"TypeError(.|\n)*pyfiles"), ({"args": [["--request"]]}, "ValueError")]
)
def test_the_operator_refuses_other_arguments(
    operators: SubmissionOperators, change: dict[str, object], error: str
) -> None:
    with pytest.raises(OperatorError, match=error):
        operators.sent("livy", {**livy_arguments(REQUEST, FILES), **change}, CONTEXT)


def test_it_waits_for_the_end() -> None:
    assert livy_arguments(REQUEST, FILES)["polling_interval"] > 0
    assert livy_arguments(REQUEST, FILES, polling_interval=5)["polling_interval"] == 5


def test_what_does_not_fit_an_argument_is_refused() -> None:
    with pytest.raises(ConfigError, match="longer than an argument"):
        livy_arguments(long_request(400_000), FILES)


def test_a_secret_in_conf_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigError, match="conf must not hold secrets") as caught:
        livy_arguments(REQUEST, FILES, conf={"spark.hadoop.fs.s3a.secret.key": "hunter2"})
    assert "hunter2" not in str(caught.value)

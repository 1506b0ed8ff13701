"""The call of main.py: templates in requests, and what properties may hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from airflow.sdk import DAG, BaseOperator
from jinja2 import Environment
from jinja2.nativetypes import NativeEnvironment

from airflow_hudi.submission.platforms import job_arguments, job_properties
from hudi_core.errors import ConfigError
from hudi_core.verbs.batch import JobRequest
from hudi_spark.job import read_request
from tests.support.submissions import BATCH, RENDERED, RENDERED_BATCH, REQUEST, RUN_ID


def airflow_environment(native: bool) -> Environment:
    """The one that Airflow renders fields with."""
    with DAG("submit", render_template_as_native_obj=native):
        return BaseOperator(task_id="t").get_template_env()


@pytest.mark.parametrize("make", [Environment, NativeEnvironment, lambda: airflow_environment(False)])
@pytest.mark.parametrize(("job", "rendered"), [(REQUEST, RENDERED), (BATCH, RENDERED_BATCH)])
def test_templates_in_a_request_are_rendered(
    make: Callable[[], Environment], job: JobRequest, rendered: JobRequest
) -> None:
    flag, text = job_arguments(job)
    result: Any = make().from_string(text).render(run_id=RUN_ID)
    assert isinstance(result, str)
    assert read_request([flag, result]) == rendered


def test_native_rendering_leaves_a_text() -> None:
    """`render_template_as_native_obj` makes objects of what Python reads as one."""
    flag, text = job_arguments(REQUEST)
    result = airflow_environment(True).from_string(text).render(run_id=RUN_ID)
    assert read_request([flag, result]) == RENDERED


def test_what_is_no_template_stays() -> None:
    job = replace(REQUEST, owner="a } b }} c { d % e", run_id="r")
    _, text = job_arguments(job)
    assert read_request(["--request", Environment().from_string(text).render()]) == job


@pytest.mark.parametrize("template", ['{{ ti.xcom_pull("wait") }}', "{% if a == 'é' %}b{% endif %}"])
def test_a_template_that_json_would_spoil_is_refused(template: str) -> None:
    with pytest.raises(ConfigError, match="single quotation marks"):
        job_arguments(replace(REQUEST, owner=template))


def test_a_template_with_single_quotation_marks_is_rendered() -> None:
    flag, text = job_arguments(replace(REQUEST, owner="{{ results['wait'] }}"))
    result = Environment().from_string(text).render(run_id=RUN_ID, results={"wait": "a task"})
    assert read_request([flag, result]) == replace(RENDERED, owner="a task")


def test_properties_are_copied() -> None:
    conf = {"spark.executor.cores": "2"}
    found = job_properties(conf)
    found["spark.executor.memory"] = "4g"
    assert conf == {"spark.executor.cores": "2"}
    assert job_properties(None) == {}


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({"spark.executor.cores": 2}, "spark.executor.cores in conf are no texts"),
        ({"spark.hadoop.fs.s3a.secret.key": "hunter2"}, "conf must not hold secrets"),
        ({"spark.x": "https://user:hunter2@host/"}, "names a password"),
    ],
)
def test_properties_that_no_submission_takes_are_refused(conf: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        job_properties(conf)
    assert "hunter2" not in str(caught.value)

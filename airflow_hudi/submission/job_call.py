"""How main.py is called on a cluster: the arguments that every way to submit passes on, and what no argument may hold.

A request may hold templates: the operators render the fields that carry it. What a template becomes is put into JSON as
it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from airflow_hudi.jobs.job_arguments import LONGEST_ARGUMENT, refuse_secret_properties, request_argument
from hudi_core.errors import ConfigError
from hudi_core.verbs.batch import JobRequest

APP_NAME: Final = "spark.app.name"
"""The property of the application's name, where a service has no argument for it or wants names of its own."""
_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_REMEDY = (
    "everyone who sees the submission sees conf: give secrets by the role of the cluster, by its own configuration, or "
    "by a secret of the service"
)


def job_arguments(job: JobRequest, *, longest: int = LONGEST_ARGUMENT) -> list[str]:
    """The arguments of main.py. Raises ConfigError when one would have more than `longest` bytes, or when a template in
    the request holds what JSON escapes.
    """
    text = request_argument(job, longest=longest)
    for template in _TEMPLATE.findall(text):
        if "\\" in template:
            raise ConfigError(
                f"the template {template} would not be rendered: JSON escapes a character of it",
                remedy="write texts in a template with single quotation marks, and ASCII characters alone",
            )
    return ["--request", text]


def job_properties(conf: Mapping[str, str] | None) -> dict[str, str]:
    """A copy of the Spark properties. Raises ConfigError for one that looks like a secret, and one that is no text."""
    properties = dict(conf or {})
    refuse_secret_properties(properties, remedy=_REMEDY)
    return properties

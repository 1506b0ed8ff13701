"""The examples in docs/use/airflow.md are a DAG, with the real operators."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import indent

import pytest

from tests.support.submission_operators import SubmissionOperators

ROOT = Path(__file__).parents[4]
DEFERRED = ("livy", "emr", "emr_serverless", "databricks", "dataproc", "dataproc_serverless", "kubernetes")
"""A task for each service that gives a job an id."""


def section() -> str:
    text = (ROOT / "docs" / "use" / "airflow.md").read_text()
    return text.split("## Other ways to submit", 1)[1].split("\n## ", 1)[0]


@pytest.mark.slow
def test_the_examples_are_a_dag(operators: SubmissionOperators) -> None:
    """The second is of the first one's DAG."""
    first, second = re.findall(r"^```python\n(.*?)^```$", section(), re.MULTILINE | re.DOTALL)
    more = "with compact.dag:\n" + indent(second, "    ")
    shown = "[sorted(compact.upstream_task_ids), *(compact.dag.get_task(name).deferrable for name in NAMES)]"
    found = operators.found(f"{first}\n{more}\nNAMES = {DEFERRED}\nFOUND = {shown}\n")
    assert found == [["publish"], *[True] * len(DEFERRED)]


def test_every_function_of_the_table_exists() -> None:
    named = re.findall(r"`(\w+)\.(\w+_(?:arguments|step))`", section())
    defined = {
        (module, name)
        for module, name in named
        if f"def {name}(" in (ROOT / "airflow_hudi" / "submission" / f"{module}.py").read_text()
    }
    assert len(named) == 9
    assert defined == set(named)

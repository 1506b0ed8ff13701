"""Makes the real operators of other providers, and answers what they would send: a line of JSON for each.

Run by submission_operators.py, with the providers on the path. Nothing is sent anywhere: an answer is what the
operator's own code hands to its service's client, accepted by the types of that service's interface.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

OPERATORS = {
    "livy": "airflow.providers.apache.livy.operators.livy:LivyOperator",
    "emr": "airflow.providers.amazon.aws.operators.emr:EmrAddStepsOperator",
    "emr_serverless": "airflow.providers.amazon.aws.operators.emr:EmrServerlessStartJobOperator",
    "databricks": "airflow.providers.databricks.operators.databricks:DatabricksSubmitRunOperator",
    "dataproc_job": "airflow.providers.google.cloud.operators.dataproc:DataprocSubmitJobOperator",
    "dataproc_batch": "airflow.providers.google.cloud.operators.dataproc:DataprocCreateBatchOperator",
    "spark_kubernetes": "airflow.providers.cncf.kubernetes.operators.spark_kubernetes:SparkKubernetesOperator",
}


class Ti:
    """What templates use of a task instance: the results of other tasks."""

    def __init__(self, results: dict[str, Any]) -> None:
        self._results = results

    def xcom_pull(self, task_ids: str) -> Any:
        return self._results[task_ids]


def sent_by_livy(operator: Any, context: Any) -> Any:
    return operator.hook.build_post_batch_body(**operator.spark_params)


def sent_by_emr(operator: Any, context: Any) -> Any:
    checked("emr", "AddJobFlowSteps", call := {"JobFlowId": operator.job_flow_id, "Steps": operator.steps})
    seconds = operator.waiter_delay * operator.waiter_max_attempts
    return {**call, "wait_seconds": seconds if operator.wait_for_completion or operator.deferrable else 0}


def sent_by_emr_serverless(operator: Any, context: Any) -> Any:
    call = {
        "clientToken": operator.client_request_token,
        "applicationId": operator.application_id,
        "executionRoleArn": operator.execution_role_arn,
        "jobDriver": operator.job_driver,
        "name": operator.name,
        "configurationOverrides": operator.configuration_overrides,
    }
    checked("emr-serverless", "StartJobRun", call)
    seconds = operator.waiter_delay * operator.waiter_max_attempts
    return {**call, "wait_seconds": seconds if operator.wait_for_completion else 0}


def checked(service: str, operation: str, call: dict[str, Any]) -> None:
    """Raises ParamValidationError for what botocore, or by its own model the service, would refuse."""
    from botocore.exceptions import ParamValidationError
    from botocore.session import get_session
    from botocore.validate import ParamValidator

    shape = get_session().get_service_model(service).operation_model(operation).input_shape
    report = ParamValidator().validate(call, shape).generate_report() or "\n".join(beyond(call, shape))
    if report:
        raise ParamValidationError(report=report)


def beyond(value: Any, shape: Any) -> list[str]:
    """What is longer, or another word, than the service's model says; botocore does not look at that."""
    found = []
    if hasattr(value, "__len__") and len(value) > shape.metadata.get("max", len(value)):
        found.append(f"{shape.name} takes {shape.metadata['max']}, not {len(value)}")
    match shape.type_name:
        case "structure":
            found += [line for name in value for line in beyond(value[name], shape.members[name])]
        case "list":
            found += [line for item in value for line in beyond(item, shape.member)]
        case "map":
            found += [line for name in value for line in beyond(value[name], shape.value) + beyond(name, shape.key)]
        case "string" if shape.enum and value not in shape.enum:
            found.append(f"{shape.name} is one of {', '.join(shape.enum)}, not {value}")
    return found


def sent_by_databricks(operator: Any, context: Any) -> Any:
    from databricks.sdk.service.jobs import SubmitTask

    call = operator._prepare_submit_json(context)
    for task in call["tasks"]:
        require_same(SubmitTask.from_dict(task).as_dict(), task)
    return call


def sent_by_dataproc_job(operator: Any, context: Any) -> Any:
    from google.cloud.dataproc_v1.types import Job

    Job(operator.job)
    return {"project_id": operator.project_id, "region": operator.region, "job": operator.job}


def sent_by_dataproc_batch(operator: Any, context: Any) -> Any:
    from google.cloud.dataproc_v1.types import Batch

    Batch(operator.batch)
    return {"batch_id": operator._resolve_requested_batch_id(), "region": operator.region, "batch": operator.batch}


def sent_by_spark_kubernetes(operator: Any, context: Any) -> Any:
    from airflow.providers.cncf.kubernetes.operators.custom_object_launcher import CustomObjectLauncher
    from kubeflow_spark_api.models import SparkV1beta2SparkApplication

    name = operator.create_job_name()
    launcher = CustomObjectLauncher(name, operator.namespace, None, None, operator.template_body)
    require_same(SparkV1beta2SparkApplication.from_dict(launcher.body).to_dict(), launcher.body)
    return {"group": launcher.api_group, "plural": launcher.plural, "body": launcher.body}


def require_same(known: Any, given: Any) -> None:
    """Raises ValueError where an interface's own type has dropped a member that it does not know."""
    if known != given:
        raise ValueError(f"the interface knows {known} of {given}")


SENT: dict[str, Callable[[Any, Any], Any]] = {
    "livy": sent_by_livy,
    "emr": sent_by_emr,
    "emr_serverless": sent_by_emr_serverless,
    "databricks": sent_by_databricks,
    "dataproc_job": sent_by_dataproc_job,
    "dataproc_batch": sent_by_dataproc_batch,
    "spark_kubernetes": sent_by_spark_kubernetes,
}


def answer(call: dict[str, Any]) -> Any:
    """The operator's template fields, or with arguments what it sends, or one of its attributes. Or what a program has
    found.
    """
    if "program" in call:
        names: dict[str, Any] = {"__name__": "program"}
        exec(compile(call["program"], "program", "exec"), names)
        return names["FOUND"]
    module, _, name = OPERATORS[call["operator"]].partition(":")
    kind = getattr(import_module(module), name)
    if "arguments" not in call:
        return list(kind.template_fields)
    operator = kind(task_id="submit", **call["arguments"])
    if "attribute" in call:
        return getattr(operator, call["attribute"])
    context = {**call["context"], "ti": Ti(call["context"].get("results", {}))}
    operator.render_template_fields(context)
    return SENT[call["operator"]](operator, context)


def main() -> None:
    """Answers until its input ends. What libraries print goes to standard error."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        for line in sys.stdin:
            try:
                found = {"value": answer(json.loads(line))}
            except Exception as error:  # noqa: BLE001 (the tests see it)
                found = {"error": f"{type(error).__name__}: {error}"}
            answers.write(json.dumps(found) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()

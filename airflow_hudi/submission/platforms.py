"""The job on a platform that runs Spark: the arguments of the operator that submits it there.

Each function takes the request, the addresses of the job's files, and Spark properties. It raises ConfigError for a
secret in `conf`, for a request that is longer than the platform takes, and for a template that cannot be rendered: what
one becomes is put into JSON as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from airflow_hudi.submission.job_files import JobFiles
from hudi_core.errors import ConfigError
from hudi_core.request.secrets import refuse_secrets
from hudi_core.verbs.batch import JobRequest
from hudi_submit.spark_submit import LONGEST_ARGUMENT, application_name, request_argument

APP_NAME: Final = "spark.app.name"
LONGEST_STEP_ARGUMENT: Final = 10_280
"""Characters of an argument of a step of EMR (XmlString in the service's API)."""
LONGEST_PARAMETERS: Final = 10_000
"""Bytes of the parameters of a Python task of Databricks as JSON, by the Jobs API."""
_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_REMEDY = (
    "everyone who sees the submission sees conf: give secrets by the role of the cluster, by its own configuration, or "
    "by a secret of the service"
)
_DELAY_SECONDS = 30

Conf = Mapping[str, str] | None


def job_arguments(job: JobRequest, *, longest: int = LONGEST_ARGUMENT) -> list[str]:
    """The arguments of main.py. Raises ConfigError for one that is too long, and a template that JSON would change."""
    text = request_argument(job, longest=longest)
    for template in _TEMPLATE.findall(text):
        if "\\" in template:
            raise ConfigError(
                f"the template {template} would not be rendered: JSON escapes a character of it",
                remedy="write texts in a template with single quotation marks, and ASCII characters alone",
            )
    return ["--request", text]


def job_properties(conf: Conf) -> dict[str, str]:
    """A copy of the Spark properties. Raises ConfigError for one that looks like a secret, and one that is no text."""
    properties = dict(conf or {})
    refuse_secrets(properties, where="conf", remedy=_REMEDY)
    return properties


def livy_arguments(
    job: JobRequest, files: JobFiles, *, conf: Conf = None, polling_interval: int = 30
) -> dict[str, Any]:
    """Arguments of LivyOperator (`apache-airflow-providers-apache-livy`), with `files` where Livy may read. Every
    `polling_interval` seconds it looks whether the batch has ended; its own default does not wait for that.
    """
    return {
        "file": files.entry,
        "py_files": [files.zip],
        "args": job_arguments(job),
        # Not as the name of the batch: Livy takes a name once as long as the batch runs.
        "conf": {APP_NAME: application_name(job), **job_properties(conf)},
        "polling_interval": polling_interval,
    }


def emr_arguments(
    job: JobRequest,
    files: JobFiles,
    *,
    job_flow_id: str,
    conf: Conf = None,
    deploy_mode: str = "cluster",
    action_on_failure: str = "CONTINUE",
    wait_minutes: int = 1440,
) -> dict[str, Any]:
    """Arguments of EmrAddStepsOperator (`apache-airflow-providers-amazon`): one step that runs spark-submit on the
    cluster `job_flow_id`. After `wait_minutes` the operator stops waiting and fails; its own default is half an hour.
    """
    step = emr_step(job, files, conf=conf, deploy_mode=deploy_mode, action_on_failure=action_on_failure)
    return {"job_flow_id": job_flow_id, "steps": [step], "wait_for_completion": True, **_waiter(wait_minutes)}


def emr_step(
    job: JobRequest,
    files: JobFiles,
    *,
    conf: Conf = None,
    deploy_mode: str = "cluster",
    action_on_failure: str = "CONTINUE",
) -> dict[str, Any]:
    """A step as boto3 takes it, also among the steps of a cluster that EmrCreateJobFlowOperator creates."""
    name = application_name(job)
    options = ["--deploy-mode", deploy_mode, "--name", name, "--py-files", files.zip]
    for key, value in job_properties(conf).items():
        options += ["--conf", f"{key}={value}"]
    arguments = job_arguments(job, longest=LONGEST_STEP_ARGUMENT)
    return {
        "Name": name,
        "ActionOnFailure": action_on_failure,
        "HadoopJarStep": {"Jar": "command-runner.jar", "Args": ["spark-submit", *options, files.entry, *arguments]},
    }


def emr_serverless_arguments(
    job: JobRequest,
    files: JobFiles,
    *,
    application_id: str,
    execution_role_arn: str,
    conf: Conf = None,
    log_uri: str | None = None,
    wait_minutes: int = 1440,
) -> dict[str, Any]:
    """Arguments of EmrServerlessStartJobOperator (`apache-airflow-providers-amazon`). The role reads `files` and the
    table; logs go to the folder `log_uri` on S3. After `wait_minutes` it cancels the job and fails; its own default is
    25 minutes.
    """
    overrides: dict[str, Any] = {}
    if properties := job_properties(conf):
        # And not as `--conf`: sparkSubmitParameters is one text, with rules of its own for spaces and quotes.
        overrides["applicationConfiguration"] = [{"classification": "spark-defaults", "properties": properties}]
    if log_uri is not None:
        overrides["monitoringConfiguration"] = {"s3MonitoringConfiguration": {"logUri": log_uri}}
    submit = {
        "entryPoint": files.entry,
        "entryPointArguments": job_arguments(job),
        "sparkSubmitParameters": f"--py-files {files.zip}",
    }
    return {
        "application_id": application_id,
        "execution_role_arn": execution_role_arn,
        "job_driver": {"sparkSubmit": submit},
        "configuration_overrides": overrides,
        "name": application_name(job),
        **_waiter(wait_minutes),
    }


def _waiter(minutes: int) -> dict[str, int]:
    return {"waiter_delay": _DELAY_SECONDS, "waiter_max_attempts": minutes * 60 // _DELAY_SECONDS}


def dataproc_job_arguments(
    job: JobRequest,
    files: JobFiles,
    *,
    region: str,
    cluster_name: str,
    project_id: str | None = None,
    conf: Conf = None,
) -> dict[str, Any]:
    """Arguments of DataprocSubmitJobOperator (`apache-airflow-providers-google`), by default in the connection's
    project.
    """
    properties = {APP_NAME: application_name(job), **job_properties(conf)}
    submitted = {
        "placement": {"cluster_name": cluster_name},
        "pyspark_job": {**_pyspark(job, files), "properties": properties},
    }
    return {"region": region, **_project(project_id), "job": submitted}


def dataproc_batch_arguments(
    job: JobRequest,
    files: JobFiles,
    *,
    region: str,
    project_id: str | None = None,
    conf: Conf = None,
    container_image: str | None = None,
    environment_config: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Arguments of DataprocCreateBatchOperator (`apache-airflow-providers-google`). `container_image` has what the job
    needs and the runtime lacks, `environment_config` (EnvironmentConfig of the API) the service account and the
    network. Dataproc makes the batch's id: the operator takes a batch of the same id for its own, and a later run would
    do nothing.
    """
    runtime: dict[str, Any] = {"properties": job_properties(conf)}
    if container_image is not None:
        runtime["container_image"] = container_image
    batch: dict[str, Any] = {"pyspark_batch": _pyspark(job, files), "runtime_config": runtime}
    if environment_config is not None:
        batch["environment_config"] = dict(environment_config)
    return {"region": region, **_project(project_id), "batch": batch}


def _pyspark(job: JobRequest, files: JobFiles) -> dict[str, Any]:
    return {"main_python_file_uri": files.entry, "python_file_uris": [files.zip], "args": job_arguments(job)}


def _project(project_id: str | None) -> dict[str, str]:
    return {} if project_id is None else {"project_id": project_id}


def databricks_arguments(
    job: JobRequest,
    files: JobFiles,
    *,
    new_cluster: Mapping[str, Any] | None = None,
    existing_cluster_id: str | None = None,
    conf: Conf = None,
    libraries: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Arguments of DatabricksSubmitRunOperator (`apache-airflow-providers-databricks`): a run of one Python task with
    the job's packages as a wheel, since such a task has no `--py-files`, on a `new_cluster` (a specification of the
    Jobs API), to whose Spark properties `conf` is added, or an existing one, which has its properties already.
    `libraries` are further ones, such as `{"pypi": {"package": "s3fs"}}`. Raises ConfigError also without a wheel among
    `files`, for two clusters or none, and for `conf` of an existing cluster.
    """
    if not files.wheel:
        raise ConfigError("Databricks needs the job as a wheel", remedy="publish the job's files: publish_job_files")
    if (new_cluster is None) == (existing_cluster_id is None):
        raise ConfigError("a run on Databricks has one cluster", remedy="give new_cluster or existing_cluster_id")
    properties = job_properties(conf)
    if existing_cluster_id is not None and properties:
        said = "an existing cluster has its Spark properties already"
        raise ConfigError(said, remedy="set conf there, or give new_cluster")
    name, parameters = application_name(job), job_arguments(job)
    size = len(json.dumps(parameters).encode())
    if size > LONGEST_PARAMETERS:
        said = f"the parameters are {size} bytes as JSON, Databricks takes {LONGEST_PARAMETERS}"
        raise ConfigError(said, remedy="name fewer tables in one task")
    task: dict[str, Any] = {
        "task_key": name,
        "spark_python_task": {"python_file": files.entry, "parameters": parameters},
        "libraries": [{"whl": files.wheel}, *map(dict, libraries)],
    }
    if new_cluster is None:
        task["existing_cluster_id"] = existing_cluster_id
    else:
        spark_conf = {**new_cluster.get("spark_conf", {}), **properties}
        task["new_cluster"] = {**new_cluster, **({"spark_conf": spark_conf} if spark_conf else {})}
    return {"run_name": name, "tasks": [task]}


def spark_kubernetes_arguments(
    job: JobRequest,
    files: JobFiles,
    *,
    image: str,
    spark_version: str,
    namespace: str = "default",
    service_account: str = "spark",
    conf: Conf = None,
    driver: Mapping[str, Any] | None = None,
    executor: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Arguments of SparkKubernetesOperator (`apache-airflow-providers-cncf-kubernetes`): a SparkApplication, which the
    Spark operator of Kubeflow runs. `image` has Spark of `spark_version`, and what the job needs. The `service_account`
    is the driver's. `driver` and `executor` are added to their pods (`cores`, `memory`, `instances`, `envFrom` with a
    secret, …).
    """
    specification = {
        "type": "Python",
        "pythonVersion": "3",
        "mode": "cluster",
        "sparkVersion": spark_version,
        "image": image,
        "mainApplicationFile": files.entry,
        "deps": {"pyFiles": [files.zip]},
        "arguments": job_arguments(job),
        "sparkConf": job_properties(conf),
        # Airflow tries again.
        "restartPolicy": {"type": "Never"},
        "driver": {"serviceAccount": service_account, **(driver or {})},
        "executor": {"instances": 1, **(executor or {})},
    }
    application = {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        # The operator adds the namespace, and an end to the name that makes it unique.
        "metadata": {"name": application_name(job).replace("_", "-")},
        "spec": specification,
    }
    return {"namespace": namespace, "template_spec": application}

"""Makes the arguments of operators that submit the job to platforms that run Spark. Each function raises ConfigError
for a secret in `conf`, for a request that is longer than the platform takes, and for a template that cannot be
rendered. A rendered template is put into JSON without escaping.
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
"""The most characters of an argument of an EMR step (XmlString in the service's API)."""
LONGEST_PARAMETERS: Final = 10_000
"""The most bytes of the parameters of a Databricks Python task as JSON, by the Jobs API."""
_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_REMEDY = (
    "everyone who sees the submission sees conf: give secrets by the role of the cluster, by its own configuration, or "
    "by a secret of the service"
)
_DELAY_SECONDS = 30

Conf = Mapping[str, str] | None


def job_arguments(job: JobRequest, *, longest: int = LONGEST_ARGUMENT) -> list[str]:
    """Returns main.py's arguments. Raises ConfigError for an overlong request and a template that JSON would change."""
    text = request_argument(job, longest=longest)
    for template in _TEMPLATE.findall(text):
        if "\\" in template:
            raise ConfigError(
                f"the template {template} would not be rendered: JSON escapes a character of it",
                remedy="write texts in a template with single quotation marks, and ASCII characters alone",
            )
    return ["--request", text]


def job_properties(conf: Conf) -> dict[str, str]:
    """Returns a copy of the Spark properties. Raises ConfigError for one that looks like a secret or is not text."""
    properties = dict(conf or {})
    refuse_secrets(properties, where="conf", remedy=_REMEDY)
    return properties


def livy_arguments(
    job: JobRequest, files: JobFiles, *, conf: Conf = None, polling_interval: int = 30
) -> dict[str, Any]:
    """Returns arguments of LivyOperator (`apache-airflow-providers-apache-livy`). Livy must be able to read `files`.
    Every `polling_interval` seconds the operator looks for the end of the batch; by its own default it does not wait.
    """
    return {
        "file": files.entry,
        "py_files": [files.zip],
        "args": job_arguments(job),
        # The name is not the batch's name: Livy refuses the name of a batch that is still running.
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
    """Returns arguments of EmrAddStepsOperator (`apache-airflow-providers-amazon`): one step of spark-submit on the
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
    """Returns a step as boto3 takes it. It may also be a step of a cluster that EmrCreateJobFlowOperator creates."""
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
    """Returns arguments of EmrServerlessStartJobOperator (`apache-airflow-providers-amazon`). The role must be able to
    read `files` and the table; logs go to the folder `log_uri` on S3. After `wait_minutes` the operator cancels the job
    and fails; its own default is 25 minutes.
    """
    overrides: dict[str, Any] = {}
    if properties := job_properties(conf):
        # Not as `--conf`: sparkSubmitParameters is one text, with its own rules for spaces and quotes.
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
    """Returns arguments of DataprocSubmitJobOperator (`apache-airflow-providers-google`). The default project is the
    connection's.
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
    """Returns arguments of DataprocCreateBatchOperator (`apache-airflow-providers-google`). `container_image` has what
    the runtime lacks. `environment_config` (EnvironmentConfig of the API) has the service account and network. Dataproc
    makes the batch's id: the operator takes a batch of the same id for its own, so a later run would do nothing.
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
    """Returns arguments of DatabricksSubmitRunOperator (`apache-airflow-providers-databricks`): a run of one Python
    task. The job's packages are a wheel, because such a task has no `--py-files`. The task runs on a `new_cluster` (a
    specification of the Jobs API), whose Spark properties `conf` extends, or on an existing cluster, which already has
    its properties. `libraries` are further libraries, such as `{"pypi": {"package": "s3fs"}}`. Also raises ConfigError
    without a wheel in `files`, for two clusters or none, and for `conf` with an existing cluster.
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
    """Returns arguments of SparkKubernetesOperator (`apache-airflow-providers-cncf-kubernetes`): a SparkApplication for
    Kubeflow's Spark operator. `image` contains Spark of `spark_version`, and what the job needs. `service_account` is
    the driver's. `driver` and `executor` extend their pods' specifications (`cores`, `memory`, `envFrom`…).
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
        # Airflow retries the task instead.
        "restartPolicy": {"type": "Never"},
        "driver": {"serviceAccount": service_account, **(driver or {})},
        "executor": {"instances": 1, **(executor or {})},
    }
    application = {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        # The operator adds the namespace, and a suffix that makes the name unique.
        "metadata": {"name": application_name(job).replace("_", "-")},
        "spec": specification,
    }
    return {"namespace": namespace, "template_spec": application}

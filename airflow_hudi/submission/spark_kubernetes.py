"""The job as a SparkApplication, which the Spark operator of Kubeflow runs on Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_hudi.jobs.job_arguments import application_name
from airflow_hudi.submission.job_call import job_arguments, job_properties
from airflow_hudi.submission.job_files import JobFiles
from hudi_core.verbs.batch import JobRequest


def spark_kubernetes_arguments(
    job: JobRequest,
    files: JobFiles,
    *,
    image: str,
    spark_version: str,
    namespace: str = "default",
    service_account: str = "spark",
    conf: Mapping[str, str] | None = None,
    driver: Mapping[str, Any] | None = None,
    executor: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Arguments of SparkKubernetesOperator (`apache-airflow-providers-cncf-kubernetes`).

    `image` has Spark of the version `spark_version`, and what the job needs. The `service_account` is the driver's.
    `driver` and `executor` are added to the specification of their pods (`cores`, `memory`, `instances`, `envFrom` with
    a secret, …).

    Raises ConfigError for a secret in `conf`, for a request that is longer than an argument can be, and for a template
    that cannot be rendered.
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
    return {
        "namespace": namespace,
        "template_spec": {
            "apiVersion": "sparkoperator.k8s.io/v1beta2",
            "kind": "SparkApplication",
            # The operator adds the namespace, and an end to the name that makes it unique.
            "metadata": {"name": application_name(job).replace("_", "-")},
            "spec": specification,
        },
    }

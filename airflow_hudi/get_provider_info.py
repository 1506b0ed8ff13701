"""The description of this provider for Airflow, by its entry point `apache_airflow_provider`; the connection's form.
Its test: hooks.py.
"""

from __future__ import annotations

from typing import Any

INTEGRATION = "Apache Hudi"


def get_provider_info() -> dict[str, Any]:
    """The provider's metadata, by Airflow's schema. It imports nothing, since every Airflow command calls it."""
    return {
        "package-name": "airflow-hudi",
        "name": "Apache Hudi",
        "description": "Runs the table services of Apache Hudi as Spark jobs, with no Hudi jar anywhere.",
        "integrations": [
            {"integration-name": INTEGRATION, "external-doc-url": "https://hudi.apache.org/", "tags": ["apache"]}
        ],
        "hooks": [{"integration-name": INTEGRATION, "python-modules": ["airflow_hudi.hooks"]}],
        "operators": [{"integration-name": INTEGRATION, "python-modules": _OPERATORS}],
        "sensors": [{"integration-name": INTEGRATION, "python-modules": ["airflow_hudi.sensors"]}],
        "triggers": [{"integration-name": INTEGRATION, "python-modules": _TRIGGERS}],
        "asset-uris": [
            {
                "schemes": ["hudi"],
                "handler": "airflow_hudi.assets.sanitize_uri",
                "factory": "airflow_hudi.assets.create_asset",
                "to_openlineage_converter": "airflow_hudi.lineage.dataset_of_asset",
            }
        ],
        "extra-links": ["airflow_hudi.links.HudiTableLink", "airflow_hudi.links.HudiSparkLink"],
        "notifications": ["airflow_hudi.notifier.HudiNotifier"],
        "connection-types": [_CONNECTION],
        "config": {"hudi": {"description": "Defaults of the Apache Hudi provider.", "options": _OPTIONS}},
    }


_OPERATORS = [
    f"airflow_hudi.operators.{name}"
    for name in (
        *("alert", "archive", "doctor", "metadata", "overwrite"),
        *("repair", "rollback", "service", "table_services"),
    )
]

_TRIGGERS = ["airflow_hudi.triggers.wait", "airflow_hudi.triggers.timeline_events"]


def _field(label: str, description: str, **schema: Any) -> dict[str, Any]:
    return {"label": label, "description": description, "schema": {"type": ["string", "null"], **schema}}


def _option(description: str, kind: str, default: str, example: str | None = None) -> dict[str, Any]:
    known = {"description": description, "type": kind, "example": example, "default": default}
    return {"version_added": "0.1.0", **known}


_CONNECTION: dict[str, Any] = {
    "connection-type": "hudi",
    "hook-class-name": "airflow_hudi.hooks.HudiHook",
    "hook-name": "Apache Hudi",
    "ui-field-behaviour": {
        "hidden-fields": ["schema", "login", "password", "port", "extra"],
        "relabeling": {"host": "Base path"},
        "placeholders": {"host": "s3://bucket/warehouse"},
    },
    "conn-fields": {
        "storage_conn_id": _field(
            "Storage connection",
            "Id of the Airflow connection that holds the storage's credentials (aws, google_cloud_platform, wasb…). "
            "Empty: local paths, or the credentials of the process's environment.",
        ),
        "endpoint_url": _field("Storage endpoint", "Endpoint of an S3-compatible store; also handed to the Spark job."),
        "region": _field("Storage region", "Region of the bucket; also handed to the Spark job."),
        "engine": _field(
            "Engine",
            "Where the tables' services run when the task does not say so: spark, auto (small plans beside the task, "
            "others on Spark) or local.",
            enum=[None, "spark", "auto", "local"],
        ),
        "azure_subscription_id": _field(
            "Azure subscription",
            "Id of the subscription of the storage account, for links of tasks to Azure's portal.",
        ),
        "azure_resource_group": _field(
            "Azure resource group", "The storage account's, for links of tasks to Azure's portal."
        ),
    },
}

_OPTIONS: dict[str, Any] = {
    "default_deferrable": _option(
        "Whether sensors of this provider wait in the triggerer when the task does not say so itself.",
        "boolean",
        "True",
    ),
    "engine": _option(
        "Where work is done when neither the task nor its connection says so: spark, auto (small plans beside the "
        "task, others on Spark) or local.",
        "string",
        "spark",
        "auto",
    ),
    "table_link": _option(
        "Address to which the link `Hudi table` of a task leads, with {bucket} and {path} for those of the table's "
        "URI; on Azure {bucket} is the container, {account} the storage account. Empty: the console of S3, Google "
        "Cloud Storage or, where the connection has the subscription and resource group, Azure.",
        "string",
        "",
        "https://minio.example/browser/{bucket}/{path}",
    ),
    "spark_log": _option(
        "Whether the log of a task has Spark's own lines at INFO when the task does not say so itself.",
        "boolean",
        "False",
    ),
}

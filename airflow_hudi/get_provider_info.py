"""The description of this provider for Airflow, by its entry point `apache_airflow_provider`; the connection's form.
Its test: hooks/hudi.py.
"""

from __future__ import annotations

from typing import Any

INTEGRATION = "Apache Hudi"


def get_provider_info() -> dict[str, Any]:
    """The provider's metadata, valid by Airflow's `provider_info.schema.json`.

    It imports nothing, since every Airflow command calls it.
    """
    return {
        "package-name": "airflow-hudi",
        "name": "Apache Hudi",
        "description": "Runs the table services of Apache Hudi as Spark jobs, with no Hudi jar anywhere.",
        "integrations": [
            {"integration-name": INTEGRATION, "external-doc-url": "https://hudi.apache.org/", "tags": ["apache"]}
        ],
        "hooks": [{"integration-name": INTEGRATION, "python-modules": ["airflow_hudi.hooks.hudi"]}],
        "operators": [{"integration-name": INTEGRATION, "python-modules": _OPERATORS}],
        "sensors": [
            {
                "integration-name": INTEGRATION,
                "python-modules": [
                    "airflow_hudi.sensors.commit",
                    "airflow_hudi.sensors.instant",
                    "airflow_hudi.sensors.no_pending",
                    "airflow_hudi.sensors.partition",
                ],
            }
        ],
        "triggers": [
            {
                "integration-name": INTEGRATION,
                "python-modules": [
                    "airflow_hudi.triggers.condition",
                    "airflow_hudi.triggers.source",
                    "airflow_hudi.triggers.timeline_events",
                ],
            }
        ],
        "asset-uris": [
            {
                "schemes": ["hudi"],
                "handler": "airflow_hudi.assets.sanitize_uri",
                "factory": "airflow_hudi.assets.create_asset",
                "to_openlineage_converter": "airflow_hudi.reports.lineage.dataset_of_asset",
            }
        ],
        "extra-links": ["airflow_hudi.links.HudiTableLink", "airflow_hudi.links.HudiSparkLink"],
        "notifications": ["airflow_hudi.notifier.HudiNotifier"],
        "connection-types": [_CONNECTION],
        "config": {"hudi": {"description": "Defaults of the Apache Hudi provider.", "options": _OPTIONS}},
    }


_OPERATORS = [
    "airflow_hudi.operators.alert",
    "airflow_hudi.operators.archive",
    "airflow_hudi.operators.clean",
    "airflow_hudi.operators.clustering",
    "airflow_hudi.operators.compaction",
    "airflow_hudi.operators.doctor",
    "airflow_hudi.operators.indexing",
    "airflow_hudi.operators.metadata",
    "airflow_hudi.operators.overwrite",
    "airflow_hudi.operators.rollback",
    "airflow_hudi.operators.savepoint",
    "airflow_hudi.operators.repair",
    "airflow_hudi.operators.table_services",
]

_CONNECTION: dict[str, Any] = {
    "connection-type": "hudi",
    "hook-class-name": "airflow_hudi.hooks.hudi.HudiHook",
    "hook-name": "Apache Hudi",
    "ui-field-behaviour": {
        "hidden-fields": ["schema", "login", "password", "port", "extra"],
        "relabeling": {"host": "Base path"},
        "placeholders": {"host": "s3://bucket/warehouse"},
    },
    "conn-fields": {
        "storage_conn_id": {
            "label": "Storage connection",
            "description": "Id of the Airflow connection that holds the storage's credentials (aws, "
            "google_cloud_platform, wasb…). Empty: local paths, or the credentials of the process's environment.",
            "schema": {"type": ["string", "null"]},
        },
        "endpoint_url": {
            "label": "Storage endpoint",
            "description": "Endpoint of an S3-compatible store; also handed to the Spark job.",
            "schema": {"type": ["string", "null"]},
        },
        "region": {
            "label": "Storage region",
            "description": "Region of the bucket; also handed to the Spark job.",
            "schema": {"type": ["string", "null"]},
        },
        "engine": {
            "label": "Engine",
            "description": "Where the tables' services run when the task does not say so: spark, auto (small plans "
            "beside the task, others on Spark) or local.",
            "schema": {"type": ["string", "null"], "enum": [None, "spark", "auto", "local"]},
        },
        "azure_subscription_id": {
            "label": "Azure subscription",
            "description": "Id of the subscription of the storage account, for links of tasks to Azure's portal.",
            "schema": {"type": ["string", "null"]},
        },
        "azure_resource_group": {
            "label": "Azure resource group",
            "description": "The storage account's, for links of tasks to Azure's portal.",
            "schema": {"type": ["string", "null"]},
        },
    },
}

_OPTIONS: dict[str, Any] = {
    "default_deferrable": {
        "description": "Whether sensors of this provider wait in the triggerer when the task does not say so itself.",
        "version_added": "0.1.0",
        "type": "boolean",
        "example": None,
        "default": "True",
    },
    "engine": {
        "description": "Where work is done when neither the task nor its connection says so: spark, auto (small plans "
        "beside the task, others on Spark) or local.",
        "version_added": "0.1.0",
        "type": "string",
        "example": "auto",
        "default": "spark",
    },
    "table_link": {
        "description": "Address to which the link `Hudi table` of a task leads, with {bucket} and {path} for those of "
        "the table's URI; on Azure {bucket} is the container, {account} the storage account. Empty: the console of S3, "
        "Google Cloud Storage or, where the connection has the subscription and resource group, Azure.",
        "version_added": "0.1.0",
        "type": "string",
        "example": "https://minio.example/browser/{bucket}/{path}",
        "default": "",
    },
    "spark_log": {
        "description": "Whether the log of a task has Spark's own lines at INFO when the task does not say so itself.",
        "version_added": "0.1.0",
        "type": "boolean",
        "example": None,
        "default": "False",
    },
}

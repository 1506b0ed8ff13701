"""Links of a task in Airflow's UI: to the table in its storage's console, and to its application on the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from airflow.sdk import BaseOperatorLink, conf

from airflow_hudi.addresses import split_address

if TYPE_CHECKING:
    from airflow.sdk.types import TaskInstanceKey

_CONSOLES: Final = {
    "s3": "https://s3.console.aws.amazon.com/s3/buckets/{bucket}?prefix={path}/",
    **dict.fromkeys(("gs", "gcs"), "https://console.cloud.google.com/storage/browser/{bucket}/{path}"),
}


def console_link(uri: str, template: str = "", *, has_endpoint: bool = False) -> str:
    """The address that shows a table; "" where none is known. `template` has `{bucket}` and `{path}` in it; without one
    that of the storage's own console, where the storage has no endpoint of its own.
    """
    scheme, place, path = split_address(uri)
    template = template or ("" if has_endpoint else _CONSOLES.get(scheme, ""))
    return template.replace("{bucket}", quote(place)).replace("{path}", quote(path.strip("/")))


class HudiTableLink(BaseOperatorLink):
    """To the table, by `[hudi] table_link`, or in the console of S3 or Google Cloud Storage. A task of several tables
    has none.
    """

    name = "Hudi table"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:
        """The address, or "". Airflow asks in the worker, when the task has ended."""
        if len(operator.tables_of_work) != 1:
            return ""
        hook = operator.hook
        template = conf.get("hudi", "table_link", fallback="")
        return console_link(
            hook.table_uri(operator.tables_of_work[0]), template, has_endpoint="endpoint_url" in hook.storage_options
        )


class HudiSparkLink(BaseOperatorLink):
    """To the application, where the cluster manager shows it; a task that needed no cluster has none."""

    name = "Spark application"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:
        """The tracking URL that Spark printed, or ""."""
        return operator.tracking_url or ""

"""Links of a task in Airflow's UI: to the table in its storage's console, and to its application on the cluster."""

from __future__ import annotations

import re
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
_AZURE: Final = ("abfs", "abfss", "az", "wasb", "wasbs")
"""`abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH`; `az://CONTAINER/PATH` names no account."""


def console_link(uri: str, template: str = "", *, has_endpoint: bool = False) -> str:
    """The address that shows a table; "" where none is known. `template` has `{bucket}`, `{account}` and `{path}` in
    it; one with `{account}` is for URIs that name one. Without a template it is that of the storage's own console,
    where the storage has no endpoint of its own.

    On Azure the bucket is the container. Its portal names a subscription and a resource group, which no URI has: a
    template says them.
    """
    scheme, place, path = split_address(uri)
    account = ""
    if scheme in _AZURE:
        place, _, host = place.partition("@")
        account = host.partition(".")[0]
    if "{account}" in template and not account:
        template = ""
    template = template or ("" if has_endpoint else _CONSOLES.get(scheme, ""))
    parts = {"{bucket}": place, "{account}": account, "{path}": path.strip("/")}
    return re.sub(r"\{(bucket|account|path)\}", lambda name: quote(parts[name[0]]), template)


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

"""Links of a task in Airflow's UI: to the table in its storage's console, and to the task's Spark application."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from airflow.sdk import BaseOperatorLink, conf

from airflow_hudi.hooks import split_address

if TYPE_CHECKING:
    from airflow.sdk.types import TaskInstanceKey

_CONSOLES: Final = {
    "s3": "https://s3.console.aws.amazon.com/s3/buckets/{bucket}?prefix={path}/",
    **dict.fromkeys(("gs", "gcs"), "https://console.cloud.google.com/storage/browser/{bucket}/{path}"),
}
_PORTAL: Final = (
    "https://portal.azure.com/#view/Microsoft_Azure_Storage/ContainerMenuBlade/~/overview/storageAccountId/"
    "%2Fsubscriptions%2F{subscription}%2FresourceGroups%2F{group}%2Fproviders%2FMicrosoft.Storage%2FstorageAccounts%2F"
    "{account}/path/{bucket}"
)
_AZURE: Final = ("abfs", "abfss", "az", "wasb", "wasbs")
"""Schemes of Azure. `abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH` names the account, `az://` does not."""


def console_link(
    uri: str, template: str = "", *, has_endpoint: bool = False, azure: tuple[str, str] | None = None
) -> str:
    """Returns the web address that shows a table, or "" if none is known. `template` may contain `{bucket}`,
    `{account}` and `{path}`; a template with `{account}` applies to URIs that name an account. Without a template the
    address is in the console of the storage's provider, unless the storage has its own endpoint. On Azure the bucket is
    the container. `azure` is the subscription and the resource group, which no URI contains.
    """
    scheme, place, path = split_address(uri)
    account = ""
    if scheme in _AZURE:
        place, _, host = place.partition("@")
        account = host.partition(".")[0]
    if "{account}" in template and not account:
        template = ""
    parts = {"{bucket}": place, "{account}": account, "{path}": path.strip("/")}
    if not template and azure is not None and account:
        template, parts["{subscription}"], parts["{group}"] = _PORTAL, *azure
    template = template or ("" if has_endpoint else _CONSOLES.get(scheme, ""))
    return re.sub(r"\{[a-z]+\}", lambda name: quote(parts[name[0]]) if name[0] in parts else name[0], template)


class HudiTableLink(BaseOperatorLink):
    """Links to the table, by `[hudi] table_link` or in its storage's console. A task of several tables has no link."""

    name = "Hudi table"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:
        """Returns the address, or "". Airflow calls it in the worker, when the task has ended."""
        if len(operator.tables_of_work) != 1:
            return ""
        hook = operator.hook
        template = conf.get("hudi", "table_link", fallback="")
        uri, has_endpoint = hook.table_uri(operator.tables_of_work[0]), "endpoint_url" in hook.storage_options
        return console_link(uri, template, has_endpoint=has_endpoint, azure=hook.azure_place)


class HudiSparkLink(BaseOperatorLink):
    """Links to the Spark application in the cluster manager. A task that needed no cluster has no link."""

    name = "Spark application"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:
        return operator.tracking_url or ""

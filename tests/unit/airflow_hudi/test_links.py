"""The links of tasks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_hudi.links import HudiSparkLink, HudiTableLink, console_link
from airflow_hudi.operators.service import HudiCleanOperator
from airflow_hudi.operators.table_services import HudiTableServicesOperator

NO_KEY: Any = None
AZURE = (
    "https://portal.azure.com/#view/Microsoft_Azure_Storage/ContainerMenuBlade/~/overview/storageAccountId/"
    "%2Fsubscriptions%2F1-2%2FresourceGroups%2Fdata%2Fproviders%2FMicrosoft.Storage%2FstorageAccounts%2F{account}"
    "/path/{bucket}"
)
IN_AZURE = AZURE.replace("{account}", "acme").replace("{bucket}", "lake")


@pytest.mark.parametrize(
    ("uri", "template", "endpoint", "link"),
    [
        ("s3://lake/a b/t", "", False, "https://s3.console.aws.amazon.com/s3/buckets/lake?prefix=a%20b/t/"),
        ("s3a://lake/t", "", True, ""),
        ("gs://lake/x/t/", "", False, "https://console.cloud.google.com/storage/browser/lake/x/t"),
        ("/data/t", "", False, ""),
        ("S3n://lake/t#old?x", "", False, "https://s3.console.aws.amazon.com/s3/buckets/lake?prefix=t%23old%3Fx/"),
        ("s3://lake/{bucket}", "https://m/{bucket}/{path}", True, "https://m/lake/%7Bbucket%7D"),
        ("abfss://lake@acme.dfs.core.windows.net/x/t", "", False, ""),
        ("abfss://lake@acme.dfs.core.windows.net/x/t", AZURE, False, IN_AZURE),
        ("wasbs://lake@acme.blob.core.windows.net/x/t", AZURE, False, IN_AZURE),
        ("abfs://lake@acme.dfs.core.windows.net/x/t", "https://m/{bucket}/{path}", True, "https://m/lake/x/t"),
        ("az://lake/x/t", "https://m/{bucket}/{path}", False, "https://m/lake/x/t"),
        ("az://lake/x/t", AZURE, False, ""),
        ("s3://lake/t", AZURE, False, "https://s3.console.aws.amazon.com/s3/buckets/lake?prefix=t/"),
    ],
)
def test_a_table_in_the_console_of_its_storage(uri: str, template: str, endpoint: bool, link: str) -> None:
    assert console_link(uri, template, has_endpoint=endpoint) == link


def test_a_connection_that_says_where_the_account_is_leads_to_azures_portal(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"azure_subscription_id": "1-2", "azure_resource_group": "data"}
    links = []
    for extra in (fields, {**fields, "azure_resource_group": ""}):
        connection = {"conn_type": "hudi", "host": "abfss://lake@acme.dfs.core.windows.net/wh", "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(connection))
        clean = HudiCleanOperator(task_id="t", table="orders", hudi_conn_id="lake")
        links.append(HudiTableLink().get_link(clean, ti_key=NO_KEY))
    assert links == [IN_AZURE, ""]
    assert console_link("az://lake/x/t", azure=("1-2", "data")) == ""
    assert (
        console_link("abfss://lake@acme.dfs.x.net/t", "https://m/{bucket}/{x}", azure=("1", "d"))
        == "https://m/lake/{x}"
    )
    assert "%2FresourceGroups%2Fmy%20data%2F" in console_link("abfss://lake@a.b/t", azure=("1", "my data"))
    assert console_link("s3://lake/t", azure=("1-2", "data")).startswith("https://s3.console.aws.amazon.com/")


def test_the_link_of_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "hudi", "host": "s3://lake/wh", "extra": {"region": "eu"}})
    )
    link = HudiTableLink()
    clean = HudiCleanOperator(task_id="t", table="orders", hudi_conn_id="lake")
    assert link.get_link(clean, ti_key=NO_KEY).endswith("/lake?prefix=wh/orders/")
    assert HudiSparkLink().get_link(clean, ti_key=NO_KEY) == ""
    monkeypatch.setenv("AIRFLOW__HUDI__TABLE_LINK", "https://minio.example/{bucket}/{path}")
    assert link.get_link(clean, ti_key=NO_KEY) == "https://minio.example/lake/wh/orders"
    one, two = (
        HudiTableServicesOperator(task_id="t", tables=tables, hudi_conn_id="lake") for tables in ("orders", "a, b")
    )
    assert link.get_link(one, ti_key=NO_KEY) == "https://minio.example/lake/wh/orders"
    assert link.get_link(two, ti_key=NO_KEY) == ""
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "hudi", "host": "abfss://lake@acme.dfs.x.net/wh"}))
    monkeypatch.setenv("AIRFLOW__HUDI__TABLE_LINK", AZURE)
    azure = HudiCleanOperator(task_id="t", table="orders", hudi_conn_id="lake")
    assert link.get_link(azure, ti_key=NO_KEY) == IN_AZURE

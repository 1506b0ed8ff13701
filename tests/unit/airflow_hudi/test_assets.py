"""Assets of Hudi tables."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from airflow.sdk import Asset
from airflow.sdk.execution_time.context import OutletEventAccessors

from airflow_hudi.assets import (
    add_partitions,
    asset_uri,
    changed_partitions_asset,
    create_asset,
    hudi_asset,
    sanitize_uri,
    table_asset,
    watched_assets,
    watched_changes,
    written_partitions,
)
from hudi_core.errors import ConfigError


@pytest.mark.parametrize(
    ("table", "uri"),
    [
        ("s3://lake/sales/orders/", "hudi://lake/sales/orders"),
        ("gs://lake/t", "hudi://lake/t"),
        ("/data/t", "hudi://local/data/t"),
        ("file:///data/t", "hudi://local/data/t"),
        ("file:/data/a%20b", "hudi://local/data/a b"),
        ("s3a://lake/t#old", "hudi://lake/t%23old"),
        ("s3://lake/t?x=1", "hudi://lake/t%3Fx=1"),
        ("s3://lake/t%23old", "hudi://lake/t%2523old"),
        ("/data/t#old", "hudi://local/data/t%23old"),
        ("file:///data/t%23old", "hudi://local/data/t%23old"),
    ],
)
def test_addresses(table: str, uri: str) -> None:
    assert asset_uri(table) == uri
    assert sanitize_uri(urlsplit(uri)).geturl() == uri


def test_tables_of_similar_names_have_assets_of_their_own() -> None:
    """As Airflow keeps them: it cuts a URI at `#`."""
    tables = [f"s3://lake/t{end}" for end in ("", "#old", "?old", "%23old", "%3Fold")]
    assert len({table_asset(table).uri for table in tables}) == len(tables)
    assert hudi_asset("s3://lake/t#old").uri == "hudi://lake/t%23old/pending"
    assert changed_partitions_asset("s3://lake/t?x").uri == "hudi://lake/t%3Fx/changed-partitions"


@pytest.mark.parametrize(
    "uri", ["hudi://", "hudi://bucket", "hudi://bucket/", "hudi:///path", "hudi://b/t?x=1", "hudi://b/t#f"]
)
def test_no_addresses(uri: str) -> None:
    with pytest.raises(ValueError, match="an asset of Hudi"):
        sanitize_uri(urlsplit(uri))


def test_secrets_are_refused() -> None:
    with pytest.raises(ConfigError):
        asset_uri("s3://key:secret@lake/t")


def test_a_table_below_a_base_path_is_one_of_its_connection() -> None:
    assets = {conn: hudi_asset("sales/orders", hudi_conn_id=conn) for conn in ("eu", "us", "a/b#c")}
    assert [asset.uri for asset in assets.values()] == [
        "hudi://conn=eu/sales/orders/pending",
        "hudi://conn=us/sales/orders/pending",
        "hudi://conn=a%2Fb%23c/sales/orders/pending",
    ]
    # Of a bucket that is called as the connection is another one.
    assert hudi_asset("s3://eu/sales/orders", hudi_conn_id="eu").uri == "hudi://eu/sales/orders/pending"
    assert changed_partitions_asset("orders", hudi_conn_id="eu").uri == "hudi://conn=eu/orders/changed-partitions"


@pytest.mark.parametrize(
    "make", [table_asset, changed_partitions_asset, lambda table: hudi_asset(table, hudi_conn_id=None)]
)
def test_a_table_below_no_known_base_path_is_refused(make: Callable[[str], Asset]) -> None:
    """A task that has done something to it names its absolute address: the asset would have no event."""
    with pytest.raises(ConfigError, match="'sales/orders' is not absolute") as error:
        make("sales/orders")
    assert error.value.remedy == "give the table's URI or its absolute path"


def test_intervals_that_are_not_the_default_make_another_asset() -> None:
    """Airflow has one watcher of an asset's name and address: two files would take it from each other."""
    table = "s3://lake/orders"
    assets = [
        hudi_asset(table),
        hudi_asset(table, poll_interval=10),
        hudi_asset(table, poll_interval=2.5),
        hudi_asset(table, actions=["clean"], poll_interval=60, repeat_seconds=120.0),
    ]
    assert [asset.uri.removeprefix("hudi://lake/orders/") for asset in assets] == [
        "pending",
        "pending",
        "pending-every-2.5s",
        "pending-clean-every-60s-repeat-120s",
    ]
    assert [asset.name for asset in assets] == [asset.uri for asset in assets]


def test_the_ready_to_use_dags_watch_a_table_below_the_base_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_HUDI_TABLE", "other")
    monkeypatch.setenv("AIRFLOW_HUDI_CONN_ID", "eu")
    assert [asset.uri for asset in (*(watched_assets() or ()), watched_changes()) if asset] == [
        "hudi://conn=eu/other/changed-partitions"
    ]
    monkeypatch.setenv("AIRFLOW_HUDI_WATCHED_TABLE", "orders")
    assert [asset.uri for asset in (*(watched_assets() or ()), watched_changes()) if asset] == [
        "hudi://conn=eu/orders/pending",
        "hudi://conn=eu/orders/changed-partitions",
    ]


def test_an_asset_of_a_table_watches_it() -> None:
    asset = hudi_asset("s3://lake/orders", actions=["compaction"], hudi_conn_id="lake", poll_interval=2.0)
    uri = "hudi://lake/orders/pending-compaction-every-2s"
    assert (asset.name, asset.uri, asset.group) == (uri, uri, "hudi")
    (watcher,) = asset.watchers
    path, arguments = watcher.trigger.serialize()
    assert path == "airflow_hudi.triggers.timeline_events.HudiTimelineEventTrigger"
    assert arguments == {
        "table": "s3://lake/orders",
        "hudi_conn_id": "lake",
        "state": "pending",
        "actions": ["compaction"],
        "poll_interval": 2.0,
        "repeat_seconds": 900.0,
    }
    assert hudi_asset("s3://lake/orders", state="completed", name="orders").name == "orders"


def event(*instants: dict[str, object]) -> SimpleNamespace:
    return SimpleNamespace(extra={"from_trigger": True, "payload": {"instants": list(instants)}})


def test_partitions_that_writes_changed() -> None:
    events = {
        "written": [
            event({"operation": "UPSERT", "partitions": ["a", "b"]}, {"operation": "cluster", "partitions": ["c"]}),
            event({"operation": "INSERT_OVERWRITE", "partitions": ["b", "d"]}),
            event({"operation": "COMPACT", "partitions": ["e"]}, {"operation": "INSERT", "partitions": [""]}),
            event({"action": "commit"}),
            SimpleNamespace(extra={}),
        ],
        "other": [],
    }
    assert written_partitions(events) == {"a", "b", "d"}
    assert written_partitions({}) == set()
    asset = changed_partitions_asset("s3://lake/orders")
    assert (asset.uri, asset.watchers) == ("hudi://lake/orders/changed-partitions", [])


def test_airflow_makes_assets_of_the_scheme() -> None:
    """By the provider's description of itself."""
    assert Asset(name="t", uri="hudi://lake/orders/").uri == "hudi://lake/orders"
    with pytest.raises(ValueError, match="an asset of Hudi"):
        Asset(name="t", uri="hudi://lake")
    assert create_asset(uri="hudi://lake/t").name == "hudi://lake/t"


def test_a_name_that_is_no_key_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    events = OutletEventAccessors()
    asset = changed_partitions_asset("s3://lake/t")
    add_partitions(events[asset], {"day=1", "x" * 251})
    assert events[asset].partition_keys == {"day=1"}
    assert "1 partitions have longer names" in caplog.text
    add_partitions(events[asset], set())

"""Assets of Hudi tables."""

from __future__ import annotations

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
        ("sales/orders", "hudi://local/sales/orders"),
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


def test_an_asset_of_a_table_watches_it() -> None:
    asset = hudi_asset("s3://lake/orders", actions=["compaction"], hudi_conn_id="lake", poll_interval=2.0)
    assert (asset.name, asset.uri, asset.group) == ("hudi://lake/orders/pending-compaction",) * 2 + ("hudi",)
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

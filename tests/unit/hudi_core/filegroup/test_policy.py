from __future__ import annotations

import json

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.filegroup.policy import DEFAULT_PAYLOAD, OVERWRITE_WITH_LATEST, MergePolicy


def config(**more: str) -> TableConfig:
    """Properties of a merge-on-read table; keyword arguments are keys with dots as two underscores."""
    lines = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": "6",
        "hoodie.table.recordkey.fields": "id",
        "hoodie.table.precombine.field": "ts",
        "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    }
    lines |= {key.replace("__", "."): value for key, value in more.items()}
    return TableConfig.parse("\n".join(f"{key}={value}" for key, value in lines.items()).encode())


def test_supported_payloads_travel_as_json() -> None:
    for payload, compares in ((OVERWRITE_WITH_LATEST, False), (DEFAULT_PAYLOAD, True), ("", False)):
        policy = MergePolicy.for_table(config(hoodie__compaction__payload__class=payload))
        assert policy == MergePolicy("_hoodie_record_key", "ts", compares)
        assert MergePolicy.from_json(json.loads(json.dumps(policy.to_json()))) == policy
    with pytest.raises(ConfigError):
        MergePolicy.from_json({"other": 1})


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("hoodie__compaction__payload__class", "com.example.MyPayload", "com.example.MyPayload"),
        ("hoodie__compaction__payload__class", "org.apache.hudi.common.model.PartialUpdateAvroPayload", "PartialUpdateAvroPayload"),
        ("hoodie__compaction__record__merger__strategy", "00000000-0000-0000-0000-000000000000", "strategy"),
        ("hoodie__record__merge__strategy__id", "ce9acb64-bde0-424c-9b91-f6ebba25356d", "strategy"),
        ("hoodie__record__merge__mode", "CUSTOM", "CUSTOM"),
        ("hoodie__table__precombine__field", "meta.ts", "meta.ts"),
    ],
)
def test_other_merges_are_refused_by_name(key: str, value: str, named: str) -> None:
    with pytest.raises(UnsupportedError, match=named):
        MergePolicy.for_table(config(**{key: value}))


def test_delete_marker_needs_both_options_and_the_default_payload() -> None:
    default = config(hoodie__compaction__payload__class=DEFAULT_PAYLOAD)
    policy = MergePolicy.for_table(default, {"hoodie.payload.delete.field": "op", "hoodie.payload.delete.marker": "D"})
    assert (policy.delete_field, policy.delete_marker) == ("op", "D")
    with pytest.raises(ConfigError, match=r"hoodie\.payload\.delete\.marker"):
        MergePolicy.for_table(default, {"hoodie.payload.delete.field": "op"})
    assert MergePolicy.for_table(config(), {"hoodie.payload.delete.field": "op"}).delete_field is None


def test_key_without_meta_columns_is_the_one_key_field() -> None:
    assert MergePolicy.for_table(config(hoodie__populate__meta__fields="false")).key_field == "id"
    with pytest.raises(UnsupportedError, match="id, sub"):
        MergePolicy.for_table(config(hoodie__populate__meta__fields="false", hoodie__table__recordkey__fields="id,sub"))

"""Every timeline file that real Hudi 0.15 wrote parses, decodes, and comes back the same."""

from __future__ import annotations

import json

import pytest

from hudi_core.timeline import naming_v1
from hudi_core.timeline.commit_metadata import decode_commit, encode_commit
from hudi_core.timeline.containers import CONTAINER_MAGIC, decode_any, decode_datum
from hudi_core.timeline.instant import State
from hudi_core.timeline.plans import decode_compaction_plan, encode_compaction_plan
from hudi_core.timeline.table_schema import schema_of
from tests.unit.hudi_core.timeline.golden_tables import info_of, load_table, table_names, timelines_of

_NO_COMMITS = {"empty_table_no_commits"}


@pytest.mark.parametrize("name", table_names())
def test_files_parse_decode_and_round_trip(name: str) -> None:
    storage = load_table(name)
    for active in timelines_of(storage):
        for file_name in active.names():
            instant = naming_v1.parse(file_name)
            if instant is None:
                assert file_name.startswith("hoodie.properties")
                continue
            assert naming_v1.file_name(instant.requested_time, instant.action, instant.state) == file_name
            path = f"{active.folder}/{file_name}"
            data = storage.read(path)
            decoded = decode_any(data, path=path)
            assert bool(decoded) == bool(data)
            if data and not data.startswith(CONTAINER_MAGIC):
                assert encode_commit(decode_commit(data, path=path)) == data
                assert json.loads(data) == decoded
            if file_name.endswith("compaction.requested"):
                plan = decode_compaction_plan(data, path=path)
                again = encode_compaction_plan(plan)
                assert decode_datum(again, path=path) == decoded
                assert decode_compaction_plan(again, path=path) == plan


@pytest.mark.parametrize("name", table_names())
def test_states_are_those_that_real_hudi_reports(name: str) -> None:
    info = info_of(name)
    told = info["after"]["instants"] if name.endswith(".after") else info["instants"]
    expected = [(item["requested"], item["action"].split("(")[0], item["state"].lower(), item["file"]) for item in told]
    active = timelines_of(load_table(name))[0]
    shown = [(instant.requested_time, instant.action, instant.state.value, active.path_of(instant).split("/")[-1]) for instant in active.load()]
    assert shown == expected


@pytest.mark.parametrize("name", [name for name in table_names() if name.endswith(".after")])
def test_a_completed_compaction_is_one_instant_that_remembers_its_plan(name: str) -> None:
    timeline = timelines_of(load_table(name))[0].load()
    for told in info_of(name)["after"]["instants"]:
        if told["action"] == "commit(compaction)":
            instant = timeline.get(told["requested"], "compaction")
            assert (instant.action, instant.pending_action, instant.state) == ("commit", "compaction", State.COMPLETED)


@pytest.mark.parametrize("name", [name for name in table_names() if name not in _NO_COMMITS])
def test_every_table_has_a_schema(name: str) -> None:
    active = timelines_of(load_table(name))[0]
    schema = schema_of(active.load(), active.read_details)
    assert schema["type"] == "record"
    assert not any(field["name"].startswith("_hoodie_") and field["name"] != "_hoodie_is_deleted" for field in schema["fields"])

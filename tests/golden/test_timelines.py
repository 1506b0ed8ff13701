"""Every timeline file that real Hudi wrote parses, decodes, and comes back the same, in every table version."""

from __future__ import annotations

import json

import pytest

from hudi_core.codec.avro.container import is_container, read_container
from hudi_core.timeline.actions.commit import CommitMetadata, decode_commit, encode_commit, encode_commit_avro
from hudi_core.timeline.actions.compaction import decode_compaction_plan, encode_compaction_plan
from hudi_core.timeline.actions.content import decode_any, decode_datum, looks_cut_short
from hudi_core.timeline.instant import Instant, State
from hudi_core.timeline.naming import naming_for
from hudi_core.timeline.schemas import schema_of
from tests.support.avro_data import encode_datum
from tests.support.golden_timelines import every_table, info_of, load_timelines, timelines_of
from tests.support.tiers import tiered

_NO_COMMITS = {"empty_table_no_commits"}
_LAYOUT_1 = ("6", "6-by-1.2.0")
_LAYOUT_2 = ("8", "8-by-1.2.0", "9")
BUFFER_BYTES = 4608
"""What Hadoop's writer of local files hands on at once: where a file that is being written may end."""


def _name_of(instant: Instant, layout: str) -> str:
    naming = naming_for(int(layout))
    return naming.file_name(instant.requested_time, instant.action, instant.state, instant.completion_time)


@pytest.mark.parametrize(("version", "name"), tiered(every_table(), every_table("6", "9")))
def test_files_parse_decode_and_round_trip(version: str, name: str) -> None:
    storage = load_timelines(name, version)
    layout = "1" if version in _LAYOUT_1 else "2"
    for active in timelines_of(storage):
        for file_name in active.names():
            instants = naming_for(int(layout)).instants([file_name])
            if not instants:
                assert layout == "1"
                assert file_name.startswith("hoodie.properties")
                continue
            (instant,) = instants
            assert not instant.is_legacy
            assert _name_of(instant, layout) == file_name
            path = f"{active.folder}/{file_name}"
            data = storage.read(path)
            decoded = decode_any(data, path=path)
            assert bool(decoded) == bool(data)
            assert looks_cut_short(data) == (not data), path
            assert all(
                looks_cut_short(data[:size])
                for size in (1, 4, 20, *range(BUFFER_BYTES, len(data), BUFFER_BYTES), len(data) - 1)
                if size < len(data)
            ), path
            if data and not is_container(data):
                assert layout == "1"
                assert json.loads(data) == decoded
                again = encode_commit(decode_commit(data, path=path))
                # Hudi 1.2 has another order of members than 0.15, and ours is that of 0.15.
                assert again == data if version == "6" else json.loads(again) == decoded
            if file_name.endswith("compaction.requested") and layout == "1":
                plan = decode_compaction_plan(data, path=path)
                encoded = encode_compaction_plan(plan)
                # Plans of Hudi 1.2 have one more member, which says nothing (missingSchedulePartitions).
                assert decode_datum(encoded, path=path).items() <= decoded.items()
                assert decode_compaction_plan(encoded, path=path) == plan


@pytest.mark.parametrize(("version", "name"), tiered(every_table(*_LAYOUT_2), every_table("9")))
def test_commit_files_of_layout_2_come_back_byte_for_byte(version: str, name: str) -> None:
    storage = load_timelines(name, version)
    for active in timelines_of(storage):
        for instant in active.load().commits():
            path = active.path_of(instant)
            data = storage.read(path)
            metadata = decode_commit(data, path=path)
            again = encode_commit_avro(metadata)
            assert decode_commit(again, path=path) == metadata
            schema, records = read_container(data, path=path)
            our_schema, our_records = read_container(again, path=path)
            assert our_schema == schema
            # All but the sync marker, which is random in Java.
            assert encode_datum(schema, our_records[0]) == encode_datum(schema, records[0])
            assert len(again) == len(data)


@pytest.mark.parametrize(("version", "name"), every_table())
def test_states_are_those_that_real_hudi_reports(version: str, name: str) -> None:
    info = info_of(name, version)
    reported = info["after"]["instants"] if name.endswith(".after") else info["instants"]
    expected = [
        (item["requested"], item["action"].split("(")[0], item["state"].lower(), item["file"], item["completion"])
        for item in reported
    ]
    active = timelines_of(load_timelines(name, version))[0]
    shown = [
        (
            instant.requested_time,
            instant.action,
            instant.state.value,
            active.path_of(instant).split("/")[-1],
            instant.completion_time,
        )
        for instant in active.load()
    ]
    assert shown == expected


@pytest.mark.parametrize(("version", "name"), [item for item in every_table() if item[1].endswith(".after")])
def test_a_completed_plan_is_one_instant_that_remembers_its_plan(version: str, name: str) -> None:
    timeline = timelines_of(load_timelines(name, version))[0].load()
    for reported in info_of(name, version)["after"]["instants"]:
        action, _, planned = reported["action"].rstrip(")").partition("(")
        if planned:
            instant = timeline.get(reported["requested"], planned)
            assert (instant.action, instant.pending_action, instant.state) == (action, planned, State.COMPLETED)


@pytest.mark.parametrize(("version", "name"), [item for item in every_table() if item[1] not in _NO_COMMITS])
def test_every_table_has_a_schema(version: str, name: str) -> None:
    active = timelines_of(load_timelines(name, version))[0]
    schema = schema_of(active.load(), active.read_details)
    assert schema["type"] == "record"
    assert not any(
        field["name"].startswith("_hoodie_") and field["name"] != "_hoodie_is_deleted" for field in schema["fields"]
    )


def test_stats_and_replaced_ids_of_layout_2_are_read() -> None:
    active = timelines_of(load_timelines("insert_overwrite_table", "9"))[0]
    (replacing,) = active.load().of_actions("replacecommit")
    metadata = active.read_commit(replacing)
    assert metadata.operation_type == "INSERT_OVERWRITE_TABLE"
    assert metadata.replaced_file_ids
    assert all(ids for ids in metadata.replaced_file_ids.values())
    metadata.check_paths(source="x")
    stats = list(metadata.write_stats())
    assert sum(stat.num_writes for stat in stats) == 40
    assert all(
        stat.path.endswith(f"_{replacing.requested_time}.parquet") and stat.file_size_in_bytes > 0 for stat in stats
    )


def test_empty_commit_files_are_empty_metadata() -> None:
    assert decode_commit(b"", path="x") == CommitMetadata()

"""Requests as JSON: every class comes back, and what is not a request is refused."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.errors import ConfigError
from hudi_core.request.results import REQUEST_VERSION
from hudi_core.request.services import SERVICES
from hudi_core.verbs.create import CreateRequest
from hudi_core.verbs.instants import RollbackRequest
from hudi_core.verbs.metadata import MetadataDropRequest
from hudi_core.verbs.registry import VERBS
from hudi_core.verbs.request import Request, check_names, parse_request, verb_class
from hudi_core.verbs.run import RunRequest, ScheduleRequest
from hudi_core.verbs.write import OPERATIONS, DeletePartitionRequest, InsertOverwriteRequest
from hudi_health.verbs import MetadataValidateRequest

CLASSES = [verb_class(verb) for verb in VERBS]
TEXT = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
options = st.dictionaries(
    st.sampled_from(["hoodie.a", "hoodie.b", "airflow_hudi.c", "x"]), st.text(TEXT, max_size=10), max_size=3
)
instants = st.from_regex(r"[0-9]{17}", fullmatch=True)
names = st.lists(st.sampled_from(["column_stats", "files", "record_index"]), max_size=3).map(tuple)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "table": st.text(TEXT, min_size=1, max_size=10).filter(lambda text: bool(text.strip())),
    "owner": st.text(TEXT, max_size=5),
    "options": options,
    "storage_options": options,
    "storage_options_file": st.none() | st.just("/run/options.json"),
    "metadata": st.sampled_from(["auto", "on", "off"]),
    "allow_corrupt_log_blocks": st.booleans(),
    "run_id": st.text(TEXT, max_size=5),
    "result_name": st.from_regex(r"[0-9A-Za-z_-]{0,64}", fullmatch=True),
    "service": st.sampled_from(sorted(SERVICES)),
    "instant": instants,
    "all_pending": st.booleans(),
    "schedule": st.booleans(),
    "max_minutes": st.none() | st.integers(1, 999),
    "starts_until": st.none() | st.integers(0, 2**40),
    "max_bytes": st.none() | st.integers(1, 2**60),
    "began_ms": st.none() | st.integers(0, 2**50),
    "when": st.dictionaries(st.sampled_from(["commits", "age"]), st.just("5"), max_size=1),
    "dry_run": st.booleans(),
    "unless_completed": st.booleans(),
    "comment": st.text(TEXT, max_size=5),
    "timeline_only": st.booleans(),
    "partitions": names,
    "columns": st.lists(st.sampled_from(["name", "place.city"]), max_size=2).map(tuple),
    "writers": st.integers(2, 256),
    "rounds": st.integers(1, 10**5),
    "token": st.none() | st.from_regex(r"[ -~]{1,20}", fullmatch=True),
    "source": st.just("/rows.parquet"),
    "query": st.sampled_from(["", "SELECT 1"]),
    "dataframe": st.sampled_from(["", "jobs.orders:of_day"]),
    "dataframe_args": st.dictionaries(st.sampled_from(["day", "city"]), st.text(TEXT, max_size=10)),
    "whole_table": st.booleans(),
    "operation": st.sampled_from(OPERATIONS),
    "where": st.sampled_from(["", "a = 1"]),
    "schema": st.sampled_from(["", '{"type": "record"}', "trips.avsc"]),
    "like": st.just("/rows.parquet"),
    "table_name": st.sampled_from(["trips", "fares"]),
    "table_type": st.sampled_from(["", "cow", "MERGE_ON_READ"]),
    "table_version": st.sampled_from([6, 8, 9]),
    "record_key": st.sampled_from([("id",), ("id", "sub")]),
    "partition_by": st.sampled_from([(), ("day",), ("day:SIMPLE", "hour:TIMESTAMP")]),
    "ordering": st.just(("ts",)),
    "merge_mode": st.sampled_from(["", "COMMIT_TIME_ORDERING"]),
    "hive_style": st.booleans(),
    "key_generator": st.just(""),
}


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """A request of any verb, with any values that its fields may have."""
    cls = draw(st.sampled_from(CLASSES))
    found = {item.name: draw(VALUES[item.name]) for item in fields(cls)}
    if found.get("all_pending") or found.get("schedule"):
        found["instant"] = None
    if "when" in found:
        has_commits = "commits" in SERVICES[found["service"]].conditions
        found["when"] = {"commits": "5", "age": "1h"} if has_commits and found["when"] else {}
    if found.get("columns"):
        found["partitions"] = ("column_stats",)
    if issubclass(cls, InsertOverwriteRequest | DeletePartitionRequest):
        found["partitions"] = () if found.get("whole_table") else ("2024-01-01",)
    if found.get("where"):
        found |= {"operation": "delete", "source": "", "query": "", "dataframe": ""}
    if found.get("query") or found.get("dataframe"):
        found |= {"source": "", "dry_run": False}
    if found.get("query"):
        found["dataframe"] = ""
    if not found.get("dataframe"):
        found.pop("dataframe_args", None)
    if found.get("schema"):
        found["like"] = ""
    return cls(**found)


@given(requests())
def test_a_request_comes_back_from_json(request: Request) -> None:
    assert parse_request(request.to_json()) == request


CHANGED: dict[str, Any] = {
    "service": "clean",
    "instant": "20260102000000000",
    "all_pending": True,
    "schedule": True,
    "max_minutes": 5,
    "starts_until": 1795000000,
    "max_bytes": 7,
    "began_ms": 1795000000000,
    "when": {"commits": "5"},
    "dry_run": True,
    "unless_completed": True,
    "comment": "kept",
    "timeline_only": True,
    "partitions": ["files"],
    "columns": ["name"],
    "writers": 17,
    "rounds": 61,
    "token": "x",
    "source": "/rows",
    "query": "SELECT 1",
    "dataframe": "jobs:rows",
    "dataframe_args": {"day": "1"},
    "whole_table": True,
    "operation": "upsert",
    "where": "a = 1",
    "schema": "trips.avsc",
    "like": "/rows.parquet",
    "table_name": "trips",
    "table_type": "mor",
    "table_version": 9,
    "record_key": ["id"],
    "partition_by": ["day"],
    "ordering": ["ts"],
    "merge_mode": "COMMIT_TIME_ORDERING",
    "hive_style": True,
    "key_generator": "COMPLEX",
}
"""A value other than the default of each field that only some verbs have."""


@given(requests(), st.sampled_from(sorted(CHANGED)))
def test_a_field_of_another_verb_is_refused_by_name(request: Request, name: str) -> None:
    document = json.loads(request.to_json())
    if name in document:
        del document[name]
        cls = next(cls for cls in CLASSES if name not in {item.name for item in fields(cls)})
        needs: dict[type[Request], dict[str, Any]] = {
            RunRequest: {"service": "clean"},
            ScheduleRequest: {"service": "clean"},
            DeletePartitionRequest: {"partitions": ("p",)},
            CreateRequest: {"schema": "t.avsc", "table_name": "t", "table_version": 9, "record_key": ("id",)},
        }
        document = json.loads(cls("/t", **needs.get(cls, {})).to_json())
    document[name] = CHANGED[name]
    with pytest.raises(ConfigError, match=f"{document['verb']} takes no {name}"):
        parse_request(json.dumps(document))


def test_the_fields_of_other_verbs_are_known() -> None:
    common = {item.name for item in fields(Request)}
    assert {item.name for cls in CLASSES for item in fields(cls)} - common == CHANGED.keys()


def document(**changes: Any) -> str:
    service = {"service": "compaction"} if changes.get("verb") in (None, "run", "schedule") else {}
    return json.dumps({"version": REQUEST_VERSION, "table": "/t", **service, **changes})


def test_each_verb_is_its_class() -> None:
    assert [cls.verb for cls in CLASSES] == [*VERBS]


def test_a_short_request_has_defaults() -> None:
    assert parse_request(document()) == RunRequest("/t", "compaction")
    assert parse_request(document(verb=None, owner=None, instant=None)) == RunRequest("/t", "compaction")
    assert parse_request('{"version": 1, "verb": "rollback", "table": "/t"}') == RollbackRequest("/t")


def test_columns_come_back_from_json() -> None:
    request = MetadataDropRequest("/t", partitions=("column_stats",), columns=("name", "place.city"))
    assert parse_request(request.to_json()) == request


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "has version 2, this release reads 1"),
        ({"version": "1"}, "version must be a whole number"),
        ({"version": True}, "version must be a whole number"),
        ({"surprise": 1}, "has unknown fields: surprise"),
        ({"table": None}, "table must be text"),
        ({"table": " "}, "table is empty"),
        ({"service": None}, "service must be text"),
        ({"service": "vacuum"}, "unknown service 'vacuum'"),
        ({"metadata": "maybe"}, "metadata is 'maybe', not auto, on or off"),
        ({"instant": "2026-11-20"}, "is not an instant time"),
        ({"instant": "../1"}, "is not an instant time"),
        ({"instant": "1", "all_pending": True}, "instant and all_pending exclude each other"),
        ({"instant": "1", "schedule": True}, "instant and schedule exclude each other"),
        ({"all_pending": "yes"}, "all_pending must be true or false"),
        ({"all_pending": None}, "all_pending must be true or false"),
        ({"options": {"a": 1}}, "options must be an object of texts"),
        ({"options": ["a"]}, "options must be an object of texts"),
        ({"options": {"hoodie.aws.secret.key": "x"}}, "must not hold secrets"),
        ({"storage_options": {"secret": "x"}}, "must not hold secrets"),
        ({"max_minutes": 0}, "max_minutes must be between 1 and"),
        ({"max_minutes": True}, "max_minutes must be a whole number"),
        ({"starts_until": 1.5}, "starts_until must be a whole number"),
        ({"verb": "vacuum"}, "unknown verb 'vacuum'"),
        ({"verb": 1}, "verb must be text"),
        ({"verb": "restore"}, "restore needs an instant"),
        ({"verb": "takeover"}, "takeover needs an instant"),
        ({"verb": "unschedule"}, "unschedule needs an instant"),
        ({"verb": "savepoint_delete"}, "savepoint_delete needs an instant"),
        ({"dry_run": True}, "run takes no dry_run"),
        ({"dry_run": True, "verb": "probe_store"}, "probe_store takes no dry_run"),
        ({"verb": "doctor", "timeline_only": "yes"}, "timeline_only must be true or false"),
        ({"verb": "probe_store", "writers": "16"}, "writers must be a whole number"),
        ({"verb": "probe_store", "rounds": None}, "rounds must be a whole number"),
        ({"verb": "metadata_create", "columns": "name"}, "columns must be a list of texts"),
        ({"verb": "metadata_create", "columns": [" "]}, "a column has no name"),
        ({"verb": "metadata_update", "columns": ["name"]}, "metadata_update takes no columns"),
        (
            {"verb": "metadata_drop", "columns": ["name"], "partitions": ["column_stats", "files"]},
            "columns are dropped",
        ),
        ({"columns": ["name"]}, "run takes no columns"),
        ({"result_name": "../x"}, "is no name of a result"),
        ({"result_name": "x" * 65}, "is no name of a result"),
    ],
)
def test_what_is_not_a_request_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_request(document(**changes))


@pytest.mark.parametrize("verb", ["run", "schedule"])
def test_a_service_has_to_be_named(verb: str) -> None:
    with pytest.raises(ConfigError, match="service must be text"):
        parse_request(json.dumps({"version": 1, "verb": verb, "table": "/t"}))


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "{}"])
def test_what_is_not_an_object_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_request(text)


def test_the_refusal_names_the_verbs_that_take_the_field() -> None:
    with pytest.raises(ConfigError, match="metadata_validate takes no partitions") as caught:
        check_names(MetadataValidateRequest, {"partitions"})
    verbs = "delete_partition, insert_overwrite, metadata_create, metadata_drop, metadata_update"
    assert caught.value.remedy == f"it is for {verbs}"

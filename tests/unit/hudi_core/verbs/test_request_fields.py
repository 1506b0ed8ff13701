from __future__ import annotations

import subprocess
import sys
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from hudi_core.errors import ConfigError
from hudi_core.verbs.instants import RestoreRequest, RollbackRequest, TakeoverRequest, UnscheduleRequest
from hudi_core.verbs.metadata import MetadataCreateRequest, MetadataDropRequest, MetadataUpdateRequest
from hudi_core.verbs.registry import VERBS
from hudi_core.verbs.request import RESULTS, InstantRequest, Request, verb_class
from hudi_core.verbs.run import RunRequest, ScheduleRequest
from hudi_health.probe import FOLDER
from hudi_health.verbs import DoctorRequest, ProbeStoreRequest

CLASSES = {verb: verb_class(verb) for verb in VERBS}
OWN_FIELDS = {
    "run": {
        "service",
        "instant",
        "all_pending",
        "schedule",
        "max_minutes",
        "starts_until",
        "max_bytes",
        "began_ms",
        "when",
    },
    "schedule": {"service", "dry_run"},
    "rollback": {"instant", "dry_run", "unless_completed"},
    "restore": {"instant", "dry_run"},
    "savepoint_create": {"instant", "comment"},
    "savepoint_delete": {"instant"},
    "takeover": {"instant"},
    "unschedule": {"instant", "dry_run"},
    "doctor": {"timeline_only"},
    "metadata_create": {"partitions", "columns"},
    "metadata_drop": {"partitions", "columns"},
    "metadata_update": {"partitions"},
    "metadata_validate": set(),
    "probe_store": {"writers", "rounds"},
    "create": {
        *("schema", "like", "table_name", "table_type", "table_version", "record_key", "partition_by", "ordering"),
        *("merge_mode", "hive_style", "key_generator", "dry_run"),
    },
    "insert_overwrite": {
        *("source", "query", "dataframe", "dataframe_args"),
        *("whole_table", "partitions", "token", "dry_run"),
    },
    "delete_partition": {"partitions", "token", "dry_run"},
    "write": {
        *("source", "query", "dataframe", "dataframe_args", "where"),
        *("operation", "token", "dry_run"),
    },
}


def test_a_verb_has_the_fields_that_it_uses() -> None:
    common = {item.name for item in fields(Request)}
    found = {verb: {item.name for item in fields(cls)} - common for verb, cls in CLASSES.items()}
    assert found == OWN_FIELDS


@pytest.mark.parametrize("cls", CLASSES.values())
def test_requests_are_frozen_and_have_slots(cls: type[Request]) -> None:
    required: dict[str, Any] = {"service": "clean", "instant": "1", "source": "/rows", "operation": "upsert"}
    if cls.verb == "delete_partition":
        required = {"partitions": ("p",)}
    if cls.verb == "create":
        required = {"schema": "trips.avsc", "table_name": "trips", "table_version": 9, "record_key": ("id",)}
    request: Any = cls("/t", **{name: required[name] for name in OWN_FIELDS[cls.verb] & required.keys()})
    assert not hasattr(request, "__dict__")
    with pytest.raises(FrozenInstanceError):
        request.table = "/other"


@pytest.mark.parametrize(
    ("cls", "arguments", "message"),
    [
        (RunRequest, {"service": "vacuum"}, "unknown service 'vacuum'"),
        (ScheduleRequest, {"service": "vacuum"}, "unknown service 'vacuum'"),
        (RunRequest, {"service": "clean", "instant": "2026-11-20"}, "'2026-11-20' is not an instant time"),
        (RunRequest, {"service": "clean", "instant": "1", "all_pending": True}, "instant and all_pending exclude"),
        (RunRequest, {"service": "clean", "instant": "1", "schedule": True}, "instant and schedule exclude"),
        (RunRequest, {"service": "clean", "max_minutes": 0}, "max_minutes must be between 1 and"),
        (RunRequest, {"service": "clean", "max_bytes": 0}, "max_bytes must be at least 1"),
        (RollbackRequest, {"instant": "../1"}, "not an instant time"),
        (RestoreRequest, {"instant": "x"}, "not an instant time"),
        (RestoreRequest, {}, "restore needs an instant"),
        (TakeoverRequest, {"instant": "9" * 33}, "not an instant time"),
        (UnscheduleRequest, {"instant": "\u0661"}, "not an instant time"),
        (MetadataCreateRequest, {"partitions": ("../files",)}, "no partition of a metadata table"),
        (MetadataUpdateRequest, {"partitions": ("",)}, "no partition of a metadata table"),
        (MetadataDropRequest, {"partitions": ("a/b",)}, "no partition of a metadata table"),
        (MetadataCreateRequest, {"columns": (" ",)}, "a column has no name"),
        (MetadataDropRequest, {"columns": ("a", "")}, "a column has no name"),
        (MetadataDropRequest, {"columns": ("a",), "partitions": ("column_stats", "files")}, "columns are dropped from"),
        (DoctorRequest, {"table": " "}, "table is empty"),
        (DoctorRequest, {"metadata": "maybe"}, "metadata is 'maybe'"),
        (DoctorRequest, {"result_name": "../x"}, "is no name of a result"),
        (DoctorRequest, {"result_name": "x" * 65}, "is no name of a result"),
        (DoctorRequest, {"options": {"hoodie.aws.secret.key": "x"}}, "options must not hold secrets"),
        (ProbeStoreRequest, {"storage_options": {"secret": "x"}}, "storage options of a run request must not hold"),
    ],
)
def test_what_means_nothing_is_refused(cls: type[Request], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        cls(**{"table": "/t", **arguments})


def test_a_restore_that_lists_needs_no_instant() -> None:
    assert RestoreRequest("/t", dry_run=True).instant is None


@pytest.mark.parametrize(
    ("request_", "needs"),
    [
        (RunRequest("/t", "clean"), True),
        (RunRequest("/t", "rollback"), False),
        (ScheduleRequest("/t", "clean"), False),
        (DoctorRequest("/t"), False),
        (ProbeStoreRequest("/t"), False),
        (MetadataCreateRequest("/t"), True),
        (MetadataUpdateRequest("/t"), True),
        (MetadataDropRequest("/t"), False),
    ],
)
def test_only_some_requests_need_executors(request_: Request, needs: bool) -> None:
    assert request_.needs_executors is needs


def test_only_a_probe_and_a_create_need_no_table_and_a_probe_leaves_its_result_beside_its_races() -> None:
    assert {verb for verb, cls in CLASSES.items() if not cls.needs_table} == {"create", "probe_store"}
    assert [verb for verb, cls in CLASSES.items() if cls.only_in_jobs] == ["probe_store"]
    assert ProbeStoreRequest("/t").results_folder.startswith(f"{FOLDER}/")
    assert DoctorRequest("/t").results_folder == RESULTS


def test_the_verbs_that_need_an_instant() -> None:
    required = {verb for verb, cls in CLASSES.items() if issubclass(cls, InstantRequest)}
    assert required == {"savepoint_delete", "takeover", "unschedule"}


def test_the_request_and_the_configuration_need_no_arrow() -> None:
    code = (
        "import sys, hudi_core.verbs.batch, hudi_core.verbs.request as registry, hudi_core.request.results, "
        "hudi_core.config.table_config, "
        "hudi_core.config.rows_config, hudi_core.storage.registry\n"
        "[registry.verb_class(verb) for verb in registry.VERBS]\n"
        "assert not {'pyarrow', 'numpy', 'pyspark', 'airflow'} & set(sys.modules), 'heavy imports'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

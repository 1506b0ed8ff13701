from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.errors import ConfigError
from hudi_core.request.model import REQUEST_VERSION, RESULTS, VERBS, InstantResult, RunRequest, RunResult
from hudi_core.storage.probe import FOLDER

options = st.dictionaries(
    st.sampled_from(["hoodie.a", "hoodie.b", "airflow_hudi.c", "x"]), st.text(max_size=10), max_size=3
)
requests = st.builds(
    RunRequest,
    table=st.text(min_size=1, max_size=10).filter(lambda text: bool(text.strip())),
    instant=st.none() | st.from_regex(r"[0-9]{17}", fullmatch=True),
    owner=st.text(max_size=5),
    options=options,
    storage_options=options,
    storage_options_file=st.none() | st.just("/run/options.json"),
    metadata=st.sampled_from(["auto", "on", "off"]),
    allow_corrupt_log_blocks=st.booleans(),
    max_minutes=st.none() | st.integers(1, 999),
    run_id=st.text(max_size=5),
    result_name=st.from_regex(r"[0-9A-Za-z_-]{0,64}", fullmatch=True),
    verb=st.sampled_from(["run", "doctor", "probe_store"]),
    timeline_only=st.booleans(),
    writers=st.integers(2, 256),
    rounds=st.integers(1, 10**5),
)
results = st.builds(
    InstantResult,
    instant=st.from_regex(r"[0-9]{17}", fullmatch=True),
    action=st.just("compaction"),
    state=st.sampled_from(["requested", "inflight", "completed"]),
    files_written=st.integers(0, 10**9),
    bytes_written=st.integers(0, 2**60),
    records=st.integers(0, 2**60),
    seconds=st.floats(0, 1e6),
    files_deleted=st.integers(0, 10**9),
)


@given(requests)
def test_a_request_comes_back_from_json(request: RunRequest) -> None:
    assert RunRequest.from_json(request.to_json()) == request


@given(st.lists(results, max_size=4))
def test_a_result_comes_back_from_json(found: list[InstantResult]) -> None:
    result = RunResult(tuple(found))
    assert RunResult.from_json(result.to_json()) == result


def test_columns_come_back_from_json() -> None:
    request = RunRequest("/t", verb="metadata_drop", partitions=("column_stats",), columns=("name", "place.city"))
    assert RunRequest.from_json(request.to_json()) == request


def document(**changes: Any) -> str:
    return json.dumps({"version": REQUEST_VERSION, "table": "/t", "service": "compaction", **changes})


def test_a_short_request_has_defaults() -> None:
    assert RunRequest.from_json(document()) == RunRequest("/t")


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2},
        {"version": "1"},
        {"surprise": 1},
        {"table": None},
        {"table": " "},
        {"service": "vacuum"},
        {"metadata": "maybe"},
        {"instant": "2026-11-20"},
        {"instant": "../1"},
        {"instant": "1", "all_pending": True},
        {"all_pending": "yes"},
        {"options": {"a": 1}},
        {"options": ["a"]},
        {"options": {"hoodie.aws.secret.key": "x"}},
        {"storage_options": {"secret": "x"}},
        {"max_minutes": 0},
        {"max_minutes": True},
        {"verb": "vacuum"},
        {"verb": "restore"},
        {"verb": "takeover"},
        {"verb": "unschedule"},
        {"verb": "savepoint_delete"},
        {"dry_run": True},
        {"dry_run": True, "verb": "probe_store"},
        {"verb": "doctor", "timeline_only": "yes"},
        {"verb": "probe_store", "writers": "16"},
        {"verb": "probe_store", "rounds": None},
        {"verb": "metadata_create", "columns": "name"},
        {"verb": "metadata_create", "columns": [" "]},
        {"verb": "metadata_update", "columns": ["name"]},
        {"verb": "metadata_drop", "columns": ["name"], "partitions": ["column_stats", "files"]},
        {"columns": ["name"]},
        {"instant": "1", "schedule": True},
        {"result_name": "../x"},
        {"result_name": "x" * 65},
    ],
)
def test_what_is_not_a_request_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        RunRequest.from_json(document(**changes))


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "{}"])
def test_what_is_not_an_object_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        RunRequest.from_json(text)
    with pytest.raises(ConfigError):
        RunResult.from_json(text)


def test_a_result_prints_what_hudictl_promises() -> None:
    done = InstantResult("1", "commit", "completed", 2, 100, 50, 1.5)
    assert done.to_dict() == {
        "instant": "1",
        "action": "commit",
        "state": "completed",
        "files_written": 2,
        "bytes_written": 100,
        "records": 50,
        "seconds": 1.5,
        "files_deleted": 0,
    }
    lost = InstantResult("2", "compaction", "inflight", error="corrupt", exit_code=2)
    assert lost.to_dict()["error"] == "corrupt"
    assert RunResult.from_json(RunResult((done, lost)).to_json()) == RunResult((done, lost))


def test_the_result_of_a_verb_is_its_document() -> None:
    result = RunResult(document={"instant": None, "plan": None, "reason": "no commits"})
    assert RunResult.from_json(result.to_json()) == result
    assert result.to_dict() == {"instant": None, "plan": None, "reason": "no commits"}
    assert RunResult((), "no commits").to_dict() == {"instants": [], "reason": "no commits"}
    assert RunResult.from_json(RunResult((), "no commits").to_json()) == RunResult((), "no commits")


@pytest.mark.parametrize(
    ("verb", "service", "needs"),
    [
        ("run", "clean", True),
        ("run", "rollback", False),
        ("schedule", "clean", False),
        ("doctor", "clean", False),
        ("probe_store", "clean", False),
    ],
)
def test_only_runs_of_some_services_need_executors(verb: str, service: str, needs: bool) -> None:
    assert RunRequest("/t", service, verb=verb).needs_executors is needs


def test_only_a_probe_needs_no_table_and_leaves_its_result_beside_its_races() -> None:
    assert [verb for verb in sorted(VERBS) if not RunRequest("/t", verb=verb, instant="1").needs_table] == [
        "probe_store"
    ]
    assert RunRequest("/t", verb="probe_store").results_folder.startswith(f"{FOLDER}/")
    assert RunRequest("/t", verb="doctor").results_folder == RESULTS


def test_exit_codes() -> None:
    done = InstantResult("1", "commit", "completed")
    bad = InstantResult("2", "compaction", "requested", error="e", exit_code=2)
    busy = InstantResult("3", "compaction", "requested", error="e", exit_code=3)
    unknown = InstantResult("4", "compaction", "requested", error="e")
    assert RunResult().exit_code == 0
    assert RunResult((done,)).exit_code == 0
    assert RunResult((bad,)).exit_code == 2
    assert RunResult((busy, busy)).exit_code == 3
    assert RunResult((unknown,)).exit_code == 1
    assert RunResult((done, bad)).exit_code == 1
    assert RunResult((bad, busy)).exit_code == 1


def test_the_request_and_the_configuration_need_no_arrow() -> None:
    code = (
        "import sys, hudi_core.request.model, hudi_core.config.table_config, hudi_core.config.write_config, "
        "hudi_core.storage.registry\n"
        "assert not {'pyarrow', 'numpy', 'pyspark', 'airflow'} & set(sys.modules), 'heavy imports'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

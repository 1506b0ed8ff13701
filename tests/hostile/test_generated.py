"""Hostile tables made at random, the same ones each time: no crash, no hang, bounded memory, typed errors, nothing
written at exit 2, no row lost or doubled silently.

`make test` runs 500, `python -m benchmarks.hostile` 50,000. A failure says how to run it again.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.hostile.change import Nature
from tests.hostile.file_kinds import kept_of, kind_of
from tests.hostile.forked import Ended
from tests.hostile.judge import answer_faults, faults_of
from tests.hostile.run import run_apart
from tests.hostile.table_copies import files_by_kind
from tests.support.tiers import tiered


@pytest.mark.slow
@pytest.mark.parametrize(("first", "count"), tiered([(0, 50), (50, 450)], [(0, 50)]))
def test_five_hundred_hostile_tables(first: int, count: int) -> None:
    found = run_apart(first, count)
    assert found["runs"] == count
    assert found["failures"] == [], json.dumps(found["failures"], indent=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed",
    tiered(
        [
            29357,  # a row group with more columns than its schema: Arrow read past its memory
            35776,  # a commit that fits no schema of the archive: no file was named
            36553,  # a torn block that a rollback removes was not reported
            43171,  # a folder in the place of a file of the timeline: no remedy
            43935,  # an empty completed commit in the range of a change-data query
        ],
        [29357, 36553],
    ),
)
def test_what_the_fifty_thousand_found(seed: int) -> None:
    found = run_apart(seed, 1)
    assert found["failures"] == [], json.dumps(found["failures"], indent=2)


def test_the_kinds_that_hold_rows_or_name_files_are_known() -> None:
    kinds = files_by_kind()
    assert {"base file", "log file", "metadata log file", "metadata base file", "compaction plan"} <= kinds.keys()
    assert {"clean plan", "rollback plan", "clustering plan", "indexing plan", "restore plan"} <= kinds.keys()
    assert {"archive log", "history file", "history manifest", "index definitions", "marker"} <= kinds.keys()
    assert "other file" not in kinds
    assert "other control file" not in kinds


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (".hoodie/20261120215612415.deltacommit", "completed deltacommit"),
        (".hoodie/timeline/20261120215612415_20261120215612999.commit", "completed commit"),
        (".hoodie/20261120215612415.inflight", "commit inflight"),
        (".hoodie/timeline/20261120215612415.clean.requested", "clean plan"),
        (".hoodie/metadata/.hoodie/20261120215612415.deltacommit", "metadata timeline"),
        (".hoodie/metadata/files/.files-0000-0_00000000000000010.log.1_0-0-0", "metadata log file"),
        ("2024-01-01/.hoodie_partition_metadata", "partition metadata"),
        ("x/.a-0_1.log.1_0-0-0.cdc", "cdc log"),
    ],
)
def test_the_kind_of_a_file(path: str, kind: str) -> None:
    assert kind_of(path) == kind


def test_damage_never_changes_rows_but_for_properties() -> None:
    for kind in files_by_kind():
        assert ("off" in kept_of(kind).modes(Nature.DAMAGE)) == (kind != "properties")


def ended(code: int | None, out: object = "", err: str = "", **given: object) -> Ended:
    text = out if isinstance(out, str) else json.dumps(out)
    values = {"signal": None, "late": False, "cpu_seconds": 0.1, "peak_mib": 100, **given}
    return Ended([], code, out=text, err=err, **values)  # type: ignore[arg-type]


def test_the_harness_sees_what_it_looks_for(tmp_path: Path) -> None:
    error = {"type": "E", "message": "m", "path": "p", "remedy": "r"}
    assert list(faults_of(ended(2, {"error": error}))) == []
    assert list(faults_of(ended(0, {"rows": 1}))) == []
    assert [fault.fault for fault in faults_of(ended(None, signal=11))] == ["crash"]
    assert [fault.fault for fault in faults_of(ended(None, signal=24, late=True))] == ["hang"]
    assert [fault.fault for fault in faults_of(ended(0, {}, peak_mib=2000))] == ["over memory"]
    assert [fault.fault for fault in faults_of(ended(None, signal=6, err="memory allocation of 9 bytes failed"))] == [
        "over memory"
    ]
    assert list(answer_faults(ended(2, {"error": {**error, "path": None}})))
    assert list(answer_faults(ended(1, {"error": {**error, "remedy": None}})))
    assert list(answer_faults(ended(1, {"error": error}, err="fix: this is a defect of hudictl")))
    assert list(answer_faults(ended(7, {"error": error})))
    assert list(answer_faults(ended(0, "no JSON")))

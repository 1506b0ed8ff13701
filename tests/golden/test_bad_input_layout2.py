"""Damaged and foreign input to versions 8 and 9, by the command that a user types; as test_bad_input, with what
timeline layout 2 adds.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.golden.damages import (
    ARCHIVE,
    BASE_FILE,
    HISTORY,
    LAST_COMMIT,
    LOG_FILE,
    MANIFEST,
    METADATA,
    METADATA_BASE,
    METADATA_LOG,
    PLAN,
    PROPERTIES,
    VERSION,
    Damage,
    content_of,
    cut,
    filled,
    gone,
    partition_set,
    property_set,
    renamed,
    replace_content,
    stat_set,
    the,
)
from tests.golden.damages import (
    TIMELINE as TIMELINE_FOLDER,
)
from tests.golden.test_bad_input import refused
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import Done, hudictl
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
CASE = "mor_compaction_requested"
ARCHIVED_CASE = "archived_timeline_mor"
ROWS = 99
ROWS_BEFORE_THE_LAST_COMMIT = 108
VERSIONS = ["8", "9"]
versions = pytest.mark.parametrize("version", VERSIONS)

READ = ("read", "--metadata", "auto")
READ_ON = ("read", "--metadata", "on")
READ_OFF = ("read", "--metadata", "off")
INCREMENTAL = ("read", "--query", "incremental", "--begin", "000")
CHANGES = ("read", "--query", "cdc", "--begin", "000")
FILES = ("files",)
FILES_ON = ("files", "--metadata", "on")
TIMELINE = ("timeline",)
ARCHIVED = ("timeline", "--archived")
RUN = ("run", "--engine", "local")
Command = tuple[str, ...]


def call(command: Command, table: Path) -> Done:
    """The command on the table, with a result file beside it where there is one."""
    name, *options = command
    if name == "read":
        options += ["--output", str(table.parent / "rows.parquet")]
    return hudictl(name, *(["compaction"] if name == "run" else []), table, *options, "--json")


def show(table: Path) -> Done:
    """The last commit, shown."""
    return hudictl("show", table, LAST_COMMIT(table).name.split("_")[0], "--json")


PROPERTY_DAMAGES: dict[str, Damage] = {
    "not a table": gone(the(PROPERTIES)),
    "version 5": property_set("hoodie.table.version", "5"),
    "version 6 with layout 2": property_set("hoodie.table.version", "6"),
    "version 7": property_set("hoodie.table.version", "7"),
    "version 10": property_set("hoodie.table.version", "10"),
    "layout 1": property_set("hoodie.timeline.layout.version", "1"),
    "layout 3": property_set("hoodie.timeline.layout.version", "3"),
    "layout x": property_set("hoodie.timeline.layout.version", "x"),
    "wrong checksum": property_set("hoodie.table.checksum", "3017370518"),
    "timeline outside": property_set("hoodie.timeline.path", "../../x"),
    "history outside": property_set("hoodie.timeline.history.path", "../../x"),
}

COMMIT_DAMAGES: dict[str, Damage] = {
    "cut in the record": cut(LAST_COMMIT),
    "cut in the schema": cut(LAST_COMMIT, 200),
    "garbage": filled(LAST_COMMIT, b"\x00garbage"),
    "zeros": filled(LAST_COMMIT, bytes(900)),
    "cut JSON": filled(LAST_COMMIT, b'{"a":'),
    "an Avro header alone": filled(LAST_COMMIT, b"Obj\x01"),
}

HOSTILE_COMMITS: dict[str, Damage] = {
    "a path with ..": stat_set("path", "../../etc/x"),
    "an absolute path": stat_set("path", "/etc/passwd"),
    "a stat's partition with ..": stat_set("partitionPath", "../../etc"),
    "a stat's partition below .hoodie": stat_set("partitionPath", ".hoodie/metadata"),
    "a partition with ..": partition_set("../../etc"),
}

METADATA_DAMAGES: dict[str, Damage] = {
    "base file cut": cut(METADATA_BASE),
    "base file garbage": filled(METADATA_BASE, bytes(5000)),
    "base file gone": gone(METADATA_BASE),
    "log file cut": cut(METADATA_LOG),
    "log file garbage": filled(METADATA_LOG, b"PK\x03\x04" * 500),
    "newest log file gone": gone(METADATA_LOG),
    "older log file gone": gone(the(f"{METADATA}/files/.files-*.log.1_*", 2)),
}

UNAVAILABLE: dict[str, Damage] = {
    "none in the properties": property_set("hoodie.table.metadata.partitions", None),
    "its folder gone": gone(the(METADATA)),
    "its properties gone": gone(the(f"{METADATA}/{PROPERTIES}")),
}

FILE_DAMAGES: dict[str, Damage] = {
    "base file gone": gone(BASE_FILE),
    "base file cut": cut(BASE_FILE),
    "base file empty": filled(BASE_FILE, b""),
    "base file garbage": filled(BASE_FILE, b"PAR1garbagePAR1"),
    "log file gone": gone(LOG_FILE),
    "log file without magic": filled(LOG_FILE, b"PK\x03\x04" * 500),
}

CHANGE_LOG = the("2024-01-0*/.*.cdc")
CHANGE_DAMAGES: dict[str, Damage] = {
    "log gone": gone(CHANGE_LOG),
    "log cut": cut(CHANGE_LOG),
    "log garbage": filled(CHANGE_LOG, b"PK\x03\x04" * 99),
    "a path with ..": stat_set(
        "cdcStats", {"../../etc/.f-0_1.log.1_0-0-0.cdc": 1}, the(f"{TIMELINE_FOLDER}/*_*.commit")
    ),
}

HISTORY_DAMAGES: dict[str, Damage] = {
    "version names no manifest": lambda table: filled(VERSION, b"99")(table).replace("_version_", "manifest_99"),
    "manifest gone": gone(MANIFEST),
    "manifest cut": cut(MANIFEST, -20),
    "manifest empty": filled(MANIFEST, b""),
    "manifest without files": filled(MANIFEST, b"{}"),
    "manifest names ../../x": filled(MANIFEST, b'{"files":[{"fileName":"../../x/1_2_0.parquet","fileLen":1}]}'),
    "archive gone": gone(ARCHIVE),
    "archive cut": cut(ARCHIVE),
    "archive empty": filled(ARCHIVE, b""),
    "archive garbage": filled(ARCHIVE, b"PAR1garbagePAR1"),
}


def check(table: Path, damage: Damage, *commands: Command) -> str:
    """Damages the table and expects each of the commands to refuse it; returns what the errors must name."""
    named = damage(table)
    before = content_of(table.parent)
    for command in commands:
        refused(call(command, table), named)
    assert content_of(table.parent) == before
    return named


@versions
@pytest.mark.parametrize("what", PROPERTY_DAMAGES)
def test_properties_that_no_command_goes_on_with(golden: Golden, version: str, what: str) -> None:
    table = golden(version, CASE).table
    named = check(table, PROPERTY_DAMAGES[what], READ, INCREMENTAL, FILES, TIMELINE, RUN)
    refused(show(table), named)


@versions
@pytest.mark.parametrize("what", COMMIT_DAMAGES)
def test_a_commit_that_is_no_commit(golden: Golden, version: str, what: str) -> None:
    table = golden(version, CASE).table
    named = check(table, COMMIT_DAMAGES[what], READ_ON, READ_OFF, INCREMENTAL)
    refused(show(table), named)


@versions
@pytest.mark.parametrize("what", HOSTILE_COMMITS)
def test_a_commit_that_names_what_lies_outside(golden: Golden, version: str, what: str) -> None:
    check(golden(version, CASE).table, HOSTILE_COMMITS[what], INCREMENTAL)


@versions
def test_a_plan_that_is_cut(golden: Golden, version: str) -> None:
    check(golden(version, CASE).table, cut(PLAN), READ_ON, READ_OFF, FILES)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
@pytest.mark.parametrize("what", METADATA_DAMAGES)
def test_a_damaged_metadata_table_is_not_read_in_part(golden: Golden, version: str, what: str) -> None:
    table = golden(version, CASE).table
    check(table, METADATA_DAMAGES[what], READ, READ_ON, FILES_ON, INCREMENTAL)
    assert call(READ_OFF, table).document["rows"] == ROWS


@versions
@pytest.mark.parametrize("what", UNAVAILABLE)
def test_without_a_metadata_table_only_on_is_refused(golden: Golden, version: str, what: str) -> None:
    table = golden(version, CASE).table
    named = UNAVAILABLE[what](table)
    before = content_of(table)
    for command in (READ_ON, FILES_ON):
        refused(call(command, table), named)
    assert [call(command, table).document["rows"] for command in (READ, READ_OFF)] == [ROWS, ROWS]
    assert content_of(table) == before


@versions
def test_a_metadata_table_of_a_version_of_its_own(golden: Golden, version: str) -> None:
    damage = property_set("hoodie.table.version", "7", f"{METADATA}/{PROPERTIES}")
    check(golden(version, CASE).table, damage, READ_ON, FILES_ON, READ)


@versions
@pytest.mark.parametrize("what", FILE_DAMAGES)
def test_a_data_file_that_is_damaged_or_gone(golden: Golden, version: str, what: str) -> None:
    check(golden(version, CASE).table, FILE_DAMAGES[what], READ_ON, INCREMENTAL)


@versions
@pytest.mark.parametrize("what", CHANGE_DAMAGES)
def test_what_tells_the_changes_is_damaged(golden: Golden, version: str, what: str) -> None:
    check(golden(version, "cdc_cow").table, CHANGE_DAMAGES[what], CHANGES)


def _without_totals(document: dict[str, Any]) -> dict[str, Any]:
    """Without what a commit wrote, which `timeline` does not know of a damaged file: it says so on stderr."""
    totals = dict.fromkeys(("operation", "rows", "bytes"))
    return {
        name: [{**item, **totals} for item in value] if name == "instants" else value
        for name, value in document.items()
    }


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
@pytest.mark.parametrize(
    "case", tiered(["clustering_requested_mor", "restored_then_written"], ["restored_then_written"])
)
def test_every_file_of_the_timeline_cut_in_half_is_named_or_not_needed(golden: Golden, version: str, case: str) -> None:
    table = golden(version, case).table
    whole = {command: call(command, table).document for command in (READ, INCREMENTAL, FILES, ARCHIVED)}
    outcomes = set()
    for path in sorted(path for path in table.glob(f"{TIMELINE_FOLDER}/*.*") if path.stat().st_size):
        content = path.read_bytes()
        replace_content(path, content[: len(content) // 2])
        for command, document in whole.items():
            done = call(command, table)
            outcomes.add((command, done.code))
            if done.code:
                refused(done, path.name)
            else:
                assert _without_totals(done.document) == _without_totals(document)
        path.write_bytes(content)
    assert outcomes >= {(READ, 0), (READ, 2), (INCREMENTAL, 2), (ARCHIVED, 0)}


@versions
def test_a_table_that_never_had_a_metadata_table(golden: Golden, version: str) -> None:
    table = golden(version, "mdt_disabled").table
    refused(call(READ_ON, table), PROPERTIES)
    assert call(READ, table).document == call(READ_OFF, table).document


@pytest.mark.parametrize("version", tiered(VERSIONS, ["8"]))
@pytest.mark.parametrize("what", HISTORY_DAMAGES)
def test_a_damaged_history(golden: Golden, version: str, what: str) -> None:
    table = golden(version, ARCHIVED_CASE).table
    oldest = ARCHIVE(table).name.split("_")[0]
    named = check(table, HISTORY_DAMAGES[what], ARCHIVED, INCREMENTAL)
    refused(hudictl("show", table, oldest, "--json"), named)
    # What does not need the history goes on without it.
    assert call(READ, table).code == call(TIMELINE, table).code == 0


@versions
@pytest.mark.parametrize(("content", "warned"), [(b"zz", True), (b"-1", True), (b"", False), (None, False)])
def test_an_unreadable_version_file_means_the_largest_manifest_as_in_hudi(
    golden: Golden, version: str, content: bytes | None, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    table = golden(version, ARCHIVED_CASE).table
    whole = call(ARCHIVED, table).document
    (gone(VERSION) if content is None else filled(VERSION, content))(table)
    with caplog.at_level(logging.WARNING):
        assert call(ARCHIVED, table).document == whole
    assert (f"{HISTORY}/_version_" in caplog.text) is warned


@versions
def test_of_two_completed_files_of_one_instant_the_first_completion_counts(golden: Golden, version: str) -> None:
    table = golden(version, CASE).table
    listed = call(TIMELINE, table).document
    renamed(LAST_COMMIT, r"_\d+", "_20991231000000000", copied=True)(table)
    assert call(TIMELINE, table).document == listed
    assert call(READ, table).document["rows"] == ROWS


@versions
@pytest.mark.parametrize(("pattern", "replacement"), [(r"_\d+", "_20xx"), (r"_\d+", "_"), (r"^\d+", "zz")])
def test_a_name_without_times_is_no_completion_as_in_hudi(
    golden: Golden, version: str, pattern: str, replacement: str
) -> None:
    """Hudi's listing passes over names that do not parse (InstantFileNameParserV2): the commit stays inflight, and its
    rows unseen.
    """
    table = golden(version, CASE).table
    instant = LAST_COMMIT(table).name.split("_")[0]
    renamed(LAST_COMMIT, pattern, replacement)(table)
    assert [
        item["state"] for item in call(TIMELINE, table).document["instants"] if item["requested_time"] == instant
    ] == ["inflight"]
    assert call(READ, table).document["rows"] == ROWS_BEFORE_THE_LAST_COMMIT


@versions
def test_messages_name_the_file_and_the_fix(golden: Golden, version: str) -> None:
    table = golden(version, CASE).table
    named = cut(LAST_COMMIT)(table)
    done = hudictl("read", table, "--output", table.parent / "rows.parquet")
    assert (done.code, done.out) == (2, "")
    error, file, fix = done.err.splitlines()
    assert error.startswith("error: ")
    assert file.endswith(named)
    assert fix.strip().startswith("fix:  the file is damaged")


def test_every_damage_is_one_json_document(golden: Golden) -> None:
    table = golden("9", CASE).table
    cut(METADATA_BASE)(table)
    done = call(READ_ON, table)
    assert list(json.loads(done.out)) == ["error"]
    assert done.error["type"] == "CorruptFileError"
    assert "without its metadata table" in done.error["remedy"]

"""Every verb and service on an object store: documents, files, timelines, rows and metadata are those of the same verb
on a local disk.

The store is moto behind one lock, where each kind of service meets one table, as it is hundreds of requests; or the
server that AIRFLOW_HUDI_S3_SERVER names (`make soak`: versitygw), with everything on all table versions.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from _pytest.mark import ParameterSet

from hudi_core.services.context import OWNER_KEY, RUN_KEY
from hudi_core.storage.registry import open_storage
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action
from hudi_core.transaction.locks.storage_lease import StorageLease
from hudi_core.transaction.owner import Owner
from tests.contract.killed_hudictl import changes_of, run_killed
from tests.contract.racing_servers import CHOICE, RacingServer, racing_server
from tests.contract.s3_server import Server, age, download, keys, s3_server, upload
from tests.support.changed_tables import METADATA, data_files, decoded, known_times, listed, open_context, shown
from tests.support.golden_data import open_case
from tests.support.hudictl_runner import Done, hudictl
from tests.support.rows import assert_same_rows, read_parquet, rows_of
from tests.support.table_invariants import (
    assert_compacted,
    assert_metadata_true,
    has_metadata_table,
    pending_instants,
    read_rows,
)

SOAK = CHOICE in os.environ
EAGER = "hoodie.cleaner.policy.failed.writes=EAGER"
LEASE = "hoodie.write.lock.provider=org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"
LEASE_FILE = ".hoodie/.locks/table_lock.json"
TIGHT = (
    "hoodie.keep.min.commits=2",
    "hoodie.keep.max.commits=3",
    "hoodie.clean.commits.retained=1",
    "hoodie.compact.inline.max.delta.commits=1",
    "hoodie.timeline.compaction.batch.size=2",
    "hoodie.commits.archival.batch=2",
)
QUICK = ("hoodie.time.generator.max_expected_clock_skew_ms=0", "hoodie.index.bloom.num_entries=100")
"""One clock, and small bloom filters."""


@dataclass(frozen=True)
class Scenario:
    """What is done to a golden table, command by command. `{pending}` and the like are instants of the table as it was
    at first.
    """

    case: str
    steps: tuple[str, ...]
    options: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    """Those that moto meets; the server of `make soak` meets `all_versions`."""
    elsewhere: bool = False
    """Whether `make test` has the like in another test, and leaves this to `make conformance`."""
    all_versions: tuple[str, ...] = ("6", "8", "9")


SCENARIOS: dict[str, Scenario] = {
    "a failed write, by a listing": Scenario(
        "failed_after_metadata_mor", ("rollback TABLE --dry-run", "rollback TABLE", "rollback TABLE"), (EAGER,), ("6",)
    ),
    "a failed write, by its markers": Scenario(
        "failed_inflight_mor",
        ("schedule rollback TABLE --dry-run", "schedule rollback TABLE", "run rollback TABLE --engine local"),
        (EAGER,),
        ("9",),
        elsewhere=True,  # the one before this
    ),
    "a savepoint, and the newest commit": Scenario(
        "mor_basic",
        (
            "savepoint create TABLE --instant {newest} --comment kept",
            "savepoint list TABLE",
            "rollback TABLE --instant {newest}",
            "savepoint delete TABLE --instant {newest}",
            "savepoint list TABLE",
            "rollback TABLE --instant {newest}",
        ),
        versions=("9",),
        elsewhere=True,  # test_killed_commands
    ),
    "a restore": Scenario(
        "savepoint_mor",
        ("restore TABLE --dry-run", "restore TABLE --instant {oldest}"),
        versions=("6",),
        elsewhere=True,  # test_folders_that_s3a_made
    ),
    "a restore that drops the metadata table": Scenario("mdt_all_mor", ("restore TABLE --instant {oldest}",)),
    "an attempt at a compaction": Scenario("compaction_inflight", ("rollback TABLE --instant {pending}",)),
    "a dead owner": Scenario(
        "compaction_inflight",
        ("takeover TABLE {pending}", "unschedule TABLE {pending} --dry-run", "unschedule TABLE {pending}"),
        versions=("9",),
    ),
    "a plan that will not be run": Scenario("clustering_requested_cow", ("unschedule TABLE {pending}",)),
    "a clean, planned by us": Scenario(
        "mor_compacted",
        (
            "schedule clean TABLE --dry-run",
            "run clean TABLE --schedule --engine local",
            "run clean TABLE --schedule --engine local",
        ),
        ("hoodie.clean.commits.retained=1",),
        ("9",),
        elsewhere=True,  # test_clean_s3
    ),
    "a clean of whole partitions": Scenario(
        "insert_overwrite_clean_requested", ("run clean TABLE --engine local",), versions=("8",)
    ),
    "an archival": Scenario(
        "archived_timeline_mor", ("schedule archive TABLE --dry-run", "run archive TABLE --engine local"), TIGHT, ("6",)
    ),
    "a compaction": Scenario("mor_compaction_requested", ("run compaction TABLE --engine local",), all_versions=("6",)),
}


def runs(scenarios: Mapping[str, Scenario]) -> list[ParameterSet]:
    """Each scenario on its versions."""
    return [
        pytest.param(version, name, id=f"{version}-{name}", marks=pytest.mark.conformance if scenario.elsewhere else ())
        for name, scenario in scenarios.items()
        for version in (scenario.all_versions if SOAK else scenario.versions)
    ]


@pytest.fixture(scope="module")
def server() -> Iterator[RacingServer]:
    with racing_server() as started:
        yield started


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The secrets come from the environment, where both storage libraries find them by themselves."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")


@dataclass
class Twins:
    """One table on the local disk and the same on a server, and how to command both."""

    server: Server
    key: str
    local: Path
    uri: str
    scratch: Path
    options: tuple[str, ...] = ()
    known: set[str] = field(default_factory=set)
    named: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def of(
        server: Server, version: str, case: str, scratch: Path, options: tuple[str, ...] = (), *, folders: bool = False
    ) -> Twins:
        local = open_case(version, case, scratch).table
        for path in local.rglob("*"):
            if path.suffix == ".crc":
                path.unlink()
            elif path.is_file():
                os.utime(path)  # an object is as old as its upload
        key = f"{scratch.name}/table"
        twins = Twins(
            server, key, local, upload(server, local, key, folders=folders), scratch, options, known_times(local)
        )
        timeline = open_context(local).active.load()
        commits = [item for item in timeline.completed() if item.action in COMMIT_ACTIONS]
        twins.named = {"newest": commits[-1].requested_time, "oldest": commits[0].requested_time}
        savepoints, pending = list(timeline.of_actions(Action.SAVEPOINT)), list(timeline.pending())
        if savepoints:
            twins.named["oldest"] = savepoints[0].requested_time
        if pending:
            twins.named["pending"] = pending[-1].requested_time
        return twins

    def arguments(self, step: str, table: str) -> list[str]:
        words = [table if word == "TABLE" else word for word in step.format(**self.named).split()]
        if table == self.uri:
            words += [
                "--storage-option",
                f"endpoint_url={self.server.options['endpoint_url']}",
                "--storage-option",
                "region=us-east-1",
            ]
        if words[0] not in ("read", "timeline"):
            words += [word for option in (*QUICK, *self.options) for word in ("--option", option)]
        return [*words, "--json"]

    def on_s3(self, step: str) -> Done:
        return hudictl(*self.arguments(step, self.uri))

    def on_disk(self, step: str) -> Done:
        return hudictl(*self.arguments(step, str(self.local)))

    def both(self, step: str) -> dict[str, Any]:
        """Runs the command on both; fails unless both say the same."""
        here, there = self.on_disk(step), self.on_s3(step)
        assert there.code == here.code, there.out + there.err
        assert comparable_document(there.document, self.uri, self.known) == comparable_document(
            here.document, str(self.local), self.known
        )
        return there.document

    def rows(self, metadata: str) -> pa.Table:
        """The snapshot, read from the server."""
        output = self.scratch / f"rows-{metadata}.parquet"
        done = self.on_s3(f"read TABLE --metadata {metadata} --output {output}")
        assert done.code == 0, done.out + done.err
        return read_parquet(output)

    def assert_alike(self) -> None:
        """The table on the server is that on the disk, for readers there, too."""
        target = self.scratch / "downloaded"
        assert state_of(download(self.server, self.key, target), self.known) == state_of(self.local, self.known)
        assert_metadata_true(target)
        for metadata in ("on", "off") if has_metadata_table(self.local) else ("off",):
            assert_same_rows(self.rows(metadata), read_rows(self.local, metadata), ignore=UNSTABLE)


PASSING = ("seconds", "timeTakenInMillis", "at_ms", OWNER_KEY, RUN_KEY)
UNSTABLE = ("_hoodie_file_name", "_hoodie_commit_seqno")


def state_of(table: Path, known: set[str]) -> dict[str, Any]:
    """Everything that must not depend on the storage, times of new instants aside."""
    found: dict[str, Any] = {
        "names": names_of(table, known),
        "files": _sizes(data_files(table), known),
        "timeline": shown(table, known),
        **{
            action: comparable_document(decoded(table, action), str(table), known)
            for action in (Action.ROLLBACK, Action.RESTORE, Action.CLEAN)
        },
    }
    for metadata in ("on", "off") if has_metadata_table(table) else ("off",):
        rows = read_rows(table, metadata)
        found[f"rows with metadata {metadata}"] = rows_of(
            rows, [name for name in rows.column_names if name not in UNSTABLE]
        )
    if has_metadata_table(table):
        found |= {"metadata timeline": shown(table, known, METADATA), "listed": _sizes(listed(table), known)}
    return found


def _sizes(files: Mapping[str, int], known: set[str]) -> dict[str, int]:
    return {_recorded(path, known): size for path, size in files.items()}


def names_of(table: Path, known: set[str]) -> list[str]:
    """The names of all files, new times and write tokens aside; without guards of locks, which a kill may leave."""
    paths = (
        path.relative_to(table).as_posix() for path in table.rglob("*") if path.is_file() and path.suffix != ".crc"
    )
    return sorted(_recorded(path, known) for path in paths if not path.startswith(".hoodie/.airflow_hudi/locks/"))


def _recorded(text: str, known: set[str]) -> str:
    """A text without times that are not known, and without the part of a data file's name that is its attempt's own."""
    text = re.sub(r"_\d+-\d+-\d+(?=_\d{17}[.]parquet)|(?<=[.]log[.]\d)_\d+-\d+-\d+", "", text)
    return re.sub(r"\d{17}", lambda match: match[0] if match[0] in known else "T", text)


def comparable_document(document: Any, table: str, known: set[str]) -> Any:
    """What a command printed or a service wrote, without the table's address, new times, durations and the run's
    name.
    """

    def recorded(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {recorded(name): recorded(item) for name, item in value.items() if name not in PASSING}
        if isinstance(value, str):
            return _recorded(
                value.replace(f"file://{table}", "TABLE").replace(f"file:{table}", "TABLE").replace(table, "TABLE"),
                known,
            )
        return [recorded(item) for item in value] if isinstance(value, list) else value

    return recorded(document)


@pytest.mark.parametrize(("version", "name"), runs(SCENARIOS))
def test_the_same_as_on_a_local_disk(server: RacingServer, version: str, name: str, tmp_path: Path) -> None:
    scenario = SCENARIOS[name]
    twins = Twins.of(server, version, scenario.case, tmp_path, scenario.options)
    before = names_of(twins.local, twins.known)
    for step in scenario.steps:
        twins.both(step)
    twins.assert_alike()
    assert names_of(twins.local, twins.known) != before


def test_doctor(server: RacingServer, tmp_path: Path) -> None:
    """It says the same of the table, and of the store what there is to say of an object store."""
    twins = Twins.of(server, "9", "compaction_inflight", tmp_path)
    (here, there) = (twins.on_disk("doctor TABLE").document, twins.on_s3("doctor TABLE").document)
    rules = [(item["rule"], item["severity"]) for item in there["findings"]]
    assert rules.count(("store_unproven", "info")) == 1
    assert (
        [rule for rule in rules if rule[0] != "store_unproven"]
        == [(item["rule"], item["severity"]) for item in here["findings"]]
        != []
    )
    assert [wheel["name"] for wheel in there["wheels"]] == [*(wheel["name"] for wheel in here["wheels"]), "s3fs"]
    assert names_of(download(server, twins.key, tmp_path / "downloaded"), set()) == names_of(twins.local, set())


KILLED = {
    "clean": Scenario(
        "insert_overwrite_clean_requested",
        ("run clean TABLE --engine local --instant {pending}",),
        versions=("8",),
        elsewhere=True,  # tests/faults
    ),
    "rollback": Scenario("failed_after_metadata_mor", ("rollback TABLE --instant {pending}",)),
    "archive": Scenario("archived_timeline_mor", ("run archive TABLE --engine local",), TIGHT),
    "compaction": Scenario(
        "mor_compaction_requested",
        ("run compaction TABLE --engine local --instant {pending}",),
        versions=("6",),
        all_versions=("6",),
    ),
}


@pytest.mark.parametrize(("version", "service"), runs(KILLED))
def test_killed_and_run_again_by_another_process(
    server: RacingServer, version: str, service: str, tmp_path: Path
) -> None:
    """SIGKILL in the midst of the changes, twice, each time of a process of its own; a third one brings it to the end
    of an undisturbed run.
    """
    scenario = KILLED[service]
    twins = Twins.of(server, version, scenario.case, tmp_path, scenario.options)
    (step,) = scenario.steps
    rows, pending = read_rows(twins.local), pending_instants(twins.local)
    changes = changes_of(twins.arguments(step, str(twins.local)))
    command = twins.arguments(step, twins.uri)
    assert run_killed(command, changes // 2)
    assert state_of(download(server, twins.key, tmp_path / "killed"), twins.known)["names"] != names_of(
        twins.local, twins.known
    )
    assert_same_rows(twins.rows("auto"), twins.rows("off"), ignore=UNSTABLE)
    assert run_killed(command, 8)
    done = hudictl(*command)
    assert done.code == 0, done.out + done.err
    if service != "compaction":
        twins.assert_alike()
        return
    # The base files of another attempt hold other write tokens, so they may differ in size.
    assert_compacted(download(server, twins.key, tmp_path / "downloaded"), twins.named["pending"], rows, pending)
    for metadata in ("on", "off"):
        assert_same_rows(twins.rows(metadata), rows, ignore=UNSTABLE)


@pytest.mark.parametrize("version", ["6", "8", "9"] if SOAK else ["9"])
def test_the_storage_lease_is_the_lock(server: RacingServer, version: str, tmp_path: Path) -> None:
    options = (LEASE, "hoodie.write.lock.wait_time_ms=50")
    twins = Twins.of(server, version, "failed_after_metadata_mor", tmp_path, options)
    storage = open_storage(twins.uri, server.options)
    elsewhere = replace(Owner.current("a writer elsewhere"), boot_id="of another machine")
    with StorageLease(storage, elsewhere, validity_seconds=60, renew_seconds=6):
        refused = twins.on_s3("rollback TABLE --instant {pending}")
        assert (refused.code, refused.error["type"]) == (3, "LockError")
        assert "a writer elsewhere" in refused.error["message"]
    killed = twins.arguments("rollback TABLE --instant {pending}", twins.uri)
    assert run_killed(killed, 1)
    assert json.loads(storage.read(LEASE_FILE))["expired"] is False, "the process was killed while it held the lease"
    twins.both("rollback TABLE --instant {pending}")
    twins.assert_alike()
    lease = json.loads(storage.read(LEASE_FILE))
    assert (lease["expired"], elsewhere.text in lease["owner"]) == (True, False)


def test_failed_writes_by_their_heartbeats(server: RacingServer, tmp_path: Path) -> None:
    """The age of a heartbeat is that of its object, by the store's clock. What is tolerated leaves a busy machine time
    for our own beats.
    """
    twins = Twins.of(server, "9", "failed_inflight_mor", tmp_path)
    beat = f".hoodie/.heartbeat/{twins.named['pending']}"
    for storage in (open_storage(str(twins.local)), open_storage(twins.uri, server.options)):
        storage.write(beat, b"")
    spared = twins.both("rollback TABLE")
    assert (spared["instant"], spared["target"]) == (None, None)
    twins.options += ("hoodie.client.heartbeat.interval_in_ms=1000", "hoodie.client.heartbeat.tolerable.misses=15")
    if server.kind == "moto":
        age(f"{twins.key}/{beat}", 16)
        then = time.time() - 16
        os.utime(twins.local / beat, (then, then))
    else:
        time.sleep(16)
    assert twins.both("rollback TABLE")["target"] == twins.named["pending"]
    twins.assert_alike()
    assert keys(server, twins.key, ".hoodie/.heartbeat/") == []


def test_folders_that_s3a_made(server: RacingServer, tmp_path: Path) -> None:
    """Empty objects in the place of folders, as Hudi's own writers leave them, are no files, and go with what is below
    them.
    """
    twins = Twins.of(server, "6", "failed_inflight_mor", tmp_path, folders=True)
    marked = [name for name in keys(server, twins.key) if name.endswith("/")]
    assert any(name.startswith(".hoodie/.temp/") for name in marked)
    twins.both("rollback TABLE --instant {pending}")
    twins.both("savepoint create TABLE --instant {newest}")
    twins.both("restore TABLE --instant {newest}")
    twins.assert_alike()
    assert keys(server, twins.key, f".hoodie/.temp/{twins.named['pending']}") == []
    assert sorted(set(keys(server, twins.key)) & set(marked)) == [
        name for name in marked if twins.named["pending"] not in name
    ]


def test_answers_are_lost_and_secrets_are_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The store carries a conditional PUT out, and its answer does not arrive: the command finds its own
    objects.
    """
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with s3_server() as moto:
        twins = Twins.of(moto, "9", "failed_after_metadata_mor", tmp_path)
        secrets = tmp_path / "secrets.json"
        secrets.write_text(json.dumps({"key": moto.options["key"], "secret": moto.options["secret"]}))
        twins.on_disk("rollback TABLE --instant {pending}")
        moto.lost_answers, moto.conflicts = 1, 1
        done = twins.on_s3(f"rollback TABLE --instant {{pending}} --storage-options-file {secrets}")
        assert (done.code, moto.lost_answers, moto.conflicts) == (0, 0, 0), done.out + done.err
        found = state_of(download(moto, twins.key, tmp_path / "downloaded"), twins.known)
        assert found == state_of(twins.local, twins.known)

"""Requests and results of runs as JSON: the one language of operators, `main.py` and `hudictl`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from hudi_core.errors import ConfigError
from hudi_core.request.json_fields import (
    flag,
    number,
    optional_number,
    optional_string,
    parse_object,
    real,
    refuse_unknown,
    string,
    text_map,
    texts,
)
from hudi_core.request.secrets import refuse_secrets
from hudi_core.request.services import SERVICES

REQUEST_VERSION = 1
VERBS = frozenset(
    {
        "doctor",
        "metadata_create",
        "metadata_drop",
        "metadata_update",
        "metadata_validate",
        "probe_store",
        "rollback",
        "restore",
        "run",
        "savepoint_create",
        "savepoint_delete",
        "schedule",
        "takeover",
        "unschedule",
    }
)
RESULTS = ".hoodie/.airflow_hudi/results"
"""Folder in the table for results that were requested as files."""
PROBE_RESULTS = ".airflow_hudi_probe/results"
"""The same where there need not be a table."""
_NEED_INSTANT = frozenset({"restore", "savepoint_delete", "takeover", "unschedule"})
_OF_PARTITIONS = frozenset({"metadata_create", "metadata_drop", "metadata_update"})
_OF_COLUMNS = frozenset({"metadata_create", "metadata_drop"})
_NEVER_DRY = {
    "run": "schedule with dry_run instead",
    "probe_store": "it races on files of its own, and removes them",
    **dict.fromkeys(_OF_PARTITIONS, "metadata_validate says what an update would find"),
}
METADATA_MODES = frozenset({"auto", "on", "off"})
_COLUMN_STATS = "column_stats"
_WRITERS = 16
_ROUNDS = 60

_PARTITION = re.compile(r"[^./\\\0][^/\\\0]{0,254}")
_RESULT_NAME = re.compile(r"[0-9A-Za-z_-]{0,64}")
_WHAT = "run request"
_RESULT = "run result"


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One call of a table service, or of another verb on a table or, with `probe_store`, on any folder of a storage.

    `verb` is hudictl's name of the command. With `run`, `instant` runs that instant, `all_pending` every pending one;
    without both the oldest pending one is run. With the other verbs `instant` is the one to roll back, restore to,
    save, unschedule or take over; a dry run of `restore` without one lists what can be restored. `owner` identifies the
    requester in messages to others that find the instant claimed. `options` are Hudi's names, `storage_options` those
    of the storage; secrets are refused in both and come from the environment or the JSON file `storage_options_file` on
    the driver. `metadata` is whether the metadata table is read: auto, on or off.
    """

    table: str
    service: str = "compaction"
    instant: str | None = None
    all_pending: bool = False
    owner: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    storage_options: Mapping[str, str] = field(default_factory=dict)
    storage_options_file: str | None = None
    metadata: str = "auto"
    allow_corrupt_log_blocks: bool = False
    max_minutes: int | None = None
    """Starts no further instant after so many minutes; None: no limit."""
    schedule: bool = False
    """Plans an instant first when none is pending."""
    verb: str = "run"
    dry_run: bool = False
    """Reports what would be done, and writes nothing."""
    unless_completed: bool = False
    """With `rollback`: a write that has completed by now stays."""
    comment: str = ""
    """Kept in a savepoint."""
    run_id: str = ""
    """The id of the requesting run (Airflow's run id), recorded in what it completes; a random one when empty."""
    result_name: str = ""
    """A Spark job also writes its result to `results_folder`/<name>.json unless this is empty.

    The output of a driver in a cluster may not be visible.
    """
    timeline_only: bool = False
    """With `doctor`: the data files are not listed."""
    writers: int = _WRITERS
    """With `probe_store`: how many race for one object."""
    rounds: int = _ROUNDS
    """With `probe_store`: races of each kind."""
    partitions: tuple[str, ...] = ()
    """With the `metadata_*` verbs: partitions of the metadata table, such as `column_stats`."""
    columns: tuple[str, ...] = ()
    """With `metadata_create` and `metadata_drop`: columns to add to `column_stats` or to remove, by dotted name."""

    def __post_init__(self) -> None:
        """Raises ConfigError for a combination that means nothing."""
        if not self.table.strip():
            raise ConfigError(f"{_WHAT}: table is empty")
        if self.verb not in VERBS:
            raise ConfigError(
                f"{_WHAT}: unknown verb {self.verb!r}", remedy=f"this release knows: {', '.join(sorted(VERBS))}"
            )
        if self.instant is None and self.verb in _NEED_INSTANT and not (self.verb == "restore" and self.dry_run):
            raise ConfigError(f"{_WHAT}: {self.verb} needs an instant")
        if self.dry_run and self.verb in _NEVER_DRY:
            raise ConfigError(f"{_WHAT}: {self.verb} cannot be a dry run", remedy=_NEVER_DRY[self.verb])
        if self.service not in SERVICES:
            raise ConfigError(
                f"{_WHAT}: unknown service {self.service!r}", remedy=f"this release runs: {', '.join(sorted(SERVICES))}"
            )
        if self.metadata not in METADATA_MODES:
            raise ConfigError(f"{_WHAT}: metadata is {self.metadata!r}, not auto, on or off")
        if self.instant is not None and self.all_pending:
            raise ConfigError(f"{_WHAT}: instant and all_pending exclude each other")
        if self.instant is not None and self.schedule:
            raise ConfigError(f"{_WHAT}: instant and schedule exclude each other")
        if self.instant is not None and not (
            self.instant.isascii() and self.instant.isdigit() and len(self.instant) <= 32
        ):
            raise ConfigError(
                f"{self.instant!r} is not an instant time", remedy="give the digits of the instant's file name"
            )
        if _RESULT_NAME.fullmatch(self.result_name) is None:
            raise ConfigError(
                f"{_WHAT}: {self.result_name!r} is no name of a result", remedy="use up to 64 letters, digits, - and _"
            )
        _check_partitions(self.verb, self.partitions)
        _check_columns(self.verb, self.partitions, self.columns)
        if self.max_minutes is not None and self.max_minutes < 1:
            raise ConfigError(f"{_WHAT}: max_minutes must be 1 or more")
        refuse_secrets(self.options, where="options")
        refuse_secrets(self.storage_options, where="storage options of a run request")

    @property
    def needs_executors(self) -> bool:
        """Whether an engine gets any of the work; all else is done where the request is read."""
        return self.verb in ("metadata_create", "metadata_update") or (
            self.verb == "run" and not SERVICES[self.service].on_driver
        )

    @property
    def needs_table(self) -> bool:
        """Whether `table` must be a Hudi table; any folder will do without."""
        return self.verb != "probe_store"

    @property
    def results_folder(self) -> str:
        """Where below `table` a named result is put."""
        return RESULTS if self.needs_table else PROBE_RESULTS

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps({"version": REQUEST_VERSION, **asdict(self)}, sort_keys=True)

    @staticmethod
    def from_json(text: str | bytes) -> RunRequest:
        """Reads `to_json`; raises ConfigError for unknown fields, other versions and wrong types."""
        value = parse_object(text, what=_WHAT)
        _check_version(value, _WHAT)
        refuse_unknown(value, frozenset({"version", *RunRequest.__dataclass_fields__}), what=_WHAT)
        return RunRequest(
            table=string(value, "table", what=_WHAT),
            service=string(value, "service", what=_WHAT),
            instant=optional_string(value, "instant", what=_WHAT),
            all_pending=flag(value, "all_pending", what=_WHAT),
            owner=optional_string(value, "owner", what=_WHAT) or "",
            options=text_map(value, "options", what=_WHAT),
            storage_options=text_map(value, "storage_options", what=_WHAT),
            storage_options_file=optional_string(value, "storage_options_file", what=_WHAT),
            metadata=optional_string(value, "metadata", what=_WHAT) or "auto",
            allow_corrupt_log_blocks=flag(value, "allow_corrupt_log_blocks", what=_WHAT),
            max_minutes=optional_number(value, "max_minutes", what=_WHAT),
            schedule=flag(value, "schedule", what=_WHAT),
            verb=optional_string(value, "verb", what=_WHAT) or "run",
            dry_run=flag(value, "dry_run", what=_WHAT),
            unless_completed=flag(value, "unless_completed", what=_WHAT),
            comment=optional_string(value, "comment", what=_WHAT) or "",
            run_id=optional_string(value, "run_id", what=_WHAT) or "",
            result_name=optional_string(value, "result_name", what=_WHAT) or "",
            timeline_only=flag(value, "timeline_only", what=_WHAT),
            writers=number(value, "writers", what=_WHAT) if "writers" in value else _WRITERS,
            rounds=number(value, "rounds", what=_WHAT) if "rounds" in value else _ROUNDS,
            partitions=texts(value, "partitions", what=_WHAT),
            columns=texts(value, "columns", what=_WHAT),
        )


@dataclass(frozen=True, slots=True)
class InstantResult:
    """The result of one instant: its state, what this run wrote for it and deleted, and the error when it failed."""

    instant: str
    action: str
    state: str
    files_written: int = 0
    bytes_written: int = 0
    records: int = 0
    seconds: float = 0.0
    error: str | None = None
    exit_code: int = 0
    """The exit code that the error alone would give; 0 without an error."""
    files_deleted: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The object that `hudictl run` prints: `error` and `exit_code` only when there is an error."""
        value = asdict(self)
        if self.error is None:
            del value["error"], value["exit_code"]
        return value

    @staticmethod
    def from_dict(value: Mapping[str, Any]) -> InstantResult:
        """Reads `to_dict`; raises ConfigError."""
        refuse_unknown(value, frozenset(InstantResult.__dataclass_fields__), what=_RESULT)
        return InstantResult(
            instant=string(value, "instant", what=_RESULT),
            action=string(value, "action", what=_RESULT),
            state=string(value, "state", what=_RESULT),
            files_written=number(value, "files_written", what=_RESULT),
            bytes_written=number(value, "bytes_written", what=_RESULT),
            files_deleted=optional_number(value, "files_deleted", what=_RESULT) or 0,
            records=number(value, "records", what=_RESULT),
            seconds=real(value, "seconds", what=_RESULT),
            error=optional_string(value, "error", what=_RESULT),
            exit_code=optional_number(value, "exit_code", what=_RESULT) or 0,
        )


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run: one entry per instant, in the order they were run; empty when there was nothing to do."""

    instants: tuple[InstantResult, ...] = ()
    reason: str | None = None
    """Why no instant was run, and what would change that."""
    document: Mapping[str, Any] | None = None
    """The result of a verb other than `run`: the JSON document of hudictl's command of that name."""

    @property
    def failed(self) -> tuple[InstantResult, ...]:
        """The instants that ended in an error."""
        return tuple(result for result in self.instants if result.error is not None)

    @property
    def exit_code(self) -> int:
        """0 when all went well; the failures' own code when they agree (2 bad input, 3 retry), else 1."""
        codes = {result.exit_code or 1 for result in self.failed}
        if not codes:
            return 0
        return codes.pop() if len(codes) == 1 and len(self.failed) == len(self.instants) else 1

    def to_dict(self) -> dict[str, Any]:
        """The document that hudictl prints with `--json`; of a run with `reason` only when there was nothing to do."""
        if self.document is not None:
            return dict(self.document)
        value: dict[str, Any] = {"instants": [result.to_dict() for result in self.instants]}
        return value if self.reason is None else {**value, "reason": self.reason}

    def to_json(self) -> str:
        """One line of JSON, with the version of this format."""
        value = self.to_dict() if self.document is None else {"document": self.to_dict()}
        return json.dumps({"version": REQUEST_VERSION, **value}, sort_keys=True)

    @staticmethod
    def from_json(text: str | bytes) -> RunResult:
        """Reads `to_json`; raises ConfigError for unknown fields, other versions and wrong types."""
        value = parse_object(text, what=_RESULT)
        _check_version(value, _RESULT)
        refuse_unknown(value, frozenset({"version", "instants", "reason", "document"}), what=_RESULT)
        document = value.get("document")
        if document is not None:
            if not isinstance(document, dict):
                raise ConfigError(f"{_RESULT}: document must be an object")
            return RunResult(document=document)
        found = value.get("instants")
        if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
            raise ConfigError(f"{_RESULT}: instants must be a list of objects")
        return RunResult(
            tuple(InstantResult.from_dict(item) for item in found), optional_string(value, "reason", what=_RESULT)
        )


def _check_partitions(verb: str, names: tuple[str, ...]) -> None:
    if names and verb not in _OF_PARTITIONS:
        raise ConfigError(
            f"{_WHAT}: {verb} takes no partitions", remedy=f"they are for {', '.join(sorted(_OF_PARTITIONS))}"
        )
    wrong = next((name for name in names if _PARTITION.fullmatch(name) is None), None)
    if wrong is not None:
        raise ConfigError(
            f"{wrong!r} is no partition of a metadata table",
            remedy="name one such as files, column_stats or record_index",
        )


def _check_columns(verb: str, partitions: tuple[str, ...], names: tuple[str, ...]) -> None:
    if not names:
        return
    if verb not in _OF_COLUMNS:
        raise ConfigError(f"{_WHAT}: {verb} takes no columns", remedy=f"they are for {', '.join(sorted(_OF_COLUMNS))}")
    if any(not name.strip() for name in names):
        raise ConfigError(f"{_WHAT}: a column has no name", remedy="name columns of the table, nested ones with dots")
    if verb == "metadata_drop" and set(partitions) - {_COLUMN_STATS}:
        raise ConfigError(
            f"{_WHAT}: columns are dropped from {_COLUMN_STATS}, not with {', '.join(partitions)}",
            remedy="drop one after the other",
        )


def _check_version(value: Mapping[str, Any], what: str) -> None:
    version = number(value, "version", what=what)
    if version != REQUEST_VERSION:
        raise ConfigError(
            f"{what} has version {version}, this release reads {REQUEST_VERSION}",
            remedy="use the same release on both sides",
        )

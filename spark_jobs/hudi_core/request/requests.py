"""What a run is requested to do: one class for each verb of hudictl.

As JSON a request is one object with `version`, `verb` and the fields of the class (request/parse.py reads it). Standard
library only, as operators, `main.py` and hudictl share it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from typing import ClassVar, Final, TypeAlias

from hudi_core.errors import ConfigError
from hudi_core.request.choices import one_of
from hudi_core.request.conditions import Conditions
from hudi_core.request.secrets import refuse_secret_address, refuse_secrets
from hudi_core.request.services import SERVICES

REQUEST_VERSION: Final = 1
RESULTS: Final = ".hoodie/.airflow_hudi/results"
"""Folder in the table for results that were requested as files."""
PROBE_RESULTS: Final = ".airflow_hudi_probe/results"
"""The same where there need not be a table."""
MAX_MINUTES: Final = 10**6
METADATA_MODES: Final = ("auto", "on", "off")

_COLUMN_STATS: Final = "column_stats"
_PARTITION: Final = re.compile(r"[^./\\\0][^/\\\0]{0,254}")
_RESULT_NAME: Final = re.compile(r"[0-9A-Za-z_-]{0,64}")
_WHAT: Final = "run request"


@dataclass(frozen=True, slots=True)
class Request:
    """What every request carries; see the classes of the verbs.

    `table` is the table's path or URI; with `probe_store` any folder of a storage. `owner` identifies the requester in
    messages to others that find the instant claimed. `options` are Hudi's names, `storage_options` those of the
    storage; secrets are refused in both and come from the environment or the JSON file `storage_options_file` on the
    driver. `metadata` is whether the metadata table is read: auto, on or off. `run_id` is the id of the requesting run
    (Airflow's run id), recorded in what it completes; a random one when empty. With a `result_name` a Spark job also
    writes its result to `results_folder`/<name>.json: the output of a driver in a cluster may not be visible.
    """

    verb: ClassVar[str]
    """hudictl's name of the command."""
    needs_table: ClassVar[bool] = True
    """Whether `table` must be a Hudi table; any folder will do without."""
    results_folder: ClassVar[str] = RESULTS
    """Where below `table` a named result is put."""
    _has_units: ClassVar[bool] = False

    table: str
    _: KW_ONLY
    owner: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    storage_options: Mapping[str, str] = field(default_factory=dict)
    storage_options_file: str | None = None
    metadata: str = "auto"
    allow_corrupt_log_blocks: bool = False
    run_id: str = ""
    result_name: str = ""

    def __post_init__(self) -> None:
        """Raises ConfigError for what means nothing, holds a secret, or is an option that is no text."""
        if not self.table.strip():
            raise ConfigError(
                f"{_WHAT}: table is empty",
                remedy="name the table in `table`: its URI, its path, or its path below the connection's base path",
            )
        if self.metadata not in METADATA_MODES:
            raise ConfigError(
                f"{_WHAT}: metadata is {self.metadata!r}, not auto, on or off", remedy="set metadata to one of these"
            )
        if _RESULT_NAME.fullmatch(self.result_name) is None:
            raise ConfigError(
                f"{_WHAT}: {self.result_name!r} is no name of a result", remedy="use up to 64 letters, digits, - and _"
            )
        refuse_secret_address(self.table, what="the address of the table")
        refuse_secrets(self.options, where="options")
        refuse_secrets(self.storage_options, where="storage options of a run request")
        self._check()

    def _check(self) -> None:
        """The checks of a verb's own fields. Raises ConfigError."""

    @property
    def needs_executors(self) -> bool:
        """Whether an engine gets any of the work; all else is done where the request is read."""
        return self._has_units

    def to_json(self) -> str:
        """One line of JSON; parse_request reads it."""
        return json.dumps({"version": REQUEST_VERSION, "verb": self.verb, **asdict(self)}, sort_keys=True)


@dataclass(frozen=True, slots=True)
class RunRequest(Request):
    """Runs `instant` of a table service, or every or the oldest pending one; `schedule` plans one when none is pending.

    After `max_minutes` no further instant is started, nor from `starts_until` on, in seconds since the epoch, nor when
    the instants of the run have written `max_bytes`; plans are cut so that they are done by then, with `all_pending`
    several, and to the bytes that are left. With `when` one is planned where one of these conditions holds
    (request/conditions.py). `began_ms`, in milliseconds since the epoch, is when the work began that this is part of:
    the result names options that a plan of before does not follow.
    """

    verb = "run"
    service: str
    instant: str | None = None
    all_pending: bool = False
    schedule: bool = False
    max_minutes: int | None = None
    starts_until: int | None = None
    max_bytes: int | None = None
    began_ms: int | None = None
    when: Mapping[str, str] = field(default_factory=dict)

    def _check(self) -> None:
        _check_service(self.service)
        _check_instant(self.instant)
        Conditions.of(self.service, self.when)
        for name in ("all_pending", "schedule"):
            if self.instant is not None and getattr(self, name):
                raise ConfigError(f"{_WHAT}: instant and {name} exclude each other", remedy="leave one of them out")
        if self.max_minutes is not None and not 1 <= self.max_minutes <= MAX_MINUTES:
            raise ConfigError(
                f"{_WHAT}: max_minutes must be between 1 and {MAX_MINUTES}",
                remedy="set it to such a number, or leave it out",
            )
        if self.max_bytes is not None and self.max_bytes < 1:
            raise ConfigError(
                f"{_WHAT}: max_bytes must be at least 1", remedy="set it to a number of bytes, or leave it out"
            )

    @property
    def needs_executors(self) -> bool:
        """See Request."""
        return not SERVICES[self.service].on_driver

    def rest(self, since: float, written: int = 0) -> RunRequest:
        """The request of what is left of a run that began at `since`, in seconds since the epoch, and has `written` so
        many bytes: its minutes and its bytes go on.
        """
        ends = [] if self.starts_until is None else [self.starts_until]
        if self.max_minutes is not None:
            ends.append(int(since) + 60 * self.max_minutes)
        most = None if self.max_bytes is None else max(1, self.max_bytes - written)
        return replace(self, max_minutes=None, starts_until=min(ends, default=None), max_bytes=most)


@dataclass(frozen=True, slots=True)
class ScheduleRequest(Request):
    """Plans an instant of a table service; with `dry_run` the plan is reported, and nothing is written."""

    verb = "schedule"
    service: str
    dry_run: bool = False

    def _check(self) -> None:
        _check_service(self.service)


@dataclass(frozen=True, slots=True)
class _OptionalInstantRequest(Request):
    instant: str | None = None

    def _check(self) -> None:
        _check_instant(self.instant)


@dataclass(frozen=True, slots=True)
class InstantRequest(Request):
    """The verbs that need an instant."""

    instant: str

    def _check(self) -> None:
        _check_instant(self.instant)


@dataclass(frozen=True, slots=True)
class RollbackRequest(_OptionalInstantRequest):
    """Rolls back the write at `instant`, or the next failed one; `unless_completed` keeps one that is completed now."""

    verb = "rollback"
    dry_run: bool = False
    unless_completed: bool = False


@dataclass(frozen=True, slots=True)
class RestoreRequest(_OptionalInstantRequest):
    """Restores the table to the commit at `instant`; a dry run without one lists what can be restored."""

    verb = "restore"
    dry_run: bool = False

    def _check(self) -> None:
        _OptionalInstantRequest._check(self)
        if self.instant is None and not self.dry_run:
            raise ConfigError(
                f"{_WHAT}: {self.verb} needs an instant",
                remedy="name one in `instant`; `hudictl timeline TABLE` lists them",
            )


@dataclass(frozen=True, slots=True)
class SavepointCreateRequest(_OptionalInstantRequest):
    """Keeps the files of the commit at `instant`, or of the newest one; `comment` is kept in the savepoint."""

    verb = "savepoint_create"
    comment: str = ""


@dataclass(frozen=True, slots=True)
class SavepointDeleteRequest(InstantRequest):
    """Deletes the savepoint of the commit at `instant`."""

    verb = "savepoint_delete"


@dataclass(frozen=True, slots=True)
class TakeoverRequest(InstantRequest):
    """Frees the pending `instant` of a dead owner."""

    verb = "takeover"


@dataclass(frozen=True, slots=True)
class UnscheduleRequest(InstantRequest):
    """Removes the pending plan at `instant`, with the files of attempts at it."""

    verb = "unschedule"
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class DoctorRequest(Request):
    """Examines the table; with `timeline_only` the data files are not listed."""

    verb = "doctor"
    timeline_only: bool = False


@dataclass(frozen=True, slots=True)
class _ColumnsRequest(Request):
    partitions: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    def _check(self) -> None:
        _check_partitions(self.partitions)
        if any(not name.strip() for name in self.columns):
            raise ConfigError(
                f"{_WHAT}: a column has no name", remedy="name columns of the table, nested ones with dots"
            )


@dataclass(frozen=True, slots=True)
class MetadataCreateRequest(_ColumnsRequest):
    """Initializes partitions of the metadata table; `columns`, by dotted names, are added to `column_stats`."""

    verb = "metadata_create"
    _has_units = True


@dataclass(frozen=True, slots=True)
class MetadataDropRequest(_ColumnsRequest):
    """Removes partitions of the metadata table, or `columns` of `column_stats`; without both the metadata table."""

    verb = "metadata_drop"

    def _check(self) -> None:
        _ColumnsRequest._check(self)
        if self.columns and set(self.partitions) - {_COLUMN_STATS}:
            raise ConfigError(
                f"{_WHAT}: columns are dropped from {_COLUMN_STATS}, not with {', '.join(self.partitions)}",
                remedy="drop one after the other",
            )


@dataclass(frozen=True, slots=True)
class MetadataUpdateRequest(Request):
    """Applies missing instants to the metadata table, which must have `partitions`."""

    verb = "metadata_update"
    _has_units = True
    partitions: tuple[str, ...] = ()

    def _check(self) -> None:
        _check_partitions(self.partitions)


@dataclass(frozen=True, slots=True)
class MetadataValidateRequest(Request):
    """Compares the metadata table with the table."""

    verb = "metadata_validate"


@dataclass(frozen=True, slots=True)
class ProbeStoreRequest(Request):
    """Races `writers` for one object of a storage, `rounds` times for each way to write."""

    verb = "probe_store"
    needs_table = False
    results_folder = PROBE_RESULTS
    writers: int = 16
    rounds: int = 60


MetadataRequest: TypeAlias = (
    MetadataCreateRequest | MetadataUpdateRequest | MetadataDropRequest | MetadataValidateRequest
)


def _check_service(name: str) -> None:
    if name not in SERVICES:
        raise ConfigError(f"{_WHAT}: unknown service {name!r}", remedy=one_of(name, sorted(SERVICES)))


def _check_instant(instant: str | None) -> None:
    if instant is not None and not (instant.isascii() and instant.isdigit() and len(instant) <= 32):
        raise ConfigError(f"{instant!r} is not an instant time", remedy="give the digits of the instant's file name")


def _check_partitions(names: tuple[str, ...]) -> None:
    wrong = next((name for name in names if _PARTITION.fullmatch(name) is None), None)
    if wrong is not None:
        raise ConfigError(
            f"{wrong!r} is no partition of a metadata table",
            remedy="name one such as files, column_stats or record_index",
        )

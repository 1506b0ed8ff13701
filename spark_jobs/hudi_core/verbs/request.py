"""A verb: what hudictl, a process beside an Airflow task, a Spark job and an operator do for one class of requests.

A request is an object of its verb's class. As JSON it is one object with `version`, `verb` and the fields of the class
(parse_request reads it). What a verb needs of the engine is imported where it is used: operators have none.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, asdict, field, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final

from hudi_core.config.engine_config import EngineConfig, Extent
from hudi_core.errors import ConfigError
from hudi_core.frozen import dataclass
from hudi_core.request.results import REQUEST_VERSION, Progress, Result
from hudi_core.request.secrets import refuse_secret_address, refuse_secrets
from hudi_core.request.texts import parse_object, read_fields
from hudi_core.verbs.registry import VERBS

if TYPE_CHECKING:
    from hudi_core.config.table_config import TableConfig
    from hudi_core.engine.protocol import Engine
    from hudi_core.services.context import TableContext
    from hudi_core.services.engine_choice import Choice
    from hudi_core.storage.base import Storage
    from hudi_core.transaction.owner import Owner


RESULTS: Final = ".hoodie/.airflow_hudi/results"
"""Folder in the table for results that were requested as files."""
METADATA_MODES: Final = ("auto", "on", "off")
WHAT: Final = "run request"
"""What messages call a request."""

_RESULT_NAME: Final = re.compile(r"[0-9A-Za-z_-]{0,64}")


@dataclass(frozen=True, slots=True)
class Work:
    """What a request is run with. `choose` chooses the engine of each instant that the run plans itself: the local one,
    or Spark. For Spark the instant is left as it is planned, and the run ends (Result.left).
    """

    context: TableContext
    engine: Engine
    owner: Owner
    progress: Progress | None = None
    choose: Callable[[Request], Choice] | None = None


@dataclass(frozen=True, slots=True)
class Request(ABC):
    """What every request carries, and what a verb answers.

    `table` is the table's path or URI; for a verb that needs none, any folder of a storage. `owner` names the requester
    to others that find the instant claimed. `options` have Hudi's names, `storage_options` those of the storage.
    Secrets are refused in both: they come from the environment, or from the JSON file `storage_options_file` on the
    driver. `metadata` says whether the metadata table is read: auto, on or off. `run_id` is the id of the requesting
    run (Airflow's run id), recorded in what it completes; a random one when empty. With a `result_name` a Spark job
    also writes its result to `results_folder`/<name>.json: the output of a driver in a cluster may not be visible.
    """

    verb: ClassVar[str]
    """hudictl's name of the command."""
    needs_table: ClassVar[bool] = True
    """Whether `table` must be a Hudi table; otherwise any folder will do."""
    only_in_jobs: ClassVar[str] = ""
    """Why a verb without a table is done where Spark's jobs run; empty where any process may do it."""
    results_folder: ClassVar[str] = RESULTS
    """The folder below `table` for a named result."""
    looks_once: ClassVar[bool] = False
    """Whether its steps say where they need the current table. In between it is looked at once (decision 0027)."""
    plans: ClassVar[bool] = False
    """Whether `plan` makes a plan, or finds that there is nothing to do."""
    has_units: ClassVar[bool] = False
    """Whether its work is units of an engine."""

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
        """Raises ConfigError for values that mean nothing or hold a secret, and for options that are no text."""
        if not self.table.strip():
            raise ConfigError(
                f"{WHAT}: table is empty",
                remedy="name the table in `table`: its URI, its path, or its path below the connection's base path",
            )
        if self.metadata not in METADATA_MODES:
            raise ConfigError(
                f"{WHAT}: metadata is {self.metadata!r}, not auto, on or off", remedy="set metadata to one of these"
            )
        if _RESULT_NAME.fullmatch(self.result_name) is None:
            raise ConfigError(
                f"{WHAT}: {self.result_name!r} is no name of a result", remedy="use up to 64 letters, digits, - and _"
            )
        refuse_secret_address(self.table, what="the address of the table")
        refuse_secrets(self.options, where="options")
        refuse_secrets(self.storage_options, where="storage options of a run request")
        self.check_fields()

    def check_fields(self) -> None:  # noqa: B027 (most verbs have nothing to check)
        """Checks the verb's own fields. Raises ConfigError."""

    @property
    def needs_executors(self) -> bool:
        """Whether an engine gets any of the work. All else is done where the request is read."""
        return self.has_units

    @property
    def asks_session(self) -> bool:
        """Whether a Spark session is asked for rows, by a query or a function of the user."""
        return False

    def nothing(self, context: TableContext, owner: Owner) -> Result | None:
        """Returns the result where there is nothing to do, in the words of the run; None where there is work, or only
        the work can tell. Writes nothing and takes no lock. Raises the errors of the run for bad input.
        """
        return None

    def plan(self, context: TableContext, owner: Owner) -> Result | None:
        """Writes the plan of the run, for `extent`. Returns the result where there is none. Raises as `run`."""
        return None

    def extent(self, context: TableContext, config: EngineConfig) -> Extent:
        """Returns how much work the request finds now, for the choice of an engine. Writes nothing."""
        return Extent()

    @abstractmethod
    def run(self, work: Work) -> Result:
        """Does the work. Raises HudiError: for bad input before any write, ConflictError when a retry is safe."""

    @property
    def may_make_table(self) -> bool:
        """Whether `make_table` may make the table where there is none."""
        return False

    def make_table(self, storage: Storage, storage_options: Mapping[str, str]) -> Result:
        """Makes the table, unless it is there by now. The result says `created` in its document; it has a reason where
        that is all, as in a dry run.
        """
        raise TypeError(f"{self.verb} makes no table")

    def after_making(self, config: TableConfig) -> Request | None:
        """Returns what is done, before this request, to a table without instants that it may have made."""
        return None

    def nothing_on_storage(self, storage: Storage, storage_options: Mapping[str, str] | None = None) -> Result | None:
        """Returns what `nothing` does, for work that needs no table."""
        return None

    def run_on_storage(self, storage: Storage, storage_options: Mapping[str, str] | None = None) -> Result:
        """Does work that needs no table. `storage_options` are for other files that the request names."""
        raise TypeError(f"{self.verb} needs a table")

    def rest(self, since: float, done: Result) -> Request:
        """Returns the request for the rest of a run that began at `since` (epoch seconds) and did `done`."""
        return self

    def to_json(self) -> str:
        """Returns one line of JSON, which parse_request reads."""
        return json.dumps({"version": REQUEST_VERSION, "verb": self.verb, **asdict(self)}, sort_keys=True)


@dataclass(frozen=True, slots=True)
class OptionalInstantRequest(Request):
    """The verbs that may name an instant."""

    instant: str | None = None

    def check_fields(self) -> None:
        check_instant(self.instant)


@dataclass(frozen=True, slots=True)
class InstantRequest(Request):
    """The verbs that need an instant."""

    instant: str

    def check_fields(self) -> None:
        check_instant(self.instant)


def check_instant(instant: str | None) -> None:
    """Raises ConfigError for a text that is no instant time."""
    if instant is not None and not (instant.isascii() and instant.isdigit() and len(instant) <= 32):
        raise ConfigError(f"{instant!r} is not an instant time", remedy="give the digits of the instant's file name")


def verb_class(verb: str) -> type[Request]:
    """Returns the class of requests of a verb. Raises ConfigError for a verb that this release does not have."""
    if verb not in VERBS:
        raise ConfigError(f"{WHAT}: unknown verb {verb!r}", remedy=f"this release knows: {', '.join(sorted(VERBS))}")
    module, _, name = VERBS[verb].partition(":")
    cls: type[Request] = getattr(import_module(module), name)
    return cls


def parse_request(text: str | bytes) -> Request:
    """Returns the request of `Request.to_json`. Raises ConfigError for unknown fields, versions or types."""
    return request_of(parse_object(text, what=WHAT))


def request_of(value: Mapping[str, Any]) -> Request:
    version = value.get("version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise ConfigError(f"{WHAT}: version must be a whole number", remedy=f'write "version": {REQUEST_VERSION}')
    if version != REQUEST_VERSION:
        raise ConfigError(
            f"{WHAT} has version {version}, this release reads {REQUEST_VERSION}",
            remedy="use the same release on both sides",
        )
    verb = "run" if value.get("verb") is None else value["verb"]
    if not isinstance(verb, str):
        raise ConfigError(f"{WHAT}: verb must be text")
    cls = verb_class(verb)
    check_names(cls, value.keys() - {"version", "verb"})
    if issubclass(cls, InstantRequest) and value.get("instant") is None:
        raise ConfigError(f"{WHAT}: {verb} needs an instant", remedy="name one in `instant`")
    return cls(**read_fields(cls, value, what=WHAT))


def check_names(cls: type[Request], names: set[str]) -> None:
    """Raises ConfigError for fields that the verb lacks: those of a newer release would be ignored."""
    wrong = sorted(names - _names(cls))
    for name in wrong:
        others = [verb for verb in VERBS if name in _names(verb_class(verb))]
        if others:
            raise ConfigError(f"{WHAT}: {cls.verb} takes no {name}", remedy=f"it is for {', '.join(others)}")
    if wrong:
        raise ConfigError(f"{WHAT} has unknown fields: {', '.join(wrong)}", remedy="use the same release on both sides")


def _names(cls: type[Request]) -> frozenset[str]:
    return frozenset(item.name for item in fields(cls))

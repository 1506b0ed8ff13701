"""The services of this release, one line each, and what makes a service due besides its own triggers.
services/runner.py (find_work) says whether a run of a service takes a pending plan or makes one;
services/restore/verb.py says so of a restore. Needs only the standard library: Airflow checks names without the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.frozen import dataclass
from hudi_core.request.texts import bytes_of, one_of, ratio_of, seconds_of, whole_number_of


@dataclass(frozen=True, slots=True)
class ServiceEntry:
    """A service. `implementation` is `module:class`, imported when the service is used. `on_driver`: its work is
    requests to the storage, and no work on rows or on many files at a time. `units` is what its progress counts.
    `conditions` are those that make it due besides its own triggers (Conditions).
    """

    implementation: str
    on_driver: bool = False
    units: str = "steps done"
    conditions: tuple[str, ...] = ()


SERVICES: Final[dict[str, ServiceEntry]] = {
    "compaction": ServiceEntry(
        "hudi_core.services.compaction.planner:CompactionService",
        units="file groups written",
        conditions=("commits", "age", "bytes", "log_ratio"),
    ),
    "clustering": ServiceEntry(
        "hudi_core.services.clustering.planner:ClusteringService",
        units="file groups read",
        conditions=("commits", "age", "bytes", "small_files"),
    ),
    "log_compaction": ServiceEntry(
        "hudi_core.services.compaction.log_planner:LogCompactionService", units="file groups written"
    ),
    "clean": ServiceEntry(
        "hudi_core.services.clean.planner:CleanService",
        units="batches of files deleted",
        conditions=("commits", "age"),
    ),
    "indexing": ServiceEntry("hudi_core.services.indexing.planner:IndexingService"),
    "rollback": ServiceEntry("hudi_core.services.rollback.verb:RollbackService", on_driver=True),
    "archive": ServiceEntry("hudi_core.services.archive.job:ArchiveService", on_driver=True),
}
_NAMES: Final = {"logcompaction": "log_compaction"}
"""Services by their action, where the two differ."""


def check_service(name: str) -> ServiceEntry:
    """Returns the service called `name`. Raises UnsupportedError where this release has none."""
    entry = SERVICES.get(name)
    if entry is None:
        raise UnsupportedError(f"the service {name} is not in this release", remedy=one_of(name, sorted(SERVICES)))
    return entry


def service_of_action(action: str) -> str | None:
    """Returns the service of plans pending under `action`; None for a write and the ambiguous replacecommit."""
    name = _NAMES.get(action, action)
    return name if name in SERVICES else None


def action_of_service(name: str) -> str:
    """Returns the action of the pending files of the service called `name`: the inverse."""
    return next((action for action, service in _NAMES.items() if service == name), name)


def nothing_pending(service: str, table: str) -> str:
    """Says why a run of the service that plans nothing found nothing to do on the table, and what helps."""
    return f"no {service} is pending on {table}; --schedule plans one"


N = TypeVar("N")


@dataclass(frozen=True, slots=True)
class Conditions:
    """What makes a service due, each condition alone: so many `commits` since its last run; the oldest of them is `age`
    seconds old; so many bytes (`size`) of log files, or of small files; log files of `log_ratio` times the bytes of the
    base files; so many `small_files`. Without any condition the service's own triggers decide.
    """

    commits: int | None = None
    age: int | None = None
    size: int | None = None
    log_ratio: float | None = None
    small_files: int | None = None

    @staticmethod
    def of(service: str, given: Mapping[str, str]) -> Conditions:
        """Reads conditions from texts by name. Raises ConfigError for an unknown or invalid one."""
        known = check_service(service).conditions
        for name in given:
            if name not in known:
                raise ConfigError(
                    f"{service} has no condition {name!r}",
                    remedy=f"it has {', '.join(known)}" if known else "leave it out: the service decides by itself",
                )

        def read(name: str, parse: Callable[[str], N]) -> N | None:
            if name not in given:
                return None
            try:
                value = parse(given[name])
                if not value:
                    raise ValueError("is not above 0")
            except ValueError as error:
                raise ConfigError(
                    f"{name} of {service}: {given[name]!r} {error}", remedy="correct it, or leave the condition out"
                ) from error
            return value

        return Conditions(
            read("commits", whole_number_of),
            read("age", seconds_of),
            read("bytes", bytes_of),
            read("log_ratio", ratio_of),
            read("small_files", whole_number_of),
        )

    @property
    def needs_files(self) -> bool:
        return (self.size, self.log_ratio, self.small_files) != (None, None, None)

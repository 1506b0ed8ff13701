"""What a table service offers to those that run it: the runner, hudictl, the Spark job, the operators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import Any, ClassVar, Final

from hudi_core.config.engine_config import EngineConfig, Extent
from hudi_core.engine.protocol import Engine, Json
from hudi_core.frozen import dataclass
from hudi_core.request.results import InstantResult, Result
from hudi_core.request.services import check_service
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import Job, Run, UnitProgress, run_instant
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.owner import Owner


@dataclass(frozen=True, slots=True)
class Scheduled:
    """The instant that was requested, and its plan for people. `instant` is None in a dry run and where there is
    nothing to plan; then `reason` says why nothing is planned, and which option would change that.
    """

    instant: str | None
    plan: Json | None
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {"instant": self.instant, "plan": self.plan, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Nothing:
    """Why there is nothing to plan, and which option would change that."""

    reason: str


NO_OPTION: Final = "; no option changes that"
"""The end of a reason that names no option."""
FREED_BY: Final = "`hudictl run` or `hudictl unschedule` frees them"
"""The part of a reason that says how to free file groups that pending plans hold."""


class Service(ABC):
    """Plans instants of one action, and runs those that the timeline holds as requested or inflight. A service without
    instants (`has_instants`) acts at once, under the table lock; its `schedule` says what it would do.
    """

    name: ClassVar[str]
    has_instants: ClassVar[bool] = True
    action: ClassVar[str]
    job: ClassVar[type[Job[Any, Any]]]
    """The part of an instant's run that is the service's own."""

    def pending(self, context: TableContext, timeline: Timeline) -> list[str]:
        """The requested times of the instants that `run` can run now, oldest first, whichever writer planned them."""
        return [instant.requested_time for instant in timeline.pending().of_actions(self.action)]

    def extent(self, context: TableContext, instant: str, config: EngineConfig) -> Extent:
        """Returns the size of a pending plan (engine_choice): one unit without bytes, unless a service knows it."""
        return Extent()

    def run(
        self, context: TableContext, instant: str, engine: Engine, owner: Owner, progress: UnitProgress | None
    ) -> InstantResult:
        """Runs one instant to its completion (run_instant). Reloads the properties, which planning may change."""
        return run_instant(self.job(Run(context.reloaded(), instant, owner, engine, progress)))

    def has_work_before(self, context: TableContext, owner: Owner) -> bool:
        """Whether `schedule` does something of its own before it plans; nothing is written."""
        return False

    def run_now(self, context: TableContext, owner: Owner, progress: UnitProgress | None) -> Result:
        """Acts at once. Where there was nothing to do, the result has no instant, and the reason."""
        raise TypeError(f"{self.name} has instants")

    @abstractmethod
    def schedule(self, context: TableContext, owner: Owner, *, dry_run: bool) -> Scheduled:
        """Plans one instant and requests it, under the table lock. With `dry_run`, only plans it."""
        ...


def service_of(name: str) -> Service:
    """Returns the service called `name`. Raises UnsupportedError when this release has none."""
    module, _, implementation = check_service(name).implementation.partition(":")
    service: Service = getattr(import_module(module), implementation)()
    return service

"""The order of the steps of every service: one function brings an instant from `requested` to `completed`.

check → find → plan → claim → carry out an earlier owner's decision (transaction/commit.py) → begin (roll back what a
dead owner's attempt left, for rewrites in rollback/failed_attempt.py; inflight) → execute → complete (lock: owner,
conflicts, metadata table, put) → clean up → forget claims

A process may die in every step. The next process that claims the instant finds what the dead one left. It goes on,
rolls that back, or only cleans up. A service adds a Job with its own steps; this module alone says their order. If no
process runs a completed instant again, its claims are deleted when it is archived (archive/job.py).
airflow_hudi/operators/service.py says which try of an Airflow task completed the instant.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import field, replace
from functools import partial
from typing import ClassVar, Generic, TypeVar

from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import Engine
from hudi_core.errors import ConfigError, ConflictError, HudiError
from hudi_core.frozen import dataclass
from hudi_core.model.names import CLAIMS
from hudi_core.request.results import InstantResult
from hudi_core.services.context import TableContext
from hudi_core.services.decided_completion import why_not_completed
from hudi_core.storage.one_look import look_again, no_look, one_look
from hudi_core.storage.recorded_changes import exit_code_of_changes
from hudi_core.timeline.instant import Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.commit import Completer, Precondition, Publish
from hudi_core.transaction.owner import Owner

log = logging.getLogger(__name__)

UnitProgress = Callable[[int, int], None]
"""A callback that receives the number of units done and the number of all units."""

Plan = TypeVar("Plan")
Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one instant by one owner. A job without units needs no engine."""

    context: TableContext
    instant: str
    owner: Owner
    engine: Engine = field(default_factory=lambda: LocalEngine(1))
    progress: UnitProgress | None = None


@dataclass(frozen=True, slots=True)
class Completion(Generic[Done]):
    """The result of an attempt: the `content` of the completed file, and the `preconditions` and `publish` for the lock
    (Completer.complete). `done` is the job's own, for its clean-up and its result.
    """

    content: bytes
    done: Done
    publish: Publish | None = None
    preconditions: tuple[Precondition, ...] = ()


class Job(ABC, Generic[Plan, Done]):
    """The steps of one service for one run, in the order of `run_instant`. Nothing is written before `begin`."""

    action: str
    """The pending action of the instants, such as `compaction`."""
    looks_once: ClassVar[bool] = False
    """Whether each step of a run needs one look at the table (storage.one_look). Otherwise every request is made."""
    requests_itself: ClassVar[bool] = False
    """Whether the process of the run has requested the instant just now."""
    revisits: ClassVar[bool] = False
    """Whether a run of a completed instant always cleans up after it, under the claim alone. Otherwise it does so only
    where leftovers or claims are found, and under the table lock too.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.context = run.context
        self.storage = run.context.storage
        self.active = run.context.active
        self.instant = run.instant
        self.owner = run.owner

    def check(self) -> None:
        """Raises where the service cannot run on the table, whatever the plan is."""

    def find(self, timeline: Timeline) -> Instant:
        """Returns the instant, in any state. Raises ConfigError where the timeline has none of this action, and
        ConflictError where this process has requested it.
        """
        instant = timeline.find(self.instant, self.action)
        if instant is None and self.requests_itself:
            raise ConflictError(
                f"another run has rolled {self.action} {self.instant} back before it began",
                path=self.active.folder,
                remedy="run it again",
            )
        if instant is None:
            raise ConfigError(
                f"the timeline holds no {self.action} at instant {self.instant}",
                path=self.active.folder,
                remedy=f"list the instants with `hudictl timeline TABLE --action {self.action}`",
            )
        return instant

    def leftovers(self) -> bool:
        """Whether the run of a completed instant left something besides its claims."""
        return False

    @abstractmethod
    def plan(self, timeline: Timeline) -> Plan:
        """Reads and checks the plan. Raises the errors of bad input."""

    def fence(self, stack: ExitStack) -> None:
        """Enters the contexts that are held around the claim."""

    def claimed(self, claim: Claim) -> None:
        """Called after the claim, before the timeline is read again."""

    def locks(self, plan: Plan, held: Claim) -> AbstractContextManager[object]:
        """Returns what is held during the attempt, besides the claim."""
        return nullcontext()

    def begin(self, plan: Plan, held: Claim) -> None:
        """Makes the instant inflight. A job first rolls back an attempt that cannot be continued."""
        held.check()
        self.active.to_inflight(self.instant, self.action)

    @abstractmethod
    def execute(self, plan: Plan, held: Claim) -> Completion[Done] | None:
        """Does the work and proves it. Returns None where the instant left the timeline instead."""

    def repeats(self, error: HudiError) -> bool:
        """Whether `execute` is called again at once, after `execute` or the completion raised `error`."""
        return False

    def abandon(self, plan: Plan, held: Claim, error: HudiError) -> None:
        """Removes what no other run would remove. Called when the attempt failed with `error`."""

    def clean_up(self, plan: Plan, done: Done) -> None:
        """Removes what the completing attempt left, under the claim."""

    def clean_up_completed(self, *, decided: bool) -> None:
        """Cleans up after an earlier run. `decided`: it died before the completion, which was carried out now."""

    def forget(self) -> None:
        """The last step, after the claim is released. No claim stays on an instant that is over (Claim.is_over)."""

    def refused(self) -> None:
        """Called instead of `forget` after a ConflictError, when the claim is released."""

    def result(self, done: Done | None, seconds: float) -> InstantResult:
        """Returns the run's result. `done` is None where an earlier run completed the instant, or it is gone."""
        return InstantResult(self.instant, self.action, State.COMPLETED.value, seconds=seconds)


def run_instant(job: Job[Plan, Done]) -> InstantResult:
    """Runs the instant of `job` to its completion; an instant that is done stays as it is. Raises, before anything is
    written, what `check`, `find` and `plan` of the job raise. Raises ConflictError while another owner runs the
    instant. After any other failure, and after a kill, the instant can be run again. Bad input that is found after the
    claim is such a failure: its exit code is not 2, and its message says what is left.
    """
    with one_look(job.storage, goes_on=True) if job.looks_once else no_look(job.storage):
        return _run_instant(job)


def _run_instant(job: Job[Plan, Done]) -> InstantResult:
    started = time.monotonic()
    job.check()
    timeline = job.active.load()
    if job.find(timeline).is_completed and not job.revisits:
        _clean_up_behind(job)
        return replace(job.result(None, _seconds_since(started)), already_completed=True)
    plan = job.plan(timeline)
    try:
        with exit_code_of_changes(job.storage), ExitStack() as stack:
            job.fence(stack)
            owned = stack.enter_context(claimed(job.context, job.instant, job.owner))
            ran = _run_owned(job, plan, owned)
            owned.held.is_over = True
    except ConflictError:
        look_again(job.storage)
        job.refused()
        raise
    job.forget()
    is_ours, done = ran
    return replace(job.result(done, _seconds_since(started)), already_completed=not is_ours)


def _clean_up_behind(job: Job[Plan, Done]) -> None:
    """Removes what a run left that died right after the completion: claims, the table lock, the service's leftovers."""
    if not job.leftovers() and not job.storage.list_files(f"{CLAIMS}/{job.instant}"):
        return
    try:
        claim = job.context.claim(job.instant, job.owner)
    except ConflictError as error:
        log.info("%s: its owner cleans up", error)
        return
    with claim, job.context.lock(job.owner):  # taking the lock also breaks the one that the dead run may have left
        log.info("%s was completed by a run that died right after", job.instant)
        job.clean_up_completed(decided=False)
        claim.is_over = True
    job.forget()


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claimed instant. `completed` is set where this claim carried out an earlier owner's decision."""

    held: Claim
    completer: Completer
    completed: Instant | None
    abandoned: bool = False
    """Whether an earlier owner had decided to complete the instant, and this was abandoned (Completer.finish_decided).
    """


@contextmanager
def claimed(context: TableContext, instant: str, owner: Owner) -> Iterator[Claimed]:
    """Claims `instant`, and first carries out what an earlier owner decided (Completer.finish_decided), where that
    loses no rows (decided_completion.py). The claim is released at the end, and stays on record. Raises ConflictError
    while another owner may be alive, or a request of a dead owner may still arrive.
    """
    with context.claim(instant, owner) as held:
        completer, is_decided = context.completer(held, owner), held.decided is not None
        completed = completer.finish_decided(instant, why_not=partial(why_not_completed, context, instant))
        yield Claimed(held, completer, completed, abandoned=is_decided and completed is None)


def _run_owned(job: Job[Plan, Done], plan: Plan, owned: Claimed) -> tuple[bool, Done | None]:
    """Returns whether this run ended the instant, also by an earlier owner's decision; and what its own attempt did."""
    if owned.completed is not None:
        job.clean_up_completed(decided=True)
        return True, None
    job.claimed(owned.held)
    if not job.find(job.active.load()).is_completed:
        if owned.abandoned:
            # The first `plan` of a decided instant accepts one that no longer fits the table: a decision needs no plan.
            plan = job.plan(job.active.load())
        return True, _attempt(job, plan, owned.held, owned.completer)
    if job.revisits:
        job.clean_up_completed(decided=False)
    return False, None


def _attempt(job: Job[Plan, Done], plan: Plan, held: Claim, completer: Completer) -> Done | None:
    with job.locks(plan, held):
        try:
            job.begin(plan, held)
            completion = _complete(job, plan, held, completer)
        except HudiError as error:
            look_again(job.storage)
            job.abandon(plan, held, error)
            raise
        if completion is None:
            return None
        look_again(job.storage)
        job.clean_up(plan, completion.done)
    return completion.done


def _complete(job: Job[Plan, Done], plan: Plan, held: Claim, completer: Completer) -> Completion[Done] | None:
    while True:
        try:
            completion = job.execute(plan, held)
            if completion is not None:
                publish, preconditions = completion.publish, completion.preconditions
                content = completion.content
                completer.complete(job.instant, job.action, content, publish=publish, preconditions=preconditions)
                log.info("%s %s completed", job.action, job.instant)
            return completion
        except HudiError as error:
            if not job.repeats(error):
                raise
            look_again(job.storage)


def _seconds_since(started: float) -> float:
    return round(time.monotonic() - started, 3)

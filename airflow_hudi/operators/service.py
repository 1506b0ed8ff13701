"""The table services with instants of their own: what is planned is run, what is not planned is planned first. A retry
re-attaches to the instant that jobs/task_store.py kept. Which work counts as the task's own: results.py. Which run
completed an instant: hudi_core/services/lifecycle.py.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_hudi.arguments import check_literal_choice, is_literal
from airflow_hudi.conditions.instant import first_planned, mark_before_planning, oldest_pending
from airflow_hudi.exceptions import HudiInstantNotFound
from airflow_hudi.jobs.waiting import InstantWatch, run_until_completed
from airflow_hudi.operators.base import DRY_RUN, BaseHudiOperator
from airflow_hudi.results import (
    ELSEWHERE,
    document_of,
    found_completed,
    instant_named,
    instant_result,
    instants_of,
    nothing_result,
    removed_result,
    work_seconds,
)
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.config.options import planned_before
from hudi_core.errors import ConfigError
from hudi_core.request.results import REMOVED
from hudi_core.request.services import Step, action_of_service, next_step, nothing_pending
from hudi_core.request.texts import check_choice
from hudi_core.timeline.instant import Action, Instant
from hudi_core.verbs.run import RunRequest, ScheduleRequest

if TYPE_CHECKING:
    from airflow.sdk import Context

MODES = ("schedule", "execute", "both")
REASON_OUT_OF_REACH = "the job planned nothing and its output, which says why, is out of reach: see the driver's log"


class BaseHudiServiceOperator(BaseHudiOperator):
    """Plans and runs instants of a service. A task that planned or started one knows it when it is retried, after
    whatever kill: it runs the same one, finds it completed, or takes it over. While another process runs it, the task
    waits (`conflict_*`).

    XCom: `{"table", "instant", "action", "state", "files_written", "bytes_written", "files_deleted", "records",
    "seconds", "already_completed", "engine", "reason"}`; `instant` is None and `reason` is set when there was nothing
    to do, `engine` is None when another process did it. `reason` also names the options that are not used where `both`
    runs a plan of others. That of a dry run: BaseHudiOperator.preview with `plan`, or `{"table", "dry_run", "instant",
    "action", "state", "plan", "reason"}` without one where the task would run an instant that is planned.

    :param mode: `schedule` plans an instant and leaves it requested; `execute` runs one that is planned, by name or the
        oldest; `both` does so, and where none is planned plans one and runs it, in one job (templated)
    :param instant: the instant to run, with `execute` or `both`; empty for the oldest that is planned (templated)
    :param dry_run: whether the work is only reported; may be rendered (templated)
    """

    service: ClassVar[str]
    mode: str = "both"
    instant: str | None = None
    dry_run: bool | str = False  # type: ignore[assignment]  # Airflow's method of this name logs, and is not called
    template_fields = ("mode", "instant", DRY_RUN, *BaseHudiOperator.template_fields)

    def check_arguments(self) -> None:
        super().check_arguments()
        check_literal_choice("mode", self.mode, MODES)
        if is_literal(self.mode, self.instant) and self.mode:
            self._check_mode()

    def _check_mode(self) -> None:
        check_choice("mode", self.mode, MODES)
        if self.instant and self.mode == "schedule":
            raise ConfigError(
                "mode schedule chooses the instant itself", remedy="use mode='execute', or omit the instant"
            )

    def reader(self) -> TimelineReader:
        return self.hook.timeline(self.table, self.action)

    @property
    def action(self) -> str:
        """The action on the service's pending files."""
        return action_of_service(self.service)

    def serve(self, reader: TimelineReader, context: Context) -> dict[str, Any]:
        started = time.monotonic()
        self._check_mode()
        if self.is_dry_run:
            return self._would_do(reader, context)
        known = self._known(reader, context)
        if self.mode == "schedule":
            return self._schedule(reader, context, known, started)
        unused = None
        if known is None:
            known = oldest_pending(reader.load(), self.action)
            unused = self._unused(known)
        if known is not None:
            return self._run(reader, context, known, started, unused)
        if next_step(is_pending=False, schedule=self.mode == "both") is Step.NOTHING:
            return self.nothing_planned(reader, context, nothing_pending(self.service, reader.config.name))
        return self._plan_and_run(reader, context, started)

    def _would_do(self, reader: TimelineReader, context: Context) -> dict[str, Any]:
        known = None
        if self.instant:
            known = InstantWatch(reader, self.instant, self.action).look()
        elif self.mode != "schedule":
            known = oldest_pending(reader.load(), self.action)
        if known is None and self.mode != "execute":
            request = ScheduleRequest(service=self.service, dry_run=True, **self.request_fields(reader, context))
            return self.preview(reader, request)
        named = {"instant": None, "action": self.action, "state": None} if known is None else instant_named(known)
        reason = nothing_pending(self.service, reader.config.name) if known is None else None
        xcom = {"table": reader.storage.uri, **named, "plan": None, "reason": reason, DRY_RUN: True}
        self.log.info("Nothing is written: %s", xcom)
        return xcom

    def _known(self, reader: TimelineReader, context: Context) -> Instant | None:
        """The requested instant, or the one that an earlier try of this task started or planned."""
        if self.instant:
            return InstantWatch(reader, self.instant, self.action).look()
        store, timeline = self.store(context), reader.load()
        found = timeline.find(store.instant, self.action) if store.instant else None
        if found is None and store.after:
            found = first_planned(timeline, self.action, store.after)
        return found

    def _unused(self, known: Instant | None) -> str | None:
        """What is said, here and in the XCom, where the task would plan with options, and takes a plan of others."""
        if known is None or self.mode != "both":
            return None
        said = planned_before(self.service, known.requested_time, self.options or ())
        if said is not None:
            self.log.warning("%s", said)
        return said

    def _schedule(
        self, reader: TimelineReader, context: Context, known: Instant | None, started: float
    ) -> dict[str, Any]:
        if known is None:
            after = self._plan_after(reader, context)
            request = ScheduleRequest(service=self.service, **self.request_fields(reader, context))
            document = document_of(self.result_of(reader, request))
            known = self._planned(reader, document.get("instant"), after)
            if known is None:
                self.store(context).forget()
                return self.nothing_planned(reader, context, document.get("reason") or REASON_OUT_OF_REACH)
        return self._finish(reader, context, known, time.monotonic() - started, already_completed=known.is_completed)

    def _plan_and_run(self, reader: TimelineReader, context: Context, started: float) -> dict[str, Any]:
        after = self._plan_after(reader, context)
        request = RunRequest(service=self.service, schedule=True, **self.request_fields(reader, context))
        gave_way = False

        def is_planned() -> bool:
            nonlocal gave_way
            gave_way = first_planned(reader.load(), self.action, after) is not None
            return gave_way

        result = self.result_of(reader, request, enough=is_planned)
        instants = () if result is None else result.instants
        known = self._planned(reader, instants[-1].instant if instants else None, after)
        if known is not None:
            # A job that ended well and whose report was not received did what was planned since its start.
            name = known.requested_time
            others = gave_way or (result is not None and not instants) or found_completed(result, name)
            if others and known.is_completed:
                return self._finish(reader, context, known, 0.0, already_completed=True, reason=ELSEWHERE)
            return self._run(reader, context, known, started)
        self.store(context).forget()
        if instants:
            return removed_result(reader.storage.uri, instants[-1])
        return self.nothing_planned(reader, context, (result and result.reason) or REASON_OUT_OF_REACH)

    def _plan_after(self, reader: TimelineReader, context: Context) -> str:
        store = self.store(context)
        store.after = after = store.after or mark_before_planning(reader.load(), self.action)
        return after

    def _planned(self, reader: TimelineReader, instant: str | None, after: str) -> Instant | None:
        """The instant that a job named or, where its report was not received, the first one after its start."""
        timeline = reader.load()
        return timeline.find(instant, self.action) if instant else first_planned(timeline, self.action, after)

    def _run(
        self,
        reader: TimelineReader,
        context: Context,
        instant: Instant,
        started: float,
        unused: str | None = None,
    ) -> dict[str, Any]:
        name = instant.requested_time
        store = self.store(context)
        is_resumed = name in (store.instant, (store.done or {}).get("instant")) or bool(
            self._job is None and store.after
        )
        elsewhere = None if is_resumed else ELSEWHERE
        store.instant = name
        if instant.is_completed:
            if self._job is None:
                return self._finish(reader, context, instant, 0.0, already_completed=True, reason=elsewhere)
            seconds = work_seconds(instants_of(self._job.result, name), time.monotonic() - started)
            return self._finish(reader, context, instant, seconds, already_completed=False)
        self.log.info("%s %s is %s; running it", self.service, name, instant.state.value)
        request = RunRequest(service=self.service, instant=name, **self.request_fields(reader, context))
        job = self.new_job(reader, request, looks=False)
        try:
            finished = run_until_completed(job, InstantWatch(reader, name, self.action), self.patience)
        except HudiInstantNotFound:
            removed = [result for result in instants_of(job.result, name) if result.state == REMOVED]
            if not removed:
                raise
            store.forget()
            return removed_result(reader.storage.uri, removed[0])
        if finished.elsewhere:
            return self._finish(reader, context, finished.instant, 0.0, already_completed=True, reason=elsewhere)
        seconds = work_seconds(instants_of(job.result, name), time.monotonic() - started)
        return self._finish(reader, context, finished.instant, seconds, already_completed=False, reason=unused)

    def _finish(
        self,
        reader: TimelineReader,
        context: Context,
        instant: Instant,
        seconds: float,
        *,
        already_completed: bool,
        reason: str | None = None,
    ) -> dict[str, Any]:
        result = None if self._job is None else self._job.result
        xcom = instant_result(
            reader, instant, seconds=seconds, already_completed=already_completed, reason=reason, result=result
        )
        self.store(context).finish({"instant": instant.requested_time})
        self.log.info("%s %s is %s: %s", self.service, instant.requested_time, instant.state.value, xcom)
        return xcom

    def nothing_planned(self, reader: TimelineReader, context: Context, reason: str) -> dict[str, Any]:
        """The XCom of a task that found nothing planned and planned nothing; or the task is skipped. See `nothing`."""
        return self.nothing(context, lambda: self._done_before(reader, self.store(context).done or {}), reason)

    def _done_before(self, reader: TimelineReader, done: Mapping[str, Any]) -> dict[str, Any]:
        """The result of the instant that this task completed before, or that of nothing, where it is archived, too."""
        found = reader.load().find(done["instant"], self.action) if done else None
        if found is None:
            return nothing_result(reader.storage.uri, self.action)
        return instant_result(reader, found, seconds=0.0, already_completed=True)


class HudiCleanOperator(BaseHudiServiceOperator):
    """Deletes the files that no query of the kept commits needs any more. `options` define what is kept:
    `hoodie.clean.policy`, `hoodie.clean.commits.retained` and the others of docs/options.md.
    """

    service = Action.CLEAN


class HudiClusteringOperator(BaseHudiServiceOperator):
    """Writes the rows of small or unordered files into new files. `options` define what is taken, and the order:
    `hoodie.clustering.plan.strategy.sort.columns`, `hoodie.clustering.plan.partition.filter.mode`… (docs/options.md).
    """

    service = Action.CLUSTERING


class HudiCompactionOperator(BaseHudiServiceOperator):
    """Merges the log files of file groups into new base files. `options` define when one is due and what it takes
    (docs/options.md): `hoodie.compact.inline.trigger.strategy`, `hoodie.compaction.strategy`… Where writers plan
    themselves (`hoodie.compact.schedule.inline`), mode `execute` runs their plans alone.

    :param metadata: `auto`, `on` or `off`: whether the job reads the metadata table
    :param allow_corrupt_log_blocks: compact file slices whose corrupt log blocks hold rows of a completed commit, too;
        those rows are lost
    """

    service = Action.COMPACTION
    metadata: str = "auto"
    allow_corrupt_log_blocks: bool = False

    def request_fields(self, reader: TimelineReader, context: Context) -> dict[str, Any]:
        given = {"metadata": self.metadata, "allow_corrupt_log_blocks": self.allow_corrupt_log_blocks}
        return {**super().request_fields(reader, context), **given}


class HudiLogCompactionOperator(BaseHudiServiceOperator):
    """Merges the log files of file groups into one log file each. It plans with `hoodie.log.compaction.enable=true`
    among the `options` only: the table's readers know log compactions (docs/spec/log-compaction.md).
    """

    service = "log_compaction"


class HudiIndexingOperator(BaseHudiServiceOperator):
    """Builds indexes of the metadata table while writers continue. `options` name them:
    `hoodie.metadata.index.column.stats.enable`, `hoodie.metadata.record.index.enable` and the others of
    docs/options.md; `airflow_hudi.indexing.file_groups` resizes an existing row-level index. A task that stopped
    waiting for a writer (`airflow_hudi.indexing.catchup_minutes`) resumes when it is retried.
    """

    service = Action.INDEXING

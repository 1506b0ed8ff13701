"""The table services with their own instants. A task runs a planned instant, or plans one first. A retry continues the
instant in jobs/task_store.py. hudi_core/services/lifecycle.py says which run completed an instant.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar

from airflow_hudi.arguments import is_literal
from airflow_hudi.conditions.condition import first_planned, mark_before_planning, oldest_pending
from airflow_hudi.jobs.engine_job import EngineJob
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
from airflow_hudi.task_fate import HudiInstantNotFound
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.config.options import planned_before
from hudi_core.errors import ConfigError
from hudi_core.request.results import REMOVED
from hudi_core.request.services import action_of_service, nothing_pending
from hudi_core.request.texts import check_choice
from hudi_core.timeline.instant import Action, Instant
from hudi_core.verbs.run import RunRequest, ScheduleRequest

MODES = ("schedule", "execute", "both")
REASON_OUT_OF_REACH = "the job planned nothing and its output, which says why, is out of reach: see the driver's log"


class BaseHudiServiceOperator(BaseHudiOperator):
    """Plans and runs instants of a service. A task remembers the instant that it planned or started, whatever kills it:
    a retry runs the same instant, finds it completed, or takes it over. While another process runs the instant, the
    task waits (`conflict_*`).

    XCom: `{"table", "instant", "action", "state", "files_written", "bytes_written", "files_deleted", "records",
    "seconds", "already_completed", "engine", "reason"}`. `instant` is None and `reason` is set when there was nothing
    to do. `engine` is None when another process did the work. `reason` also names the options that are not used when
    `both` runs a plan of others. The XCom of a dry run is that of BaseHudiOperator.preview with `plan`. If the task
    would run a planned instant, it is `{"table", "dry_run", "instant", "action", "state", "plan", "reason"}`, and
    `plan` is None.

    :param mode: `schedule` plans an instant and leaves it requested; `execute` runs a planned instant, by name or the
        oldest; `both` runs a planned instant, or plans one and runs it in the same job if none is planned (templated)
    :param instant: the instant to run, with `execute` or `both`; empty for the oldest planned one (templated)
    :param dry_run: whether the work is only reported; may be rendered (templated)
    """

    service: ClassVar[str]
    mode: str = "both"
    instant: str | None = None
    dry_run: bool | str = False  # type: ignore[assignment]  # Airflow's method of this name logs, and is not called
    _argument_choices: ClassVar = {"mode": MODES}
    _started = 0.0
    template_fields = ("mode", "instant", DRY_RUN, *BaseHudiOperator.template_fields)

    def check_arguments(self) -> None:
        super().check_arguments()
        if is_literal(self.mode, self.instant) and self.mode:
            self._check_mode()

    def _check_mode(self) -> None:
        check_choice("mode", self.mode, MODES)
        if self.instant and self.mode == "schedule":
            raise ConfigError(
                "mode schedule chooses the instant itself", remedy="use mode='execute', or omit the instant"
            )

    def new_reader(self) -> TimelineReader:
        return self.hook.timeline(self.table, self.action)

    @property
    def action(self) -> str:
        """The action in the names of the service's pending files."""
        return action_of_service(self.service)

    def serve(self) -> dict[str, Any]:
        self._started = time.monotonic()
        self._check_mode()
        if self.is_dry_run:
            return self._would_do()
        known = self._known()
        if self.mode == "schedule":
            return self._schedule(known)
        unused = None
        if known is None:
            known = oldest_pending(self.reader.load(), self.action)
            unused = self._unused(known)
        if known is not None:
            return self._run(known, unused)
        if self.mode != "both":
            return self.nothing_planned(nothing_pending(self.service, self.reader.config.name))
        return self._plan_and_run()

    def of_service(self, request: type[RunRequest | ScheduleRequest], **others: Any) -> Any:
        """Returns a request for the service."""
        return request(service=self.service, **self.request_fields(), **others)

    def _would_do(self) -> dict[str, Any]:
        known = None
        if self.instant:
            known = InstantWatch(self.reader, self.instant, self.action).look()
        elif self.mode != "schedule":
            known = oldest_pending(self.reader.load(), self.action)
        if known is None and self.mode != "execute":
            return self.preview(self.of_service(ScheduleRequest, dry_run=True))
        named = {"instant": None, "action": self.action, "state": None} if known is None else instant_named(known)
        reason = nothing_pending(self.service, self.reader.config.name) if known is None else None
        xcom = {"table": self.reader.storage.uri, **named, "plan": None, "reason": reason, DRY_RUN: True}
        self.log.info("Nothing is written: %s", xcom)
        return xcom

    def _known(self) -> Instant | None:
        """Returns the instant of the argument, or the instant that an earlier try of this task started or planned."""
        if self.instant:
            return InstantWatch(self.reader, self.instant, self.action).look()
        started, timeline = self.store.instant, self.reader.load()
        known = timeline.find(started, self.action) if started else None
        if known is None and (after := self.store.after):
            known = first_planned(timeline, self.action, after)
        return known

    def _unused(self, known: Instant | None) -> str | None:
        """Returns the text for the log and XCom when the task has planning options, but runs a plan of others."""
        if known is None or self.mode != "both":
            return None
        said = planned_before(self.service, known.requested_time, self.options or ())
        if said is not None:
            self.log.warning("%s", said)
        return said

    def _schedule(self, known: Instant | None) -> dict[str, Any]:
        if known is None:
            after = self._plan_after()
            document = document_of(self.result_of(self.of_service(ScheduleRequest)))
            known = self._planned(document.get("instant"), after)
            if known is None:
                self.store.forget()
                return self.nothing_planned(document.get("reason") or REASON_OUT_OF_REACH)
        return self._finish(known, time.monotonic() - self._started, already_completed=known.is_completed)

    def _plan_and_run(self) -> dict[str, Any]:
        after = self._plan_after()
        gave_way = False

        def is_planned() -> bool:
            nonlocal gave_way
            gave_way = first_planned(self.reader.load(), self.action, after) is not None
            return gave_way

        result = self.result_of(self.of_service(RunRequest, schedule=True), enough=is_planned)
        instants = () if result is None else result.instants
        known = self._planned(instants[-1].instant if instants else None, after)
        if known is not None:
            # If the job succeeded and its report was not received, the job ran the instant planned since its start.
            name = known.requested_time
            others = gave_way or (result is not None and not instants) or found_completed(result, name)
            if others and known.is_completed:
                return self._finish(known, 0.0, already_completed=True, reason=ELSEWHERE)
            return self._run(known)
        self.store.forget()
        if instants:
            return removed_result(self.reader.storage.uri, instants[-1])
        return self.nothing_planned((result and result.reason) or REASON_OUT_OF_REACH)

    def _plan_after(self) -> str:
        self.store.after = after = self.store.after or mark_before_planning(self.reader.load(), self.action)
        return after

    def _planned(self, instant: str | None, after: str) -> Instant | None:
        """Returns the instant that a job named, or the first one planned after its start if it named none."""
        timeline = self.reader.load()
        return timeline.find(instant, self.action) if instant else first_planned(timeline, self.action, after)

    def _run(self, instant: Instant, unused: str | None = None) -> dict[str, Any]:
        name, store, before = instant.requested_time, self.store, self._job
        is_resumed = name in (store.instant, (store.done or {}).get("instant")) or bool(before is None and store.after)
        elsewhere = None if is_resumed else ELSEWHERE
        store.instant = name
        if instant.is_completed:
            if before is None:
                return self._finish(instant, 0.0, already_completed=True, reason=elsewhere)
            return self._finish(instant, self._seconds_of(before, name), already_completed=False)
        self.log.info("%s %s is %s; running it", self.service, name, instant.state.value)
        job = self.new_job(self.of_service(RunRequest, instant=name), looks=False)
        try:
            finished = run_until_completed(job, InstantWatch(self.reader, name, self.action), self.patience)
        except HudiInstantNotFound:
            removed = [result for result in instants_of(job.result, name) if result.state == REMOVED]
            if not removed:
                raise
            store.forget()
            return removed_result(self.reader.storage.uri, removed[0])
        if finished.elsewhere:
            return self._finish(finished.instant, 0.0, already_completed=True, reason=elsewhere)
        return self._finish(finished.instant, self._seconds_of(job, name), already_completed=False, reason=unused)

    def _seconds_of(self, job: EngineJob, instant: str) -> float:
        return work_seconds(instants_of(job.result, instant), time.monotonic() - self._started)

    def _finish(
        self, instant: Instant, seconds: float, *, already_completed: bool, reason: str | None = None
    ) -> dict[str, Any]:
        done: dict[str, Any] = {"seconds": seconds, "already_completed": already_completed, "reason": reason}
        result = None if self._job is None else self._job.result
        xcom = instant_result(self.reader, instant, **done, result=result)
        self.store.finish({"instant": instant.requested_time})
        self.log.info("%s %s is %s: %s", self.service, instant.requested_time, instant.state.value, xcom)
        return xcom

    def nothing_planned(self, reason: str) -> dict[str, Any]:
        """Ends a task that found nothing planned and planned nothing (`nothing`). If the task had completed an instant
        before, and the instant is not archived, the XCom describes this instant.
        """
        before = self.store.done
        instant = self.reader.load().find(before["instant"], self.action) if before else None
        if instant is None:
            return self.nothing(nothing_result(self.reader.storage.uri, self.action), reason)
        return self.nothing(instant_result(self.reader, instant, seconds=0.0, already_completed=True), reason)


class HudiCleanOperator(BaseHudiServiceOperator):
    """Deletes the files that no query of the kept commits needs. `options` define what to keep: `hoodie.clean.policy`,
    `hoodie.clean.commits.retained` and the others of docs/reference/options.md.
    """

    service = Action.CLEAN


class HudiClusteringOperator(BaseHudiServiceOperator):
    """Writes the rows of small or unordered files into new files. `options` choose the files and the order of the rows:
    `hoodie.clustering.plan.strategy.sort.columns`, `hoodie.clustering.plan.partition.filter.mode`…
    (docs/reference/options.md).
    """

    service = Action.CLUSTERING


class HudiCompactionOperator(BaseHudiServiceOperator):
    """Merges the log files of file groups into new base files. `options` define when a compaction is due and which file
    slices it takes (docs/reference/options.md): `hoodie.compact.inline.trigger.strategy`,
    `hoodie.compaction.strategy`… If writers plan compactions (`hoodie.compact.schedule.inline`), use mode `execute` to
    run only their plans.

    :param metadata: `auto`, `on` or `off`: whether the job reads the metadata table
    :param allow_corrupt_log_blocks: also compact file slices whose corrupt log blocks hold rows of a completed commit;
        those rows are lost
    """

    service = Action.COMPACTION
    metadata: str = "auto"
    allow_corrupt_log_blocks: bool = False

    def request_fields(self) -> dict[str, Any]:
        options = {"metadata": self.metadata, "allow_corrupt_log_blocks": self.allow_corrupt_log_blocks}
        return {**super().request_fields(), **options}


class HudiLogCompactionOperator(BaseHudiServiceOperator):
    """Merges the log files of each file group into one log file. It plans only with `hoodie.log.compaction.enable=true`
    in `options`, which says that the table's readers can read log compactions (docs/guarantees/log-compaction.md).
    """

    service = "log_compaction"


class HudiIndexingOperator(BaseHudiServiceOperator):
    """Builds indexes of the metadata table while writers continue. `options` name them (docs/reference/options.md),
    such as `hoodie.metadata.record.index.enable`; `airflow_hudi.indexing.file_groups` resizes an existing row-level
    index. A retry resumes a task that stopped waiting for a writer (`airflow_hudi.indexing.catchup_minutes`).
    """

    service = Action.INDEXING

"""Rolls back writes that failed, or one write by name."""

from __future__ import annotations

import time
from typing import Any

from airflow_hudi.arguments import is_literal
from airflow_hudi.conditions.condition import newest_time, of_action, oldest_pending
from airflow_hudi.operators.service import REASON_OUT_OF_REACH, BaseHudiServiceOperator
from airflow_hudi.results import ELSEWHERE, NUMBERS, document_of, instant_result, work_seconds
from hudi_core.errors import ConfigError
from hudi_core.request.services import nothing_pending
from hudi_core.timeline.instant import WRITE_ACTIONS, Action
from hudi_core.verbs.instants import RollbackRequest
from hudi_core.verbs.run import RunRequest


class HudiRollbackOperator(BaseHudiServiceOperator):
    """Finishes interrupted rollbacks and, with mode `both`, rolls back every write that failed, in one job.

    A write has failed when its heartbeat expired. With `hoodie.cleaner.policy.failed.writes=EAGER` in `options` every
    pending write counts as failed; this is right only if no process writes. Mode `schedule` plans the rollback of one
    failed write. With `target` the task rolls back that one write instead: a failed write, an attempt at a compaction
    or clustering, or the newest completed commit. A failed write that completes after the task's first check is kept,
    also by retries; `reason` then says so.

    BaseHudiServiceOperator describes the arguments and retries. The XCom has `instants`, too: each rollback with its
    `target`; the numbers are sums. With `target` the XCom is `{"table", "instant", "target", "removed": {"files",
    "bytes", "instants"}, "reason"}`. A dry run without `target` reports the first of several rollbacks.

    :param target: the write to roll back (templated)
    :param instant: the rollback to finish, by its own instant, with `execute` (templated)
    """

    service = Action.ROLLBACK
    target: str | None = None
    template_fields = ("target", *BaseHudiServiceOperator.template_fields)

    def check_arguments(self) -> None:
        super().check_arguments()
        if self.target and is_literal(self.target, self.mode, self.instant):
            self._check_target()

    def _check_target(self) -> None:
        if self.instant or self.mode != "both":
            raise ConfigError("target goes with mode 'both' and without instant", remedy="leave mode and instant out")

    def serve(self) -> dict[str, Any]:
        if self.target:
            return self._roll_back(self.target)
        if self.instant or self.mode not in ("execute", "both") or self.is_dry_run:
            return super().serve()
        return self._roll_back_all()

    def _roll_back(self, target: str) -> dict[str, Any]:
        self._check_target()
        failed = self.store.unless_completed == target or not self._has_completed(target)
        requested = self.request_fields()
        request = RollbackRequest(instant=target, unless_completed=failed, dry_run=self.is_dry_run, **requested)
        if request.dry_run:
            return self.preview(request)
        if failed:
            self.store.unless_completed = target
        document = document_of(self.result_of(request))
        self.store.forget()
        nothing = {"instant": None, "target": target, "removed": None, "reason": None}
        xcom = {"table": self.reader.storage.uri, **nothing, **document}
        return self.nothing(xcom, xcom["reason"]) if xcom["reason"] is not None else xcom

    def _has_completed(self, target: str) -> bool:
        timeline = self.reader.load().completed()
        return any(item.requested_time == target and item.action in WRITE_ACTIONS for item in timeline)

    def _roll_back_all(self) -> dict[str, Any]:
        started, reader, store = time.monotonic(), self.reader, self.store
        timeline = reader.load()
        pending = oldest_pending(timeline, self.service)
        is_pending = pending is not None or bool(store.after)  # An earlier try of this task may have planned rollbacks.
        if not is_pending and self.mode != "both":
            return self.nothing_planned(nothing_pending(self.service, reader.config.name))
        is_retry = bool(store.after)
        before = None if pending is None else pending.requested_time
        store.after = after = store.after or newest_time(timeline, before=before)
        result = self.result_of(self.of_service(RunRequest, all_pending=True, schedule=self.mode == "both"))
        completed = [
            item for item in of_action(reader.load(), self.service) if item.is_completed and item.requested_time > after
        ]
        names = {item.requested_time for item in completed}
        instants = [item for item in (() if result is None else result.instants) if item.instant in names]
        if result is not None and not is_retry:
            # Others may have rolled back some of them meanwhile.
            names = {item.instant for item in instants if not item.already_completed}
            completed = [item for item in completed if item.requested_time in names]
        if not completed:
            store.forget()
            elsewhere = ELSEWHERE if instants else REASON_OUT_OF_REACH
            return self.nothing_planned((result and result.reason) or elsewhere)
        seconds = work_seconds(instants, time.monotonic() - started)
        rollbacks, rolled_back = [], []
        for item in completed:
            rollback = instant_result(reader, item, seconds=seconds, already_completed=False, result=result)
            target = next(map(str, reader.active().read_of(item).get("commitsRollback") or ()), None)
            rollbacks.append(rollback)
            rolled_back.append(
                {"instant": rollback["instant"], "target": target, "files_deleted": rollback["files_deleted"]}
            )
        numbers = {name: sum(rollback[name] for rollback in rollbacks) for name in NUMBERS}
        total = {**rollbacks[-1], **numbers, "instants": rolled_back}
        store.finish({name: total[name] for name in ("instant", *NUMBERS, "instants")})
        self.log.info("Rolled back %d writes: %s", len(completed), total)
        return total

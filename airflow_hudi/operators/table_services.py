"""Runs services of many tables as one job: one process beside the task, one Spark session, results per table."""

from __future__ import annotations

import time
from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NoReturn

from airflow.sdk.exceptions import AirflowFailException

from airflow_hudi.arguments import check_literal_choice, is_literal
from airflow_hudi.exceptions import HudiInstantBusy, HudiJobFailed, HudiJobKilled
from airflow_hudi.jobs.byte_budget import ByteBudget, next_round, not_started
from airflow_hudi.jobs.engine_job import EngineJob
from airflow_hudi.jobs.job_log import failure_of
from airflow_hudi.jobs.run_until_completed import refused
from airflow_hudi.jobs.task_store import TaskStore
from airflow_hudi.operators.base import XCOM, BaseHudiOperator, names_in
from airflow_hudi.policies import read_policies, tables_of
from airflow_hudi.reports import metrics
from airflow_hudi.reports.finished_work import finished_work
from airflow_hudi.results import ELSEWHERE
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.config.policy_file import TablePolicies
from hudi_core.errors import EXIT_BAD_INPUT, EXIT_RETRY, ConfigError, Reminder
from hudi_core.request.choices import check_choice
from hudi_core.request.policy import DEFAULT_SERVICES
from hudi_core.request.results import BatchResult, Result
from hudi_core.request.services import SERVICES, check_service
from hudi_core.verbs.batch import AT_ONCE, BatchRequest, requests_of_policy
from hudi_core.verbs.run import RunRequest

if TYPE_CHECKING:
    from airflow.sdk import Context

_MODES: Final = ("execute", "both")
_MOST_LISTED: Final = 20
_TABLES: Final = "{{ (task.tables if task.tables is string else task.tables | join(', ')) | truncate(200) }}"
_NEVER_PENDING: Final = "an archival is never pending: mode='both' archives"
_NOTHING: Final = {"tables": 0, "done": 0, "nothing": 0, "failed": 0, "seconds": 0.0, "results": []}


class HudiTableServicesOperator(BaseHudiOperator):
    """Runs services of one or many tables: what is pending, and with mode `both` what is due.

    All tables are one job: the services of one table in their order, tables side by side, and the failure of one stops
    no other. The task fails at the end when one failed, without retries where every failure is bad input. A retry
    begins again: what is completed has nothing to do, and is in the result and the asset events of the try that
    succeeds. Requests that other processes stand in the way of are repeated for `conflict_timeout` when all else is
    done, and have failed then. With a policy nothing is started in the table's quiet hours, whenever the task began:
    the result of a retry in them is what was done before.

    XCom: `{"tables", "done", "nothing", "failed", "seconds", "results": [{"table", "service", "exit_code", "engine",
    "instants", "reason", "error"}]}`: how many tables there were, and how many runs did something, had nothing to do,
    and failed; also when the task fails. `seconds` is the sum of the runs' work. A task that did something, was cleared
    and finds nothing more succeeds.

    :param tables: the tables, as a list or separated by commas, each as `table` of the other operators; empty: those of
        the policy file (templated)
    :param services: the services of each table, in this order, as a list or separated by commas; without them and a
        policy rollback, compaction, clean and archive (templated)
    :param policy: when services are due, in which order and within which bounds: the path of a YAML file where the task
        runs, or one policy as a dict (docs/airflow.md, templated)
    :param mode: `execute` runs what is pending; `both` also plans what is due, and archives (templated)
    :param max_minutes: minutes after which the task starts nothing more, whatever the policies of its tables allow each
        service (templated)
    :param max_bytes: bytes, or a size such as `50GiB`, that compactions, log compactions and clusterings of all tables
        may rewrite: each has its share, and when as many are written none is started but those that failed; other
        services run (jobs.byte_budget, templated)
    :param map_index_template: of a mapped task: its label, by default its tables
    :param at_once: how many tables are worked on side by side; they share the engine's processors and memory
    """

    template_fields: Sequence[str] = (
        "tables",
        "services",
        "policy",
        "mode",
        "max_minutes",
        "max_bytes",
        *(name for name in BaseHudiOperator.template_fields if name != "table"),
    )

    def __init__(
        self,
        *,
        tables: Sequence[str] | str = (),
        services: Sequence[str] | str | None = None,
        policy: str | Mapping[str, Any] | None = None,
        mode: str = "both",
        max_minutes: int | str | None = None,
        max_bytes: int | str | None = None,
        at_once: int = AT_ONCE,
        map_index_template: str | None = _TABLES,
        **kwargs: Any,
    ) -> None:
        # Airflow takes the label of a mapped task from the default above; one that is not mapped has none.
        super().__init__(table="", **kwargs)
        self.tables = tables
        self.services = services
        self.policy = policy
        self.mode = mode
        self.max_minutes = max_minutes
        self.max_bytes = max_bytes
        self.at_once = at_once

    def check_arguments(self) -> None:
        """See BaseHudiOperator. A file of policies is read where the task runs."""
        super().check_arguments()
        check_literal_choice("mode", self.mode, _MODES)
        if is_literal(self.max_minutes):
            self._starts_until(datetime.now(timezone.utc))
        if is_literal(self.max_bytes):
            ByteBudget.of(self.max_bytes)
        if self.policy and is_literal(self.services, self.mode):
            self._check_policy_alone()
        elif self.services and is_literal(self.services):
            self._services()
        if isinstance(self.policy, Mapping) and is_literal(self.policy):
            read_policies(self.policy)

    def reader(self) -> TimelineReader:
        """Of the first table; see BaseHudiOperator."""
        self.table = self._tables()[0]
        return super().reader()

    def serve(self, reader: TimelineReader, context: Context) -> dict[str, Any]:
        """Runs the services; see the class."""
        started = time.monotonic()
        requests, budget = self._requests(reader, context), ByteBudget.of(self.max_bytes)
        self.log.info("%d runs on %d tables", len(requests), len({item.table for item in requests}))
        results = self._run(reader, requests, budget, self.store(context))
        if not results:
            reason = "these are quiet hours of every table" if self.policy else _NEVER_PENDING
            return self.nothing(context, lambda: _NOTHING, reason)
        for item in results:
            say = self.log.error if item["exit_code"] else self.log.info
            say("%s %s: %s", item["service"], item["table"], _shown(item))
        failed = [item for item in results if item["exit_code"]]
        done = [item for item in results if _has_done(item) and not item["exit_code"]]
        measured = sum(instant.get("seconds") or 0.0 for item in done for instant in item["instants"])
        result = {
            "tables": len({item["table"] for item in results}),
            "done": len(done),
            "nothing": len(results) - len(done) - len(failed),
            "failed": len(failed),
            "seconds": round(measured or time.monotonic() - started, 3) if done else 0.0,
            "results": results,
        }
        if failed:
            self._fail(context, result, failed)
        if not done:
            self.store(context).forget()
            services = ", ".join(dict.fromkeys(str(item["service"]) for item in results))
            return self.nothing(context, lambda: result, f"none of {result['tables']} tables has work for {services}")
        self.store(context).finish({})
        return result

    def _requests(self, reader: TimelineReader, context: Context) -> list[RunRequest]:
        check_choice("mode", self.mode, _MODES)
        now, store = datetime.now(timezone.utc), self.store(context)
        began = store.after or str(int(1000 * now.timestamp()))
        store.plan_after(began)
        ends = self._starts_until(now)
        fields = {**self.request_fields(reader, context), "starts_until": ends, "began_ms": int(began)}
        if self.policy:
            return self._requests_by_policy(fields, now)
        services = self._services()
        plans = self.mode == "both"
        requests = []
        for table in self._tables():
            for service in services:
                given = {**fields, "table": self.hook.table_uri(table), "service": service}
                if service == "archive":
                    if plans:
                        requests.append(RunRequest(**given))
                else:
                    requests.append(RunRequest(**given, all_pending=True, schedule=plans))
        return requests

    def _starts_until(self, now: datetime) -> int | None:
        """When the minutes of the task are over, in seconds since the epoch. Raises ConfigError."""
        text = "" if self.max_minutes is None else str(self.max_minutes).strip()
        if not text:
            return None
        if not text.isdecimal() or not int(text):
            raise ConfigError(f"max_minutes is {self.max_minutes!r}", remedy="a whole number of minutes, or nothing")
        return int(now.timestamp()) + 60 * int(text)

    def _requests_by_policy(self, fields: Mapping[str, Any], now: datetime) -> list[RunRequest]:
        """Those of the tables that are not in their quiet hours."""
        self._check_policy_alone()
        shared = {name: value for name, value in fields.items() if name != "table"}
        requests: list[RunRequest] = []
        for table in self._tables():
            address = self.hook.table_uri(table)
            policy = self._policies.of(address)
            quiet = policy.quiet(now)
            if quiet is None:
                ends = [end for end in (fields["starts_until"], policy.quiet_from(now)) if end is not None]
                given = {**shared, "starts_until": min(ends, default=None)}
                requests += requests_of_policy(policy, address, **given)
            else:
                self.log.info("%s is left alone in its quiet hours: %s", table, quiet)
        return requests

    def _services(self) -> Sequence[str]:
        """Those of every table. Raises ConfigError without any, UnsupportedError for one that there is not."""
        services = DEFAULT_SERVICES if self.services is None else names_in(self.services)
        if not services:
            raise ConfigError("no service is named", remedy=f"some of {', '.join(SERVICES)}")
        for service in services:
            check_service(service)
        return services

    def _check_policy_alone(self) -> None:
        if names_in(self.services or ()) or self.mode != "both":
            raise ConfigError(
                "a policy names the services, and when they are due", remedy="leave out services and mode"
            )

    @property
    def tables_of_work(self) -> Sequence[str]:
        """See BaseHudiOperator."""
        return self._tables()

    def _tables(self) -> list[str]:
        """Each once. Raises ConfigError without any."""
        return tables_of(names_in(self.tables), self._policies if self.policy else None)

    @cached_property
    def _policies(self) -> TablePolicies:
        return read_policies(self.policy or {})

    def _run(
        self, reader: TimelineReader, requests: Sequence[RunRequest], budget: ByteBudget, store: TaskStore
    ) -> list[dict[str, Any]]:
        """One result for each request, with what earlier tries completed, and behind them what these completed of runs
        that are requested no more. Raises HudiJobKilled, and HudiJobFailed or ConfigError where the job reported none.
        """
        since = time.time()
        deadline: float | None = None
        results = _of_earlier_tries(store.results, requests)
        current = dict(enumerate(requests))
        left = list(current)
        reminder = Reminder(time.monotonic)
        for place in [at for at in left if budget.refuses(current[at], results.get(at), results.values())]:
            results[place] = _joined(results.get(place), not_started(current[place]))
            left.remove(place)
        while left:
            taken = budget.bounded([current[place] for place in left], results.values())
            job = self.new_job(reader, BatchRequest(taken, at_once=self.at_once))
            code = job.run()
            if job.stopped:
                raise HudiJobKilled("stopped while its job was running", remedy="a retry resumes what was started")
            found = dict(zip(left, _results_of(job, code, len(left)), strict=True))
            results |= {place: _joined(results.get(place), result) for place, result in found.items()}
            store.keep_results([item for item in results.values() if item.get("instants") or item["exit_code"]])
            rounds = zip(left, taken, strict=True) if budget.left(results.values()) else ()
            more = {place: again for place, item in rounds if (again := next_round(item, found[place], since))}
            left = [place for place in left if place in more or _is_held(results[place])]
            current |= {place: more.get(place) or current[place].counted_from(since) for place in left}
            if more or not left:
                continue
            # The wait counts from its beginning: the work may have taken longer than a task waits.
            deadline = deadline or time.monotonic() + self.patience.timeout
            if time.monotonic() >= deadline:
                break
            reason, wait = _failure_of(results[left[0]]) or "it did not report why", self.patience.poll_interval
            if reminder.is_due():
                self.log.info(
                    "Waiting to run %s of %s%s: %s; tried again in %.0f s, and this task waits for up to %.0f s more",
                    results[left[0]]["service"],
                    results[left[0]]["table"],
                    f" and {len(left) - 1} others" if len(left) > 1 else "",
                    reason,
                    wait,
                    deadline - time.monotonic(),
                )
            time.sleep(wait)
            if job.stopped:
                raise HudiJobKilled("stopped while waiting for others")
        return [*(results[place] for place in current), *_only_earlier(results, current)]

    def _fail(self, context: Context, result: Mapping[str, Any], failed: Sequence[Mapping[str, Any]]) -> NoReturn:
        context["ti"].xcom_push(key=XCOM, value=result)
        self.works = list(finished_work(result))
        metrics.report_work(self.works)
        lines = [f"{item['service']} {item['table']}: {_shown(item)}" for item in failed[:_MOST_LISTED]]
        more = [f"and {len(failed) - len(lines)} more"] if len(failed) > len(lines) else []
        if all(map(_is_held, failed)):
            first = f"others have held {len(failed)} of the runs for longer than this task may wait"
            raise HudiInstantBusy("\n".join([first, *lines, *more]), remedy="a retry waits again")
        message = "\n".join([f"{len(failed)} of {len(result['results'])} runs failed", *lines, *more])
        if all(item["exit_code"] == EXIT_BAD_INPUT for item in failed):
            raise AirflowFailException(message)
        raise HudiJobFailed(message)


def _of_earlier_tries(kept: Sequence[Mapping[str, Any]], requests: Sequence[RunRequest]) -> dict[int, dict[str, Any]]:
    """What earlier tries of the task completed, by the place of the request; without one, as in quiet hours that
    started since, behind all of them. The exit codes are those of these tries.
    """
    places = {(item.table, item.service): place for place, item in enumerate(requests)}
    return {
        places.pop((item["table"], item["service"]), number): {
            **item,
            "instants": [{**instant, "already_completed": True} for instant in _completed(item)],
        }
        for number, item in enumerate(kept, len(requests))
    }


def _only_earlier(results: Mapping[int, Mapping[str, Any]], current: Container[int]) -> Iterator[dict[str, Any]]:
    """What earlier tries completed of runs that this one has no request for; what failed of them is not its work."""
    for place, item in results.items():
        if place not in current and item["instants"]:
            yield {**{name: value for name, value in item.items() if name != "error"}, "exit_code": 0}


def _joined(before: Mapping[str, Any] | None, found: Mapping[str, Any]) -> dict[str, Any]:
    """The newest result of a request, with the instants that were completed before it."""
    done = [] if before is None else _completed(before)
    if before is None or not done:
        return dict(found)
    kept = {name: value for name, value in found.items() if name != "reason"}
    return {"engine": before.get("engine"), **kept, "instants": [*done, *(found.get("instants") or ())]}


def _completed(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [item for item in result.get("instants") or () if not item.get("error")]


def _is_held(result: Mapping[str, Any]) -> bool:
    """Whether only other processes stand in the way of what a run has not done."""
    codes = {item.get("exit_code") for item in result.get("instants") or () if item.get("error")}
    return bool(result["exit_code"] == EXIT_RETRY or codes == {EXIT_RETRY})


def _results_of(job: EngineJob, code: int, count: int) -> list[dict[str, Any]]:
    """One result for each request of the job. Raises where the job reported none."""
    if isinstance(job.result, BatchResult) and len(job.result.items) == count:
        return [_attributed(item.to_json()) for item in job.result.items]
    if code == EXIT_BAD_INPUT:
        raise refused(job)
    reason = job.failure or "it did not report why; see its output above"
    raise HudiJobFailed(f"the job ended with exit code {code}: {reason}")


def _has_done(result: Mapping[str, Any]) -> bool:
    """Whether this task, or an earlier try of it, did something."""
    return any(item.get("reason") != ELSEWHERE for item in result.get("instants") or ())


def _attributed(result: Mapping[str, Any]) -> dict[str, Any]:
    """A result that says of the instants which the job found completed that others did them."""
    instants = result.get("instants")
    if not instants:
        return dict(result)
    attributed = [{**item, "reason": ELSEWHERE} if item.get("already_completed") else item for item in instants]
    return {**result, "instants": attributed}


def _failure_of(item: Mapping[str, Any]) -> str | None:
    return failure_of(Result.from_json(item, item["exit_code"]))


def _shown(item: Mapping[str, Any]) -> str:
    """A result in one line."""
    if failure := _failure_of(item):
        return failure
    instants = item.get("instants") or []
    if not instants:
        return f"nothing to do: {item.get('reason')}"
    return f"{len(instants)} instants, the last {instants[-1]['instant']} {instants[-1]['state']}, {item.get('engine')}"

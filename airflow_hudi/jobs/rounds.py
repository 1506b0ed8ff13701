"""The runs of a task of many tables: in rounds, as often as bytes (byte_budget.py) and other processes (waiting.py)
make it necessary, with what earlier tries of the task completed. A result is an item of a batch's result line, as it is
kept and as it is in the XCom.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from airflow_hudi.exceptions import HudiInstantBusy, HudiJobFailed, HudiJobKilled
from airflow_hudi.jobs.byte_budget import ByteBudget, next_round, not_started
from airflow_hudi.jobs.task_store import TaskStore
from airflow_hudi.jobs.waiting import Held, Job, Patience, wait_for_others
from airflow_hudi.results import ELSEWHERE
from airflow_hudi.task_fate import UNSAID, Fate, failure_of, fate_of, refused
from hudi_core.errors import EXIT_FAILED
from hudi_core.request.results import BatchResult, Result
from hudi_core.verbs.run import RunRequest


class Rounds:
    """The runs of one try of the task; `store` has what earlier ones completed."""

    def __init__(self, requests: Sequence[RunRequest], budget: ByteBudget, store: TaskStore) -> None:
        self._budget = budget
        self._store = store
        self._since = time.time()
        self._results = _of_earlier_tries(store.results, requests)
        """By the place of the request."""
        self._current = dict(enumerate(requests))
        self._left = list(self._current)
        """The places of what another round runs."""
        results = self._results
        refused_now = [at for at in self._left if budget.refuses(requests[at], results.get(at), results.values())]
        for place in refused_now:
            results[place] = _joined(results.get(place), not_started(requests[place]))
            self._left.remove(place)

    def run(self, new_job: Callable[[tuple[RunRequest, ...]], Job], patience: Patience) -> list[dict[str, Any]]:
        """One result for each request, with what earlier tries completed, and behind them what these completed of runs
        that are requested no more. Raises HudiJobKilled, and HudiJobFailed or ConfigError where the job reported none.
        """
        job: Job | None = None

        def attempt() -> Held | None:
            nonlocal job
            while self._left:
                requests = self._budget.bounded([self._current[place] for place in self._left], self._results.values())
                job = new_job(requests)
                code = job.run()
                if job.stopped:
                    raise HudiJobKilled("stopped while its job was running", remedy="a retry resumes what was started")
                if not self._take(requests, _results_of(job, code, len(requests))) and self._left:
                    return self._held(patience)
            return None

        with suppress(HudiInstantBusy):  # what others held for too long is in the results
            wait_for_others(
                attempt, lambda: job is not None and job.stopped, patience, clock=time.monotonic, sleep=time.sleep
            )
        return [*(self._results[place] for place in self._current), *_only_earlier(self._results, self._current)]

    def _take(self, requests: Sequence[RunRequest], results: Sequence[dict[str, Any]]) -> bool:
        """Keeps the results of a round, and says whether there is another one at once, for bytes that others left."""
        of_round = dict(zip(self._left, results, strict=True))
        self._results |= {place: _joined(self._results.get(place), result) for place, result in of_round.items()}
        self._store.keep_results([item for item in self._results.values() if item.get("instants") or item["exit_code"]])
        rounds = zip(self._left, requests, strict=True) if self._budget.left(self._results.values()) else ()
        more = {place: again for place, item in rounds if (again := next_round(item, of_round[place], self._since))}
        self._left = [place for place in self._left if place in more or is_held(self._results[place])]
        for place in self._left:
            self._current[place] = more.get(place) or self._current[place].counted_from(self._since)
        return bool(more)

    def _held(self, patience: Patience) -> Held:
        first = self._results[self._left[0]]
        others = f" and {len(self._left) - 1} others" if len(self._left) > 1 else ""
        what = f"Waiting to run {first['service']} of {first['table']}{others}: "
        reason = _failure_of(first) or "it did not report why"
        return Held(
            "others",
            lambda seconds: (
                f"{what}{reason}; tried again in {patience.poll_interval:.0f} s, and this task waits for "
                f"up to {seconds:.0f} s more"
            ),
            HudiInstantBusy(reason),
        )


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


def _joined(before: Mapping[str, Any] | None, result: Mapping[str, Any]) -> dict[str, Any]:
    """The newest result of a request, with the instants that were completed before it."""
    done = [] if before is None else _completed(before)
    if before is None or not done:
        return dict(result)
    kept = {name: value for name, value in result.items() if name != "reason"}
    return {"engine": before.get("engine"), **kept, "instants": [*done, *(result.get("instants") or ())]}


def _completed(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [item for item in result.get("instants") or () if not item.get("error")]


def is_held(result: Mapping[str, Any]) -> bool:
    """Whether only other processes stand in the way of what a run has not done."""
    fates = {
        fate_of(item.get("exit_code") or EXIT_FAILED) for item in result.get("instants") or () if item.get("error")
    }
    return fate_of(result["exit_code"]) is Fate.WAITS or fates == {Fate.WAITS}


def _results_of(job: Job, code: int, count: int) -> list[dict[str, Any]]:
    """One result for each request of the job. Raises where the job reported none."""
    if isinstance(job.result, BatchResult) and len(job.result.items) == count:
        return [_attributed(item.to_json()) for item in job.result.items]
    if fate_of(code) is Fate.FAILS_FOR_GOOD:
        raise refused(job.result)
    raise HudiJobFailed(f"the job ended with exit code {code}: {failure_of(job.result) or UNSAID}")


def has_done(result: Mapping[str, Any]) -> bool:
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


def shown(item: Mapping[str, Any]) -> str:
    """A result in one line."""
    if failure := _failure_of(item):
        return failure
    instants = item.get("instants") or []
    if not instants:
        return f"nothing to do: {item.get('reason')}"
    return f"{len(instants)} instants, the last {instants[-1]['instant']} {instants[-1]['state']}, {item.get('engine')}"

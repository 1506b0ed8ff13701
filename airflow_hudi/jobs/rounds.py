"""The runs of a task of many tables. They run in rounds: more rounds follow where bytes are left or other processes
hold instants (waiting.py). The results include what earlier tries completed. A result is an item of a batch's result
line, as in the XCom.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from airflow_hudi.jobs.engine_job import EngineJob
from airflow_hudi.jobs.task_store import TaskStore
from airflow_hudi.jobs.waiting import Held, Patience, run_unless_stopped, wait_for_others
from airflow_hudi.results import ELSEWHERE
from airflow_hudi.task_fate import UNSAID, Fate, HudiInstantBusy, HudiJobFailed, failure_of, fate_of, refused
from hudi_core.errors import EXIT_FAILED, ConfigError
from hudi_core.frozen import dataclass
from hudi_core.request.results import BatchResult, Result
from hudi_core.request.texts import bytes_of
from hudi_core.verbs.run import RunRequest

_REWRITES: Final = frozenset({"compaction", "log_compaction", "clustering"})
"""The services whose plans a maximum of bytes limits."""
_SPENT: Final = "the bytes that the task may rewrite are spent (max_bytes)"


@dataclass(frozen=True, slots=True)
class ByteBudget:
    """The bytes that a task may rewrite: `most`, or any number with None. Only the cluster knows how much work there
    is, so runs that rewrite rows start in rounds. Each run has its share of the bytes that are left
    (RunRequest.max_bytes). Runs that used their share are in the next round, as long as others left some bytes. A run
    may exceed its share: it runs the plan of a writer unchanged, and each plan has at least one file slice.
    """

    most: int | None = None

    @staticmethod
    def of(given: int | str | None) -> ByteBudget:
        """Returns the budget of bytes, or of a size such as `50GiB`; without a limit if empty. Raises ConfigError."""
        text = "" if given is None else str(given).strip()
        if not text:
            return ByteBudget()
        try:
            most = bytes_of(text)
        except ValueError as error:
            raise ConfigError(f"max_bytes {text!r} {error}", remedy="write 50GiB, or nothing") from error
        if not most:
            raise ConfigError("max_bytes is 0", remedy="write 50GiB, or nothing")
        return ByteBudget(most)

    def left(self, results: Iterable[Mapping[str, Any]]) -> int:
        """Returns the bytes that may still be rewritten, by the results of all runs, with those of earlier tries."""
        written = sum(written_bytes(result) for result in results if result.get("service") in _REWRITES)
        return max(0, (self.most or 0) - written)

    def bounded(self, requests: Sequence[RunRequest], results: Iterable[Mapping[str, Any]]) -> tuple[RunRequest, ...]:
        if self.most is None:
            return tuple(requests)
        share = max(1, self.left(results) // max(1, sum(request.service in _REWRITES for request in requests)))
        return tuple(replace(each, max_bytes=share) if each.service in _REWRITES else each for each in requests)

    def refuses(
        self, request: RunRequest, last: Mapping[str, Any] | None, results: Iterable[Mapping[str, Any]]
    ) -> bool:
        """Returns whether a run with the result `last` may not start any more. A run that failed or was held may."""
        is_bounded = self.most is not None and request.service in _REWRITES
        return is_bounded and not (last or {}).get("exit_code") and not self.left(results)


def next_round(request: RunRequest, result: Mapping[str, Any], since: float) -> RunRequest | None:
    """Returns the request of a run in the next round; None if the run left bytes of its share, failed, or has no time
    left. `since` is the start of the first round, in seconds since the epoch; the minutes of all rounds count from it.
    """
    if request.max_bytes is None or written_bytes(result) < request.max_bytes or result.get("exit_code"):
        return None
    again = request.counted_from(since)
    return None if again.starts_until is not None and time.time() >= again.starts_until else again


def not_started(request: RunRequest) -> dict[str, Any]:
    return {
        "table": request.table,
        "verb": request.verb,
        "service": request.service,
        "exit_code": 0,
        "instants": [],
        "reason": _SPENT,
    }


def written_bytes(result: Mapping[str, Any]) -> int:
    return sum(int(instant.get("bytes_written") or 0) for instant in result.get("instants") or ())


class Rounds:
    """The runs of one try of the task. `store` has the results that earlier tries completed."""

    def __init__(self, requests: Sequence[RunRequest], budget: ByteBudget, store: TaskStore) -> None:
        self._budget = budget
        self._store = store
        self._since = time.time()
        self._results = _of_earlier_tries(store.results, requests)
        self._current = dict(enumerate(requests))
        self._left = list(self._current)
        results = self._results
        refused_now = [at for at in self._left if budget.refuses(requests[at], results.get(at), results.values())]
        for place in refused_now:
            results[place] = _joined(results.get(place), not_started(requests[place]))
            self._left.remove(place)

    def run(self, new_job: Callable[[tuple[RunRequest, ...]], EngineJob], patience: Patience) -> list[dict[str, Any]]:
        """Runs all rounds and returns one result for each request, with what earlier tries completed. After these come
        the results of earlier tries for other requests. Raises HudiJobKilled, HudiJobFailed, ConfigError.
        """
        job: EngineJob | None = None

        def attempt() -> Held | None:
            nonlocal job
            while self._left:
                requests = self._budget.bounded([self._current[place] for place in self._left], self._results.values())
                job = new_job(requests)
                results = _results_of(job, run_unless_stopped(job), len(requests))
                if not self._take(requests, results) and self._left:
                    return self._held(patience)
            return None

        with suppress(HudiInstantBusy):  # The results contain the runs that others held for too long.
            wait_for_others(attempt, lambda: job is not None and job.stopped, patience)
        return [*(self._results[place] for place in self._current), *_only_earlier(self._results, self._current)]

    def _take(self, requests: Sequence[RunRequest], results: Sequence[dict[str, Any]]) -> bool:
        """Keeps the results of a round. Returns whether another round follows at once, for bytes that others left."""
        of_round = dict(zip(self._left, results, strict=True))
        self._results |= {place: _joined(self._results.get(place), result) for place, result in of_round.items()}
        self._store.results = [kept for kept in self._results.values() if kept.get("instants") or kept["exit_code"]]
        rounds = zip(self._left, requests, strict=True) if self._budget.left(self._results.values()) else ()
        more = {place: again for place, item in rounds if (again := next_round(item, of_round[place], self._since))}
        self._left = [place for place in self._left if place in more or is_held(self._results[place])]
        for place in self._left:
            self._current[place] = more.get(place) or self._current[place].counted_from(self._since)
        return bool(more)

    def _held(self, patience: Patience) -> Held:
        first = self._results[self._left[0]]
        others = f" and {len(self._left) - 1} others" if len(self._left) > 1 else ""
        reason = _failure_of(first) or "it did not report why"
        said = f"Waiting to run {first['service']} of {first['table']}{others}: {reason}; tried again in "
        said += f"{patience.poll_interval:.0f} s, and this task waits for up to "
        return Held("others", lambda seconds: f"{said}{seconds:.0f} s more", HudiInstantBusy(reason))


def _of_earlier_tries(kept: Sequence[Mapping[str, Any]], requests: Sequence[RunRequest]) -> dict[int, dict[str, Any]]:
    """Returns what earlier tries completed, by the place of the request. Results without a request have places after
    all requests.
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
    """Returns what earlier tries completed for runs without a request in this try, without their failures."""
    for place, item in results.items():
        if place not in current and item["instants"]:
            yield {**{name: value for name, value in item.items() if name != "error"}, "exit_code": 0}


def _joined(before: Mapping[str, Any] | None, result: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the newest result of a request, with the instants that were completed before it."""
    done = [] if before is None else _completed(before)
    if before is None or not done:
        return dict(result)
    kept = {name: value for name, value in result.items() if name != "reason"}
    return {"engine": before.get("engine"), **kept, "instants": [*done, *(result.get("instants") or ())]}


def _completed(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [item for item in result.get("instants") or () if not item.get("error")]


def is_held(result: Mapping[str, Any]) -> bool:
    """Returns whether only other processes kept a run from the rest of its work."""
    fates = {
        fate_of(item.get("exit_code") or EXIT_FAILED) for item in result.get("instants") or () if item.get("error")
    }
    return fate_of(result["exit_code"]) is Fate.WAITS or fates == {Fate.WAITS}


def _results_of(job: EngineJob, code: int, count: int) -> list[dict[str, Any]]:
    """Returns one result per request. Raises HudiInputRefused or HudiJobFailed if the job did not report them."""
    if isinstance(job.result, BatchResult) and len(job.result.items) == count:
        return [_attributed(item.to_json()) for item in job.result.items]
    if fate_of(code) is Fate.FAILS_FOR_GOOD:
        raise refused(job.result)
    raise HudiJobFailed(f"the job ended with exit code {code}: {failure_of(job.result) or UNSAID}")


def has_done(result: Mapping[str, Any]) -> bool:
    """Returns whether this task, or an earlier try of it, did something."""
    return any(item.get("reason") != ELSEWHERE for item in result.get("instants") or ())


def _attributed(result: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the result with a reason at the instants that the job found completed: another process completed them."""
    instants = result.get("instants")
    if not instants:
        return dict(result)
    attributed = [{**item, "reason": ELSEWHERE} if item.get("already_completed") else item for item in instants]
    return {**result, "instants": attributed}


def _failure_of(item: Mapping[str, Any]) -> str | None:
    return failure_of(Result.from_json(item, item["exit_code"]))


def shown(item: Mapping[str, Any]) -> str:
    if failure := _failure_of(item):
        return failure
    instants = item.get("instants") or []
    if not instants:
        return f"nothing to do: {item.get('reason')}"
    return f"{len(instants)} instants, the last {instants[-1]['instant']} {instants[-1]['state']}, {item.get('engine')}"

"""How many bytes a task of many runs may rewrite, over all of its tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hudi_core.errors import ConfigError
from hudi_core.request.conditions import bytes_of
from hudi_core.request.policy import PLAN_MAX_BYTES
from hudi_core.request.requests import RunRequest
from hudi_core.timeline.instant import State

_REWRITES: Final = frozenset({"compaction", "log_compaction", "clustering"})
"""The services whose plans PLAN_MAX_BYTES cuts."""
_SPENT: Final = "the bytes that the task may rewrite are spent (max_bytes)"


@dataclass(frozen=True, slots=True)
class ByteBudget:
    """`most` bytes, None for any number.

    What a plan reads is known when it is made, on the cluster; what it wrote, when it has been run. So runs that
    rewrite rows are started in rounds: each runs one instant at most, and plans one of its share of what is left. When
    as many bytes are written no round follows. What a writer has planned is run as it is, and a plan has one file slice
    in any case: the last round may go beyond the budget by these. Other services are not bounded.
    """

    most: int | None = None

    @staticmethod
    def of(given: int | str | None) -> ByteBudget:
        """Of bytes, or of a size such as `50GiB`; empty for none. Raises ConfigError."""
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
        """The bytes that may still be rewritten. `results` are those of the task's runs, by earlier tries, too."""
        written = (
            int(instant.get("bytes_written") or 0)
            for result in results
            if result.get("service") in _REWRITES
            for instant in result.get("instants") or ()
        )
        return max(0, (self.most or 0) - sum(written))

    def bounded(self, requests: Sequence[RunRequest], results: Iterable[Mapping[str, Any]]) -> tuple[RunRequest, ...]:
        """The requests as those of a round."""
        if self.most is None:
            return tuple(requests)
        share = max(1, self.left(results) // max(1, sum(item.service in _REWRITES for item in requests)))
        return tuple(_one_instant(item, share) if item.service in _REWRITES else item for item in requests)

    def refuses(self, request: RunRequest, results: Iterable[Mapping[str, Any]]) -> bool:
        """Whether a run may not be started any more."""
        return self.most is not None and request.service in _REWRITES and not self.left(results)

    def goes_on(self, request: RunRequest, result: Mapping[str, Any], seconds: float) -> bool:
        """Whether a run has a turn in the next round, by its result in this one, `seconds` after the first began."""
        if self.most is None or request.service not in _REWRITES or result.get("exit_code"):
            return False
        is_over = request.max_minutes is not None and seconds >= 60 * request.max_minutes
        done = (item.get("state") == State.COMPLETED.value for item in result.get("instants") or ())
        return not is_over and any(done)


def not_started(request: RunRequest) -> dict[str, Any]:
    """The result of a run that the budget refused."""
    return {
        "table": request.table,
        "verb": request.verb,
        "service": request.service,
        "exit_code": 0,
        "instants": [],
        "reason": _SPENT,
    }


def _one_instant(request: RunRequest, share: int) -> RunRequest:
    given = request.options.get(PLAN_MAX_BYTES, str(share))
    # The job says what is wrong with another text.
    most = str(min(share, int(given))) if given.isdecimal() else given
    return replace(request, all_pending=False, options={**request.options, PLAN_MAX_BYTES: most})

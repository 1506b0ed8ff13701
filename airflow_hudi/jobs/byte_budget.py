"""How many bytes a task of many runs may rewrite, over all of its tables. The rounds in which they are spent:
rounds.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hudi_core.errors import ConfigError
from hudi_core.request.texts import bytes_of
from hudi_core.verbs.run import RunRequest

_REWRITES: Final = frozenset({"compaction", "log_compaction", "clustering"})
"""The services whose plans a number of bytes cuts."""
_SPENT: Final = "the bytes that the task may rewrite are spent (max_bytes)"


@dataclass(frozen=True, slots=True)
class ByteBudget:
    """`most` bytes, None for any number.

    What there is to do is known on the cluster. So runs that rewrite rows are started in rounds: each run has its share
    of what is left (RunRequest.max_bytes), and those that wrote their share are in the next round, as long as others
    left some. What a writer has planned is run as it is, and a plan has one file slice in any case: each run may go
    beyond its share by these. Other services are not bounded.
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
        written = sum(written_bytes(result) for result in results if result.get("service") in _REWRITES)
        return max(0, (self.most or 0) - written)

    def bounded(self, requests: Sequence[RunRequest], results: Iterable[Mapping[str, Any]]) -> tuple[RunRequest, ...]:
        """The requests as those of a round."""
        if self.most is None:
            return tuple(requests)
        share = max(1, self.left(results) // max(1, sum(item.service in _REWRITES for item in requests)))
        return tuple(replace(item, max_bytes=share) if item.service in _REWRITES else item for item in requests)

    def refuses(
        self, request: RunRequest, last: Mapping[str, Any] | None, results: Iterable[Mapping[str, Any]]
    ) -> bool:
        """Whether a run, whose result so far is `last`, may not be started any more. One that failed, or that others
        held, may: the task is not to succeed without it. It ends behind one instant.
        """
        if self.most is None or request.service not in _REWRITES or (last or {}).get("exit_code"):
            return False
        return not self.left(results)


def next_round(request: RunRequest, result: Mapping[str, Any], since: float) -> RunRequest | None:
    """The request of a run in the next round; None where it did not write its share in this one, its time is over, or
    an instant failed, which a retry runs. `since`: when the first round began, in seconds since the epoch; the minutes
    of all rounds count from then.
    """
    if request.max_bytes is None or written_bytes(result) < request.max_bytes or result.get("exit_code"):
        return None
    again = request.counted_from(since)
    return None if again.starts_until is not None and time.time() >= again.starts_until else again


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


def written_bytes(result: Mapping[str, Any]) -> int:
    """What the instants of a result wrote."""
    return sum(int(instant.get("bytes_written") or 0) for instant in result.get("instants") or ())

"""Requests that do not depend on each other are made at the same time, where each of them is a round trip.

On a local disk they are made one after the other, in order: threads would only cost. Threads share the look of their
caller (one_look.py), so what one of them has seen is not requested again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

from hudi_core.errors import HudiError
from hudi_core.storage.base import Storage
from hudi_core.storage.one_look import in_this_look, is_looking
from hudi_core.storage.registry import scheme_of

T = TypeVar("T")
U = TypeVar("U")

_AT_ONCE: Final = 16
_NEAR: Final = frozenset({"file", "memory"})


def is_remote(storage: Storage) -> bool:
    """Whether each request is a round trip."""
    return scheme_of(storage.uri) not in _NEAR


def overlapped(storage: Storage, jobs: Iterable[Callable[[], T]]) -> list[T]:
    """Returns the results of the jobs, in order. Raises the error of the first of them that failed, in order, when all
    have ended. An interrupt lets no further job start, and is raised when those that are under way have ended: the
    caller may then give up its lock.
    """
    listed = list(jobs)
    if len(listed) < 2 or not is_remote(storage):
        return [job() for job in listed]
    with ThreadPoolExecutor(min(len(listed), _AT_ONCE), "request") as pool:
        try:
            futures = [pool.submit(in_this_look(storage, job)) for job in listed]
            wait(futures)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [future.result() for future in futures]


def both(storage: Storage, first: Callable[[], T], second: Callable[[], U]) -> tuple[T, U]:
    """Returns the results of two jobs of different kinds, like `overlapped`."""
    results: list[Any] = overlapped(storage, [first, second])
    return results[0], results[1]


def each_ahead(storage: Storage, items: Iterable[U], job: Callable[[U], T]) -> Iterator[tuple[U, T]]:
    """Yields the items with their results, in order. On a remote storage some of them are requested ahead."""
    left = iter(items)
    while some := list(islice(left, _AT_ONCE if is_remote(storage) else 1)):
        yield from zip(some, overlapped(storage, [partial(job, item) for item in some]), strict=True)


def look_ahead(storage: Storage, *jobs: Callable[[], object]) -> None:
    """Makes requests at once that this step of a run needs one by one. What fails is requested again when it is needed,
    and its error is raised there. Does nothing outside of a look, where nothing would be remembered.
    """
    if is_remote(storage) and is_looking(storage):
        overlapped(storage, [partial(_try, job) for job in jobs])


def _try(job: Callable[[], object]) -> None:
    with suppress(HudiError):
        job()

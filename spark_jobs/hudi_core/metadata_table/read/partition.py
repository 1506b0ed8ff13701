"""One partition of the metadata table: file groups in order, and lookups that read only those that may have a key."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Generic, TypeVar

from hudi_core.codec.hashing import file_group_indexes
from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.read.group_reader import GroupReader, of_keys, of_prefixes
from hudi_core.storage.one_look import in_this_look

T = TypeVar("T")
A = TypeVar("A")
_KEPT = 16 << 20
"""File groups of together at most so many compressed bytes stay open between queries: at most 160 MB inflated."""
_AT_ONCE = 16
"""The file groups that are read in parallel where each read is a round trip."""
HashedPart = Callable[[str], str]
"""Cuts from a key the part that chooses the file group: the whole key, but in secondary indexes of version 2."""
_NUMBERED = re.compile(r".*-(?P<number>\d{4,})-\d+\Z", re.ASCII | re.DOTALL)


def check_numbers(folder: str, groups: Sequence[GroupReader[T]]) -> None:
    """Raises CorruptFileError where a numbered file group is gone: hashes of keys would choose wrong file groups."""
    matches = [_NUMBERED.match(group.file_id) for group in groups]
    numbers = {int(match["number"]) for match in matches if match is not None}
    missing = sorted(set(range(max(numbers, default=-1) + 1)) - numbers)
    if missing and all(matches):
        message = f"of the index's file groups number {missing[0]} is not there"
        remedy = "drop the index with `hudictl metadata drop TABLE --partition …`, then create it again"
        raise CorruptFileError(message, path=folder, remedy=remedy)


class MetadataPartition(Generic[T]):
    """The records of one partition, as its rules decode them; keys are text and need not be sorted."""

    def __init__(
        self,
        name: str,
        folder: str,
        groups: Sequence[GroupReader[T]],
        hashed: HashedPart = str,
        *,
        is_remote: bool = False,
    ) -> None:
        """Takes the file groups, read in parallel if `is_remote`. Raises CorruptFileError where there are none."""
        if not groups:
            message = f"hoodie.properties lists the metadata partition `{name}`, but it holds no file group"
            remedy = "take it off the list with `hudictl metadata drop TABLE --partition …`, then create it again"
            raise CorruptFileError(message, path=folder, remedy=remedy)
        self.name = name
        self._folder = folder
        self.groups = tuple(groups)
        self._hashed = hashed
        self._workers = _AT_ONCE if is_remote else 1
        self._keeps = sum(group.kept_bytes for group in self.groups) <= _KEPT

    def get(self, key: str) -> T | None:
        return self.lookup((key,)).get(key)

    def lookup(self, keys: Iterable[str]) -> dict[str, T]:
        """Returns the records of the existing `keys`. Reads each file group once."""
        distinct = sorted(set(keys))
        if len(self.groups) == 1 and distinct:
            return next(self.of_all_groups(distinct, _lookup))
        found: dict[str, T] = {}
        for records in self.of_keys(distinct, _lookup):
            found.update(records)
        return found

    def with_prefixes(self, prefixes: Iterable[str], hashed: Iterable[str] | None = None) -> Iterator[tuple[str, T]]:
        """Yields the keys that start with one of `prefixes`, and their records. `hashed` are the hashed parts of the
        (distinct) prefixes, where these contain them: then only their file groups are read, else all.
        """
        starts = list(prefixes)
        if not starts:
            return
        if hashed is None:
            answers = self.of_all_groups(starts, _with_prefixes)
        else:
            answers = self._answers(_with_prefixes, self._by_group(starts, list(hashed)))
        for records in answers:
            yield from self._as_text(records)

    def of_keys(self, keys: Iterable[str], query: Callable[[GroupReader[T], list[str]], A]) -> Iterator[A]:
        """Yields the result of `query` for each file group that may have some of `keys`; `query` gets these keys."""
        distinct = list(dict.fromkeys(keys))
        return self._answers(query, self._by_group(distinct, [self._hashed(key) for key in distinct]))

    def of_all_groups(self, requested: list[str], query: Callable[[GroupReader[T], list[str]], A]) -> Iterator[A]:
        return self._answers(query, ((group, requested) for group in self.groups))

    def all(self) -> Iterator[tuple[str, T]]:
        """Yields every key and record, one file group after the other. Memory: one file group's records."""
        for group in self.groups:
            yield from self._as_text(group.all())
            self._done(group)

    def _answers(
        self, query: Callable[[GroupReader[T], list[str]], A], requested: Iterable[tuple[GroupReader[T], list[str]]]
    ) -> Iterator[A]:
        """Yields the file groups' answers in order. Reads up to _AT_ONCE in parallel, and leaves no thread running."""

        def answer(item: tuple[GroupReader[T], list[str]]) -> A:
            records = query(*item)
            self._done(item[0])
            return records

        left = iter(requested)
        while some := list(islice(left, self._workers)):
            if len(some) == 1:
                yield answer(some[0])
                continue
            with ThreadPoolExecutor(max_workers=len(some), thread_name_prefix="metadata-group") as pool:
                yield from pool.map(in_this_look(self.groups[0].storage, answer), some)

    def _done(self, group: GroupReader[T]) -> None:
        if not self._keeps:
            group.release()

    def _by_group(self, keys: Sequence[str], hashed: Sequence[str]) -> Iterator[tuple[GroupReader[T], list[str]]]:
        parts: dict[int, list[str]] = defaultdict(list)
        for key, index in zip(keys, file_group_indexes(hashed, len(self.groups)).tolist(), strict=True):
            parts[index].append(key)
        return ((self.groups[index], parts[index]) for index in sorted(parts))

    def _as_text(self, records: Mapping[bytes, T]) -> Iterator[tuple[str, T]]:
        for key, record in records.items():
            try:
                yield key.decode("utf-8"), record
            except UnicodeDecodeError as error:
                raise CorruptFileError(
                    f"a key of the metadata partition `{self.name}` is not UTF-8 ({error.reason})", path=self._folder
                ) from error


def _lookup(group: GroupReader[T], keys: list[str]) -> dict[str, T]:
    """Returns the records of sorted keys; their UTF-8 bytes have the same order."""
    found = group.records(of_keys([key.encode("utf-8", "surrogatepass") for key in keys]))
    return {key.decode("utf-8", "surrogatepass"): record for key, record in found.items()}


def _with_prefixes(group: GroupReader[T], prefixes: list[str]) -> dict[bytes, T]:
    return group.records(of_prefixes(sorted(prefix.encode("utf-8", "surrogatepass") for prefix in prefixes)))

"""Finds base files that are a copy of another file group's under a name of their own, and the rule on them.

Every row of Hudi's names the base file that it was written to (`_hoodie_file_name`). Rows that name a file of another
file group are lawful where that group was replaced: early releases kept the names when they clustered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final

import pyarrow as pa

from hudi_core.codec.parquet.statistics import chunk_ranges, leaf_columns
from hudi_core.errors import FormatError, StorageNotFoundError, UnsupportedError
from hudi_core.filegroup.read.base_file import open_base_file
from hudi_core.model.names import FILE_NAME, parse_base_file, parse_data_file
from hudi_core.services.context import TableContext
from hudi_core.services.doctor.finding import Counted, Finding, Observations, named_files
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import DataFile
from hudi_core.view.listing import StorageListing

_THREADS: Final = 16


def find_copied_files(context: TableContext, timeline: Timeline) -> Counted[tuple[str, str]]:
    """The paths of base files that a query reads whose rows name a file of another file group that it reads as well,
    each with that name. Nothing beside a pending plan that cannot be read.

    A copy has the size of the original, so only the footers of base files of one size are read, one request each.
    Memory: some 300 bytes for each base file.
    """
    found: Counted[tuple[str, str]] = Counted()
    try:
        view = context.view(timeline, listing=StorageListing(context.storage))
    except (FormatError, StorageNotFoundError):
        return found  # a pending plan that cannot be read, which has a rule of its own
    by_size: dict[int, set[str]] = defaultdict(set)
    latest: list[DataFile] = []
    for name in view.partitions():
        latest += view.latest_base_files(name)
        for file in view.all_base_files(name):
            by_size[file.size].add(parse_base_file(file.name).file_id)
    read = frozenset().union(*by_size.values())
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="base-files") as pool:
        suspects = [file for file in latest if len(by_size[file.size]) > 1]
        for file, original in zip(suspects, pool.map(partial(_named_in_rows, context), suspects), strict=True):
            named = parse_data_file(original or "")
            if named is not None and named.file_id in read - {parse_base_file(file.name).file_id}:
                found.add((file.path, str(named)))
    return found


def _named_in_rows(context: TableContext, file: DataFile) -> str | None:
    """The least file name in the rows of the first row group, by the footer; None where it says none."""
    with (
        suppress(FormatError, StorageNotFoundError, UnsupportedError),
        open_base_file(context.storage, file.path) as opened,
    ):
        column = leaf_columns(opened.metadata).get((FILE_NAME,))
        ranges = None if column is None else chunk_ranges(opened.metadata, column, pa.string())
        if ranges is not None and len(ranges.minimum):
            name: str | None = ranges.minimum[0].as_py()
            return name
    return None


def copied_files(observed: Observations) -> Iterator[Finding]:
    """Base files whose rows are in another file group, too."""
    copied = observed.copied
    if copied.count:
        pairs = [f"{path} of {original}" for path, original in copied.first]
        yield Finding(
            "file_by_two_names",
            "error",
            f"copies of base files under other file ids: {named_files(pairs, copied.count)}; Hudi and we read their "
            "rows twice",
            "stop the writers; delete a copy that no commit names (`hudictl show TABLE INSTANT`)",
            path=copied.first[0][0],
        )

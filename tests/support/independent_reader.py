"""An independent look at a table on disk: Hudi-rs, another implementation, reads the rows, and a parser of a few lines
reads the timeline.

Nothing here is the engine's own code, so that a mistake of ours in reading cannot hide one in writing.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hudi import HudiReadOptions
from hudi import HudiTable as Wheel

from tests.support.rows import assert_same_rows

_FILE = re.compile(r"(?P<time>\d{17})(?:_(?P<done>\d{17}))?\.(?P<action>[a-z]+)(?:\.(?P<state>requested|inflight))?")
_BASE = re.compile(r"(?P<group>[0-9a-zA-Z-]+)_[0-9-]+_(?P<time>\d{17})\.parquet")
_COMMITS = frozenset({"commit", "deltacommit", "replacecommit"})


def rows_by_another_reader(table: Path, *, metadata: bool) -> pa.Table | None:
    """The snapshot that Hudi-rs reads; None when it finds no rows.

    It lists tables of version 6, and goes by the metadata table of later ones where they have one; for `metadata=False`
    it is given a copy without.
    """
    if metadata:
        return _read(table)
    with tempfile.TemporaryDirectory(dir=table.parent) as folder:
        bare = Path(
            shutil.copytree(table, Path(folder) / table.name, ignore=_without_metadata_table, copy_function=os.link)
        )
        properties = bare / ".hoodie" / "hoodie.properties"
        lines = [
            line
            for line in properties.read_text(encoding="latin-1").splitlines()
            if not line.startswith("hoodie.table.metadata.partitions")
        ]
        properties.unlink()  # linked: the table's own file stays as it is
        properties.write_text("\n".join(lines) + "\n", encoding="latin-1")
        return _read(bare)


def _without_metadata_table(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "metadata" and folder.endswith(".hoodie")]


def _read(table: Path) -> pa.Table | None:
    batches = Wheel(str(table)).read(HudiReadOptions())
    return pa.Table.from_batches(batches) if batches else None


def completed_files(table: Path) -> list[tuple[str, str]]:
    """(requested time, action) of each completed file on the timeline, doubles included."""
    folder = table / ".hoodie" / "timeline" if (table / ".hoodie" / "timeline").is_dir() else table / ".hoodie"
    matches = (_FILE.fullmatch(path.name) for path in folder.iterdir() if path.is_file())
    return [
        (found["time"], found["action"])
        for found in matches
        if found and found["state"] is None and found["action"] != "inflight"
    ]


def assert_valid(table: Path, rows: pa.Table | None = None) -> None:
    """Holds at every moment: the rows due by both listings (without `rows`: both the same), each instant completed
    once, whole base files.
    """
    by_listing = rows_by_another_reader(table, metadata=False)
    by_metadata = rows_by_another_reader(table, metadata=True)
    assert (by_listing is None) == (by_metadata is None)
    if by_listing is not None and by_metadata is not None:
        assert_same_rows(by_metadata, by_listing)
        if rows is not None:
            assert_same_rows(rows.select(by_listing.column_names), by_listing)
    elif rows is not None:
        assert rows.num_rows == 0
    completed = Counter(completed_files(table))
    assert [item for item, count in completed.items() if count > 1] == [], "an instant completed twice"
    for path, _ in committed_base_files(table):
        pq.ParquetFile(path).close()


def committed_base_files(table: Path) -> list[tuple[Path, str]]:
    """Base files of instants that the timeline holds as completed commits, with the instant."""
    times = {time for time, action in completed_files(table) if action in _COMMITS}
    found = ((path, _BASE.fullmatch(path.name)) for path in table.rglob("*.parquet") if ".hoodie" not in path.parts)
    return sorted((path, name["time"]) for path, name in found if name and name["time"] in times)


def timeline_times(table: Path) -> set[str]:
    """The requested times of all instants on the timeline, in any state."""
    folder = table / ".hoodie" / "timeline" if (table / ".hoodie" / "timeline").is_dir() else table / ".hoodie"
    return {found["time"] for path in folder.iterdir() if (found := _FILE.match(path.name))}


def assert_nothing_forgotten(table: Path) -> None:
    """Holds at every moment: no base file of an instant that is not on the timeline, unless it is older than all of
    that (archived).
    """
    _assert_known(table, timeline_times(table))


def assert_complete(table: Path, rows: pa.Table | None = None) -> None:
    """Holds when a service is over: valid, and nothing forgotten."""
    assert_valid(table, rows)
    assert_nothing_forgotten(table)


def _assert_known(table: Path, times: set[str]) -> None:
    commits = sorted(time for time, action in completed_files(table) if action in _COMMITS)
    names = (_BASE.fullmatch(path.name) for path in table.rglob("*.parquet") if ".hoodie" not in path.parts)
    forgotten = [
        name[0] for name in names if name and name["time"] not in times and (not commits or name["time"] > commits[0])
    ]
    assert forgotten == [], f"base files of instants that are not on the timeline: {forgotten}"

"""A golden table for a named case, and what has to hold of hudictl's answer on it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.hostile.change import Changed
from tests.hostile.forked import Ended
from tests.hostile.hudictl_server import hudictl
from tests.hostile.judge import NO_FILE, faults_of, rows_in
from tests.hostile.table_copies import difference, tree_of, write_copy
from tests.support.rows import assert_same_rows

LOCAL = ("--engine", "local", "--option", "hoodie.index.bloom.num_entries=100")


class HostileTable:
    """A copy of a golden table, to be damaged and then given to hudictl."""

    def __init__(self, folder: str, case: str, scratch: Path) -> None:
        self.scratch = scratch
        self.base = write_copy((folder, case), scratch / "table")

    def path(self, pattern: str, at: int = 0) -> Path:
        """One of the files that match a pattern below the base path, in the order of their paths."""
        found = sorted(path for path in self.base.glob(pattern) if path.is_file())
        assert found, f"no {pattern} in {self.base.name}"
        return found[at]

    def change(self, pattern: str, change: Callable[[bytes], bytes | Changed], at: int = 0) -> Path:
        """Writes other content into a file; returns its path."""
        path = self.path(pattern, at)
        changed = change(path.read_bytes())
        path.write_bytes(changed if isinstance(changed, bytes) else changed.data)
        return path

    def rows(self, *options: str) -> pa.Table:
        """What a query gives that must succeed."""
        output = self.scratch / "rows.parquet"
        output.unlink(missing_ok=True)
        ended = hudictl("read", self.base, "--output", output, "--json", *options)
        assert ended.code == 0, ended
        return rows_in(output)

    def read(self, *options: str) -> Ended:
        """A query that may fail."""
        return self.run("read", "--output", str(self.scratch / "rows.parquet"), *options)

    def run(self, verb: str, *arguments: str) -> Ended:
        """`hudictl VERB… TABLE ARGUMENTS… --json`; the words of a verb have spaces between them."""
        ended = hudictl(*verb.split(), self.base, *arguments, "--json")
        assert [fault for fault in faults_of(ended) if NO_FILE not in fault.what] == []
        return ended

    def refuses(self, verb: str, *arguments: str, **expected: Any) -> dict[str, Any]:
        """The error of a run that must fail, and that changes nothing when its exit code is 2; else as `refused`."""
        before = tree_of(self.base)
        ended = self.run(verb, *arguments)
        return refused(ended, changes=difference(before, tree_of(self.base)), **expected)

    def refuses_read(self, *options: str, **expected: Any) -> dict[str, Any]:
        """As `refuses`, of a query."""
        return self.refuses("read", "--output", str(self.scratch / "rows.parquet"), *options, **expected)

    def keeps_rows(self, expected: pa.Table, *options: str) -> None:
        """A query gives the rows of before, or an error that names a file."""
        before = tree_of(self.base)
        ended = self.read(*options)
        if ended.code:
            refused(ended)
        else:
            assert_same_rows(rows_in(self.scratch / "rows.parquet"), expected)
        assert difference(before, tree_of(self.base)) == []


def refused(
    ended: Ended,
    *,
    names: str | None = None,
    codes: tuple[int, ...] = (1, 2),
    changes: list[str] | None = None,
    of_file: bool = True,
) -> dict[str, Any]:
    """The error in the answer: a type, a message and a remedy; with `of_file` a file, too. `names` is in it."""
    assert [fault for fault in faults_of(ended) if of_file or NO_FILE not in fault.what] == []
    assert ended.code in codes, ended
    error: dict[str, Any] = json.loads(ended.out)["error"]
    assert error["remedy"], error
    assert names is None or names in f"{error['path']} {error['message']}", error
    assert ended.code != 2 or not changes, changes
    return error

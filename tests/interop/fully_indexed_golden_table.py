"""A golden table of all partition types, or of statistics alone, which we served: real Hudi answers by the indexes what
a scan answers, and writes on by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from tests.interop.changes import user_columns
from tests.interop.fully_indexed_table import BY_BLOOM, BY_RECORD_INDEX, FullyIndexedTable
from tests.interop.judged import JUDGES, KEEP_ONE, ON_TOP
from tests.interop.real_hudi import RealHudi
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import has_metadata_table, read_rows

WITH_INDEXES = [
    *(
        (version, name)
        for version in JUDGES
        for name in (
            "mdt_all_cow",
            "mdt_all_cow_compacted",
            "mdt_all_mor",
            "mdt_all_mor_compacted",
            "mdt_record_index_lookup",
        )
    ),
    ("6-by-1.2.0", "cow_basic"),
    ("6-by-1.2.0", "mor_basic"),
    ("8", "cow_basic"),
    ("8-by-1.2.0", "mor_basic"),
    ("9", "cow_basic"),
    ("9", "mor_basic"),
]
"""Golden tables with metadata of files and more. Real Hudi 1.0.2 fails to read mor_basic of version 8."""
NAME_INDEX = "secondary_index_idx_name"
SECONDS_A_DAY = 86_400


@dataclass
class Served(FullyIndexedTable):
    """See FullyIndexedTable. `kinds` are the metadata table's partitions."""

    kinds: frozenset[str] = frozenset()

    @staticmethod
    def of(hudi: RealHudi, case: GoldenCase) -> Served:
        """The golden table as it is on disk. Real Hudi's writer goes on with the options that the table was written
        with.
        """
        served = {} if hudi.version.startswith("0.") else {"hoodie.embed.timeline.server": "true"}
        options: Mapping[str, str] = {**case.info["write_options"], **ON_TOP, **served}
        table = Served(hudi, case.table, user_columns(read_rows(case.table, "off")), dict(options))
        table.kinds = table.config.metadata_partitions
        return table

    def assert_true(self) -> None:
        """As FullyIndexedTable."""
        assert self.found() == []
        assert self.config.metadata_partitions == self.kinds

    def judge(self) -> None:
        """Everything that real Hudi can be asked, and our own validation."""
        self.assert_true()
        self.check()
        self.check_queries()
        if "record_index" in self.kinds:
            self.check_locations()
        if "bloom_filters" in self.kinds:
            self.check_filters()

    def write_by(self, options: Mapping[str, str]) -> None:
        """Real Hudi changes rows that it finds by our index: each stays in its file group, and every index
        gets the new ones.
        """
        before = self.groups()
        self.upsert(4, options=options)
        after = self.groups()
        assert {key: place for key, place in after.items() if key in before} == before
        assert len(after) == self.rows.num_rows
        self.assert_true()

    def go_on(self) -> None:
        """Real Hudi writes by our indexes, deletes, compacts and cleans; nothing of the metadata table is rebuilt."""
        metadata = self.metadata_files()
        by = BY_RECORD_INDEX if "record_index" in self.kinds else {}
        self.write_by(by)
        if "bloom_filters" in self.kinds:
            self.write_by(BY_BLOOM)
        self.delete(by=by)
        groups = self.groups()
        if self.is_mor:
            self.compact()
        if not any(name.startswith("expr_index_") for name in self.kinds):
            # Beside an expression index its own clean puts records of that into `column_stats`, and its next write
            # fails: without us, too.
            self.clean(KEEP_ONE)
        self.upsert(3, fresh=False, options=by)
        assert self.groups() == groups
        self.assert_metadata_kept(metadata)
        self.judge()

    def go_on_without(self) -> None:
        """The metadata table was dropped: real Hudi's next write makes a new one."""
        self.check_rows()
        self.upsert(4)
        assert has_metadata_table(self.base)
        self.check()

    def check_rows(self) -> None:
        """Real Hudi reads the rows due, and no metadata table is there."""
        assert not has_metadata_table(self.base)
        assert_same_rows(user_columns(self.hudi.snapshot(self.base, metadata=True)), self.rows)

    def check_queries(self) -> None:
        """Point and range queries have the same rows by the indexes as without; a key, or a value of the secondary
        index, leads to its file group.
        """
        requested = dict(self._queries())
        answers: list[dict[str, Any]] = self.hudi.ask("skipping", base=str(self.base), predicates=[*requested])
        wrong = [answer for answer in answers if not answer["same"]]
        assert wrong == [], wrong
        for answer in answers:
            index = requested[answer["where"]]
            if index in self.kinds:
                assert answer["slices"] <= 1, (index, answer)
                assert answer["rows"] == 1, (index, answer)
        assert sum(answer["rows"] for answer in answers) > 0

    def _queries(self) -> Iterator[tuple[str, str | None]]:
        """Predicates, and the index by which it leads to one file group, if there is one."""
        rows = self.rows.sort_by("id")
        some = [rows.slice(rows.num_rows * part // 4, 1).to_pylist()[0] for part in (1, 2, 3)]
        yield f"id = {text(some[1]['id'])}", "record_index"
        yield f"id IN ({', '.join(text(row['id']) for row in some)}, 'nobody')", None
        yield f"id BETWEEN {text(some[0]['id'])} AND {text(some[1]['id'])}", None
        names = [row["name"] for row in some]
        single = [name for name in names if pc.sum(pc.equal(rows["name"], name)).as_py() == 1]
        yield f"name = {text(single[0])}", NAME_INDEX
        yield f"name IN ({', '.join(map(text, names))}, 'nobody')", None
        low, _, high = sorted(row["ts"] for row in some)
        # Not `ts = …`: real Hudi takes it for a question to the expression index of days, and fails on its strings
        # (ClassCastException).
        yield f"ts BETWEEN {low} AND {high}", None
        yield f"ts > {pc.max(rows['ts']).as_py()}", None
        quantities = sorted(row["qty"] for row in some)
        yield f"qty > {quantities[1]} AND amount < {max(row['amount'] for row in some)} AND note IS NULL", None
        day = np.datetime64(high // SECONDS_A_DAY, "D")
        yield f"from_unixtime(ts, 'yyyy-MM-dd') = '{'+' if len(str(day)) > len('2024-01-01') else ''}{day}'", None
        yield f"dt = '{some[0]['dt']}' AND from_unixtime(ts, 'yyyy-MM-dd') = '2001-01-01'", None


def text(value: str) -> str:
    """A string in Spark's SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

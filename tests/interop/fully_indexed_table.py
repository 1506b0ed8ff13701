"""A table of all partition types, which we and real Hudi serve in turns: both must answer by the indexes what a scan
of all files answers.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Action
from hudi_health.table import validate_metadata
from tests.interop.changes import user_columns, write_parquet
from tests.interop.judged import BASE_OPTIONS, KEEP_ONE, QUICK, Judged
from tests.interop.real_hudi import RealHudi
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import has_metadata_table

DAY = 86_400
FIRST_DAY = 19_723
"""2024-01-01, in days since 1970."""
BATCHES = 3
ROWS = 60
SECONDARY, EXPRESSION = "secondary_index_by_name", "expr_index_by_day"
PARTITIONS = {
    "6": frozenset({"files", "column_stats", "bloom_filters", "record_index"}),
    "8": frozenset(
        {"files", "column_stats", "bloom_filters", "record_index", "partition_stats", SECONDARY, EXPRESSION}
    ),
}
PARTITIONS["9"] = PARTITIONS["8"]
SWITCHES = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.record.index.max.filegroup.count": "3",
    "hoodie.metadata.index.bloom.filter.file.group.count": "2",
    "hoodie.metadata.index.column.stats.file.group.count": "2",
}
"""What keeps real Hudi's writer from dropping a partition, and what we are asked to make."""
OURS = {**QUICK, **SWITCHES, "spark.sql.session.timeZone": "UTC", "airflow_hudi.read.zone": "UTC"}
BY_RECORD_INDEX = {"hoodie.index.type": "RECORD_INDEX"}
BY_BLOOM = {"hoodie.index.type": "BLOOM", "hoodie.bloom.index.use.metadata": "true"}
COMPACT_AT_ONCE = {"hoodie.metadata.compact.max.delta.commits": "1"}
WITHOUT = {"hoodie.metadata.enable": "false"}


def batch(number: int) -> pa.Table:
    """Every third row of the table: keys and names of all batches lie among each other, so that one is found
    by the index only.

    Days and notes are those of the batch, amounts those of the partition.
    """
    metadata_timeline = range(number, ROWS, BATCHES)
    return pa.table(
        {
            "id": [f"key-{row:04d}" for row in metadata_timeline],
            "dt": [f"2024-01-0{1 + row // BATCHES % 2}" for row in metadata_timeline],
            "ts": pa.array([(FIRST_DAY + 10 * number) * DAY + row for row in metadata_timeline], pa.int64()),
            "name": [f"m{row:04d}" for row in metadata_timeline],
            "amount": [row / 4 + 1000.0 * (row // BATCHES % 2) for row in metadata_timeline],
            "note": pa.array([None if number == 0 else f"note {row}" for row in metadata_timeline], pa.string()),
        }
    )


QUERIES = {
    "record_index": ("id = 'key-0044'", "id IN ('key-0001', 'key-0058', 'nobody')", "id = 'nobody'"),
    "column_stats": (
        f"ts < {(FIRST_DAY + 5) * DAY}",
        f"ts BETWEEN {(FIRST_DAY + 9) * DAY} AND {(FIRST_DAY + 12) * DAY} AND note IS NOT NULL",
    ),
    "partition_stats": ("amount > 500.0", "amount < 3.0"),
    SECONDARY: ("name = 'm0044'", "name IN ('m0046', 'm0058')", "name = 'nobody'"),
    EXPRESSION: ("from_unixtime(ts, 'yyyy-MM-dd') = '2024-01-11'", "from_unixtime(ts, 'yyyy-MM-dd') = '2001-01-01'"),
}
"""Predicates by the index that must leave slices out for them."""


class FullyIndexedTable(Judged):
    """See Judged. `options` are those of real Hudi's writer."""

    dropped: frozenset[str] = frozenset()
    """The indexes that we dropped."""

    @classmethod
    def without_metadata(cls, hudi: RealHudi, base: Path, kind: str, version: str) -> FullyIndexedTable:
        """Three inserts, of two file groups each, and two upserts by real Hudi, without a metadata table."""
        base.parent.mkdir(parents=True, exist_ok=True)
        one_x = not hudi.version.startswith("0.")
        pinned = {"hoodie.write.table.version": version, "hoodie.write.auto.upgrade": "false"} if one_x else {}
        # 1.2.0 fails on several partitions of a metadata table without its timeline server.
        served = {"hoodie.embed.timeline.server": "true"} if one_x else {}
        options = {
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.clean.automatic": "false",
            "hoodie.compact.inline": "false",
            **served,
            **WITHOUT,
        }
        rows = [batch(number) for number in range(BATCHES)]
        chosen = {
            **BASE_OPTIONS,
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.operation": "insert",
            **pinned,
            **options,
        }
        hudi.ask(
            "create", base=str(base), parquet=write_parquet(rows[0], base.parent, f"{base.name}-rows"), options=chosen
        )
        for number, inserted in enumerate(rows[1:]):
            parquet = write_parquet(inserted, base.parent, f"{base.name}-more{number}")
            hudi.ask("write", base=str(base), operation="insert", parquet=parquet, options=options)
        table = cls(hudi, base, pa.concat_tables(rows), options)
        assert f"hoodie.table.version={version}" in (base / ".hoodie" / "hoodie.properties").read_text()
        table.upsert(4)
        table.upsert(4, fresh=False)
        assert not has_metadata_table(base)
        return table

    def copy(self, base: Path) -> FullyIndexedTable:
        """As Judged."""
        shutil.copytree(self.base, base)
        copied = FullyIndexedTable(self.hudi, base, self.rows, dict(self.options), self.steps)
        copied.dropped = self.dropped
        return copied

    @property
    def version(self) -> str:
        """The table's version."""
        return self.config.raw["hoodie.table.version"]

    # What we do.

    def begin(self) -> None:
        """Our metadata table from nothing, with every partition type that the version has; from now on real Hudi's
        writer keeps it.
        """
        named = tuple(
            sorted(
                name
                for name in PARTITIONS[self.version]
                if not name.startswith(("secondary_", "expr_")) and name != "files"
            )
        )
        self.ours("metadata_create", partitions=named)
        if SECONDARY in PARTITIONS[self.version]:
            self.index({"hoodie.index.name": "by_name", "hoodie.metadata.index.secondary.column": "name"})
            expression = {"hoodie.metadata.index.expression.options": "expr=from_unixtime,format=yyyy-MM-dd"}
            self.index({"hoodie.index.name": "by_day", "hoodie.metadata.index.expression.column": "ts", **expression})
        assert self.config.metadata_partitions == PARTITIONS[self.version] - self.dropped
        self.options = {**self.options, **SWITCHES, "hoodie.metadata.enable": "true"}

    def index(self, options: Mapping[str, str]) -> None:
        """One index, as an indexing action of the timeline."""
        given = {name: value for name, value in OURS.items() if name not in SWITCHES} | dict(options)
        planned = self.run("schedule", service="indexing", options=given).document
        assert planned is not None
        assert planned["instant"] is not None, planned
        self.run(service="indexing", instant=planned["instant"], options=given)

    def ours(self, verb: str, options: Mapping[str, str] | None = None, **request: Any) -> dict[str, Any]:
        """A verb of ours; its document."""
        document = self.run(verb, options={**OURS, **(options or {})}, **request).document
        assert document is not None
        return dict(document)

    def compact_ours(self) -> None:
        """Our run of a compaction that real Hudi plans, as it would name one."""
        instant = self.schedule_compaction()
        self.run(service="compaction", instant=instant, options=OURS)
        assert instant in self.times(Action.COMMIT)

    def write_unrecorded(self) -> tuple[str, ...]:
        """An upsert of which the metadata table does not know; the instants that are new."""
        folder = self.base / ".hoodie" / "metadata"
        kept, before = self.base.with_name(f"{self.base.name}-metadata"), self.times()
        shutil.copytree(folder, kept)
        self.upsert(4)
        shutil.rmtree(folder)
        kept.rename(folder)
        return tuple(sorted({*self.times()} - {*before}))

    def catch_up(self) -> None:
        """A write is missing; our update adds it."""
        missing = list(self.write_unrecorded())
        assert self.found() != []
        assert self.ours("metadata_update")["applied"] == missing

    def drop(self, index: str) -> None:
        """An index is gone; the others stay as they are."""
        self.ours("metadata_drop", partitions=(index,))
        self.dropped |= {index}

    def keep_up(self) -> dict[str, Any]:
        """The metadata table's own services, at once."""
        done = self.ours("metadata_update", COMPACT_AT_ONCE)
        assert done["compacted"]["files"] > 0, done
        return done

    # What real Hudi does.

    def delete(self, count: int = 3, by: Mapping[str, str] = BY_RECORD_INDEX) -> None:
        """A delete of some rows, found by the record index or another one."""
        self.steps += 1
        gone = self.rows.sort_by("id").slice(5 * self.steps % (self.rows.num_rows - count), count)
        parquet = write_parquet(gone, self.base.parent, f"{self.base.name}-step{self.steps}")
        self.hudi.ask(
            "write",
            base=str(self.base),
            operation="delete",
            parquet=parquet,
            options={**self.options, **by},
        )
        self.rows = self.rows.filter(pc.invert(pc.is_in(self.rows["id"], value_set=gone["id"].combine_chunks())))

    def clean_once(self) -> None:
        """A clean of real Hudi, or one of ours where an expression is indexed.

        Real 1.x writes the deletions of an expression index into new file groups of the folder `column_stats`, named as
        those of the expression index (HoodieMetadataPayload.createColumnStatsRecords names the wrong partition), and
        its next write fails on them.
        """
        before = self.times(Action.CLEAN)
        if any(name.startswith("expr_index_") for name in self.config.metadata_partitions):
            self.run(service="clean", schedule=True, options={**OURS, **KEEP_ONE})
        else:
            self.clean(KEEP_ONE)
        assert len(self.times(Action.CLEAN)) == len(before) + 1

    def go_on(self) -> None:
        """Real Hudi writes by our indexes, compacts and cleans: each row stays in its file group, and nothing is
        rebuilt.
        """
        metadata, before = self.metadata_files(), self.groups()
        self.upsert(5, options=BY_RECORD_INDEX)
        self.delete()
        after = self.groups()
        assert {key: place for key, place in after.items() if key in before} == {
            key: place for key, place in before.items() if key in after
        }
        if self.is_mor:
            self.compact()
        self.clean_once()
        self.upsert(3, fresh=False, options={**BY_BLOOM, **COMPACT_AT_ONCE})
        assert self.groups().keys() == after.keys()
        self.assert_metadata_kept(metadata)
        self.assert_true()
        self.check()
        self.check_locations()

    # What must hold.

    def judge(self) -> None:
        """Everything that real Hudi can be asked, and our own validation."""
        self.assert_true()
        self.check()
        self.check_queries()
        self.check_locations()
        self.check_filters()

    def found(self) -> list[str]:
        """What our validation finds; it leaves nothing out but the statistics of the partition column, whose values
        queries take from the path.
        """
        report = validate_metadata(HudiTable.open(str(self.base), options={"airflow_hudi.read.zone": "UTC"}))
        not_checked = [
            str(item)
            for item in report.not_checked
            if item.why != "columns whose values queries take from the partition's path"
        ]
        return [
            f"{item.partition_type} {item.partition} {item.file}: {item.what}" for item in report.differences
        ] + not_checked

    def assert_true(self) -> None:
        """Our validation finds nothing, and no partition was abandoned."""
        found = self.found()
        assert found == [], found
        assert self.config.metadata_partitions == PARTITIONS[self.version] - self.dropped

    def groups(self) -> dict[str, tuple[str, str]]:
        """The partition and the file id of each record key, as real Hudi reads them without a metadata table."""
        rows = self.hudi.snapshot(self.base, metadata=False)
        assert_same_rows(user_columns(rows), self.rows)
        names = ("_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name")
        return {
            key: (place, file.split("_")[0])
            for key, place, file in zip(*(rows[name].to_pylist() for name in names), strict=True)
        }

    def check_queries(self) -> None:
        """Real Hudi's queries have the same rows by the indexes as without, and each index leaves slices out."""
        slices = len(HudiTable.open(str(self.base)).files())
        listed = self.config.metadata_partitions
        requested = [(index, where) for index, predicates in QUERIES.items() if index in listed for where in predicates]
        answers = self.hudi.ask("skipping", base=str(self.base), predicates=[where for _, where in requested])
        wrong = [
            (index, answer)
            for (index, _), answer in zip(requested, answers, strict=True)
            if not answer["same"] or answer["slices"] >= slices
        ]
        assert wrong == [], wrong
        assert sum(answer["rows"] for answer in answers) > 0

    def check_locations(self) -> None:
        """Real Hudi finds each record key, and each value of the secondary index, where the rows are, and no other."""
        groups = self.groups()
        found = self.hudi.ask("record_locations", base=str(self.base), keys=[*groups, "nobody"])
        assert {key: (partition, file) for key, partition, file, _ in found} == groups
        assert len(found) == len(groups)
        if SECONDARY in self.config.metadata_partitions:
            rows = self.rows.sort_by("name")
            values = {"m0044", "m0058", *rows["name"].to_pylist()[:5]}
            due = [
                key
                for key, name in zip(rows["id"].to_pylist(), rows["name"].to_pylist(), strict=True)
                if name in values
            ]
            found = self.hudi.ask(
                "record_locations", base=str(self.base), keys=[*sorted(values), "nobody"], index=SECONDARY
            )
            assert sorted((key, partition, file) for key, partition, file, _ in found) == sorted(
                (key, *groups[key]) for key in due
            )

    def check_filters(self) -> None:
        """The filter of each base file that queries read holds the file's keys, and hardly another."""
        keys_of = dict(self._base_files())
        keys = sorted({key for held in keys_of.values() for key in held})
        answers = self.hudi.ask(
            "bloom_answers", base=str(self.base), files=[list(place) for place in keys_of], keys=keys
        )
        for (place, held), answer in zip(keys_of.items(), answers, strict=True):
            assert answer is not None, place
            assert held <= set(answer)
            assert len(set(answer) - held) < 5
        assert keys_of

    def _base_files(self) -> Iterable[tuple[tuple[str, str], set[str]]]:
        for item in HudiTable.open(str(self.base)).files():
            if item.base_file is not None:
                path = item.base_file.path
                keys = pq.read_table(self.base / path, columns=["_hoodie_record_key"], partitioning=None)[
                    "_hoodie_record_key"
                ].to_pylist()
                yield (item.file_group.partition, path.rsplit("/", 1)[-1]), set(keys)

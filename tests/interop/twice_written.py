"""A golden table into which real Hudi writes rows, and a copy of it into which we write them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.engine.local import LocalEngine
from hudi_core.model.names import IS_DELETED, META_FIELDS
from hudi_core.table import HudiTable
from hudi_core.timeline.actions.content import decode_any
from hudi_core.timeline.instant import Instant
from hudi_core.verbs.write import WriteRequest
from tests.interop.changes import write_parquet
from tests.interop.golden_judge import Judge, changed, is_mor, some_rows
from tests.interop.judged import QUICK
from tests.interop.real_hudi import RealHudiError
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import own_rows, put_source
from tests.support.rows import PHYSICAL, assert_same_rows
from tests.support.table_invariants import assert_metadata_true, has_metadata_table, read_rows
from tests.support.writes import Model, Row

OPERATIONS = ("upsert", "insert", "delete", "bulk_insert")
TAGGING = ("upsert", "delete")
"""Operations that look for the file groups of their keys."""
_DEFAULT_PAYLOAD = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
_TIMED = "EVENT_TIME_ORDERING"
State = dict[str, Any]
"""The members of a file of the timeline; none of an empty one."""


def given_rows(case: GoldenCase, table: Path, operation: str) -> pa.Table:
    """Rows for a write: changed rows of later, of equal and of earlier ordering values, unchanged ones of earlier
    values, new keys, keys twice, and deletes where the table has them. Each key once where a record index gets
    inserts: real Hudi writes no key twice into one.
    """
    own = own_rows(table, read_rows(table))
    if own.num_rows == 0:
        return some_rows(case, own.schema)
    key, order = case.info["record_key_fields"][-1], case.info["ordering_fields"][0]
    held = [*case.info["record_key_fields"], *partition_fields(case), *case.info["ordering_fields"]]
    own = own.sort_by(key)

    def part(
        first: int, count: int, by: int, values: Mapping[str, Any] | None = None, *, keeps: bool = False
    ) -> pa.Table:
        rows = own.slice(first, count)
        rows = rows if keeps else changed(rows, held)
        for name, value in {order: pc.add(rows[order], by), **(values or {})}.items():
            item = rows.schema.field(name)
            column = value if isinstance(value, pa.ChunkedArray) else pa.array(value, item.type)
            rows = rows.set_column(rows.schema.get_field_index(name), item, column)
        return rows

    new = [f"new {number}" for number in range(6)]
    parts = [
        part(0, 4, 1000),
        part(4, 2, 0),
        part(6, 3, -1_000_000),
        part(9, 2, -5, keeps=True),
        part(2, 6, 5, {key: new}),
    ]
    indexed = "record_index" in str(case.info["table_config"].get("hoodie.table.metadata.partitions"))
    if operation in TAGGING or not indexed:
        parts += [
            part(11, 2, 10),
            part(11, 2, 20, keeps=True),
            part(2, 2, 5, {key: new[:2]}, keeps=True),
            part(4, 2, 4, {key: new[2:4]}, keeps=True),
        ]
    if IS_DELETED in own.column_names:
        parts += [
            part(13, 3, 50, {IS_DELETED: [True] * 3}),
            part(16, 2, -500_000, {IS_DELETED: [True] * 2}),
            part(18, 1, 5, {key: ["absent"], IS_DELETED: [True]}),
        ]
    return pa.concat_tables(parts)


def partition_fields(case: GoldenCase) -> list[str]:
    return [name.partition(":")[0] for name in case.info["partition_fields"]]


@dataclass
class Twice:
    """`judge.base` is the table that we write into, `judge.untouched` the one that real Hudi writes into."""

    judge: Judge
    written: int = 0

    @property
    def case(self) -> GoldenCase:
        return self.judge.case

    @property
    def ours(self) -> Path:
        return self.judge.base

    @property
    def theirs(self) -> Path:
        return self.judge.untouched

    @property
    def options(self) -> dict[str, str]:
        """A writer's. It makes no metadata table where there is none."""
        return {**self.judge.options, "hoodie.metadata.enable": str(has_metadata_table(self.ours)).lower()}

    @property
    def timed(self) -> bool:
        """Whether an upsert compares ordering values with those of the table."""
        config = self.case.info["table_config"]
        payload = config.get("hoodie.compaction.payload.class") or self.options.get(
            "hoodie.datasource.write.payload.class"
        )
        return bool(config.get("hoodie.record.merge.mode", _TIMED if payload == _DEFAULT_PAYLOAD else "") == _TIMED)

    def model(self) -> Model | None:
        """The rows of our table; None where readers take the values of partition columns from paths, where the log file
        of a bucket gets rows of keys that it has, and for version 6, merge on read, without event time.
        """
        by_bucket = self.options.get("hoodie.index.type") == "BUCKET" and is_mor(self.case.info)
        # Of two rows of version 6, the ordering values decide within log files, and the later one over a base file.
        by_both = is_mor(self.case.info) and not self.timed and self.case.version == "6"
        if "keygen" in self.case.name or by_bucket or by_both:
            return None

        def place(row: Row) -> tuple[str, str]:
            names = (partition_fields(self.case), self.case.info["record_key_fields"])
            partition, key = (repr([row[name] for name in of]) for of in names)
            return partition, key

        by_commit = self.case.info["table_config"].get("hoodie.record.merge.mode") == "COMMIT_TIME_ORDERING"
        order = None if by_commit else self.case.info["ordering_fields"][0]
        return Model.of(self.ours, event_time=self.timed, order=order, place=place)

    def we_write(self, operation: str, rows: pa.Table, options: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        """Our write; its document."""
        self.written += 1
        source = put_source(rows, self.case.scratch, files=2, name=f"ours-{self.written}")
        chosen = {**self.options, "spark.sql.session.timeZone": "UTC", **QUICK, **(options or {})}
        request = WriteRequest(
            str(self.ours), operation=operation, source=str(source), owner="the tests", options=chosen
        )
        document = HudiTable.open(str(self.ours)).run(request, LocalEngine(1)).document
        assert document is not None
        return document

    def they_write(self, operation: str, rows: pa.Table, options: Mapping[str, str] | None = None) -> None:
        """Real Hudi's write."""
        parquet = write_parquet(rows.replace_schema_metadata(None), self.case.scratch, f"theirs-{self.written}")
        chosen = {**self.options, **(options or {})}
        self.judge.hudi.ask("write", base=str(self.theirs), operation=operation, parquet=parquet, options=chosen)

    def write(self, operation: str, rows: pa.Table, options: Mapping[str, str] | None = None) -> None:
        """The same write of both."""
        self.they_write(operation, rows, options)
        self.we_write(operation, rows, options)

    # What must hold.

    def check(self, operation: str, before: pa.Table, *, times: bool = True) -> None:
        """Real Hudi reads the same of both tables, by the metadata table and by listing; what was there `before` is in
        the same file groups. We read what real Hudi reads, and the metadata table is true. Without `times` the rows
        may have other commit times.
        """
        ignored = PHYSICAL if times else (*PHYSICAL, META_FIELDS[0])
        assert_metadata_true(self.ours)
        assert_same_rows(read_rows(self.ours, "off"), self.judge.snapshot(self.ours, metadata=False))
        for metadata in (True, False):
            ours, theirs = (self.judge.snapshot(base, metadata=metadata) for base in (self.ours, self.theirs))
            assert_same_rows(stamped(ours, before), stamped(theirs, before), ignore=ignored)
            assert file_groups(ours, before, operation) == file_groups(theirs, before, operation)


def stamped(rows: pa.Table, before: pa.Table) -> pa.Table:
    """The rows with a commit time of the table as it was, or "new"."""
    name = META_FIELDS[0]
    if name not in rows.column_names:
        return rows
    known = set(before[name].to_pylist()) if name in before.column_names else set()
    times = [time if time in known else "new" for time in rows[name].to_pylist()]
    return rows.set_column(rows.schema.get_field_index(name), name, pa.array(times))


def file_groups(rows: pa.Table, before: pa.Table, operation: str) -> dict[tuple[str, str], Counter[str]]:
    """The file groups of each key that was there before, and of its old rows alone where a write adds others."""
    if META_FIELDS[0] not in rows.column_names or before.num_rows == 0:
        return {}
    known, times = set(_places(before)), set(before[META_FIELDS[0]].to_pylist())
    found: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    commits, names = rows[META_FIELDS[0]].to_pylist(), rows["_hoodie_file_name"].to_pylist()
    for place, time, name in zip(_places(rows), commits, names, strict=True):
        if place in known and (operation in TAGGING or time in times):
            found[place][name.partition("_")[0]] += 1
    return dict(found)


def _places(rows: pa.Table) -> Iterator[tuple[str, str]]:
    names = ("_hoodie_partition_path", "_hoodie_record_key")
    yield from zip(*(rows[name].to_pylist() for name in names), strict=True)


def newest_commit(table: Path) -> Instant:
    return [item for item in open_context(table).active.load().commits() if item.is_completed][-1]


def content_of(table: Path, instant: Instant, state: str = "") -> State:
    """The members of an instant's file of the `state` inflight or requested, or of the completed one."""
    active = open_context(table).active
    path = table / active.path_of(instant)
    if state:
        (path,) = path.parent.glob(f"{instant.requested_time}.*{state}")
    data = path.read_bytes()
    return decode_any(data, path=str(path)) if data else {}


def stats_of(content: State, known: Callable[[str], bool]) -> dict[str, list[State]]:
    """The write stats of each partition without what two correct writers write otherwise: names, sizes, times, and the
    ids of new file groups.
    """
    found = {}
    for partition, stats in (content.get("partitionToWriteStats") or {}).items():
        kept = []
        for stat in stats:
            one = {name: value for name, value in stat.items() if name not in OWN}
            if "fileId" in one and not known(one["fileId"]):
                one["fileId"] = "new"
            kept.append(one)
        found[partition] = sorted(kept, key=repr)
    return found


OWN = ("path", "fileSizeInBytes", "totalWriteBytes", "runtimeStats")


def fails_with(act: Callable[[], object]) -> RealHudiError | None:
    """The error with which real Hudi fails, if it does."""
    try:
        act()
    except RealHudiError as error:
        return error
    return None

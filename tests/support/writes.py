"""Writes of rows into golden tables, and a model of such a table in plain Python that the rows are compared with."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import Engine
from hudi_core.metadata_table.write.lifetime import drop_metadata_table
from hudi_core.model.names import IS_DELETED, META_FIELDS, PARTITION_PATH, RECORD_KEY
from hudi_core.services.archive.job import ArchiveService
from hudi_core.services.clean.planner import CleanService
from hudi_core.services.source.files import RowsFrom
from hudi_core.services.source.staged_rows import STAGED
from hudi_core.services.write import route, shard_files, upsert
from hudi_core.services.write.job import WriteJob
from hudi_core.services.write.plan import RowsWork
from hudi_core.services.write.tagging import keys, tag
from hudi_core.services.write.verb import run_write
from hudi_core.services.write.work import WriteResult
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.transaction.owner import Owner
from tests.support.changed_tables import an_owner, open_context
from tests.support.fault_storage import FaultPlan, FaultStorage
from tests.support.golden_compactions import OPTIONS
from tests.support.kill_points import tasks_under
from tests.support.overwrites import put_source
from tests.support.table_invariants import has_metadata_table, read_rows

Row = dict[str, Any]
Place = tuple[str, str]
"""A partition path and a record key."""
APART = {"hoodie.parquet.small.file.limit": "0"}
"""New rows get file groups of their own."""


def write(
    table: Path,
    operation: str,
    given: Path,
    options: Mapping[str, str] | None = None,
    plan: FaultPlan | None = None,
    owner: Owner | None = None,
    *,
    token: str | None = None,
    dry_run: bool = False,
    engine: Engine | None = None,
    where: str = "",
) -> WriteResult:
    """Ours, on a local table; tasks write under the same plan of faults. With `where` the rows are not `given`."""
    rows_from = RowsFrom(where=where) if where else RowsFrom(str(given))
    work = RowsWork(operation.upper(), token=token, rows_from=rows_from)
    storage = None if plan is None else FaultStorage(LocalStorage(table), plan)
    with nullcontext() if plan is None else tasks_under(plan, route, shard_files, keys, tag, upsert):
        context = open_context(table, {**OPTIONS, **(options or {})}, storage)
        return run_write(context, work, WriteJob, engine or LocalEngine(1), owner or an_owner(), dry_run=dry_run)


def archive_behind(table: Path) -> None:
    """Has all writes so far archived: five inserts into a new partition come, and then an archival."""
    drop_metadata_table(open_context(table).storage)  # else instants stay until it is compacted
    for number in range(5):
        row = like(own_columns(read_rows(table)), {"id": f"later {number} {uuid4()}", "dt": "2031-12-31"})
        write(table, "insert", put_source(row, table.parent, name=f"later-{uuid4()}"))
    archive(table)


def archive(table: Path) -> None:
    """Leaves two commits on the timeline. Cleans first, because files of replaced file groups keep their commits."""
    options = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.clean.commits.retained": "1",
        "hoodie.cleaner.commits.retained": "1",
    }
    context = open_context(table, options)
    planned = CleanService().schedule(context, an_owner(), dry_run=False)
    if planned.instant is not None:
        CleanService().run(context, planned.instant, LocalEngine(1), an_owner(), None)
    ArchiveService().run_now(context, an_owner(), None)


class SeenEngine(LocalEngine):
    """A local engine that keeps the units and consumers of its exchanges. `change` may change the results of one."""

    def __init__(self, change: Callable[[list[Any]], list[Any]] = lambda results: results) -> None:
        super().__init__(1)
        self.units: list[list[Any]] = []
        self.consumers: list[Any] = []
        self.results: list[list[Any]] = []
        self._change = change

    def exchange(self, produce: Any, units: Sequence[Any], consume: Any, **named: Any) -> list[Any]:
        """LocalEngine.exchange."""
        results = super().exchange(produce, units, consume, **named)
        self.units.append([*units])
        self.consumers.append(consume)
        self.results.append(results)
        return self._change(results)


def commit_of(table: Path, instant: str | None) -> CommitMetadata:
    """The metadata of a completed write."""
    active = open_context(table).active
    (found,) = (item for item in active.load().completed() if item.requested_time == instant)
    return active.read_commit(found)


def like(rows: pa.Table, *changes: Mapping[str, Any]) -> pa.Table:
    """The first row of a table once for each of the changes, with other values in it."""
    first = rows.slice(0, 1).to_pylist()[0]
    return pa.Table.from_pylist([{**first, **change} for change in changes], schema=rows.schema)


def changed(rows: pa.Table, **values: Any) -> pa.Table:
    """The rows with other values, the same in all of them; a function gets the old one."""
    return pa.Table.from_pylist(
        [
            {**row, **{name: value(row[name]) if callable(value) else value for name, value in values.items()}}
            for row in rows.to_pylist()
        ],
        schema=rows.schema,
    )


def marked(rows: pa.Table, deleted: Iterable[bool]) -> pa.Table:
    """The rows with the column that deletes them, which some tables have."""
    kept = [name for name in rows.schema.names if name != IS_DELETED]
    return rows.select(kept).append_column(IS_DELETED, pa.array(list(deleted), pa.bool_()))


def file_ids(table: Path) -> dict[Place, set[str]]:
    """The file groups in which readers find each key."""
    found: dict[Place, set[str]] = {}
    for row in read_rows(table).select([PARTITION_PATH, RECORD_KEY, "_hoodie_file_name"]).to_pylist():
        name = row["_hoodie_file_name"].partition("_")[0].lstrip(".")
        found.setdefault((row[PARTITION_PATH], row[RECORD_KEY]), set()).add(name)
    return found


def base_files(table: Path, *partitions: str) -> list[Path]:
    """The latest base files of a table, or of some of its partitions."""
    context = open_context(table)
    view = context.view(context.active.load())
    return [table / base.path for name in partitions or view.partitions() for base in view.latest_base_files(name)]


def staged(table: Path) -> list[Path]:
    """The files of tagged rows, and of the rows of queries."""
    return [path for path in (table / STAGED).rglob("*") if path.is_file()]


def of_id(row: Row) -> Place:
    """The place of a row in most golden tables."""
    return row["dt"], str(row["id"])


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else repr(value)


@dataclass
class Model:
    """The rows of a table by their places, each with its own columns. `event_time`: a stored row is compared by `order`
    with the one that comes, and stays where its value is greater. `keeps_deletes`: so does the value of a row that was
    deleted, as in the log files of Hudi 1.x.
    """

    rows: dict[Place, list[Row]]
    event_time: bool
    order: str | None = "ts"
    keeps_deletes: bool = False
    place: Callable[[Row], Place] = of_id
    twice: frozenset[Place] = frozenset()
    """The keys that had several rows before the writes of a test."""
    _gone: dict[Place, Any] = field(default_factory=dict)

    @staticmethod
    def of(table: Path, *, event_time: bool, **more: Any) -> Model:
        """The model of a table as it is now."""
        model = Model({}, event_time, **more)
        for row in own_columns(read_rows(table)).to_pylist():
            model.rows.setdefault(model.place(row), []).append(row)
        model.twice = frozenset(place for place, rows in model.rows.items() if len(rows) > 1)
        return model

    def upsert(self, given: pa.Table) -> Counter[str]:
        """Takes the newest row of each key. Returns how many rows were inserted, updated, deleted, or lost."""
        newest: dict[Place, Row] = {}
        for row in given.to_pylist():
            other = newest.get(self.place(row))
            if other is None or not self._is_newer(other, row):
                newest[self.place(row)] = row
        return Counter(self._put(place, row) for place, row in newest.items())

    def _is_newer(self, one: Row, other: Row) -> bool:
        return self.order is not None and bool((one[self.order] or 0) > (other[self.order] or 0))

    def _put(self, place: Place, row: Row) -> str:
        deletes = bool(row.get(IS_DELETED))
        old = self.rows.get(place)
        if old is None:
            if self.keeps_deletes and place in self._gone and self._gone[place] > (row[self.order or ""] or 0):
                return "lost"
            if not deletes:
                self.rows[place] = [row]
            return "nothing" if deletes else "inserted"
        if self.event_time and self._is_newer(old[0], row):
            return "lost"
        if deletes:
            del self.rows[place]
            if self.order is not None:
                self._gone[place] = row[self.order]
            return "deleted"
        self.rows[place] = [row for _ in old]
        return "updated"

    def insert(self, given: pa.Table, *, takes_marked: bool = False) -> int:
        """Adds the rows, whether or not their keys are there; those that are marked as deleted only with
        `takes_marked`. Returns how many.
        """
        rows = [row for row in given.to_pylist() if takes_marked or not row.get(IS_DELETED)]
        for row in rows:
            self.rows.setdefault(self.place(row), []).append(row)
        self.twice |= {place for place, there in self.rows.items() if len(there) > 1}
        return len(rows)

    def delete(self, given: pa.Table) -> int:
        """Removes the rows of these keys, whatever their ordering values. Returns how many keys there were."""
        places = {self.place(row) for row in given.to_pylist()}
        return sum(self.rows.pop(place, None) is not None for place in places)

    def check(self, table: Path) -> None:
        """Readers see these rows, with the metadata table and without it; no key has a second row that had one."""
        for listing in ("off", "on") if has_metadata_table(table) else ("off",):
            read = read_rows(table, listing)
            if RECORD_KEY in read.schema.names:
                keys = zip(read.column(PARTITION_PATH).to_pylist(), read.column(RECORD_KEY).to_pylist(), strict=True)
                doubled = {place for place, count in Counter(keys).items() if count > 1}
                assert doubled <= self.twice, f"keys with two rows: {sorted(doubled - self.twice)[:5]}"
            names = own_columns(read).schema.names
            found = Counter(_text(row, names) for row in read.to_pylist())
            due = Counter(_text(row, names) for rows in self.rows.values() for row in rows)
            assert found == due, f"lost {list(due - found)[:3]}, too many {list(found - due)[:3]}"


def _text(row: Row, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(_frozen(row.get(name)) for name in names)


def own_columns(rows: pa.Table) -> pa.Table:
    """The rows without meta columns."""
    return rows.drop_columns([name for name in META_FIELDS if name in rows.schema.names])


def inserted_twice(
    table: Path, model: Model, rows: pa.Table, operation: str, options: Mapping[str, str], scratch: Path
) -> Iterator[None]:
    """Adds new rows to a table, and then the same under other keys. Checks the table's rows each time, then yields."""
    for time in ("first", "second"):
        more = changed(rows, id=lambda key, time=time: f"{key} {time}")
        model.insert(more)
        result = write(table, operation, put_source(more, scratch, files=2, name=time), options)
        assert result.inserted + result.updated == more.num_rows
        model.check(table)
        yield


def random_rows(rows: pa.Table, seed: int, count: int, *, partitions: Sequence[str]) -> pa.Table:
    """Rows of a golden table: some of its keys, some of them twice, some new ones, and some in another partition, with
    ordering values around those of the table.
    """
    draw = random.Random(seed)
    known = rows.to_pylist()
    made: list[Row] = []
    for number in range(count):
        row = {**draw.choice(known), "name": f"drawn {seed}/{number}", "qty": draw.randrange(1000)}
        row["ts"] = (row["ts"] or 0) + draw.randrange(-6000, 6000)
        if draw.random() < 0.3:
            row["id"] = f"new {draw.randrange(2 * count)}"
            row["dt"] = draw.choice(partitions)
        if draw.random() < 0.05:
            row["dt"] = draw.choice(partitions)
        if IS_DELETED in row:
            row[IS_DELETED] = draw.random() < 0.15
        made.append(row)
    return pa.Table.from_pylist(made, schema=rows.schema)

"""Runs a random workload by real Hudi, asks it and us the same questions, and reports where the answers differ."""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.errors import HudiError
from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Instant
from tests.interop.changes import write_parquet
from tests.interop.real_hudi import RealHudi, RealHudiError
from tests.support.rows import assert_same_rows, read_parquet, rows_of
from tests.torture.checks import root
from tests.torture.hudi_steps import PENDING, ask_service
from tests.torture.random_tables import Step, Workload, predicates

WRITES = ("insert", "upsert", "delete", "bulk_insert", "insert_overwrite", "insert_overwrite_table", "delete_partition")
COMMITS = ("commit", "deltacommit", "replacecommit")
TRAVELS, RANGES, PREDICATES = 1, 3, 2
"""How many questions of a kind each table is asked: an answer of real Hudi takes half a second to one."""
FALLBACK = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
"""Off in these tests: 1.x scans the whole table when any file of a range is gone, and we when one is that is needed
(docs/reference/differences.md).
"""


@dataclass(frozen=True)
class Question:
    """One query, as HudiTable.read takes it and as Spark does."""

    ours: dict[str, Any]
    metadata: bool = True
    options: dict[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return f"{self.ours} metadata={'auto' if self.metadata else 'off'}"


@dataclass
class Outcome:
    """What became of a workload: steps done and refused (with Hudi's words), questions compared, refused by both,
    not answered by Hudi alone, answered otherwise as docs/reference/differences.md says, and mismatches.
    """

    done: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    compared: int = 0
    rows: int = 0
    refused_by_both: int = 0
    unanswered: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    mismatches: list[str] = field(default_factory=list)


def run(hudi: RealHudi, table: Workload, folder: Path) -> Outcome:
    """Makes the table at folder/table and compares all questions."""
    outcome = Outcome()
    base = folder / "table"
    for number, step in enumerate(table.steps):
        try:
            do(hudi, table, step, base, folder, number)
            outcome.done.append(step.name)
        except RealHudiError as error:
            if number == 0:
                raise
            outcome.refused.append(f"{step.name}: {root(error)}")
    dice = random.Random(f"{table.kind}-{table.seed}-questions")
    snapshot = compare(hudi, base, Question({"query": "snapshot"}, metadata=False), outcome)
    for question in questions(dice, base):
        compare(hudi, base, question, outcome)
    for where in predicates(dice, table, [] if snapshot is None else snapshot.to_pylist(), PREDICATES):
        compare(hudi, base, Question({"where": where}, options={"hoodie.enable.data.skipping": "true"}), outcome)
    return outcome


def do(hudi: RealHudi, table: Workload, step: Step, base: Path, folder: Path, number: int) -> None:
    """Gives one step to real Hudi."""
    options = {**table.options, **step.options}
    if step.rows is not None:
        parquet = write_parquet(step.rows, folder, f"rows{number}")
        if number == 0:
            hudi.ask(
                "create",
                base=str(base),
                parquet=parquet,
                options={**options, "hoodie.datasource.write.operation": step.name},
            )
            return
        if step.name == "delete_partition":
            present = partitions(base)
            options["hoodie.datasource.write.partitions.to.delete"] = present[number % len(present)]
        hudi.ask("write", base=str(base), operation=step.name, parquet=parquet, options=options)
        return
    instant = None
    if step.name in PENDING:
        waiting = [item for item in timeline(base) if not item.is_completed and item.action in PENDING[step.name]]
        if not waiting:
            return
        instant = waiting[0].requested_time
    if step.name in ("rollback", "savepoint"):
        instant = writes(base)[-1].requested_time
    if step.name == "restore":
        saved = [item.requested_time for item in timeline(base) if item.action == "savepoint"]
        if not saved:
            return
        instant = saved[-1]
    ask_service(hudi, base, step.name, instant, options)


def timeline(base: Path) -> list[Instant]:
    """The active timeline."""
    return list(HudiTable.open(str(base)).timeline())


def writes(base: Path) -> list[Instant]:
    """The completed instants of writes."""
    return [item for item in timeline(base) if item.is_completed and item.action in COMMITS]


def partitions(base: Path) -> list[str]:
    """The partition folders in use."""
    return sorted(
        str(path.parent.relative_to(base))
        for path in base.rglob(".hoodie_partition_metadata*")
        if ".hoodie/" not in f"{path}/"
    )


def questions(dice: random.Random, base: Path) -> Iterator[Question]:
    """Snapshot and read-optimized, time travel to some writes, and ranges."""
    yield Question({"query": "snapshot"})
    yield Question({"query": "read_optimized"}, options={"hoodie.datasource.query.type": "read_optimized"})
    commits = writes(base)
    for item in dice.sample(commits, min(len(commits), TRAVELS)):
        yield Question({"as_of": item.requested_time}, options={"as.of.instant": item.requested_time})
    times = sorted({item.completion_time or item.requested_time for item in commits})
    for _ in range(RANGES if times else 0):
        begin, end = sorted([dice.choice(["000", *times]), dice.choice(times)])
        if begin < end:
            names = {
                "hoodie.datasource.read.begin.instanttime": begin,
                "hoodie.datasource.read.end.instanttime": end,
                FALLBACK: "false",
            }
            yield Question(
                {"query": "incremental", "begin": begin, "end": end},
                options={"hoodie.datasource.query.type": "incremental", **names},
            )


def compare(hudi: RealHudi, base: Path, question: Question, outcome: Outcome) -> pa.Table | None:
    """Asks both, and notes what Hudi does not answer and what differs; returns Hudi's answer."""
    try:
        theirs = answer(hudi, base, question)
    except RealHudiError as error:
        try:
            ours_of(base, question)
        except HudiError:
            outcome.refused_by_both += 1
        else:
            outcome.unanswered.append(f"{question.text}: {root(error)}")
        return None
    outcome.compared += 1
    outcome.rows += theirs.num_rows
    try:
        ours = ours_of(base, question)
    except Exception as error:  # noqa: BLE001 - a crash is a mismatch, too
        outcome.mismatches.append(f"{question.text}: {type(error).__name__}: {error}")
        return theirs
    try:
        assert_same(ours, theirs)
    except AssertionError as error:
        judge(hudi, base, question, outcome, ours, theirs, str(error))
    return theirs


def ours_of(base: Path, question: Question) -> pa.Table:
    """What we return."""
    found = HudiTable.open(str(base), options={FALLBACK: "false"}).read(
        metadata="auto" if question.metadata else "off", **question.ours
    )
    return pa.Table.from_batches(found.batches, found.schema)


def judge(
    hudi: RealHudi, base: Path, question: Question, outcome: Outcome, ours: pa.Table, theirs: pa.Table, difference: str
) -> None:
    """Notes a difference as known or as a mismatch, or as unanswered where Hudi refuses the question that would
    tell.
    """
    try:
        known = is_known(hudi, base, question, ours, theirs)
    except RealHudiError as error:
        outcome.unanswered.append(f"{question.text}: {root(error)}")
        return
    (outcome.known if known else outcome.mismatches).append(f"{question.text}: {difference}")


def assert_same(ours: pa.Table, theirs: pa.Table) -> None:
    """Fails unless columns, types and rows are equal."""
    assert ours.column_names == theirs.column_names, f"columns {ours.column_names} are {theirs.column_names}"
    kinds, expected = ([type_text(field.type) for field in item.schema] for item in (ours, theirs))
    assert kinds == expected, f"types {kinds} are {expected}"
    assert_same_rows(ours, theirs, ignore=())


def is_known(hudi: RealHudi, base: Path, question: Question, ours: pa.Table, theirs: pa.Table) -> bool:
    """Whether the answers differ as docs/reference/differences.md says, and real Hudi's answer to another question is
    ours.
    """
    if "where" in question.ours:
        # Skipping files by statistics, it lost rows; without it, and without what it pushes down to files, there are no
        # others.
        off = {"hoodie.enable.data.skipping": "false"}
        return theirs.num_rows < ours.num_rows and same(
            ours, answer(hudi, base, Question(question.ours, metadata=False, options=off))
        )
    if "begin" not in question.ours:
        return False
    config = HudiTable.open(str(base)).config
    old = config.layout_version == 1
    if hudi.version != "0.15.0" and same(ours, decoded(theirs, base)):
        # 1.2.0 takes partition values from the path as it is written, encoded.
        return True
    # 1.2.0 merges the files of the range alone, and shows rows that lost against older ones. Version 9 is read as it
    # reads. Version 8 is read as 1.0.2 reads it: by 1.2.0's time travel to the end of the range, which shows no row
    # that lost.
    begin, end = question.ours["begin"], question.ours["end"]
    inside = [item for item in timeline(base) if item.is_completed and begin < item.completed_at <= end]
    then = answer(hudi, base, Question({}, options={"as.of.instant": max(item.requested_time for item in inside)}))
    if old:
        # So does Hudi in version 6 beside a compaction of the range: a row group without rows of the range is not read,
        # and not merged.
        mine, others = rows_of(ours, theirs.column_names), rows_of(theirs, theirs.column_names)
        compacted = any(item.action == "commit" for item in inside) and any(
            item.action == "deltacommit" for item in timeline(base)
        )
        return compacted and ours.num_rows > 0 and not (mine - others) - rows_of(then, theirs.column_names)
    if not config.features.incremental_whole_groups:
        return False
    times = pa.array([item.requested_time for item in inside], pa.string())
    return same(ours, then.filter(pc.is_in(then["_hoodie_commit_time"], value_set=times)))


def decoded(table: pa.Table, base: Path) -> pa.Table:
    """The table with its partition columns of text decoded."""
    for name in HudiTable.open(str(base)).config.partition_fields:
        number = table.column_names.index(name)
        if pa.types.is_string(table.schema.field(name).type):
            values = [value if value is None else unquote(value) for value in table[name].to_pylist()]
            table = table.set_column(number, name, pa.array(values, pa.string()))
    return table


def same(ours: pa.Table, theirs: pa.Table) -> bool:
    """Whether they hold the same rows over all columns."""
    return rows_of(ours, theirs.column_names) == rows_of(theirs, theirs.column_names)


def answer(hudi: RealHudi, base: Path, question: Question) -> pa.Table:
    """What real Hudi returns."""
    with tempfile.TemporaryDirectory() as scratch:
        output = f"{scratch}/answer.parquet"
        where = question.ours.get("where")
        hudi.ask(
            "read", base=str(base), output=output, metadata=question.metadata, options=question.options, where=where
        )
        return read_parquet(output)


def type_text(kind: pa.DataType) -> str:
    """A type without the names that writers give to the entries of maps."""
    return re.sub(r" \('[^']*'\)", "", str(kind))

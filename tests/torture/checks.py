"""What must hold after a step: our answers and real Hudi's are the rows of the model."""

from __future__ import annotations

import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import HudiError
from hudi_core.metadata_table.partition_type import PARTITION_STATS, RECORD_INDEX, is_secondary_index
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.model.names import FileGroupId
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from hudi_core.timeline.timeline import Timeline
from hudi_health.table import validate_metadata
from hudi_health.validate.check import Difference
from tests.golden.test_cdc import apply, own_columns, texts
from tests.interop.real_hudi import RealHudi, RealHudiError
from tests.support.rows import read_parquet
from tests.torture.generate import SWITCHES
from tests.torture.known_defects import loses_changes, starts_without_files, without_older
from tests.torture.model import Row, State
from tests.torture.our_commands import Situation
from tests.torture.predicates import Predicate, by_indexes, predicates
from tests.torture.program import Program

READ_OPTIONS: Final = {
    "airflow_hudi.read.zone": "UTC",
    "hoodie.datasource.read.incr.fallback.fulltablescan.enable": "false",
}
FILTERS: Final = 4
OF_THE_PAST: Final = ("ours time travel", "ours incremental", "ours changes")
COMMITS: Final = ("commit", "deltacommit", "replacecommit")
"""A savepoint has the requested time of its commit."""
UNMAPPED: Final = "is not mapped, but the file group has a row of it"
UNINDEXED: Final = "is not in the index, but the file group has it"
WITHOUT_STATISTICS: Final = "has no statistics of"
WITHOUT_FILTER: Final = "has a filter in its footer, and none here"
SKIPPING: Final = {
    "hoodie.enable.data.skipping": "true",
    **{name: "true" for names in SWITCHES.values() for name in names},
}
IN_RANGE: Final = "hoodie.datasource.read.{}.instanttime"
CHANGE_LOGS: Final = "hoodie.table.cdc.enabled"


@dataclass(frozen=True)
class Failure:
    """What is wrong. `kind` is what a shorter program must show as well; `step` the step after which it was found."""

    kind: str
    step: int
    text: str


class Mismatch(Exception):
    """An answer that is wrong; the arguments are the failure's kind and text."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(kind, text)
        self.kind, self.text = kind, text


@dataclass
class Counts:
    """How many reads were compared, by kind, and which were refused, by the reason."""

    compared: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    """Files that our filtered reads did not open, by the index."""


def compare(kind: str, what: str, rows: pa.Table, due: Iterable[Row], state: State) -> None:
    """Raises Mismatch unless the rows, over the model's columns, are those that are due."""
    missing_columns = [name for name in state.names if name not in rows.column_names]
    if missing_columns and rows.num_rows:
        raise Mismatch(kind, f"{what}: no column {missing_columns}")
    names = [name for name in state.names if name in rows.column_names]
    found = Counter(zip(*(rows[name].to_pylist() for name in names), strict=True))
    expected = Counter(tuple(row.get(name) for name in names) for row in due)
    if found != expected:
        missing, extra = expected - found, found - expected
        raise Mismatch(
            kind,
            f"{what}: {found.total()} rows where {expected.total()} are due; "
            f"missing {sorted(map(str, missing))[:3]}, extra {sorted(map(str, extra))[:3]}",
        )


@dataclass(frozen=True)
class Checks:
    """The checks of one program. `counts` grow; `narrowed` are partitions whose ranges real Hudi narrowed."""

    program: Program
    counts: Counts
    narrowed: set[str] = field(default_factory=set)

    def ours(self, now: Situation, dice: random.Random) -> None:
        """Every query of ours. Raises Mismatch."""
        state = now.model.state()
        modes = ("off", "auto") if now.has_metadata_table() else ("off",)
        for mode in modes:
            rows = self._read(now, "ours snapshot", metadata=mode)
            compare(f"ours snapshot {mode}", f"snapshot, metadata {mode}", rows, _rows(state), state)
        self._read_optimized(now, state)
        self._time_travel(now, dice)
        self._ranges(now, dice)
        for predicate in self._predicates(now, dice, FILTERS):
            rows = self._read(now, "ours filtered", where=predicate.text)
            compare("ours filtered", f"where {predicate.text}", rows, predicate.rows(state), state)
            self.counts.compared["ours filtered"] += 1
        self._validate(now)
        self.counts.compared["ours snapshot"] += len(modes)

    def theirs(self, hudi: RealHudi, now: Situation, dice: random.Random, *, filters: bool) -> None:
        """Real Hudi's snapshot, with the metadata table and without, and with `filters` filtered. Raises Mismatch."""
        state = now.model.state()
        modes = (True, False) if now.has_metadata_table() else (False,)
        for metadata in modes:
            rows = answer(hudi, now, "hudi snapshot", metadata)
            compare("hudi snapshot", f"real Hudi's snapshot, metadata {metadata}", rows, _rows(state), state)
        if now.has_metadata_table() and filters:
            for predicate in self._predicates(now, dice, 2):
                rows = answer(hudi, now, "hudi filtered", True, SKIPPING, predicate)
                compare("hudi filtered", f"real Hudi where {predicate.text}", rows, predicate.rows(state), state)
                self.counts.compared["hudi filtered"] += 1
        self.counts.compared["hudi snapshot"] += len(modes)
        if self.program.thorough:
            self._time_travel(now, dice, hudi)
            self._ranges(now, dice, hudi)

    def validated(self, hudi: RealHudi, now: Situation) -> None:
        """Real Hudi finds the files that its metadata table lists. It may change the table's properties. Raises
        Mismatch.
        """
        report = hudi.ask("validate_metadata", base=str(now.base))
        if now.has_metadata_table() and (report["wrong"] or not report["files"]):
            raise Mismatch("hudi validate", f"{report}")

    def _predicates(self, now: Situation, dice: random.Random, count: int) -> list[Predicate]:
        state = now.model.state()
        drawn = predicates(dice, state, count)
        if not self.program.thorough:
            return drawn
        return drawn + by_indexes(dice, state, TableConfig.load(LocalStorage(now.base)).metadata_partitions)

    def _read(self, now: Situation, kind: str, **query: Any) -> pa.Table:
        try:
            plan = HudiTable.open(str(now.base), options=READ_OPTIONS).plan(**query)
            self.counts.skipped.update(plan.report.get("by_kind", {}))
            return pa.Table.from_batches(plan.batches(), plan.schema)
        except Exception as error:
            if isinstance(error, HudiError) and kind in OF_THE_PAST:
                raise
            raise Mismatch(f"{kind} {type(error).__name__}", f"{query}: {error}") from error

    def _read_optimized(self, now: Situation, state: State) -> None:
        rows = self._read(now, "ours read-optimized", query="read_optimized")
        if not self.program.table.on_read:
            compare("ours read-optimized", "read-optimized", rows, _rows(state), state)
        else:
            # Base files hold an earlier row of a key, or one that is deleted by now, also beside the key's later row in
            # another file group; never one that it had not.
            had = {(row["id"], row["ts"], row["name"]) for past in now.model.history().values() for row in past}
            wrong = set(zip(*(rows[name].to_pylist() for name in ("id", "ts", "name")), strict=True)) - had
            counted = Counter(rows["id"].to_pylist())
            twice = {key for key, count in counted.items() if count > 1} - now.model.deleted()
            if wrong or twice:
                raise Mismatch(
                    "ours read-optimized", f"rows that never were: {sorted(wrong)[:3]}, keys twice: {sorted(twice)[:3]}"
                )
        self.counts.compared["ours read-optimized"] += 1

    def _time_travel(self, now: Situation, dice: random.Random, hudi: RealHudi | None = None) -> None:
        """As of some write, by us and by real Hudi where it is given."""
        instant = dice.choice(now.model.instants())
        try:
            rows = self._read(now, "ours time travel", as_of=instant)
        except HudiError as error:
            self._refused("time travel", error)
            return
        then = now.model.state(instant)
        compare("ours time travel", f"as of {instant}", rows, _rows(then), then)
        self.counts.compared["ours time travel"] += 1
        if hudi is not None:
            rows = answer(hudi, now, "hudi time travel", True, {"as.of.instant": instant})
            compare("hudi time travel", f"real Hudi as of {instant}", rows, _rows(then), then)
            self.counts.compared["hudi time travel"] += 1

    def _ranges(self, now: Situation, dice: random.Random, hudi: RealHudi | None = None) -> None:
        """Behind some write, and up to a later one or the newest: what was written, and how rows changed."""
        completed = {item.requested_time: item.completed_at for item in now.timeline if item.action in COMMITS}
        instants = now.model.instants()
        begin = dice.choice(instants)
        end = dice.choice(instants[instants.index(begin) :])
        if begin not in completed or begin == end:
            return
        times = completed[begin], completed[end]
        self._incremental(now, (begin, end), times, hudi)
        if self.program.thorough:
            self._changes(now, (begin, end), times, hudi)

    def _incremental(
        self, now: Situation, between: tuple[str, str], times: tuple[str, str], hudi: RealHudi | None
    ) -> None:
        """The rows that were last written in the range."""
        try:
            rows = self._read(now, "ours incremental", query="incremental", begin=times[0], end=times[1])
        except HudiError as error:
            self._refused("incremental", error)
            return
        answers = {"ours incremental": rows}
        if hudi is not None:
            theirs = answer(hudi, now, "hudi incremental", True, in_range(times))
            answers["hudi incremental"] = without_older(self.program, theirs, between)
        due = {key for key, (_, written) in now.model.state(between[1]).rows.items() if written > between[0]}
        for kind, rows in answers.items():
            found = rows["id"].to_pylist()
            # A row that lost against one of before the range may be shown (docs/reference/differences.md).
            wrong = due != set(found) if not self.program.table.event_time else not due <= set(found)
            if wrong or len(found) != len(set(found)):
                missing, extra = sorted(due - set(found)), sorted(set(found) - due)
                raise Mismatch(kind, f"in {between}: {len(found)}, missing {missing}, extra {extra}")
            self.counts.compared[kind] += 1

    def _changes(self, now: Situation, between: tuple[str, str], times: tuple[str, str], hudi: RealHudi | None) -> None:
        """What the change data makes of the rows before the range are the rows at its end."""
        try:
            answers = {"ours changes": self._read(now, "ours changes", query="cdc", begin=times[0], end=times[1])}
        except HudiError as error:
            self._refused("changes", error)
            return
        has_logs = self.program.table.options.get(CHANGE_LOGS) == "true"
        if hudi is not None and has_logs and not loses_changes(self.program):
            options = in_range(times) | {"hoodie.datasource.query.incremental.format": "cdc"}
            answers["hudi changes"] = answer(hudi, now, "hudi changes", True, options)
        before, after = ({row["id"]: own_columns(dict(row)) for row in _rows(now.model.state(at))} for at in between)
        for kind, changes in answers.items():
            try:
                made = apply(before, changes)
            except AssertionError as error:
                raise Mismatch(kind, f"in {between}: {error}") from error
            if made != texts(after):
                missing, extra = sorted(texts(after) - made)[:3], sorted(made - texts(after))[:3]
                raise Mismatch(kind, f"in {between}: missing {missing}, extra {extra}")
            self.counts.compared[kind] += 1

    def _refused(self, query: str, error: HudiError) -> None:
        if error.exit_code not in (2, 3):
            raise Mismatch(f"ours {query} {type(error).__name__}", str(error))
        self.counts.refused[f"{query}: {pattern(str(error))}"] += 1

    def _validate(self, now: Situation) -> None:
        if not now.has_metadata_table():
            return
        try:
            report = validate_metadata(HudiTable.open(str(now.base), options=READ_OPTIONS))
        except Exception as error:
            raise Mismatch(f"ours validate {type(error).__name__}", str(error)) from error
        wrong = [item for item in report.differences if not self._is_doubted(now, item)]
        if wrong:
            kinds = sorted({item.partition_type for item in wrong})
            raise Mismatch(f"validate {', '.join(kinds)}", f"{report.counts}: {wrong[:3]}")
        self.counts.compared["validate"] += 1

    def _is_doubted(self, now: Situation, found: Difference) -> bool:
        """Whether an index is wrong where our queries do not rely on it: real Hudi does not tell the record index of
        keys that were deleted and written again, leaves it wrong behind a restore, and does not tell a secondary index
        of bulk_insert; statistics of column_stats and filters may be missing. Files without any are read.
        """
        index = found.partition_type
        if found.what.startswith(WITHOUT_STATISTICS) or found.what == WITHOUT_FILTER:
            return starts_without_files(self.program, index)
        if index == PARTITION_STATS:
            return found.partition in self.narrowed
        if index != RECORD_INDEX and not is_secondary_index(index):
            return False
        storage = LocalStorage(now.base)
        metadata = MetadataTable(storage, TableConfig.load(storage), Timeline(now.timeline))
        self.counts.known[index] += 1
        if index == RECORD_INDEX and not metadata.completeness.has_true_locations:
            return True
        doubt = metadata.groups_in_doubt(index)
        group = FileGroupId(found.partition or "", found.file or "")
        return found.what.endswith((UNMAPPED, UNINDEXED)) and (doubt is None or group in doubt)


def in_range(times: tuple[str, str]) -> dict[str, str]:
    """Options of real Hudi's query of a range."""
    given = {IN_RANGE.format(name): time for name, time in zip(("begin", "end"), times, strict=True)}
    return {**READ_OPTIONS, "hoodie.datasource.query.type": "incremental", **given}


def answer(
    hudi: RealHudi,
    now: Situation,
    kind: str,
    metadata: bool,
    options: Mapping[str, str] | None = None,
    predicate: Predicate | None = None,
) -> pa.Table:
    """What real Hudi reads. Raises Mismatch where it fails."""
    where = None if predicate is None else predicate.text
    with tempfile.TemporaryDirectory() as scratch:
        output = f"{scratch}/answer.parquet"
        try:
            hudi.ask(
                "read", base=str(now.base), output=output, metadata=metadata, options=dict(options or {}), where=where
            )
        except RealHudiError as error:
            raise Mismatch(f"{kind} fails", f"where {where}, metadata {metadata}: {root(error)}") from error
        return read_parquet(output)


def root(error: RealHudiError) -> str:
    """The causes in Java's words."""
    lines = [line.strip() for line in str(error).splitlines() if "Exception" in line or "Error" in line]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return " / ".join((causes or lines or [str(error)])[-2:])[:600]


def pattern(text: str) -> str:
    """A message without the numbers and ids in it."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(-\d+)?", "UUID", text)
    return re.sub(r"\d+", "#", text)[:200]


def _rows(state: State) -> list[Row]:
    return [row for row, _ in state.rows.values()]

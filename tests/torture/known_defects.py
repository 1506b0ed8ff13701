"""Defects of real Hudi that a random program would meet again and again.

Each is named, with its condition as narrow as it is known. What stops real Hudi's writer for good is not done
(`avoided`). After what makes its own filtered reads lose rows (`spoils_filters`) these are no longer compared; ours
are, as we have to see that an index cannot be believed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.config.table_config import TableConfig
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from tests.torture.generate import SWITCHES
from tests.torture.hudi_steps import instant_for
from tests.torture.model import folders, key_of
from tests.torture.our_commands import Situation
from tests.torture.program import Command, Program, Service, Step, Write

ROW_WRITER: Final = "hoodie.datasource.write.row.writer.enable"


def avoided(step: Step, program: Program, now: Situation) -> str | None:
    """Why the step is not done; None where nothing is in its way."""
    if isinstance(step, Write):
        return None if step.ours else _avoided_write(step, program, now)
    return _avoided_service(step, now) if isinstance(step, Service) else None


def _avoided_write(step: Write, program: Program, now: Situation) -> str | None:
    if step.operation in ("upsert", "delete") and not _only_in_logs(step, now).isdisjoint(map(key_of, step.keys)):
        return "an index of base files does not find a key that log files alone have: it is written twice"
    if program.writer == "0.15.0" and _reads_widened(step, now):
        return "0.15 does not read base files of before a column was widened where a global index merges their rows"
    if _would_not_be_recorded(step, now):
        return "a writer of version 6 with an index to begin beside a pending operation does not record its commit"
    return None


def _avoided_service(step: Service, now: Situation) -> str | None:
    if step.service == "clean" and _has(now.base, "expr_index_"):
        return "a clean of 1.x writes the deletions of an expression index into a wrong partition"
    if step.service == "rollback" and _is_cleaned_behind(now):
        return "a rollback does not ask whether a clean removed what the write replaced: its rows are lost"
    if step.service == "rollback" and _is_compacted_behind(step, now):
        return "a rollback deletes files before it finds that the metadata table was compacted: it stays half-done"
    if step.service == "savepoint" and _is_cleaned_behind_savepoint(step, now):
        return "a savepoint does not ask whether a clean by file versions removed files of its commit"
    if step.service == "restore" and _is_below_savepoint(step, now):
        return "a restore rolls commits back before it finds that it may not roll back a later savepoint's"
    if step.service == "cluster" and _is_overwritten_behind(now):
        return "a clustering brings back the rows that were overwritten since its plan"
    if step.service == "archive" and _would_be_overtaken(now):
        return "1.2 takes log files of what is archived behind a restore or an indexing for those of pending commits"
    return None


def _is_cleaned_behind(now: Situation) -> bool:
    cleans = [item.requested_time for item in now.timeline if item.action == "clean"]
    return any(clean > write for write in now.last_write() for clean in cleans)


def _is_compacted_behind(step: Service, now: Situation) -> bool:
    """Or would be at the beginning of the rollback: a compaction of the metadata table is due."""
    instant = instant_for(step, now)
    if instant is None or not now.has_metadata_table():
        return False
    commits = [*HudiTable.open(str(now.base / ".hoodie" / "metadata")).timeline().commits()]
    compacted = max((item.requested_time for item in commits if item.action == "commit"), default="")
    since = [item for item in commits if item.action == "deltacommit" and item.completed_at > compacted]
    due = int({**now.model.table.options, **step.options}["hoodie.metadata.compact.max.delta.commits"])
    return compacted > instant or len(since) >= due


def _is_cleaned_behind_savepoint(step: Service, now: Situation) -> bool:
    """Such a clean names no earliest commit to retain, which is what Hudi compares with."""
    instant = instant_for(step, now)
    return instant is not None and any(
        item.action == "clean" and item.requested_time > instant for item in now.timeline
    )


def _is_below_savepoint(step: Service, now: Situation) -> bool:
    instant = instant_for(step, now)
    return instant is not None and any(savepoint > instant for savepoint in now.savepoints())


def _would_not_be_recorded(step: Write, now: Situation) -> bool:
    """In the metadata table; its rows are then lost to readers by that, and to compactions that are planned by it."""
    config = TableConfig.load(LocalStorage(now.base))
    options = {**now.model.table.options, **step.options}
    missing = (
        index
        for index, names in SWITCHES.items()
        if index not in config.metadata_partitions and index != "partition_stats" and options[names[0]] == "true"
    )
    return config.version == 6 and now.has_metadata_table() and bool(now.pending()) and any(missing)


def _reads_widened(step: Write, now: Situation) -> bool:
    widened = any(dict(effect.columns)["amount"] == pa.int64() for effect in now.model.effects)
    return widened and _index(step, now).startswith("GLOBAL_") and step.operation in ("upsert", "delete")


def _index(step: Write, now: Situation) -> str:
    return {**now.model.table.options, **step.options}["hoodie.index.type"]


def _only_in_logs(step: Write, now: Situation) -> set[str]:
    """Keys of rows that no base file has: deleted by a log file, written again to the next one, and then compacted in
    between.
    """
    table = now.model.table
    if not table.on_read or _index(step, now) not in ("SIMPLE", "GLOBAL_SIMPLE", "BLOOM", "GLOBAL_BLOOM"):
        return set()
    found = HudiTable.open(str(now.base)).read("read_optimized", ["_hoodie_record_key"], "off")
    based = {key for batch in found.batches for key in batch.column(0).to_pylist()}
    return now.model.state().rows.keys() - based


def _is_overwritten_behind(now: Situation) -> bool:
    overwritten = [effect.instant for effect in now.model.effects if effect.overwritten != frozenset()]
    return any(write > plan for plan in now.pending("clustering", "replacecommit")[:1] for write in overwritten)


def _would_be_overtaken(now: Situation) -> bool:
    """1.0, the writer of version 8, looks up the completion times of three days in the archive."""
    version = TableConfig.load(LocalStorage(now.base)).version
    return version == 9 and any(item.action in ("restore", "indexing") for item in now.timeline)


def spoils_filters(step: Step, program: Program, now: Situation) -> str | None:
    """Why real Hudi's reads by a predicate may lose rows from this step on; None where it tells its indexes all."""
    if not isinstance(step, Write):
        return None
    by_rows = {**program.table.options, **step.options}.get(ROW_WRITER) != "false"
    if program.writer == "1.2.0" and step.operation == "bulk_insert" and by_rows and _has(now.base, "secondary_index_"):
        return "bulk_insert of 1.2.0 tells a secondary index nothing"
    if _narrows(program, now):
        return "1.0.2 narrows partition_stats behind a pending compaction"
    return None


def narrowed(partitions: set[str], step: Step, program: Program, now: Situation) -> None:
    """Adds the partitions in which the step leaves partition_stats too narrow, whoever planned the compaction; takes
    out those for which it makes them anew. No query of ours uses them (docs/reference/hudi-notes.md).
    """
    if isinstance(step, Write) and not step.ours and not step.fails:
        change = partitions.update if _narrows(program, now) else partitions.difference_update
        change(folders(step.keys, now.model.table))


def _narrows(program: Program, now: Situation) -> bool:
    return program.writer == "1.0.2" and _has(now.base, "partition_stats") and bool(now.pending("compaction"))


def starts_without_files(program: Program, index: str) -> bool:
    """Whether an index of files may have no record of those that were there when a writer began it: 0.15.0 puts none
    into column_stats that it begins again, and filters of a table without partitions under keys that no lookup uses.
    """
    drops = (step for step in program.steps if isinstance(step, Command) and step.verb == "metadata drop")
    return program.writer == "0.15.0" and any(index in step.arguments for step in drops)


def without_older(program: Program, rows: pa.Table, between: tuple[str, str]) -> pa.Table:
    """The rows of a range that real Hudi returns, without those of the same file groups that 1.0.2 returns as well
    (docs/reference/differences.md).
    """
    if program.writer != "1.0.2":
        return rows
    times = rows["_hoodie_commit_time"]
    return rows.filter(pc.and_(pc.greater(times, between[0]), pc.less_equal(times, between[1])))


def loses_changes(program: Program) -> bool:
    """Whether real Hudi loses entries of change data (docs/reference/differences.md)."""
    return program.writer in ("0.15.0", "1.0.2")


def _has(base: Path, prefix: str) -> bool:
    partitions = TableConfig.load(LocalStorage(base)).metadata_partitions
    return any(name.startswith(prefix) for name in partitions)

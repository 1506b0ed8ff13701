"""Golden tables with a planned compaction that real Hudi executed: what ours leaves of the same plan, made comparable
with what real Hudi left.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.config.table_config import TableConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.metadata_table.keys import ID_LENGTH
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.request.results import InstantResult
from hudi_core.services.compaction.planner import CompactionService
from hudi_core.services.context import TableContext
from hudi_core.storage.base import Storage
from hudi_core.storage.local import LocalStorage
from hudi_core.storage.one_look import OneLookStorage
from hudi_core.table import HudiTable
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action
from hudi_core.transaction.owner import Owner
from tests.support.golden_data import golden_cases, golden_root
from tests.support.metadata_records import Table, comparable

FOLDERS = ("6", "6-by-1.2.0", "8", "8-by-1.2.0", "9")
OPTIONS = {
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
    "spark.sql.session.timeZone": "UTC",
}
"""Small bloom filters, no waits for other machines' clocks, and the zone in which the golden tables' expression indexes
were built.
"""


def planned_cases(*, executed: bool | None = None) -> list[tuple[str, str]]:
    """(folder, case) of the golden tables with one pending compaction; `executed`: whether real Hudi executed it."""
    found = []
    for folder in FOLDERS:
        for name in golden_cases(folder):
            expected = golden_root() / folder / f"{name}.expected"
            pending = json.loads((expected / "case.json").read_text()).get("pending", ())
            if any(" compaction " in entry for entry in pending) and executed in (
                None,
                (expected / "after.zip").exists(),
            ):
                found.append((folder, name))
    return found


def context_of(table: Path, options: Mapping[str, str] | None = None, storage: Storage | None = None) -> TableContext:
    """The table as a service sees it."""
    store = OneLookStorage(LocalStorage(table) if storage is None else storage)
    config = TableConfig.load(store)
    return TableContext(str(table), store, config, ActiveTimeline(store, config), {**OPTIONS, **(options or {})}, {})


def planned(table: Path) -> str:
    """The instant of the one pending compaction."""
    (found,) = HudiTable.open(str(table)).timeline().pending_compactions()
    return found.requested_time


def compact(table: Path, options: Mapping[str, str] | None = None, *, instant: str | None = None) -> InstantResult:
    """Runs the table's compaction."""
    return CompactionService().run(
        context_of(table, options), instant or planned(table), LocalEngine(2), Owner.current("test"), None
    )


def commit_of(table: Path, instant: str) -> tuple[CommitMetadata, dict[str, Any]]:
    """The compaction's commit, and its file as it is."""
    active = context_of(table).active
    found = active.load().get(instant, Action.COMPACTION)
    return active.read_commit(found), active.read_of(found)


def compacted_rows(table: Path) -> pa.Table:
    """What the base files hold."""
    result = HudiTable.open(str(table)).read(query="read_optimized")
    return pa.Table.from_batches(result.batches, result.schema)


def base_files(table: Path, instant: str) -> dict[tuple[str, str], Path]:
    """The base files of an instant by partition and file id."""
    found = {}
    for path in table.rglob(f"*_{instant}.parquet"):
        name = parse_data_file(path.name)
        assert isinstance(name, BaseFileName)
        found[path.parent.relative_to(table).as_posix(), name.file_id] = path
    return found


def columns_of(path: Path) -> list[tuple[str, str, str, str]]:
    """The columns of a Parquet file as it stores them."""
    schema = pq.ParquetFile(path).schema
    columns = (schema.column(index) for index in range(len(schema.names)))
    return [
        (column.path, column.physical_type, str(column.logical_type), column.max_definition_level) for column in columns
    ]


def footer_of(path: Path) -> dict[str, str]:
    """The key-value metadata of a Parquet file."""
    return {key.decode(): value.decode() for key, value in (pq.ParquetFile(path).metadata.metadata or {}).items()}


def timeline_names(table: Path, folder: str = "") -> list[str]:
    """The names on a timeline; of completed instants without when they completed, without the times of rollbacks."""
    active = ActiveTimeline(LocalStorage(table), TableConfig.load(LocalStorage(table)), folder)
    names = [re.sub(r"^(\d+)_\d+\.", r"\1.", name) for name in active.names()]
    rollbacks = {name[:17] for name in names if re.match(r"\d{17}(006)?\.rollback", name)}
    return sorted(f"R{name[17:]}" if name[:17] in rollbacks else name for name in names)


def metadata_of(table: Path, instant: str) -> dict[str, dict[str, Any]]:
    """Every record of the metadata table by kind, with the names of the compaction's files as those of their file
    groups.

    What depends on the very bytes of a file is excluded: its size. Statistics are by column, partition and file.
    """
    whole = Table(table)
    if "files" not in whole.config.metadata_partitions:
        return {}
    groups = {path.name: f"{file_id} of the compaction" for (_, file_id), path in base_files(table, instant).items()}
    found: dict[str, dict[str, Any]] = {}
    for kind, records in comparable(whole.records()).items():
        found[kind] = {}
        for key, record in records.items():
            name = groups.get(getattr(record, "name", ""), getattr(record, "name", None))
            if kind == "files":
                found[kind][key] = {
                    groups.get(file, file): 0 if file in groups else entry.size
                    for file, entry in record.entries.items()
                }
            elif hasattr(record, "is_tight"):
                bounds = (
                    record.range.least,
                    record.range.greatest,
                    record.range.null_count,
                    record.range.value_count,
                    record.is_deleted,
                    record.is_tight,
                )
                found[kind][f"{key[: 2 * ID_LENGTH]} {name}"] = bounds
            else:
                found[kind][key] = record
    return found


def own_timeline(table: Path) -> list[str]:
    """The names on the metadata table's timeline, as timeline_names gives them; none without one."""
    return timeline_names(table, ROOT) if (table / ROOT).is_dir() else []

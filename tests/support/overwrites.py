"""Overwrites of golden tables: by their own rows, whose keys and partition paths are then known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.engine.local import LocalEngine
from hudi_core.model.names import META_FIELDS
from hudi_core.services.overwrite.job import OverwriteJob
from hudi_core.services.overwrite.plan import Overwrite
from hudi_core.services.source.files import RowsFrom
from hudi_core.services.write import shard_files
from hudi_core.services.write.verb import run_write
from hudi_core.services.write.work import WriteResult
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.commit import CommitMetadata, Operation
from hudi_core.timeline.instant import Action
from hudi_core.transaction.owner import Owner
from tests.support.changed_tables import an_owner, open_context
from tests.support.fault_storage import FaultPlan, FaultStorage
from tests.support.golden_compactions import OPTIONS
from tests.support.kill_points import tasks_under

_MILLIS = {"hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS"}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
BY_HASH = {**BUCKETS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
WRITERS_OPTIONS: dict[str, dict[str, str]] = {
    "timestamp_keygen_epochmillis": _MILLIS,
    "timestamp_keygen_hive": _MILLIS,
    "timestamp_keygen_string": {"hoodie.keygen.timebased.timestamp.type": "DATE_STRING"},
    "custom_keygen": {
        **_MILLIS,
        "hoodie.keygen.timebased.output.dateformat": "yyyyMM",
        "hoodie.datasource.write.partitionpath.field": "dt:SIMPLE,event_ms:TIMESTAMP",
    },
    "bucket_index_cow": BUCKETS,
    "bucket_index_mor": BUCKETS,
    "mor_log_only": {**BUCKETS, "hoodie.bucket.index.num.buckets": "2"},
}
"""What the writers of golden tables were given that properties, some of version 6 alone, do not record."""


def own_rows(table: Path, rows: pa.Table) -> pa.Table:
    """The table's own columns of `rows`; where readers take partition values from paths, as base files hold them."""
    context = open_context(table)
    if "keygen" in table.name and context.config.partition_fields:
        view = context.view(context.active.load())
        files = [base for name in view.partitions() for base in view.latest_base_files(name)]
        rows = pa.concat_tables([pq.ParquetFile(table / base.path).read() for base in files])
    return rows.drop_columns([name for name in META_FIELDS if name in rows.schema.names])


def put_source(rows: pa.Table, folder: Path, files: int = 1, name: str = "source") -> Path:
    """A folder of Parquet files with small row groups."""
    target = folder / name
    target.mkdir(parents=True)
    step = max(1, -(-rows.num_rows // files))
    for number in range(files):
        part = rows.slice(number * step, step).replace_schema_metadata(None)
        pq.write_table(part, target / f"part-{number}.parquet", row_group_size=7)
    return target


def overwrite(
    table: Path,
    given: Path,
    options: Mapping[str, str] | None = None,
    plan: FaultPlan | None = None,
    owner: Owner | None = None,
    *,
    token: str | None = None,
    partitions: tuple[str, ...] = (),
    whole_table: bool = False,
    dry_run: bool = False,
) -> WriteResult:
    """Ours, on a local table; tasks write under the same plan of faults."""
    operation = Operation.INSERT_OVERWRITE_TABLE if whole_table else Operation.INSERT_OVERWRITE
    work = Overwrite(operation, partitions=partitions or None, token=token, rows_from=RowsFrom(str(given)))
    storage = None if plan is None else FaultStorage(LocalStorage(table), plan)
    with nullcontext() if plan is None else tasks_under(plan, shard_files):
        context = open_context(table, {**OPTIONS, **(options or {})}, storage)
        return run_write(context, work, OverwriteJob, LocalEngine(1), owner or an_owner(), dry_run=dry_run)


def delete(
    table: Path,
    *partitions: str,
    plan: FaultPlan | None = None,
    owner: Owner | None = None,
    token: str | None = None,
    dry_run: bool = False,
) -> WriteResult:
    """Our delete_partition, on a local table."""
    work = Overwrite(Operation.DELETE_PARTITION, partitions=partitions or None, token=token)
    storage = None if plan is None else FaultStorage(LocalStorage(table), plan)
    with nullcontext() if plan is None else tasks_under(plan):
        context = open_context(table, dict(OPTIONS), storage)
        return run_write(context, work, OverwriteJob, LocalEngine(1), owner or an_owner(), dry_run=dry_run)


def commit_of(table: Path, instant: str | None) -> CommitMetadata:
    """The metadata of a completed overwrite."""
    active = open_context(table).active
    return active.read_commit(active.load().get(str(instant), Action.REPLACE_COMMIT))


def places(rows: pa.Table) -> Counter[tuple[str, str]]:
    """Record keys with partition paths."""
    names = ("_hoodie_record_key", "_hoodie_partition_path")
    return Counter(zip(*(rows.column(name).to_pylist() for name in names), strict=True))


def within(rows: pa.Table, *partitions: str, outside: bool = False) -> pa.Table:
    """The rows of partitions, or all others."""
    found = pa.compute.is_in(rows.column("_hoodie_partition_path"), value_set=pa.array(partitions, pa.string()))
    return rows.filter(pa.compute.invert(found) if outside else found)


def in_buckets(rows: pa.Table) -> dict[tuple[str, str], str]:
    """How the file ids begin, by partition path and record key; the name of a log file begins with a dot."""
    names = ("_hoodie_partition_path", "_hoodie_record_key", "_hoodie_file_name")
    columns = (rows.column(name).to_pylist() for name in names)
    return {(path, key): name.lstrip(".")[:8] for path, key, name in zip(*columns, strict=True)}

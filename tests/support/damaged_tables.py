"""Golden tables whose metadata table gets records that are not true: written as a writer would, under an instant that
completes on both timelines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.record import FileEntry, FilesRecord, RecordRules, RecordType, files_datum
from hudi_core.metadata_table.records.files import partition_key
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.delta_writer import DeltaWriter
from hudi_core.model.names import WriteToken
from hudi_core.services.context import TableContext
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.clean import CleanMetadata, CleanPlan, encode_clean_metadata, encode_clean_plan
from hudi_core.timeline.instant import Action
from hudi_core.transaction.instant_generator import InstantClock
from hudi_health.validate.check import Difference, ValidationReport
from hudi_health.validate.run import validate
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage
from tests.support.golden_cleans import context_of

Datum = dict[str, Any]
Records = Mapping[str, Iterable[tuple[str, Datum | None]]]
UTC = {"airflow_hudi.read.zone": "UTC"}


class _Raw(RecordRules[Datum]):
    """They keep the data as they are stored; the newer one counts."""

    def decode(self, key: str, datum: Datum, *, path: str) -> Datum:
        return datum


class DamagedTable:
    """A table on disk, read again for every question."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def context(self) -> TableContext:
        return context_of(self.path, UTC)

    @property
    def metadata(self) -> MetadataTable:
        context = self.context
        return MetadataTable(context.storage, context.config, context.active.load())

    def raw(self, partition_type: str) -> dict[str, Datum]:
        """The newest datum of every key of a partition type."""
        context = self.context
        return dict(
            MetadataTableSnapshot(context.storage, context.config, context.active.load())
            .partition(partition_type, _Raw())
            .all()
        )

    def write(self, records: Records) -> None:
        """Brings records (None deletes the key) to the metadata table under a new instant, and completes that as a
        clean of no files.
        """
        context = self.context
        metadata_timeline = MetadataTimeline(
            context.storage, context.config, InstantClock("UTC", sleep=lambda seconds: None)
        )
        latest = max(
            item.completed_at[:14]
            for timeline in (context.active.load(), metadata_timeline.active.load())
            for item in timeline
        )
        instant = (datetime.strptime(latest, "%Y%m%d%H%M%S") + timedelta(seconds=1)).strftime("%Y%m%d%H%M%S000")
        DeltaWriter(metadata_timeline, WriteToken(0, 9, 9)).write(instant, records)
        policy = "KEEP_LATEST_COMMITS"
        context.active.create_requested(instant, Action.CLEAN, encode_clean_plan(CleanPlan(policy, {}), str))
        context.active.to_inflight(instant, Action.CLEAN)
        named = context.config.features.completion_time_in_name
        context.active.complete(
            instant,
            Action.CLEAN,
            encode_clean_metadata(CleanMetadata(instant, policy, {})),
            str(int(instant) + 1) if named else None,
        )

    def rewrite(self, partition_type: str, records: Mapping[str, Datum]) -> None:
        """Puts statistics in the place of others, with which they would merge: a deletion first, then the data."""
        self.write(
            {
                partition_type: [
                    (key, changed(datum, "ColumnStatsMetadata", isDeleted=True)) for key, datum in records.items()
                ]
            }
        )
        self.write({partition_type: records.items()})

    def list_files(self, partition: str, entries: Mapping[str, FileEntry]) -> None:
        """Brings entries of a partition's list of files."""
        key = partition_key(partition)
        self.write({"files": [(key, files_datum(FilesRecord(key, RecordType.FILES, entries)))]})

    def base_files(self) -> Iterator[tuple[str, str]]:
        """Partition and name of the Parquet files that are listed, and there, sorted."""
        metadata = self.metadata
        for partition in metadata.partitions():
            names = sorted(name for name in metadata.list_files(partition) if name.endswith(".parquet"))
            yield from ((partition, name) for name in names if (self.path / partition / name).exists())

    def latest_base(self) -> tuple[str, str]:
        """Partition and name of a file that queries read."""
        partition = self.metadata.partitions()[0]
        return partition, max(
            (name for place, name in self.base_files() if place == partition), key=lambda name: name.split("_")[-1]
        )

    def report(self) -> ValidationReport:
        """What a validation finds; it changes nothing."""
        plan = FaultPlan(counts=MUTATIONS)
        report = validate(
            context_of(self.path, UTC, FaultStorage(LocalStorage(self.path), plan)), open_data_storage(str(self.path))
        )
        assert plan.mutations() == []
        return report

    def found(self) -> list[Difference]:
        """The differences, all of which must have been kept."""
        report = self.report()
        assert sum(report.counts.values()) == len(report.differences)
        return list(report.differences)


def changed(datum: Datum, body: str, **members: Any) -> Datum:
    """A datum with other members in one of its parts."""
    return {**datum, body: {**datum[body], **members}}

"""The twelve damages that a validation has to find, a stale bound both ways, done to whatever table.

Each gives what must be found, or None where the table cannot have it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from hudi_core.filegroup.merge.record_keys import record_keys
from hudi_core.metadata_table.keys import bloom_filter_key, column_stats_key
from hudi_core.metadata_table.record import ALL_PARTITIONS, FileEntry, FilesRecord, RecordType, files_datum
from hudi_core.metadata_table.records.files import partition_key
from hudi_health.validate.check import Difference, key_columns
from tests.support.bloom_filters import build
from tests.support.damaged_tables import DamagedTable, Datum, changed

STATS, BLOOM = "ColumnStatsMetadata", "BloomFilterMetadata"
GONE = "gone-0_0-0-0_20200101000000000.parquet"
GHOST = "no row has this key"


@dataclass(frozen=True)
class Expected:
    """A difference that must be found; None as `file` matches any."""

    partition_type: str
    file: str | None
    what: str

    def is_among(self, found: list[Difference]) -> bool:
        return any(
            item.partition_type == self.partition_type and self.file in (None, item.file) and self.what in item.what
            for item in found
        )


Damage = Callable[[DamagedTable], Expected | None]


def missing_file(table: DamagedTable) -> Expected | None:
    partitions = table.metadata.partitions()
    if not partitions:
        return None
    table.list_files(partitions[0], {GONE: FileEntry(77)})
    return Expected("files", GONE, "listed, but it is not there")


def extra_file(table: DamagedTable) -> Expected | None:
    files = list(table.base_files())
    if not files:
        return None
    partition, name = min(files, key=lambda item: item[1].split("_")[-1])
    table.list_files(partition, {name: FileEntry(0, is_deleted=True)})
    return Expected("files", name, "not listed: ")


def wrong_size(table: DamagedTable) -> Expected | None:
    files = list(table.base_files())
    if not files:
        return None
    partition, name = files[0]
    size = (table.path / partition / name).stat().st_size
    table.list_files(partition, {name: FileEntry(size + 1)})
    return Expected("files", name, f"listed with {size + 1} bytes, but it has {size}")


def wrong_partition(table: DamagedTable) -> Expected | None:
    files, partitions = list(table.base_files()), table.metadata.partitions()
    if not files or len(partitions) < 2:
        return None
    right, name = files[0]
    wrong = next(item for item in reversed(partitions) if item != right)
    table.list_files(right, {name: FileEntry(0, is_deleted=True)})
    table.list_files(wrong, {name: FileEntry((table.path / right / name).stat().st_size)})
    return Expected("files", name, f"listed in partition {wrong!r}, but it is in {right!r}")


def missing_partition(table: DamagedTable) -> Expected | None:
    files = list(table.base_files())
    if not files:
        return None
    entries = {partition_key(files[0][0]): FileEntry(0, is_deleted=True)}
    table.write({"files": [(ALL_PARTITIONS, files_datum(FilesRecord(ALL_PARTITIONS, RecordType.PARTITIONS, entries)))]})
    return Expected("files", None, "the partition is not in the list of partitions")


def stale_maximum(table: DamagedTable) -> Expected | None:
    return _stale_bound(table, "maxValue", "minValue", "maximum")


def stale_minimum(table: DamagedTable) -> Expected | None:
    return _stale_bound(table, "minValue", "maxValue", "minimum")


def _stale_bound(table: DamagedTable, stale: str, by: str, called: str) -> Expected | None:
    """Of whole numbers, else of text: other types may have no order that both sides know."""
    data = table.raw("column_stats") if "column_stats" in table.metadata.partition_types else {}
    for wrapper in ("IntWrapper", "LongWrapper", "StringWrapper"):
        for key, datum in sorted(data.items()):
            body = datum[STATS]
            least, greatest = body["minValue"], body["maxValue"]
            bounded = (
                least is not None and greatest is not None and least != greatest and str(least[0]).endswith(wrapper)
            )
            if (
                bounded
                and body["fileName"].endswith(".parquet")
                and not body["isDeleted"]
                and _is_listed(table, body["fileName"])
            ):
                table.rewrite("column_stats", {key: changed(datum, STATS, **{stale: body[by]})})
                return Expected(
                    "column_stats", body["fileName"], f"column {body['columnName']}: the stored {called} is "
                )
    return None


def statistics_of_a_deleted_file(table: DamagedTable) -> Expected | None:
    data = table.raw("column_stats") if "column_stats" in table.metadata.partition_types else {}
    if not data:
        return None
    partition, datum = table.metadata.partitions()[0], next(iter(data.values()))
    stats = changed(datum, STATS, fileName=GONE.replace("gone", "left"), isDeleted=False)
    table.write(
        {"column_stats": [(column_stats_key(stats[STATS]["columnName"], partition, stats[STATS]["fileName"]), stats)]}
    )
    return Expected("column_stats", stats[STATS]["fileName"], "has statistics, but `files` does not list it")


def filter_of_another_file(table: DamagedTable) -> Expected | None:
    """Of files that have no key in common; the one that comes last is damaged."""
    if "bloom_filters" not in table.metadata.partition_types:
        return None
    stored = table.raw("bloom_filters")
    held = [
        (place, name, datum)
        for place, name in table.base_files()
        if (datum := stored.get(bloom_filter_key(place, name))) and _filter(datum)
    ]
    for partition, name, datum in reversed(held):
        other = next((item for _, _, item in held if _filter(item) != _filter(datum)), None)
        if other is not None:
            table.write({"bloom_filters": [(bloom_filter_key(partition, name), other)]})
            return Expected("bloom_filters", name, "the filter is not that of the file's footer")
    return None


def filter_that_lacks_a_key(table: DamagedTable) -> Expected | None:
    if "bloom_filters" not in table.metadata.partition_types:
        return None
    stored, columns = table.raw("bloom_filters"), key_columns(table.context.config)
    for partition, name in table.base_files():
        datum = stored.get(bloom_filter_key(partition, name))
        if not datum or not _filter(datum):
            continue
        rows = pq.read_table(table.path / partition / name, columns=list(columns), partitioning=None).combine_chunks()
        if rows.num_rows > 1:
            keys = record_keys(rows.to_batches()[0], columns, path=name)
            lacking = build(keys[1:])
            members: Datum = {"bloomFilter": lacking.to_base64().encode(), "type": "DYNAMIC_V0"}
            table.write({"bloom_filters": [(bloom_filter_key(partition, name), changed(datum, BLOOM, **members))]})
            return Expected("bloom_filters", name, f"the filter lacks 1 of the file's {rows.num_rows} keys")
    return None


def record_in_the_wrong_group(table: DamagedTable) -> Expected | None:
    places = _places(table)
    key = min(places, default=None)
    other = next(
        (item for item, place in sorted(places.items()) if key is not None and place.file_id != places[key].file_id),
        None,
    )
    if key is None or other is None:
        return None
    table.write({"record_index": [(key, table.raw("record_index")[other])]})
    return Expected(
        "record_index",
        places[other].file_id,
        f"key {key!r} is mapped to the file group, but it is in file group {places[key].file_id}",
    )


def deleted_key_still_mapped(table: DamagedTable) -> Expected | None:
    places = _places(table)
    if not places:
        return None
    table.write({"record_index": [(GHOST, table.raw("record_index")[min(places)])]})
    return Expected(
        "record_index", places[min(places)].file_id, f"key {GHOST!r} is mapped to the file group, but no row has it"
    )


def key_not_mapped(table: DamagedTable) -> Expected | None:
    places = _places(table)
    key = max((key for key in places if key != GHOST), default=None)
    if key is None:
        return None
    table.write({"record_index": [(key, None)]})
    return Expected(
        "record_index", places[key].file_id, f"key {key!r} is not mapped, but the file group has a row of it"
    )


COMBINED: tuple[Damage, ...] = (
    missing_file,
    wrong_size,
    stale_maximum,
    statistics_of_a_deleted_file,
    filter_of_another_file,
    record_in_the_wrong_group,
    deleted_key_still_mapped,
    key_not_mapped,
)
"""Damages that do not hide each other."""
ALONE: tuple[Damage, ...] = (extra_file, wrong_partition, stale_minimum, filter_that_lacks_a_key, missing_partition)


def _is_listed(table: DamagedTable, name: str) -> bool:
    return any(name == file for _, file in table.base_files())


def _filter(datum: Datum) -> Any:
    return None if datum[BLOOM]["isDeleted"] else datum[BLOOM]["bloomFilter"]


def _places(table: DamagedTable) -> dict[str, Any]:
    """Where a global record index says that keys are; nothing of a partitioned one, whose file groups a writer of
    damages does not choose.
    """
    metadata = table.metadata
    if "record_index" not in metadata.partition_types or metadata.record_index.is_partitioned:
        return {}
    return dict(metadata.record_index.all())

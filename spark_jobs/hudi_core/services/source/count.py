"""Checks by the table's own rows how an overwrite makes keys, partitions and buckets. source.py counts the rows."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, zip_longest

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.schema import AvroSchema, parse_schema, without_fields
from hudi_core.codec.log.blocks import BlockType
from hudi_core.config.rows_config import (
    BUCKET_ENGINE,
    COMBINE_INSERTS,
    HASH_FIELDS,
    INDEX_TYPE,
    NUM_BUCKETS,
    READ_ZONE,
    TIME_TYPE,
    TIME_ZONE,
    TYPED_PARTITION_FIELDS,
    WRITERS_KEYS,
    WRITERS_ORDERING,
    WriteConfig,
)
from hudi_core.config.services.compaction_config import MAX_FILE_BYTES
from hudi_core.config.table_config import TableConfig
from hudi_core.engine.protocol import Engine
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.filegroup.merge.record_keys import record_keys
from hudi_core.filegroup.merge.table_policy import Fill, MergePolicy, Rules, key_fields
from hudi_core.filegroup.read.base_file import open_base_file
from hudi_core.filegroup.read.log_records import block_batches
from hudi_core.filegroup.read.log_scan import AFTER_ALL, CommittedInstants, scan_log_files
from hudi_core.filegroup.read.partition_values import DEFAULT_PARTITION
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.filegroup.write.buckets import BUCKET_ID, Buckets
from hudi_core.filegroup.write.hashing_metadata import ring_of
from hudi_core.filegroup.write.key_generator import KeyGenerator, field_texts, labels_vary
from hudi_core.filegroup.write.partition_times import SqlTimes, TimeFormat
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.partition_type import is_secondary_index
from hudi_core.model.names import FileGroupId, spelled
from hudi_core.services.context import TableContext
from hudi_core.services.metadata.initialization import indexed_table
from hudi_core.services.rewriting.checks import check_schema_of_latest
from hudi_core.services.source.files import (
    CountedRows,
    Needs,
    Source,
    SourceRows,
    count_rows,
    evolved_rows,
    find_source,
)
from hudi_core.services.source.key_scope import KeyScope, index_type
from hudi_core.services.source.row_size import bytes_per_row
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileSlice
from hudi_core.view.file_system_view import FileSystemView

log = logging.getLogger(__name__)

_SAMPLED = 1000
"""How many rows of a file are looked at for their keys."""
_SAMPLED_FILES = 16
"""How many file slices show by their keys whether the options name the table's buckets: one may fit others, too."""
_MOVES = tuple(30 * count for count in range(-28, 29) if abs(count) > 1)
"""Minutes that are added to local time, to see whether another zone fits. No zone is half an hour from UTC."""


def counted_rows(context: TableContext, source: Source, engine: Engine, needs: Needs) -> CountedRows:
    """Returns the counted rows of `source`. Raises the errors of find_source, count_file and check_schema_of_latest.
    Raises UnsupportedError or ConfigError for a table whose writers compute other keys or buckets.
    """
    _check_fields(context.config, context.options)
    folder, files = find_source(source.address, context.storage_options, source.names)
    timeline = context.active.load()
    check_schema_of_latest(context, timeline)
    schema = table_schema(context.storage, context.config, timeline)
    view = context.view(timeline)
    keys = _keys(context, view, schema)
    buckets = Buckets.of(context.config, context.options)
    if buckets is not None and buckets.by_hash and not needs.takes_hashing:
        remedy = "overwrite it with Hudi"
        raise UnsupportedError("the table has buckets by consistent hashing", path=context.config.path, remedy=remedy)
    in_logs = needs.one_in_logs and buckets is not None and context.config.is_merge_on_read
    one_of_a_key = needs.one_of_a_key or in_logs
    rows = SourceRows(
        folder,
        dict(context.storage_options),
        _with_fields(schema, keys.columns) if needs.keys_only else schema,
        keys,
        WriteConfig.of(context.options),
        context.config.dropped_columns,
        # Deletes by key have no order.
        policy=None if needs.keys_only else MergePolicy.for_table(context.config, context.options),
        combines=one_of_a_key or COMBINE_INSERTS.read(context.options),
        scope=KeyScope.of(context.options) if one_of_a_key and buckets is None else KeyScope(),
        buckets=buckets,
        keys_only=needs.keys_only,
    )
    if rows.combines and rows.policy is not None and not one_of_a_key:
        _check_combined(context.config, rows.policy, context.options)
    if not needs.keys_only:
        rows = evolved_rows(rows, files[0], context.config.version)
    if rows.evolved_from is not None:
        _check_indexed(context, timeline, rows)
    keys.check(rows.columns, rows.dropped, path=context.config.path)
    few_keys = needs.few_keys and buckets is None
    counted = count_rows(engine, rows, files, few_keys=few_keys)
    if buckets is not None:
        for sample in _samples(context, view, (), replaced=counted.by_partition):
            sample.check(_with_ring(context, view, sample.partition, buckets))
    # Rows that fit into one file are not spread. But the size of a row says how many keys of the table are looked at.
    looks_at_all = few_keys and counted.keys is None
    is_small = counted.size <= MAX_FILE_BYTES.read(context.options) and not looks_at_all
    return counted if is_small else replace(counted, row_bytes=bytes_per_row(context, timeline))


def _check_fields(config: TableConfig, options: Mapping[str, str]) -> None:
    """Raises ConfigError for an option that names other columns than the table has: its rows would have other keys than
    the writer means (HoodieWriterUtils.validateTableConfig).
    """
    of_table = {
        WRITERS_KEYS: config.record_key_fields,
        TYPED_PARTITION_FIELDS: config.partition_fields,
        WRITERS_ORDERING: config.ordering_fields,
    }
    for key, columns in of_table.items():
        given = tuple(name.partition(":")[0].strip() for name in key.read(options))
        if given and columns and [name.lower() for name in given] != [name.lower() for name in columns]:
            raise ConfigError(
                f"{key.name} is {','.join(given)}, and the table's is {','.join(columns)}",
                path=config.path,
                remedy="leave the option out, or write to another table",
            )


def _with_ring(context: TableContext, view: FileSystemView, partition: str, buckets: Buckets) -> Buckets:
    """Returns the buckets with those of the partition. Raises ConfigError where it has rows and none by hashing."""
    if not buckets.by_hash:
        return buckets
    ring = ring_of(context.storage, view, partition)
    if ring is None:
        raise ConfigError(
            f"partition {partition!r} has no buckets by consistent hashing",
            path=context.config.path,
            remedy=f"give {BUCKET_ENGINE.name} as the table's writers have it",
        )
    return replace(buckets, rings={partition: ring})


def _check_combined(config: TableConfig, policy: MergePolicy, options: Mapping[str, str]) -> None:
    """Raises UnsupportedError where another row than the newest of one key may stay."""
    if policy.rules is Rules.FUNCTION or policy.fill is not Fill.NOTHING:
        raise UnsupportedError(
            f"{COMBINE_INSERTS.name}=true, where rows of one key are merged field by field",
            path=config.path,
            remedy="combine them in the source, and leave the option out",
        )
    if KeyScope.of(options).is_global or index_type(options) == "HBASE":
        raise UnsupportedError(
            f"{COMBINE_INSERTS.name}=true with {INDEX_TYPE.name}={index_type(options)}, by which keys are of the whole "
            "table",
            path=config.path,
            remedy="combine rows of different partitions in the source, and leave one of the options out",
        )


def _with_fields(schema: AvroSchema, names: Collection[str]) -> AvroSchema:
    """Returns the schema with only some of its fields."""
    return without_fields(schema, [field["name"] for field in schema["fields"] if field["name"] not in names])


def _check_indexed(context: TableContext, timeline: Timeline, rows: SourceRows) -> None:
    """Refuses to widen a column in a secondary index (HoodieTable.validateSecondaryIndexSchemaEvolution)."""
    if not any(map(is_secondary_index, context.config.metadata_partitions)):
        return
    old = arrow_schema(rows.found_schema, path=context.config.path)
    new = arrow_schema(rows.schema, path=context.config.path)
    for name, definition in indexed_table(context, timeline).definitions.items():
        if not is_secondary_index(name):
            continue
        for column in spelled(definition.source_fields, old.names):
            if column in old.names and old.field(column).type != new.field(column).type:
                raise ConfigError(
                    f"the column {column!r} is {new.field(column).type} in the source and {old.field(column).type} in "
                    f"the table, and the index {name} holds its values",
                    path=rows.uri,
                    remedy="cast it in the source, or drop the index first",
                )


@dataclass(frozen=True, slots=True)
class _Sample:
    """Some rows of a base file or log block: their record keys, and those requested columns that the file has."""

    path: str
    partition: str
    file_id: str
    rows: pa.RecordBatch
    key_fields: tuple[str, ...]

    @property
    def keys(self) -> pa.Array:
        return record_keys(self.rows, self.key_fields, path=self.path)

    def agree(self, keys: KeyGenerator) -> pa.Array:
        """For each row, whether `keys` puts it into this partition."""
        return pc.equal(keys.partitions(self.rows, path=self.path), self.partition)

    def check(self, buckets: Buckets) -> None:
        """Raises ConfigError where the rows are not in the bucket that these options give to their keys."""
        if not buckets.by_hash and not BUCKET_ID.match(self.file_id):
            return
        places = buckets.places(pa.repeat(self.partition, self.rows.num_rows), self.keys, path=self.path)
        if not pc.all(pc.equal(places, buckets.place_of_group(FileGroupId(self.partition, self.file_id)))).as_py():
            raise ConfigError(
                f"by {buckets} the rows of the file are in another bucket",
                path=self.path,
                remedy=f"give {NUM_BUCKETS.name} and {HASH_FIELDS.name} as the table's writers have them",
            )


def _samples(
    context: TableContext, view: FileSystemView, columns: Collection[str], replaced: Collection[str] = ()
) -> Iterator[_Sample]:
    """Yields samples of up to _SAMPLED_FILES slices. Takes one of each partition `replaced` in turn, then others."""
    known = view.partitions()
    first = (view.latest_merged_slices(name) for name in known if name in replaced)
    others = (view.latest_merged_slices(name) for name in known if name not in replaced)
    in_turn = (item for slices in zip_longest(*first) for item in slices if item is not None)
    samples = (_sample(context, view, item, columns) for item in chain(in_turn, chain.from_iterable(others)))
    return islice((sample for sample in samples if sample is not None), _SAMPLED_FILES)


def _sample(context: TableContext, view: FileSystemView, item: FileSlice, columns: Collection[str]) -> _Sample | None:
    fields = key_fields(context.config)
    names = list(dict.fromkeys([*fields, *columns]))
    if item.base_file is None:
        path, rows = _logged_rows(context, view, item, names)
    else:
        path = item.base_file.path
        with open_base_file(context.storage, path) as file:
            rows = next(iter(file.batches(names, batch_rows=_SAMPLED)), None)
    if rows is None or not rows.num_rows:
        return None
    return _Sample(path, item.file_group.partition, item.file_group.file_id, rows, fields)


def _logged_rows(
    context: TableContext, view: FileSystemView, item: FileSlice, names: Sequence[str]
) -> tuple[str, pa.RecordBatch | None]:
    """Returns path and some rows of a data block of a slice without a base file. Memory: a piece of a block."""
    committed = CommittedInstants.of(view.timeline)
    scan = scan_log_files(context.storage, item.log_files, committed, latest_instant=AFTER_ALL, stop_at_newer=False)
    for block in scan.blocks:
        if block.type is BlockType.DELETE:
            continue
        written = arrow_schema(parse_schema(block.schema or "", path=block.path), path=block.path)
        columns = pa.schema([written.field(name) for name in names if name in written.names])
        rows = next(block_batches(context.storage, block, columns), None)
        if rows is not None and rows.num_rows:
            return block.path, rows.slice(0, _SAMPLED)
    return "", None


def _keys(context: TableContext, view: FileSystemView, schema: AvroSchema) -> KeyGenerator:
    """Returns the key generator. Raises as KeyGenerator.of, SqlTimes.of, and of the checks below."""
    config, options = context.config, context.options
    labels_one = _labels_one(context, view) if labels_vary(config) and config.populate_meta_fields else None
    keys = KeyGenerator.of(config, options, labels_one=labels_one)
    plain = [name for name in keys.partition_fields if name not in keys.times]
    columns = arrow_schema(schema, path=config.path)
    if any(name not in columns.names or pa.types.is_timestamp(columns.field(name).type) for name in plain):
        sql_times = SqlTimes.of(config, options, columns, plain, view.partitions())
        if sql_times is not None:
            keys = replace(keys, sql_times=sql_times)
            _check_zone(context, view, keys, sql_times)
    if keys.time_format is not None:
        _check_times(context, view, keys, keys.time_format)
    if any(name in columns.names and pa.types.is_timestamp(columns.field(name).type) for name in keys.record_fields):
        _check_timestamps(context, view, keys)
    return keys


def _check_timestamps(context: TableContext, view: FileSystemView, keys: KeyGenerator) -> None:
    """Raises UnsupportedError where stored keys hold timestamps in another form, such as `2016-12-29 09:54:00.0`: Hudi
    writes it by bulk_insert of rows, and by an option that no table keeps (CONSISTENT_TIMESTAMPS).
    """
    for sample in _samples(context, view, keys.record_fields):
        if not {*keys.record_fields} <= {*sample.rows.schema.names}:
            continue
        sample = replace(sample, rows=sample.rows.drop_null())
        if not pc.all(pc.equal(sample.keys, keys.keys(sample.rows, path=sample.path))).as_py():
            raise UnsupportedError(
                "the record keys of the table hold timestamps in another form than numbers",
                path=sample.path,
                remedy="write to the table with Hudi",
            )


def _labels_one(context: TableContext, view: FileSystemView) -> bool | None:
    """Whether the table's keys have the name of their only field before its value; None where no rows show it. The
    values themselves may begin with that name (`urn:…`). Releases of Hudi differ
    (hoodie.write.complex.keygen.new.encoding). Raises UnsupportedError where keys are of both forms, or of neither.
    """
    (field,) = context.config.record_key_fields
    labelled: set[bool] = set()
    for sample in _samples(context, view, [field]):
        if field not in sample.rows.schema.names:
            continue
        values = field_texts(sample.rows.column(field), field, path=sample.path)
        named = pc.binary_join_element_wise(f"{field}:", values, "")
        forms = [pc.all(pc.equal(sample.keys, texts), skip_nulls=False).as_py() for texts in (values, named)]
        labelled.add(forms[1] is True)
        if True not in forms or len(labelled) > 1:
            raise UnsupportedError(
                f"the record keys of the table are not all its values of {field!r}, nor all values with that name "
                "before them",
                path=sample.path,
                remedy="overwrite the table with Hudi",
            )
    return next(iter(labelled), None)


def _placed(context: TableContext, view: FileSystemView, keys: KeyGenerator) -> Iterator[_Sample]:
    """Yields samples with values of their partition. A global index may leave rows in an earlier partition."""
    for sample in _samples(context, view, keys.partition_fields):
        rows = sample.rows.drop_null()
        is_whole = {*keys.partition_fields} <= {*rows.schema.names} and DEFAULT_PARTITION not in sample.partition
        if rows.num_rows and is_whole:
            yield replace(sample, rows=rows)


def _check_zone(context: TableContext, view: FileSystemView, keys: KeyGenerator, sql_times: SqlTimes) -> None:
    """Raises ConfigError where the zone of local time in partition paths puts the table's rows into other partitions.
    Also raises it where no rows show the zone and no option gives one: the new rows may get other partitions.
    """
    shown = sql_times.is_given
    for sample in _placed(context, view, keys):
        if not pc.any(sample.agree(keys)).as_py():
            raise ConfigError(
                f"by the time zone {sql_times.zone} the rows of the file are of another partition",
                path=sample.path,
                remedy=f"give --option {READ_ZONE.name}=ZONE, that of the table's writers",
            )
        shown = True
    if not shown:
        raise ConfigError(
            "no base file shows the time zone of the timestamps in partition paths",
            path=context.config.path,
            remedy=f"give --option {READ_ZONE.name}=ZONE, that of the table's writers",
        )


def _check_times(context: TableContext, view: FileSystemView, keys: KeyGenerator, form: TimeFormat) -> None:
    """Raises ConfigError where the settings of the timestamp key generator put the table's rows into other partitions.
    Where the settings name no zone, it is UTC, as in most writers' JVMs, unless rows show another one.
    """
    for sample in _placed(context, view, keys):
        agree = sample.agree(keys)
        if not pc.all(agree).as_py() and (not pc.any(agree).as_py() or _is_moved(sample, keys, form)):
            raise ConfigError(
                "by the settings of the timestamp key generator the rows of the file are of another partition",
                path=sample.path,
                remedy=f"give {TIME_TYPE.name}, {form.missing_zone or TIME_ZONE.name} and the others as the table's "
                "writers have them",
            )
    if form.missing_zone is not None:
        log.warning(
            "%s: the partition paths of times are in the zone of the writers' JVM, which is taken for UTC; else give "
            "--option %s=ZONE",
            context.config.path,
            form.missing_zone,
        )


def _is_moved(sample: _Sample, keys: KeyGenerator, form: TimeFormat) -> bool:
    """Whether another zone puts all rows into the sample's partition."""
    moved = (replace(keys, time_format=replace(form, moved=by)) for by in _MOVES)
    return any(pc.all(sample.agree(other)).as_py() for other in moved)

"""The rows of an overwrite's source, checked against what the table's own rows show, and counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice

import pyarrow as pa

from hudi_core.config.keygen_config import COMBINE_INSERTS, HASH_FIELDS, INDEX_TYPE, NUM_BUCKETS
from hudi_core.config.services.compaction_config import MAX_FILE_BYTES
from hudi_core.config.write_config import WriteConfig
from hudi_core.engine.protocol import Engine
from hudi_core.errors import ConfigError
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.read.base_file import open_base_file
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.filegroup.write.buckets import BUCKET_ID, Buckets, bucket_of
from hudi_core.filegroup.write.key_generator import KeyGenerator
from hudi_core.model.names import RECORD_KEY, parse_base_file
from hudi_core.services.compaction.checks import check_schema_of_latest
from hudi_core.services.context import TableContext
from hudi_core.services.overwrite.combined_rows import check_combined
from hudi_core.services.overwrite.row_size import bytes_per_row
from hudi_core.services.overwrite.source import CountedRows, Source, SourceRows, count_rows, evolved_rows, find_source
from hudi_core.timeline.timeline import Timeline

_SAMPLED = 1000
"""Rows of a base file whose keys are looked at."""
_SAMPLED_FILES = 16
"""Base files whose keys show whether the options name the table's buckets: those of one may fit other options too."""


def counted_rows(context: TableContext, source: Source, engine: Engine) -> CountedRows:
    """The rows of `source`. Raises as find_source and count_file, UnsupportedError and ConfigError for a table whose
    keys or buckets are not computed here as its writers do, and as check_schema_of_latest.
    """
    folder, files = find_source(source.address, context.storage_options, source.names)
    timeline = context.active.load()
    check_schema_of_latest(context, timeline)
    schema = table_schema(context.storage, context.config, timeline)
    samples = _samples(context, timeline)
    first = next(samples, None)
    keys = KeyGenerator.of(context.config, context.options, labels_one=_labels_one(context, first))
    buckets = Buckets.of(context.config, context.options)
    if buckets is not None and first is not None:
        for sample in chain([first], islice(samples, _SAMPLED_FILES - 1)):
            sample.check(buckets)
    config = WriteConfig.of(context.options)
    dropped = context.config.partition_fields if context.config.drop_partition_columns else ()
    policy = MergePolicy.for_table(context.config, context.options)
    combines = COMBINE_INSERTS.read(context.options)
    if combines:
        check_combined(context.config, policy, INDEX_TYPE.read(context.options))
    rows = SourceRows(
        folder,
        dict(context.storage_options),
        schema,
        keys,
        config,
        dropped,
        policy=policy,
        combines=combines,
        buckets=buckets,
    )
    rows = evolved_rows(rows, files[0])
    keys.check(rows.columns, dropped, path=context.config.path)
    counted = count_rows(engine, rows, files)
    # What fits into one file is not spread, so that the size of its rows does not matter.
    is_small = counted.size <= MAX_FILE_BYTES.read(context.options)
    return counted if is_small else replace(counted, row_bytes=bytes_per_row(context, timeline))


@dataclass(frozen=True, slots=True)
class _Sample:
    """Record keys (string) of some rows of a base file."""

    path: str
    file_id: str
    keys: pa.Array

    def check(self, buckets: Buckets) -> None:
        """Raises ConfigError where the rows are not in the bucket that their keys have by these options."""
        if (
            BUCKET_ID.match(self.file_id)
            and (buckets.numbers(self.keys, path=self.path) != bucket_of(self.file_id)).any()
        ):
            raise ConfigError(
                f"by {buckets.count} buckets of {','.join(buckets.fields)} the rows of the file are in another bucket",
                path=self.path,
                remedy=f"give {NUM_BUCKETS.name} and {HASH_FIELDS.name} as the table's writers have them",
            )


def _samples(context: TableContext, timeline: Timeline) -> Iterator[_Sample]:
    """Of each base file with rows."""
    view = context.view(timeline)
    for partition in view.partitions():
        for base in view.latest_base_files(partition):
            with open_base_file(context.storage, base.path) as file:
                batch = next(iter(file.batches([RECORD_KEY], batch_rows=_SAMPLED)), None)
            if batch is not None and batch.num_rows:
                yield _Sample(base.path, parse_base_file(base.name).file_id, batch.column(0))


def _labels_one(context: TableContext, sample: _Sample | None) -> bool | None:
    """Whether the keys of the table's rows begin with the name of their only field; None where no base file shows it.

    Releases of Hudi differ in that for the complex key generator (hoodie.write.complex.keygen.new.encoding).
    """
    fields = context.config.record_key_fields
    if len(fields) != 1 or sample is None:
        return None
    return str(sample.keys[0].as_py()).startswith(f"{fields[0]}:")

"""Measures the savings of zstd on a sample of the table's newest base files, and reports them."""

from __future__ import annotations

import io
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count, islice
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.codec.gzip import GzipLibrary, chosen_library
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.writer import BaseFileWriter, ParquetStyle
from hudi_core.config.rows_config import PARQUET_CODEC, WriteConfig
from hudi_core.errors import ConfigError, ExecutionError, FormatError, StorageError
from hudi_core.filegroup.read.base_file import open_base_file
from hudi_core.filegroup.write.base_file_writer import parquet_style
from hudi_core.frozen import dataclass
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.services.context import TableContext
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.timeline import Timeline
from hudi_health.doctor.findings import Finding

_COMPARED: Final = frozenset({"GZIP", "SNAPPY", "UNCOMPRESSED"})
"""The codecs that zstd is compared with. Users chose any other codec on purpose."""
_ZSTD: Final = "ZSTD"
_COMMITS: Final = 32
"""The most commits that are read, the newest first, until they name enough base files."""
_FILES: Final = 3
_TRIED: Final = 2 * _FILES
"""The most files that are opened. Some files may be gone or damaged."""
_ROWS: Final = 64 << 10
_BYTES: Final = 4 << 20
"""Bytes of the rows of one file in Arrow's memory."""
_BATCH_ROWS: Final = 1024
_STORED: Final = 128 << 20
"""The most bytes of a row group that is read. Hudi's writers end a row group at 120 MiB."""
_LEAST: Final = 1 << 20
"""The least bytes of all sampled rows. Fewer bytes save little and their times are noise, so nothing is measured."""
_SMALLER: Final = 0.95
_FASTER: Final = 0.8


@dataclass(frozen=True, slots=True)
class CodecCost:
    """The cost of a sample of rows in one codec: its bytes, and the CPU seconds to write it and to read it back."""

    stored: int
    writing: float
    reading: float


@dataclass(frozen=True, slots=True)
class CompressionObservations:
    """The codec of new base files, and its cost compared with zstd. `codec` comes from the options, else from the
    newest base files. `now` and `zstd` are the costs of `rows` rows of `files` files in that codec and in zstd; None if
    nothing was measured. `library` is the gzip library of the measurement.
    """

    codec: str | None = None
    library: str | None = None
    files: int = 0
    rows: int = 0
    now: CodecCost | None = None
    zstd: CodecCost | None = None


def read_compression(context: TableContext, timeline: Timeline, *, files: bool) -> CompressionObservations:
    """Returns the codec of new base files. With `files`, and if the codec is worth a comparison, it also measures the
    codec and zstd: it takes up to 64 Ki rows of each of three large base files of the newest commits, writes them to
    memory in both codecs, and reads them back. Files that cannot be read are skipped. Memory: a row group as it is
    stored, at most 128 MiB, and 4 MiB of rows of each file, twice. Raises ConfigError for an invalid write option.
    """
    config = WriteConfig.of(context.options)
    if not files or config.parquet_codec not in (None, *_COMPARED):
        return CompressionObservations(config.parquet_codec)
    codec: str | None = config.parquet_codec
    samples: list[pa.Table] = []
    for path in islice(_newest_base_files(context, timeline), _TRIED):
        with suppress(FormatError, StorageError, ExecutionError), open_base_file(context.storage, path) as file:
            codec = codec or file.compression
            if codec in _COMPARED and (not samples or file.schema == samples[0].schema):
                samples += _sample(file)
        if len(samples) == _FILES or codec not in (None, *_COMPARED):
            break
    if codec is None or sum(rows.nbytes for rows in samples) < _LEAST:
        return CompressionObservations(codec)
    rows = pa.concat_tables(samples).combine_chunks()
    try:
        return replace(_measured(rows, codec, config), files=len(samples))
    except (ConfigError, FormatError, ExecutionError):  # The gzip library is missing, or lacks the level.
        return CompressionObservations(codec)


def _newest_base_files(context: TableContext, timeline: Timeline) -> Iterator[str]:
    """Yields paths of Parquet base files, one for each file group. The newest commit comes first; the files of a commit
    come in the order of `_spread`.
    """
    seen: set[str] = set()
    for instant in islice(reversed(tuple(timeline.commits())), _COMMITS):
        try:
            commit = context.active.read_commit(instant)
            commit.check_paths(source=context.active.path_of(instant))
        except (FormatError, StorageError):
            continue
        named = [(stat, parse_data_file(stat.name)) for stat in commit.write_stats() if stat.file_id not in seen]
        bases = [stat for stat, name in named if isinstance(name, BaseFileName) and name.extension == "parquet"]
        seen.update(stat.file_id for stat in bases)
        yield from _spread(bases)


def _spread(stats: Sequence[WriteStat]) -> list[str]:
    """Returns the paths of the largest file of each partition, then of the second largest of each, and so on; in each
    of these groups the larger files come first.
    """
    ranks: defaultdict[str, Iterator[int]] = defaultdict(count)
    largest_first = sorted(stats, key=lambda stat: (-stat.file_size_in_bytes, stat.path))
    return [stat.path for stat in sorted(largest_first, key=lambda stat: next(ranks[stat.partition_path]))]


def _sample(file: ParquetBaseFile) -> list[pa.Table]:
    """Returns the first rows of a row group of the file; none if the row group is too large to be read."""
    group = _row_group(file.metadata)
    if group is None:
        return []
    batches: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in file.batches(batch_rows=_BATCH_ROWS, row_groups=[group]):
        batches.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _ROWS or size >= _BYTES:
            break
    return [pa.Table.from_batches(batches, file.schema)]


def _row_group(metadata: pq.FileMetaData) -> int | None:
    """Returns the smallest row group with enough rows, else that with the most rows; None if too large to read."""
    rows = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    if not rows:
        return None
    number = min(range(len(rows)), key=lambda each: (rows[each] < _ROWS, abs(rows[each] - _ROWS)))
    group = metadata.row_group(number)
    stored = sum(group.column(column).total_compressed_size for column in range(group.num_columns))
    return number if stored <= _STORED else None


def _measured(rows: pa.Table, codec: str, config: WriteConfig) -> CompressionObservations:
    library = chosen_library(GzipLibrary(config.gzip_library)).value if codec == "GZIP" else None
    style = parquet_style(config, codec)
    # Both codecs run twice, in turns: the first run imports libraries, and waits for memory.
    first, second = ([_cost(rows, each) for each in (style, replace(style, codec=_ZSTD))] for _ in range(2))
    now, zstd = (
        CodecCost(one.stored, min(one.writing, other.writing), min(one.reading, other.reading))
        for one, other in zip(first, second, strict=True)
    )
    return CompressionObservations(codec, library, rows=rows.num_rows, now=now, zstd=zstd)


def _cost(rows: pa.Table, style: ParquetStyle) -> CodecCost:
    buffer, name = io.BytesIO(), "the sample"
    started = time.process_time()
    writer = BaseFileWriter(buffer, rows.schema, path=name, style=style)
    writer.write(rows)
    writer.close({})
    written = time.process_time()
    with ParquetBaseFile(buffer, name) as file:
        for _ in file.batches():
            pass
    return CodecCost(buffer.getbuffer().nbytes, written - started, time.process_time() - written)


def codec_saving(measured: CompressionObservations) -> Iterator[Finding]:
    """Reports a codec if zstd makes smaller base files, or takes less CPU."""
    now, zstd = measured.now, measured.zstd
    if now is None or zstd is None:
        return
    is_smaller = zstd.stored <= _SMALLER * now.stored
    if not is_smaller and zstd.writing + zstd.reading > _FASTER * (now.writing + now.reading):
        return
    name = (measured.codec or "").lower() + ("" if measured.library is None else f" by {measured.library}")
    files = f"{measured.files} base file{'' if measured.files == 1 else 's'}"
    yield Finding(
        "codec_saving",
        "info",
        f"base files are {name}; of {measured.rows} rows sampled in {files}, zstd takes "
        f"{_percent(zstd.stored, now.stored)} of the bytes, {_percent(zstd.writing, now.writing)} of the CPU to write "
        f"and {_percent(zstd.reading, now.reading)} to read",
        f"set {PARQUET_CODEC.name}=zstd for the table's writers and services",
    )


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "100 %"

"""Writes, reads and checks one Parquet file by a codec and a choice of encodings, and says what that cost."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.codec.gzip import FASTEST, GzipLibrary, checked_level, chosen_library, gzip_compressor
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.page_sink import GZIP, PageSink
from hudi_core.codec.parquet.writer import CODECS as ARROW_NAMES
from hudi_core.codec.parquet.writer import BaseFileWriter, ParquetStyle, chosen_encodings

_NO_BOUND: Final = 1 << 40
"""Bytes of a row group that is cut by its rows."""


@dataclass(frozen=True, slots=True)
class Codec:
    """A codec by its name in the format, its level, and for gzip the library."""

    name: str
    level: int | None = None
    library: GzipLibrary | None = None

    @property
    def label(self) -> str:
        """What the result calls it: gzip-isal-1."""
        library = self.library.value if self.library else None
        return "-".join(str(part) for part in (self.name.lower(), library, self.level) if part is not None)

    def style(self, *, delta: bool, group_rows: int | None = None) -> ParquetStyle:
        """The style of a base file of it, with the default row groups, or of so many rows."""
        style = ParquetStyle(self.name, delta=delta)
        if self.library is not None:
            style = replace(style, gzip_library=self.library, gzip_level=self.level)
        return style if group_rows is None else replace(style, row_group_rows=group_rows, row_group_bytes=_NO_BOUND)


@dataclass(frozen=True, slots=True)
class Rows:
    """What is written, and the row groups that it becomes: of `group_rows` each, or where None BaseFileWriter's."""

    table: pa.Table
    groups: Sequence[pa.Table]
    group_rows: int | None = None

    def column(self, name: str) -> Rows:
        """The same with one column."""
        return Rows(self.table.select([name]), [group.select([name]) for group in self.groups], self.group_rows)


CODECS: Final = (
    Codec("UNCOMPRESSED"),
    Codec("SNAPPY"),
    Codec("ZSTD", 1),
    Codec("ZSTD", 3),
    Codec("GZIP", 6, GzipLibrary.PYARROW),
    Codec("GZIP", 1, GzipLibrary.ISAL),
    Codec("GZIP", 1, GzipLibrary.LIBDEFLATE),
    Codec("GZIP", 5, GzipLibrary.LIBDEFLATE),
    Codec("GZIP", 6, GzipLibrary.LIBDEFLATE),
)
ARROW, DICTIONARY, DELTA = "arrow", "dictionary", "delta"
ENCODINGS: Final = (ARROW, DICTIONARY, DELTA)
"""Arrow's, a dictionary on every column; ours without delta; and ours."""


def default_codec() -> Codec:
    """What a base file gets without options."""
    style = ParquetStyle()
    library = chosen_library(style.gzip_library)
    return Codec(style.codec, checked_level(library, style.gzip_level), library)


def default_encodings() -> str:
    """What a base file gets without options."""
    return DELTA if ParquetStyle().delta else DICTIONARY


def in_row_groups(table: pa.Table, group_rows: int | None = None) -> Rows:
    """The table, cut into row groups of so many rows, or as BaseFileWriter cuts it without options."""
    if group_rows is not None:
        return Rows(
            table, [table.slice(start, group_rows) for start in range(0, table.num_rows, group_rows)], group_rows
        )
    trial = io.BytesIO()
    writer = BaseFileWriter(trial, table.schema, path="trial", style=ParquetStyle("UNCOMPRESSED"))
    writer.write(table)
    writer.close({})
    metadata = pq.read_metadata(trial)
    groups, start = [], 0
    for number in range(metadata.num_row_groups):
        groups.append(table.slice(start, metadata.row_group(number).num_rows))
        start += groups[-1].num_rows
    return Rows(table, groups)


def write(file: BinaryIO, rows: Rows, codec: Codec, encodings: str) -> None:
    """Writes one file. BaseFileWriter does, except what it has no option for: Arrow's encodings, and zstd's levels."""
    if encodings == ARROW:
        write_by_arrow(file, rows.groups, codec)
    elif codec.name == "ZSTD" and codec.level != 1:
        write_by_arrow(file, rows.groups, codec, chosen_encodings(rows.groups[0], delta=encodings == DELTA))
    else:
        style = codec.style(delta=encodings == DELTA, group_rows=rows.group_rows)
        writer = BaseFileWriter(file, rows.table.schema, path=codec.label, style=style)
        writer.write(rows.table)
        writer.close({})


def write_by_arrow(
    file: BinaryIO,
    groups: Sequence[pa.Table],
    codec: Codec,
    encodings: tuple[Sequence[str], Mapping[str, str]] | None = None,
) -> None:
    """Writes one file by a ParquetWriter, with dictionaries on all columns or the given ones, and the given encodings.

    Pages pass through a PageSink where BaseFileWriter's do for their codec or encodings; where Arrow does all, this is
    what a user of pyarrow gets.
    """
    compress = gzip_compressor(codec.library, codec.level or 0) if codec.library else None
    sink = PageSink(file, GZIP, compress, FASTEST.crc32) if compress or encodings else None
    dictionaries, others = (True, {}) if encodings is None else encodings
    writer = pq.ParquetWriter(
        sink or file,
        groups[0].schema,
        compression="none" if compress else ARROW_NAMES[codec.name],
        compression_level=None if compress else codec.level,
        use_dictionary=dictionaries or False,
        column_encoding=dict(others) or None,
        write_page_index=True,
        store_schema=False,
    )
    for group in groups:
        writer.write_table(group, row_group_size=group.num_rows)
    if sink is not None:
        sink.end_pages()
    writer.close()
    if sink is not None:
        sink.finish()


def write_cost(path: Path, write_to: Callable[[BinaryIO], None]) -> float:
    """CPU seconds of writing the file at `path`."""

    def work() -> None:
        with path.open("wb") as file:
            write_to(file)

    return _cpu(work)


def read_cost(path: Path) -> float:
    """CPU seconds of decoding every column of the file by this process, as the engine reads base files."""

    def work() -> int:
        with path.open("rb") as file, ParquetBaseFile(file, path.name) as base:
            return sum(batch.num_rows for batch in base.batches())

    return _cpu(work)


def check(path: Path, rows: Rows, codec: Codec) -> None:
    """Raises RuntimeError when the file does not hold these rows in these row groups, or is of another codec."""
    with path.open("rb") as file, ParquetBaseFile(file, path.name) as base:
        found = pa.Table.from_batches(base.batches(), base.schema)
        compression = base.compression
        sizes = [base.metadata.row_group(number).num_rows for number in range(base.metadata.num_row_groups)]
    if not found.equals(rows.table):
        raise RuntimeError(f"{path.name} does not read back as it was written: {found.num_rows:,} rows")
    expected = [group.num_rows for group in rows.groups]
    if (compression, sizes) != (codec.name, expected):
        raise RuntimeError(f"{path.name} is {compression} in row groups of {sizes}, not {codec.name}, {expected}")


def _cpu(work: Callable[[], object]) -> float:
    """CPU seconds of this process."""
    started = time.process_time()
    work()
    return time.process_time() - started

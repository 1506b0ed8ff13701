"""Pieces of row groups, which are copied as row groups of their own, or read as files in memory.

Bounds of a piece come from the page index where they are values; else the column is decoded.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from hudi_core.codec.parquet.chunk_statistics import decoded_statistics, page_statistics
from hudi_core.codec.parquet.cuts import CutChunk, RowGroupCuts
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.footer import Column, Group
from hudi_core.codec.parquet.page_index import offset_index_of
from hudi_core.codec.parquet.page_sink import MAGIC, ChunkBytes
from hudi_core.codec.parquet.thrift import I64, LIST, STRUCT, Struct, ThriftList, encode_struct
from hudi_core.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """The rows of a row group from `first` up to `end`, at both of which it can be cut."""

    cuts: RowGroupCuts
    first: int
    end: int

    @property
    def num_rows(self) -> int:
        return self.end - self.first

    def group(self) -> Struct:
        """Returns the fields of the piece's row group, without its columns."""
        return {**self.cuts.source.group(self.cuts.number), Group.num_rows: (I64, self.num_rows)}

    def chunks(self, replaced: Mapping[str, ChunkBytes]) -> Iterator[ChunkBytes]:
        """Yields the column chunks in the order of the schema; those of `replaced`, by dotted name, come from there.
        Raises CorruptFileError also where the pages of a column with lists do not have the rows of the piece.
        """
        cuts = self.cuts
        paths = [cuts.schema.column(place).path for place in range(len(cuts.chunks))]
        copied = [place for place, path in enumerate(paths) if path not in replaced]
        cuts.prepare(self.first, self.end, copied)
        self._check_lists()
        with cuts.source.naming(cuts.number):
            for place, chunk in enumerate(cuts.chunks):
                cuts.source.check_values(cuts.number, cuts.schema.column(place), chunk)
            statistics = self._statistics(copied)
        for place, path in enumerate(paths):
            if path in replaced:
                yield replaced[path]
                continue
            with cuts.source.naming(cuts.number):
                yield self._with_index(place, cuts.cut(place, self.first, self.end), statistics.get(place))

    def file(self, columns: Sequence[int] | None = None) -> ParquetBaseFile:
        """Returns a file in memory that has these rows alone, in one row group, without statistics. It has the pages of
        the leaf columns that can be cut, or only of `columns` among them: no other column may be read from it.
        """
        cuts = self.cuts
        chosen = cuts.columns if columns is None else columns
        data, chunks = io.BytesIO(MAGIC), list(cuts.chunks)
        data.seek(0, io.SEEK_END)
        cuts.prepare(self.first, self.end, chosen)
        with cuts.source.naming(cuts.number):
            for place in chosen:
                cut = cuts.cut(place, self.first, self.end)
                chunks[place] = cut.placed(data.tell())
                data.write(cut.data)
        group = {**self.group(), Group.columns: (LIST, ThriftList(STRUCT, chunks))}
        footer = encode_struct(cuts.source.footer_with(dict(sorted(group.items())), self.num_rows))
        data.write(footer + len(footer).to_bytes(4, "little") + MAGIC)
        return ParquetBaseFile(data, cuts.source.path, cuts.source.file.limits)

    def _check_lists(self) -> None:
        """Decodes columns with lists whose pages do not say their rows. Where all pieces have so many rows at least,
        each has as many.
        """
        cuts = self.cuts
        tops: dict[str, list[int]] = defaultdict(list)
        for leaf in cuts.columns:
            tops[cuts.tops[leaf]].append(leaf)
        for top, leaves in tops.items():
            lists = [leaf for leaf in leaves if cuts.schema.column(leaf).max_repetition_level]
            with cuts.source.naming(cuts.number):
                is_unknown = any(
                    page.rows is None for leaf in lists for page in cuts.cut(leaf, self.first, self.end).pages
                )
            if is_unknown:
                with self.file(leaves) as file:
                    rows = sum(batch.num_rows for batch in file.batches([top]))
                if rows != self.num_rows:
                    raise cuts.source.damaged(cuts.number, f"{top} has {rows} of {self.num_rows} rows in its pages")

    def _statistics(self, columns: Sequence[int]) -> dict[int, Struct]:
        """Returns the statistics of columns, without those that have none in the file. Values are decoded where the
        bounds of pages may not be values.
        """
        cuts = self.cuts
        by_place: dict[int, Struct] = {}
        unknown: dict[int, Struct] = {}
        for place in columns:
            stored: Struct = cuts.inner(place).get(Column.statistics, (STRUCT, {}))[1]
            run = cuts.places(place).run(self.first, self.end)
            statistics = page_statistics(stored, cuts.schema.column(place), cuts.bounds(place), *run)
            if stored and statistics is None:
                unknown[place] = stored
            elif stored and statistics is not None:
                by_place[place] = statistics
        if unknown:
            tops = {cuts.tops[place] for place in unknown}
            leaves = [leaf for leaf in cuts.columns if cuts.tops[leaf] in tops]
            schema = [cuts.schema.column(leaf) for leaf in leaves]
            with self.file(leaves) as file:
                decoded = decoded_statistics(
                    file.batches(sorted(tops, key=cuts.tops.index)),
                    schema,
                    {leaves.index(place): stored for place, stored in unknown.items()},
                )
            by_place |= {leaves[number]: statistics for number, statistics in decoded.items()}
        return by_place

    def _with_index(self, place: int, cut: CutChunk, statistics: Struct | None) -> ChunkBytes:
        bounds = self.cuts.bounds(place)
        begin = len(MAGIC) + len(cut.data) - sum(page.stored for page in cut.pages)
        column_index = b"" if bounds is None else bounds.sliced(cut.first, cut.end)
        offset_index = offset_index_of(self.cuts.places(place), cut.first, cut.end, begin)
        return ChunkBytes(cut.placed(len(MAGIC), statistics), cut.data, len(MAGIC), column_index, offset_index)

"""Texts that a Parquet file has as codes of a dictionary: read as such, and written out for as many rows at once as
memory is for.

What a repeated text takes up in a batch no footer bounds: pages hold it once, statistics leave values of 4 KiB out, and
tell nothing of those between the least and the greatest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_core.codec.avro.arrow_conform import conform_batch
from hudi_core.codec.parquet.leaves import leaf_arrays

_READ_AS_CODES: Final = frozenset({"PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "RLE", "BIT_PACKED"})
"""Encodings of pages that Arrow makes codes of. A column may go on in another one behind those of its dictionary."""


def is_coded(chunk: pq.ColumnChunkMetaData) -> bool:
    """Whether a column chunk is read as codes."""
    has_codes = chunk.physical_type == "BYTE_ARRAY" and chunk.has_dictionary_page
    return bool(has_codes and _READ_AS_CODES.issuperset(chunk.encodings))


def written_out(batch: pa.RecordBatch, schema: pa.Schema, most: int, path: str) -> Iterator[pa.RecordBatch]:
    """The rows of a batch with the types of `schema`, in parts of `most` bytes at most, or of one row. Raises
    ArrowInvalid or ArrowIndexError for codes that are not of their dictionary.
    """
    parts = list(_parts(batch, most))
    for part in parts:
        # A slice of a nested column still has the values of all rows.
        rows = part if len(parts) == 1 else part.take(pa.array(range(part.num_rows)))
        yield conform_batch(rows, schema, path=path)


def _parts(batch: pa.RecordBatch, most: int) -> Iterator[pa.RecordBatch]:
    if batch.num_rows > 1 and _bytes(batch) > most:
        half = batch.num_rows // 2
        yield from _parts(batch.slice(0, half), most)
        yield from _parts(batch.slice(half), most)
    else:
        yield batch


def _bytes(batch: pa.RecordBatch) -> int:
    """Of the batch once its texts are written out."""
    total = 0
    for column in batch.columns:
        for leaf in leaf_arrays(column):
            total += leaf.nbytes
            if pa.types.is_dictionary(leaf.type):
                total += _text_bytes(leaf) - leaf.dictionary.nbytes
    return total


def _text_bytes(leaf: pa.Array) -> int:
    values = leaf.dictionary
    if not (pa.types.is_string(values.type) or pa.types.is_binary(values.type)):
        return 0
    return int(pc.sum(pc.binary_length(values).cast(pa.int64()).take(leaf.indices)).as_py() or 0)

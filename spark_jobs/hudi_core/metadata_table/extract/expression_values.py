"""What an expression index holds of one file, gathered from its rows (SparkMetadataWriterUtils.getExprIndexRecords)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.bloom import BloomFilter
from hudi_core.errors import UnsupportedError
from hudi_core.metadata_table.extract.expressions import function_of
from hudi_core.metadata_table.extract.row_ranges import RowRanges
from hudi_core.metadata_table.partition_type import COLUMN_STATS
from hudi_core.metadata_table.records.file_statistics import ColumnRange, Expression, FilterText


class ExpressionValues:
    """Gathers a file's range or filter of one expression. Memory: two bounds, or one byte per bit of the filter."""

    def __init__(self, expression: Expression, column: pa.DataType) -> None:
        """`column` is the column's Arrow type in the table's schema. Raises UnsupportedError as check_expression."""
        self.expression = expression
        self._function, result = function_of(expression.function, expression.options, column, expression.zone)
        self._bloom: BloomFilter | None = None
        if expression.kind == COLUMN_STATS:
            # Spark's timestamps count microseconds, and come to Hudi as timestamps, which version 1 wraps as such.
            self._micros = pa.timestamp("us", tz=result.tz) if pa.types.is_timestamp(result) else None
            kind = None if self._micros is None else "timestamp_micros"
            self._ranges = RowRanges(expression.column, self._micros or result, expression.version, bound_type=kind)
        else:
            if not (pa.types.is_string(result) or pa.types.is_integer(result)):
                raise UnsupportedError(
                    f"a bloom filter over values of the type {result}, whose text in Java this release does not make"
                )
            entries, rate, most = expression.bloom
            self._bloom = BloomFilter(entries=entries, error_rate=rate, max_entries=most)

    def add(self, values: pa.Array) -> None:
        """More values of the column."""
        found = self._function(values)
        if self._bloom is None:
            self._ranges.add(found if self._micros is None else found.cast(self._micros))
        elif found.null_count < len(found):
            texts = pc.cast(found.drop_null(), pa.large_string())
            offsets, data = texts.buffers()[1:]
            starts = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
            self._bloom.add_batch(starts, np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8))

    def result(self, file_size: int) -> ColumnRange | FilterText:
        """What the index holds of a file of that many bytes.

        Of a range, `value_count` counts the values that are not null, and the sizes are the file's and twice that: so
        does Hudi.
        """
        if self._bloom is not None:
            return FilterText(self._bloom.type_code, self._bloom.to_base64())
        found = self._ranges.result(file_size, 2 * file_size)
        return replace(found, value_count=found.value_count - found.null_count)


def check_expression(expression: Expression, kind: pa.DataType) -> None:
    """Raises UnsupportedError for an index whose values this release does not compute exactly, on a column of the type
    `kind`.
    """
    ExpressionValues(replace(expression, bloom=(1, 0.5, 1)), kind)

"""The change log of a file group that a write merges: the rows that came, changed or went (HoodieCDCLogger). Real Hudi
writes one wherever it merges a base file of a table with change logs (HoodieMergeHandleWithChangeLog,
FileGroupReaderBasedMergeHandle of 1.2). Rows that go to log files, or to new file groups, have none: readers find these
changes in the files. query/cdc_read.py reads change logs.

Real Hudi's query fails where a merge has no change log (HoodieCDCExtractor). So there always is one, if need be without
entries; also of an insert, where HoodieConcatHandle writes none. Memory: a block of BLOCK_BYTES, twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.codec.log.blocks import BlockType
from hudi_core.config.table_config import KEYS_ONLY, ROWS_BEFORE
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ExecutionError
from hudi_core.filegroup.write.base_file_writer import rows_schema
from hudi_core.filegroup.write.log_file import BLOCK_BYTES, NewLogFile
from hudi_core.filegroup.write.markers import log_marker
from hudi_core.model.names import BaseFileName, LogFileName, WriteToken
from hudi_core.model.partition import join
from hudi_core.storage.base import Storage

_KEY_SCHEMA: Final[AvroSchema] = {
    "type": "record",
    "name": "Record",
    "fields": [{"name": "op", "type": ["string", "null"]}, {"name": "record_key", "type": ["string", "null"]}],
}


def change_schema(mode: str, table: AvroSchema) -> AvroSchema:
    """Returns the schema of a change log's entries (HoodieCDCUtils.schemaBySupplementalLoggingMode). `table` is the
    table's, without meta fields; `mode` is TableConfig.change_logs.
    """
    if mode == KEYS_ONLY:
        return _KEY_SCHEMA
    space, _, name = str(table["name"]).rpartition(".")
    space = space or table.get("namespace", "")
    image = {key: value for key, value in {**table, "name": name}.items() if key != "namespace"}
    types: dict[str, list[Any]] = {"op": ["null", "string"]}
    if mode == ROWS_BEFORE:
        types |= {"record_key": ["null", "string"], "before": ["null", image]}
    else:
        types |= {"ts_ms": ["null", "string"], "before": ["null", image], "after": ["null", name]}
    fields = [{"name": column, "type": kind, "doc": "", "default": None} for column, kind in types.items()]
    return {"type": "record", "name": "CDC", **({"namespace": space} if space else {}), "fields": fields}


class ChangeLog(NewLogFile):
    """The change log beside the next base file of a file group."""

    def __init__(
        self,
        storage: Storage,
        instant: str,
        schema: AvroSchema,
        partition: str,
        file_id: str,
        attempt: TaskAttempt,
        mode: str,
        *,
        by_name: bool,
    ) -> None:
        """`schema` is the table's, without meta fields; `mode` is TableConfig.change_logs; `by_name` is as in
        log_marker. Up to version 6 the marker has the name of the base file, as Hudi's had before HUDI-1517: by that
        its rollbacks delete the log file. By a marker with the log file's name 0.15 leaves it in the file group.
        """
        token = WriteToken(attempt.partition_id, attempt.stage_id, attempt.attempt_id)
        name, base = LogFileName(file_id, instant, 1, token, cdc=True), BaseFileName(file_id, token, instant, "parquet")
        super().__init__(
            storage,
            instant,
            join(partition, str(name)),
            attempt,
            change_schema(mode, schema),
            marker=(str(name if by_name else base), log_marker(by_name=by_name)),
        )
        columns = rows_schema(schema, path=self.path)
        names = (field["name"] for field in schema["fields"])
        self._image_type = pa.struct([columns.field(column).with_nullable(True) for column in names])
        self._names = [field["name"] for field in self._schema["fields"]]
        self._entries = 0
        self._waiting: list[bytes] = []
        self._waiting_rows = self._waiting_bytes = 0

    def add(self, keys: pa.Array, before: pa.RecordBatch | None, after: pa.RecordBatch | None) -> None:
        """Appends an entry for each row, with the columns of rows_schema. Without rows `before` they were inserted,
        without rows `after` deleted. Raises as encode_records.
        """
        count = len(keys)
        op = "i" if before is None else "d" if after is None else "u"
        values: dict[str, Callable[[], pa.Array]] = {
            "op": lambda: pa.repeat(pa.scalar(op), count),
            "ts_ms": lambda: pa.repeat(pa.scalar(self._instant), count),
            "record_key": lambda: keys.cast(pa.string()),
            "before": lambda: self._image(before, count),
            "after": lambda: self._image(after, count),
        }
        rows = pa.RecordBatch.from_arrays([values[name]() for name in self._names], names=self._names)
        self._waiting.append(self.encoded(rows))
        self._waiting_rows += count
        self._waiting_bytes += len(self._waiting[-1])
        self._entries += count
        if self._waiting_bytes >= BLOCK_BYTES:
            self._flush()

    def _flush(self) -> None:
        self.write_records(BlockType.CDC_DATA, self._waiting_rows, self._waiting)
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0

    def _image(self, rows: pa.RecordBatch | None, count: int) -> pa.Array:
        """Returns the rows as structs of the table's columns, or as many nulls."""
        if rows is None:
            return pa.nulls(count, self._image_type)
        fields = list(self._image_type)
        return pa.StructArray.from_arrays([rows.column(field.name) for field in fields], fields=fields)

    def close(self, due: int) -> tuple[tuple[str, int], ...]:
        """Completes the file. Returns WriteStat.cdc_stats. Raises ExecutionError unless `due` rows were changed."""
        if self._entries != due:
            raise ExecutionError(f"the change log has {self._entries} entries where {due} are due", path=self.path)
        if self._waiting or not self._file.tell():
            self._flush()
        return ((self.path, self.end()),)

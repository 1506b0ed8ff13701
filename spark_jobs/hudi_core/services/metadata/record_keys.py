"""The record keys of stored rows."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from hudi_core.config.table_config import TableConfig
from hudi_core.filegroup.merge.record_keys import record_keys
from hudi_core.model.names import RECORD_KEY


@dataclass(frozen=True, slots=True)
class KeysOfRows:
    """Makes keys of `fields`: `_hoodie_record_key`, or the key fields of a table without `_hoodie_*` columns."""

    fields: tuple[str, ...]

    @staticmethod
    def of(config: TableConfig) -> KeysOfRows:
        """The rule of a table."""
        return KeysOfRows((RECORD_KEY,) if config.populate_meta_fields else tuple(config.record_key_fields))

    def __call__(self, batch: pa.RecordBatch, *, path: str) -> pa.Array:
        """The keys as a string array; raises CorruptFileError naming `path` for a row without one."""
        return record_keys(batch, self.fields, path=path)

"""Compares `secondary_index_*` with the values of all current rows.

Exact: the index holds for every row the pair of its value and record key, in the file group of its lookup, and no other
pair. Of an index without the changes of a commit of Hudi 1.2 (MetadataTable.covers_all_rows), which readers do not use,
only the existing pairs are compared. Compared are columns of text and of whole numbers; of other types the printed form
depends on the writer.

Memory: as record_index, with pairs for keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.hashing import file_group_indexes
from hudi_core.expr.functions import evaluate
from hudi_core.expr.tree import Column
from hudi_core.metadata_table.keys import parse_secondary_key, secondary_hashed_part
from hudi_core.metadata_table.read.partition import MetadataPartition
from hudi_core.services.metadata.record_keys import KeysOfRows
from hudi_core.services.metadata.validate.check import PartitionCheck
from hudi_core.services.metadata.validate.difference import Difference, Findings
from hudi_core.services.metadata.validate.key_buckets import KeyBuckets, compare_keys
from hudi_core.services.metadata.validate.true_ranges import one_array
from hudi_core.view.file_group import FileSlice

_NULL = "\0"
_ESCAPED = ("\\", "$", "\0")


class SecondaryIndexCheck(PartitionCheck):
    """Compares one index after the last partition. `by_value`: the value's part of a pair alone chooses the file group
    (index version 2).
    """

    def __init__(
        self,
        partition: MetadataPartition[bool],
        column: Column,
        keys: KeysOfRows,
        findings: Findings,
        *,
        by_value: bool,
        is_whole: bool,
    ) -> None:
        self._partition = partition
        self._column = column
        self._keys = keys
        self._findings = findings
        self._by_value = by_value
        self._is_whole = is_whole
        self._buckets = KeyBuckets(len(partition.groups))
        self._places: list[FileSlice] = []

    def row_columns(self) -> frozenset[str]:
        """The indexed column, and those that make the record key."""
        return frozenset((self._column.path[0], *self._keys.fields))

    def add_rows(self, file_slice: FileSlice, batch: pa.RecordBatch) -> None:
        """Collects the rows' pairs."""
        if not self._places or self._places[-1] is not file_slice:
            self._places.append(file_slice)
        heads = _heads(evaluate(self._column, batch, "UTC"))
        keys = self._keys(batch, path=file_slice.file_group.file_id)
        pairs = pc.binary_join_element_wise(heads, _escaped(keys), "")
        hashed = (heads if self._by_value else pairs).to_pylist()
        self._buckets.add(file_group_indexes(hashed, len(self._partition.groups)), pairs, len(self._places) - 1)

    def finish(self) -> None:
        """Compares."""
        with self._buckets as buckets:
            for position, true in buckets.by_group():
                stored = self._partition.groups[position].all()
                self._compare_group(position, one_array(true.column("key")), true.column("place").to_numpy(), stored)
                self._partition.groups[position].release()

    def _compare_group(self, position: int, true: pa.Array, places: np.ndarray, stored: Mapping[bytes, bool]) -> None:
        kind = self._partition.name
        remaining = pa.array([key for key, current in stored.items() if current], pa.binary())
        nowhere = np.zeros(len(remaining), dtype=np.int32)
        found = compare_keys(true.cast(pa.binary()), np.zeros(len(true), dtype=np.int32), remaining, nowhere)

        def missing() -> Iterator[Difference]:
            for at in found.missing.tolist():
                group = self._places[int(places[at])].file_group
                yield Difference(
                    kind,
                    group.partition,
                    group.file_id,
                    f"{_pair(true[at].as_py())} is not in the index, but the file group has it",
                )

        def extra() -> Iterator[Difference]:
            for at in found.extra.tolist():
                text = remaining[at].as_py().decode("utf-8", "replace")
                hashed = secondary_hashed_part(text) if self._by_value else text
                home = int(file_group_indexes([hashed], len(self._partition.groups))[0])
                why = (
                    "no row has it"
                    if home == position
                    else f"in file group {position} of the index, where nobody looks for it (but in {home})"
                )
                yield Difference(kind, None, None, f"{_pair(text)} is in the index, but {why}")

        if self._is_whole:
            self._findings.add_all(kind, len(found.missing), missing())
        self._findings.add_all(kind, len(found.extra), extra())


def can_print(kind: pa.DataType) -> bool:
    """Whether the text of a value of this type is the same for every writer."""
    return bool(pa.types.is_string(kind) or pa.types.is_integer(kind))


def _heads(values: pa.Array) -> pa.Array:
    """The key prefixes of values (keys.secondary_prefix)."""
    texts = pc.fill_null(_escaped(values.cast(pa.string())), _NULL)
    return pc.binary_join_element_wise(texts, "", "$")


def _escaped(texts: pa.Array) -> pa.Array:
    """keys.secondary_key's escapes; the backslash is the first of them."""
    for char in _ESCAPED:
        texts = pc.replace_substring(texts, char, "\\" + char)
    return texts


def _pair(text: str) -> str:
    value, key = parse_secondary_key(text)
    return f"value {value!r} of key {key!r}"

"""Where rows go: to the file groups that have their keys, or to new places.

With an index of the whole table another partition may have a row's key. Then the row goes there, or leaves it for its
own partition (HoodieIndexUtils.tagGlobalLocationBackToRecords and mergeForPartitionUpdatesIfNeeded): its old file group
gets a delete, and the row is new. It stays where it would not win over the stored row, and where it is a delete. A base
file may still have a key that log files deleted: a row that went there, too, would be there twice.

A place may know its positions: the numbers of the base file's rows that have the key. It has none where log files alone
have the key. A base file may have a key several times: a log block then has a record for each, as in Hudi.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.filegroup.merge.ordering_values import Ordering
from hudi_core.filegroup.merge.record_keys import as_mask
from hudi_core.frozen import dataclass
from hudi_core.model.names import PARTITION_PATH, RECORD_KEY
from hudi_core.services.source.key_scope import KeyScope
from hudi_core.services.write.row_shards import ordering_keys

GROUP: Final = "_airflow_hudi_group"
"""The column with the number of a row's file group; NEW for a key that the table does not have."""
NEW: Final = -1
LEAVES: Final = "_airflow_hudi_leaves"
"""The column that says whether a row leaves its file group: there it is a delete by key."""
ORDER: Final = "_airflow_hudi_order"
"""The column with what ordering_keys makes, or HERE; null for a key whose row log files may have deleted."""
HERE: Final = b"\x01"
"""Says that the row is there, where ordering values do not matter."""
POSITION: Final = "_airflow_hudi_position"
"""The column with the number of a key's row in its base file. That of rows has all of them, in lists (POSITIONS)."""
POSITIONS: Final = pa.list_(pa.int64())
TABLE_KEYS: Final = pa.schema([(RECORD_KEY, pa.string()), (GROUP, pa.int32()), (ORDER, pa.binary())])
KEYS_AT_POSITIONS: Final = TABLE_KEYS.append(pa.field(POSITION, pa.int64()))
_BETWEEN: Final = pa.scalar("\x00", pa.large_string())
"""Stands between partition path and key: no path has it."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Places of rows of a table, one or several a row: the numbers of the `rows`, their file `groups` (or NEW), the
    `paths` of their partitions, whether the row `leaves` that place, and its `positions` where they are asked for.
    """

    rows: NDArray[np.int64]
    groups: NDArray[np.int32]
    paths: pa.Array
    leaves: NDArray[np.bool_]
    positions: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class Places:
    """The file groups of keys. `keys` are those of the table, or partition paths with keys, each once. Those of the key
    i are the `groups` from `starts[i]` to `starts[i + 1]`, each with its greatest of `orders`, and its `positions`,
    ascending, where they are asked for. `paths` are the partitions of all file groups, by number. With an `ordering` a
    stored row may win over one that comes.
    """

    keys: pa.Array
    groups: NDArray[np.int32]
    starts: NDArray[np.int64]
    orders: pa.Array
    paths: pa.Array
    scope: KeyScope
    ordering: Ordering | None
    positions: pa.ListArray | None = None

    @staticmethod
    def of(
        batches: Sequence[pa.RecordBatch],
        partitions: Sequence[str],
        scope: KeyScope,
        ordering: Ordering | None,
        *,
        schema: pa.Schema = TABLE_KEYS,
    ) -> Places:
        """`batches` have the columns of `schema`: TABLE_KEYS or KEYS_AT_POSITIONS."""
        paths = pa.array(partitions, pa.string())
        rows = pa.Table.from_batches(batches, schema).combine_chunks()
        keys, groups, orders = (rows.column(name).combine_chunks() for name in TABLE_KEYS.names)
        encoded = _named(paths.take(groups), keys, scope).dictionary_encode()
        of_keys = pairs = encoded.indices.to_numpy().astype(np.int64) * max(1, len(paths)) + groups.to_numpy()
        if orders.null_count < len(orders):
            table = pa.table({"pair": pairs, "order": orders.fill_null(b"")})
            order = pc.sort_indices(table, [("pair", "ascending"), ("order", "ascending")]).to_numpy()
        else:
            order = np.argsort(pairs, kind="stable")
        pairs = pairs[order]
        ends = np.flatnonzero(np.r_[pairs[1:] != pairs[:-1], np.ones(min(1, len(pairs)), np.bool_)])
        pairs, last = pairs[ends], order[ends]
        starts = np.searchsorted(pairs // max(1, len(paths)), np.arange(len(encoded.dictionary) + 1))
        numbers = (pairs % max(1, len(paths))).astype(np.int32)
        orders, positions = orders.take(pa.array(last)), None
        if POSITION in schema.names:
            positions = _positions(rows.column(POSITION).combine_chunks(), np.searchsorted(pairs, of_keys), len(pairs))
        return Places(encoded.dictionary, numbers, starts, orders, paths, scope, ordering, positions)

    def of_rows(self, table: pa.Table, is_delete: NDArray[np.bool_]) -> Placed:
        """Returns the places of the rows; `is_delete` says which are deletes. A row has as many places as its key, or a
        new one.
        """
        paths, keys = (table.column(name).combine_chunks() for name in (PARTITION_PATH, RECORD_KEY))
        rows, pairs = self._pairs(_named(paths, keys, self.scope))
        is_known = pairs != NEW
        groups = np.full(len(rows), NEW, np.int32)
        groups[is_known] = self.groups[pairs[is_known]]
        own = paths.take(pa.array(rows))
        positions = None if self.positions is None else self.positions.take(pa.array(pairs, mask=~is_known))
        if not self.scope.by_rows:
            return Placed(rows, groups, own, np.zeros(len(rows), np.bool_), positions)
        old = self.paths.take(pa.array(groups, mask=~is_known))
        orders = self.orders.take(pa.array(pairs, mask=~is_known))
        is_here = as_mask(orders.is_valid())
        elsewhere = as_mask(pc.not_equal(old, own).fill_null(False))
        leaves = is_here & elsewhere & ~is_delete[rows] & self.scope.moves
        if self.ordering is not None and leaves.any():
            incoming = ordering_keys(table.combine_chunks().to_batches()[0], keys, self.ordering).take(pa.array(rows))
            leaves &= ~as_mask(pc.greater(orders, incoming).fill_null(False))
        # Where no place has the row any more, that of the row's own partition counts: its log decides.
        gone = np.flatnonzero(is_known & ~elsewhere & ~_any_of_row(rows, is_here, table.num_rows))
        kept = np.flatnonzero(is_here)
        kept = np.r_[kept, gone[np.unique(rows[gone], return_index=True)[1]]]
        stays = np.zeros(table.num_rows, np.bool_)
        stays[rows[kept][~leaves[kept]]] = True
        new = np.flatnonzero(~stays)
        if positions is not None:
            positions = pa.concat_arrays([positions.take(pa.array(kept)), pa.nulls(len(new), POSITIONS)])
        return Placed(
            np.r_[rows[kept], new],
            np.r_[groups[kept], np.full(len(new), NEW, np.int32)],
            pa.concat_arrays([old.take(pa.array(kept)), paths.take(pa.array(new))]),
            np.r_[leaves[kept], np.zeros(len(new), np.bool_)],
            positions,
        )

    def _pairs(self, named: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the numbers of rows, each as often as its key has file groups, and places in `groups`; NEW for a row
        without.
        """
        codes = pc.index_in(named, value_set=self.keys).fill_null(NEW).to_numpy().astype(np.int64)
        is_known = codes != NEW
        counts = np.ones(len(codes), np.int64)
        counts[is_known] = self.starts[codes[is_known] + 1] - self.starts[codes[is_known]]
        rows = np.repeat(np.arange(len(codes)), counts)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        pairs = np.full(len(rows), NEW, np.int64)
        has_group = is_known[rows]
        pairs[has_group] = self.starts[codes[rows[has_group]]] + within[has_group]
        return rows, pairs


def _positions(positions: pa.Array, places: NDArray[np.int64], count: int) -> pa.ListArray:
    """Returns the positions of each of `count` places, from the positions of keys (or null) and the keys' places."""
    is_known = as_mask(positions.is_valid())
    rows, places = positions.drop_null().to_numpy(), places[is_known]
    order = np.lexsort((rows, places))
    ends = np.r_[0, np.cumsum(np.bincount(places, minlength=count))]
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(rows[order]))


def _any_of_row(rows: NDArray[np.int64], marks: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
    """Returns for each place whether any place of its row has the mark."""
    of_row = np.zeros(count, np.bool_)
    of_row[rows[marks]] = True
    return of_row[rows]


def _named(paths: pa.Array, keys: pa.Array, scope: KeyScope) -> pa.Array:
    if scope.is_global:
        return keys.cast(pa.large_string())
    return pc.binary_join_element_wise(paths.cast(pa.large_string()), keys.cast(pa.large_string()), _BETWEEN)

"""The record keys that a predicate leaves possible (RecordLevelIndexSupport).

As SparkBaseIndexSupport.filterQueriesWithRecordKey.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Set
from typing import TYPE_CHECKING, Final

from hudi_core.expr.bind import Bound
from hudi_core.expr.leaves import Known
from hudi_core.expr.tree import Column
from hudi_core.filegroup.read.partition_columns import has_keys_in_rows
from hudi_core.index.equalities import MAX_VALUES, equal_texts
from hudi_core.model.names import RECORD_KEY

if TYPE_CHECKING:
    from hudi_core.config.table_config import TableConfig

_EMPTY: Final = "__empty__"


def key_candidates(bound: Bound, config: TableConfig, hidden: Set[str]) -> frozenset[str] | None:
    """Keys among which is that of every row that matches; None when the predicate does not name them.

    They come from `_hoodie_record_key`, and from the key columns when each of them is compared for equality with text
    or whole numbers, and none is one of `hidden`, whose values in the query are not those that keys were made of. Keys
    of a user's own key generator cannot be derived from columns.
    """
    if bound.node == Known(False):
        return frozenset()
    direct = equal_texts(bound.node, Column((RECORD_KEY,)))
    unrecorded = has_keys_in_rows(config) or hidden & set(config.record_key_fields)
    fields = None if unrecorded else _of_fields(bound, config.record_key_fields)
    if direct is None or fields is None:
        return fields if direct is None else direct
    return direct & fields


def _of_fields(bound: Bound, fields: tuple[str, ...]) -> frozenset[str] | None:
    found = [equal_texts(bound.node, Column((name,))) for name in fields]
    values = [item for item in found if item is not None]
    if not values or len(values) < len(found):
        return None
    if len(fields) == 1:
        # A complex key generator with one field wrote `field:value` up to 0.14 and from 1.1 on, and the bare value
        # between.
        bare = frozenset(value for value in values[0] if value)
        return bare | frozenset(f"{fields[0]}:{value or _EMPTY}" for value in values[0])
    if math.prod(len(item) for item in values) > MAX_VALUES:
        return None
    parts = [[f"{name}:{value or _EMPTY}" for value in sorted(item)] for name, item in zip(fields, values, strict=True)]
    return frozenset(",".join(combination) for combination in itertools.product(*parts))

"""Every class of units and results comes back from an engine as it went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from decimal import Decimal
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hudi_core.engine.serializer import from_text, to_text
from hudi_core.expr.tree import And
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.read.log_scan import CommittedInstants
from hudi_core.filegroup.read.read_spec import ReaderSpec
from hudi_core.metadata_table.initialize.exchange import FileRecordsUnit, ReadStatistics, StatisticsUnit
from hudi_core.metadata_table.initialize.target import NewPartition, WrittenShard
from hudi_core.metadata_table.partitions.row_exchange import IndexUnit
from hudi_core.metadata_table.partitions.row_indexes import RecordIndexRows, SecondaryIndexRows
from hudi_core.metadata_table.partitions.row_level import SliceChange
from hudi_core.metadata_table.records.file_statistics import FileStatistics
from hudi_core.metadata_table.services.merge_group import CompactedGroup, GroupUnit
from hudi_core.metadata_table.write.staged_logs import PrepareUnit, StagedShard
from hudi_core.services.clean.job import CleanedFiles, CleanUnit
from hudi_core.services.compaction.merge_slice import CompactedSlice, CompactionUnit
from hudi_spark.read import ReadBin
from tests.support.random_predicates import predicates

CLASSES = (
    CleanUnit,
    CleanedFiles,
    CommittedInstants,
    CompactedGroup,
    CompactedSlice,
    CompactionUnit,
    FileRecordsUnit,
    FileStatistics,
    GroupUnit,
    IndexUnit,
    MergePolicy,
    PrepareUnit,
    RecordIndexRows,
    SecondaryIndexRows,
    ReadBin,
    ReadStatistics,
    ReaderSpec,
    SliceChange,
    StagedShard,
    StatisticsUnit,
    WrittenShard,
)
NAMES = st.text("abc-._0é", min_size=1, max_size=8).filter(lambda name: name.strip("."))
JSON = st.none() | st.integers() | st.lists(st.text(), max_size=2) | st.dictionaries(st.text(), st.none(), max_size=2)
SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    Any: JSON,
    object: JSON,
    NoneType: st.none(),
    bool: st.booleans(),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False),
    str: st.text(max_size=8),
    bytes: st.binary(max_size=8),
    Decimal: st.decimals(allow_nan=False),
}


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type that crosses."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in SIMPLE:
        return SIMPLE[hint]
    if origin is Annotated:
        return values_of(arguments[1])
    if And in arguments:
        return st.none() | predicates()
    if origin in (Union, UnionType):
        return st.one_of([values_of(item) for item in arguments])
    if origin is not None and issubclass(origin, Mapping):
        return st.dictionaries(*map(values_of, arguments), max_size=2)
    if origin is tuple and arguments[-1] is not Ellipsis:
        return st.tuples(*map(values_of, arguments))
    if origin is not None:
        make = tuple if origin is Sequence else origin
        return st.lists(values_of(arguments[0]), max_size=2).map(make)
    if issubclass(hint, Enum):
        return st.sampled_from(hint)
    hints = get_type_hints(hint, include_extras=True)
    parts = {item.name: values_of(hints[item.name]) for item in fields(hint)}
    if hint is NewPartition:
        parts |= {"name": NAMES, "file_ids": st.lists(NAMES, max_size=3).map(tuple)}
    return st.builds(hint, **parts)


_strategy = cache(values_of)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
@given(data=st.data())
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
def test_it_comes_back_as_it_went(cls: type, data: st.DataObject) -> None:
    value = data.draw(_strategy(cls))
    assert from_text(cls, to_text(value)) == value

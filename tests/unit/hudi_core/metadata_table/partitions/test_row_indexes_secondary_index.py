"""Secondary indexes: keys of pairs, the file groups that they go to, and columns that are refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_core.codec.hashing import file_group_index
from hudi_core.config.versions import V8, V9, TableVersion
from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import UnsupportedError
from hudi_core.metadata_table.keys import secondary_hashed_part, secondary_keys, secondary_prefix, secondary_prefixes
from hudi_core.metadata_table.partitions.row_indexes import SecondaryIndexRows, value_texts
from hudi_core.metadata_table.read.row_level import SecondaryIndexRules
from hudi_core.metadata_table.record import GONE, MetadataCodec, stored_schema
from tests.support.metadata_cells import secondary_key

VALUES = ["", "a", "a$b", "\\", "$", "\\$", "\0", "a\0b", "ä$", "x\\\\$y", None]


def test_pairs_of_many_rows_are_those_of_single_ones() -> None:
    keys = ["k", "k$1", "\\k", "k\0", "", "ü", "a,b", "a:b", "$", "\\\\", "k"]
    starts = secondary_prefixes(pa.array(VALUES, pa.string()))
    assert starts.to_pylist() == [secondary_prefix(value) for value in VALUES]
    assert secondary_keys(starts, pa.array(keys)).to_pylist() == [
        secondary_key(value, key) for value, key in zip(VALUES, keys, strict=True)
    ]


@pytest.mark.parametrize(("version", "by_value"), [(V8, False), (V9, True)])
def test_pairs_go_to_the_file_groups_of_values_or_of_keys(version: TableVersion, by_value: bool) -> None:
    schema = stored_schema(version)
    rows = SecondaryIndexRows("secondary_index_x", "x", 10, schema, by_value)
    assert from_text(SecondaryIndexRows, to_text(rows)) == rows
    keys = [f"k{number}" for number in range(len(VALUES))]
    pairs = rows.pairs(pa.array(VALUES, pa.string()), pa.array(keys))
    batch = rows.of_pairs(pairs, is_added=True)
    expected = [secondary_key(value, key) for value, key in zip(VALUES, keys, strict=True)]
    assert batch.column(1).to_pylist() == [key.encode() for key in expected]
    assert batch.column(0).to_pylist() == [
        file_group_index(secondary_hashed_part(key) if by_value else key, 10) for key in expected
    ]
    name, datum = MetadataCodec(schema, path="f").decode(b"x", batch.column(2)[0].as_py())
    assert SecondaryIndexRules().decode(name, datum, path="f") is True
    assert set(rows.of_pairs(pairs, is_added=False).column(2).to_pylist()) == {GONE}


def test_values_that_releases_print_differently_are_refused() -> None:
    assert value_texts(pa.array([1, -5, None], pa.int64()), "c").to_pylist() == ["1", "-5", None]
    for kind in (
        pa.float64(),
        pa.date32(),
        pa.timestamp("us"),
        pa.decimal128(9, 2),
        pa.bool_(),
        pa.binary(),
        pa.list_(pa.string()),
    ):
        with pytest.raises(UnsupportedError, match=r"column 'c\.d'"):
            value_texts(pa.nulls(1, kind), "c.d")

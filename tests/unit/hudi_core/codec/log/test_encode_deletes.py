"""Delete blocks of many keys are those of single entries, and of real Hudi."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_core.codec.log.content import DeleteRecord, OrderingValue, encode_delete_block
from hudi_core.codec.log.encode import encode_natural_deletes


@pytest.mark.parametrize("keys", [[], ["k"], ["a", "ä" * 40, "", "x" * 9000, "b"]])
def test_the_bytes_are_those_of_single_entries(keys: list[str]) -> None:
    entries = [DeleteRecord(key, "record_index", OrderingValue("int", 0)) for key in keys]
    array = pa.array([b"?", *(key.encode() for key in keys)], pa.binary()).slice(1)
    assert encode_natural_deletes(array, "record_index") == encode_delete_block(entries)


def test_the_bytes_are_those_of_real_hudi() -> None:
    """Facts 8.4."""
    found = encode_natural_deletes(pa.array([b"k0"]), "record_index")
    assert found.hex() == "000000030000001602020" + "46b300218" + b"record_index".hex() + "040000"

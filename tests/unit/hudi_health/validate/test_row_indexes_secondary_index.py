from __future__ import annotations

import pytest

from hudi_core.codec.hashing import file_group_index
from hudi_core.metadata_table.keys import secondary_hashed_part
from tests.support.damaged_tables import Datum
from tests.support.metadata_cells import secondary_key
from tests.unit.hudi_health.validate.test_run import LATER, NAMES, Golden, metadata_snapshot


def at_home(key: str, version: str) -> bool:
    """Whether a writer that hashes the whole key brings it to where it is looked for."""
    return version == "8" or file_group_index(key, 10) == file_group_index(secondary_hashed_part(key), 10)


@pytest.mark.parametrize("version", LATER)
@pytest.mark.parametrize("name", ["mdt_all_cow", "mdt_all_mor"])
def test_pairs_of_a_secondary_index(golden: Golden, version: str, name: str) -> None:
    table = metadata_snapshot(golden, version, name)
    data = table.raw(NAMES)

    remaining = {key: datum for key, datum in data.items() if not datum["SecondaryIndexMetadata"]["isDeleted"]}
    taken = next(key for key in sorted(remaining) if at_home(key, version))
    ghost, extra = next(
        (f"ghost{number}", key)
        for number in range(1000)
        if at_home(key := secondary_key("no$1", f"ghost{number}"), version)
    )
    datum: Datum = remaining[taken]
    table.write({NAMES: [(taken, {**datum, "SecondaryIndexMetadata": {"isDeleted": True}}), (extra, datum)]})
    value, record_key = taken.split("$")
    assert sorted((item.partition_type, item.what) for item in table.found()) == sorted(
        [
            (NAMES, f"value {value!r} of key {record_key!r} is not in the index, but the file group has it"),
            (NAMES, f"value 'no$1' of key {ghost!r} is in the index, but no row has it"),
        ]
    )


@pytest.mark.parametrize("version", LATER)
def test_a_pair_without_a_value_means_something_from_index_version_2_on(golden: Golden, version: str) -> None:
    """1.0.2 does not remove it when the row gets a value; the index of 1.1 and later has it removed."""
    table = metadata_snapshot(golden, version, "mdt_all_mor")
    keys = (secondary_key(None, f"ghost{number}") for number in range(1000))
    key = next(key for key in keys if at_home(key, version))
    datum = next(iter(table.raw(NAMES).values()))
    table.write({NAMES: [(key, {**datum, "SecondaryIndexMetadata": {"isDeleted": False}})]})
    found = [item.what for item in table.found()]
    assert found == (
        [] if version == "8" else [f"value None of key {key.split('$')[1]!r} is in the index, but no row has it"]
    )

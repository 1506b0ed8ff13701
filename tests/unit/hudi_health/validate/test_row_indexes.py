from __future__ import annotations

import pytest

from tests.unit.hudi_health.validate.test_run import VERSIONS, Golden, metadata_snapshot


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["mdt_all_cow", "mdt_all_mor", "mdt_record_index_lookup"])
def test_a_record_that_is_mapped_to_the_wrong_group(golden: Golden, version: str, name: str) -> None:
    table = metadata_snapshot(golden, version, name)
    places = dict(table.metadata.record_index.all())
    key, right = min(places.items())
    other, wrong = next((key, place) for key, place in sorted(places.items()) if place.file_id != right.file_id)
    table.write({"record_index": [(key, table.raw("record_index")[other])]})
    (found,) = table.found()
    assert (found.partition_type, found.partition, found.file) == ("record_index", wrong.partition, wrong.file_id)
    where = f"file group {right.file_id} of partition {right.partition!r}"
    assert found.what == f"key {key!r} is mapped to the file group, but it is in {where}"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["mdt_all_cow", "mdt_all_mor"])
def test_a_deleted_key_that_is_still_mapped(golden: Golden, version: str, name: str) -> None:
    table = metadata_snapshot(golden, version, name)
    key, place = min(table.metadata.record_index.all())
    table.write({"record_index": [("ghost", table.raw("record_index")[key])]})
    (found,) = table.found()
    assert (found.partition_type, found.partition, found.file) == ("record_index", place.partition, place.file_id)
    assert found.what == "key 'ghost' is mapped to the file group, but no row has it"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["mdt_all_cow", "mdt_all_mor"])
def test_a_key_that_is_not_mapped(golden: Golden, version: str, name: str) -> None:
    table = metadata_snapshot(golden, version, name)
    key, place = min(table.metadata.record_index.all())
    table.write({"record_index": [(key, None)]})
    (found,) = table.found()
    assert (found.partition_type, found.partition, found.file) == ("record_index", place.partition, place.file_id)
    assert found.what == f"key {key!r} is not mapped, but the file group has a row of it"

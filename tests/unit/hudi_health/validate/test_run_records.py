from __future__ import annotations

import pytest

from hudi_core.codec.hashing import file_group_index
from hudi_core.metadata_table.keys import (
    secondary_hashed_part,
)
from tests.unit.hudi_health.validate.test_run import LATER, NAMES, Golden, metadata_snapshot


@pytest.mark.parametrize("version", LATER)
@pytest.mark.parametrize(
    ("partition_type", "what"), [(NAMES, "is in the index, but"), ("record_index", "is mapped to the file group, but")]
)
def test_a_record_in_another_file_group(golden: Golden, version: str, partition_type: str, what: str) -> None:
    """A log file of one file group of the index, under the name of another."""
    table = metadata_snapshot(golden, version)
    before = set(table.path.glob(f".hoodie/metadata/{partition_type}/.*.log.*"))
    key = min(table.raw(partition_type))
    table.write({partition_type: [(key, table.raw(partition_type)[key])]})
    (log,) = set(table.path.glob(f".hoodie/metadata/{partition_type}/.*.log.*")) - before
    here = int(log.name.split("-0_")[0][-4:])
    count = len({path.name.split("-0_")[0].lstrip(".") for path in before})
    home = file_group_index(secondary_hashed_part(key) if (version, partition_type) == ("9", NAMES) else key, count)
    other = (home + 1) % count
    log.rename(log.with_name(log.name.replace(f"-{here:04d}-0_", f"-{other:04d}-0_")))
    (found,) = table.found()
    assert found.partition_type == partition_type
    assert found.what.endswith(f" {what} in file group {other} of the index, where no lookup reads it (but in {home})")

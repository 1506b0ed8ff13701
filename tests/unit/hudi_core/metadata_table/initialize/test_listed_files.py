from __future__ import annotations

import pytest

from hudi_core.metadata_table.write.drop import drop_metadata_table
from tests.support.metadata_records import Table
from tests.unit.hudi_core.metadata_table.initialize.test_initialize import (
    PENDING,
    WRONG_SIZES,
    Golden,
    creation,
    listing_of,
)


@pytest.mark.parametrize("case", PENDING)
@pytest.mark.parametrize("version", ["8", "9"])
def test_files_of_pending_instants_stay_out(golden: Golden, version: str, case: str) -> None:
    table = Table(golden(version, case).table)
    real = listing_of(table)
    drop_metadata_table(table.storage)
    creation(table).initialize_table()
    assert listing_of(table) == real


def test_real_hudi_lists_one_byte_where_a_rolled_back_log_has_its_size(golden: Golden) -> None:
    """The one difference of the golden tables: what Hudi 0.15's rollback says of the log files that the failed commit
    had written.
    """
    table = Table(golden(*WRONG_SIZES).table)
    real = listing_of(table)
    drop_metadata_table(table.storage)
    creation(table).initialize_table()
    ours = listing_of(table)
    assert {partition: set(files) for partition, files in ours.items()} == {
        partition: set(files) for partition, files in real.items()
    }
    wrong = {
        (partition, name)
        for partition, files in real.items()
        for name, size in files.items()
        if ours[partition][name] != size
    }
    assert {real[partition][name] for partition, name in wrong} == {1}
    assert all(
        (table.path / partition / name).stat().st_size == size
        for partition, files in ours.items()
        for name, size in files.items()
    )

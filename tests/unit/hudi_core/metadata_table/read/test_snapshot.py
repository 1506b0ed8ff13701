"""By which Hudi's rules the metadata table of a table is read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import CorruptFileError
from hudi_core.filegroup.merge.table_policy import reads_as_hudi_1
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, State
from tests.support.golden_data import GoldenCase


@pytest.mark.parametrize(("version", "stops"), [("6", True), ("6-by-1.2.0", False), ("8", False), ("9", False)])
def test_its_logs_are_scanned_by_the_rule_of_the_data_tables_logs(
    golden: Callable[[str, str], GoldenCase], version: str, stops: bool
) -> None:
    """A version 6 table that 1.x keeps is scanned as 1.x does, in which a block that is newer does not end the scan."""
    storage = LocalStorage(str(golden(version, "mor_basic").table))
    config = TableConfig.load(storage)
    metadata = MetadataTableSnapshot(storage, config, ActiveTimeline(storage, config).load())
    assert metadata.blocks.stop_at_newer is stops
    assert reads_as_hudi_1(config) is not stops


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_an_instant_that_is_pending_on_the_metadata_timeline_does_not_count(
    golden: Callable[[str, str], GoldenCase], version: str
) -> None:
    storage = LocalStorage(str(golden(version, "mor_basic").table))
    config = TableConfig.load(storage)
    data = ActiveTimeline(storage, config).load()
    last = data.commits().instants[-1].requested_time
    assert last in MetadataTableSnapshot(storage, config, data).blocks.instants
    ActiveTimeline(storage, TableConfig.load(storage, base=ROOT), ROOT).remove(
        last, Action.DELTA_COMMIT, State.COMPLETED
    )
    assert last not in MetadataTableSnapshot(storage, config, data).blocks.instants


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_file_is_missed_beside_an_unfinished_savepoint_of_its_commit(
    golden: Callable[[str, str], GoldenCase], version: str
) -> None:
    storage = LocalStorage(str(golden(version, "mor_basic").table))
    config = TableConfig.load(storage)
    data = ActiveTimeline(storage, config)
    data.to_inflight(data.load().commits().instants[-1].requested_time, Action.SAVEPOINT)
    files = MetadataTableSnapshot(storage, config, data.load()).files("files")
    storage.delete(max(info.path for info in files if ".log." in info.name))
    with pytest.raises(CorruptFileError):
        MetadataTableSnapshot(storage, config, data.load()).checked_slices("files")

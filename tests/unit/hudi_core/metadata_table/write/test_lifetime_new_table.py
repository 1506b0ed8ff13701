from __future__ import annotations

from pathlib import Path

import pytest

from hudi_core.config.properties import parse_properties
from hudi_core.metadata_table.initialize.target import NewPartition
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.write.lifetime import drop_metadata_table
from hudi_core.storage.local import LocalStorage
from tests.support.metadata_records import TOKEN, Table
from tests.unit.hudi_core.metadata_table.initialize.test_initialize import VERSIONS, Golden, creation, metadata_file


@pytest.mark.parametrize("version", VERSIONS)
def test_the_first_files_are_those_of_real_hudi(golden: Golden, version: str, tmp_path: Path) -> None:
    real, table = Table(golden(version, "mdt_all_mor").table), Table(golden(version, "mdt_all_mor").table)
    drop_metadata_table(table.storage)
    creation(table).initialize_table()
    latest = table.data.load().last_completed()
    assert latest is not None
    instant = f"{latest.requested_time}010" if version == "6" else "0" * 17
    metadata_file(table, f"files/.files-0000-0_{instant}.log.1_0-0-0")
    metadata_file(table, f"files/files-0000-0_{TOKEN}_{instant}.hfile")
    properties = parse_properties(metadata_file(table, "files/.hoodie_partition_metadata").read_bytes(), path="")
    assert properties == {"commitTime": instant, "partitionDepth": "1"}
    # Real Hudi began before the table's first commit: with that instant, the log file is the same byte for byte.
    log = metadata_file(real, "files/.files-0000-0_0*.log.1_0-0-0")
    start = log.name.removeprefix(".files-0000-0_").partition(".")[0]
    NewPartition("files", start, ("files-0000-0",), TOKEN, "", 1).begin(LocalStorage(tmp_path))
    assert (tmp_path / ROOT / "files" / log.name).read_bytes() == log.read_bytes()

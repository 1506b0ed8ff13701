"""The metadata table created, updated and dropped as whole verbs, on golden tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.metadata_table.drop import drop_metadata_table
from hudi_core.metadata_table.file_group import ROOT
from hudi_core.metadata_table.index_definitions import load_index_definitions
from hudi_core.services.context import TableContext
from hudi_core.services.local_engine import LocalEngine
from hudi_core.services.metadata.maintain import create_metadata, drop_metadata, update_metadata
from hudi_core.table import HudiTable
from hudi_core.transaction.owner import Owner
from tests.golden_data import GoldenCase
from tests.unit.hudi_core.metadata_table.test_create_indexes import groups_of, timeless, without_filters
from tests.unit.hudi_core.metadata_table.whole_table import Table
from tests.unit.hudi_core.services.clean.golden_cleans import context_of

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")
OWNER = Owner.current("test")
ENGINE = LocalEngine(2)


def context(table: Table, options: Mapping[str, str] | None = None) -> TableContext:
    return context_of(table.path, {"spark.sql.session.timeZone": "UTC", **(options or {})})


def as_real(groups: dict[str, int]) -> dict[str, str]:
    """Hudi's options for as many file groups as a table has."""
    return {
        "hoodie.metadata.index.bloom.filter.file.group.count": str(groups["bloom_filters"]),
        "hoodie.metadata.record.index.min.filegroup.count": str(groups["record_index"]),
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_everything_is_created_updated_and_dropped(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_all_mor").table)
    real, listed, groups = timeless(table.live()), table.config.metadata_partitions, groups_of(table)
    drop_metadata_table(table.storage)
    config = create_metadata(context(table, as_real(groups)), listed, ENGINE, OWNER, 4)
    assert config.metadata_partitions == listed == table.config.metadata_partitions
    ours = timeless(table.live())
    for name in listed:
        if name.startswith("expr_index_"):
            assert without_filters(ours[name]).items() <= without_filters(real[name]).items()
        else:
            assert ours[name] == real[name], name
    made = {name: count for name, count in groups_of(table).items() if not name.startswith("secondary_index_")}
    assert made == {name: count for name, count in groups.items() if name in made}
    assert HudiTable.open(str(table.path)).validate_metadata().is_clean
    done = update_metadata(context(table, {"hoodie.metadata.compact.max.delta.commits": "1"}), ENGINE, OWNER, 5)
    assert done.applied == ()
    assert done.upkeep.compacted.files > len(listed)
    assert timeless(table.live()) == ours
    names = table.own.names()
    assert create_metadata(context(table), listed, ENGINE, OWNER, 6).metadata_partitions == listed
    assert table.own.names() == names, "done already"
    kept = {"files", "column_stats"}
    assert drop_metadata(context(table), listed - kept, OWNER).metadata_partitions == kept
    assert not (table.path / ROOT / "record_index").exists()
    assert load_index_definitions(table.storage, table.config).keys() <= kept
    assert drop_metadata(context(table), ["files"], OWNER).metadata_partitions == frozenset()
    assert not (table.path / ROOT).exists()
    with pytest.raises(ConfigError, match="no metadata table"):
        update_metadata(context(table), ENGINE, OWNER)


def test_what_cannot_be_kept_is_refused_first(golden: Golden) -> None:
    table = Table(golden("8", "non_partitioned_mor").table)
    with pytest.raises(UnsupportedError, match="without partitions"):
        create_metadata(context(table), ["partition_stats"], ENGINE, OWNER)
    with pytest.raises(UnsupportedError, match="unheard_of"):
        create_metadata(context(table), ["files", "unheard_of"], ENGINE, OWNER)
    assert not (table.path / ROOT).exists()
    config = create_metadata(context(table), ["column_stats"], ENGINE, OWNER)
    assert config.metadata_partitions == {"files", "column_stats"}
    assert HudiTable.open(str(table.path)).validate_metadata().is_clean

"""Which actions of golden tables the metadata table lacks."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.config.properties import parse_properties
from hudi_core.config.table_config import METADATA
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.services.metadata.catch_up import missing_actions
from hudi_core.timeline.instant import Instant
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase, golden_cases, golden_root
from tests.support.metadata_records import Table

Golden = Callable[[str, str], GoldenCase]
FOLDERS = ("6", "6-by-1.2.0", "8", "8-by-1.2.0", "9")


def missing(table: Table) -> list[str]:
    context = context_of(table.path)
    return [
        item.requested_time
        for item in missing_actions(context, MetadataTimeline(context.storage, context.config, context.clock()))
    ]


def unrecorded(table: Path) -> list[Instant]:
    """As readers find it, without the archives."""
    context = context_of(table)
    return MetadataTable(context.storage, context.config, context.active.load()).completeness.unrecorded_writes


@pytest.mark.parametrize("folder", FOLDERS)
def test_real_hudi_records_every_action(golden: Golden, folder: str) -> None:
    looked = 0
    for case in golden_cases(folder):
        with zipfile.ZipFile(golden_root() / folder / f"{case}.zip") as zipped:
            (name,) = (
                entry
                for entry in zipped.namelist()
                if entry.endswith("/.hoodie/hoodie.properties") and "/metadata/" not in entry
            )
            if "files" not in METADATA.read(parse_properties(zipped.read(name), path=name), path=name):
                continue
        table = golden(folder, case).table
        assert missing(Table(table)) == [], case
        assert unrecorded(table) == [], case
        looked += 1
    assert looked > 5

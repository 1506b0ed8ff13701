"""All twelve damages on every golden table, with the partition types it has and those that can be created on it; in
`make test` on one table with every partition type.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError, UnsupportedError
from hudi_core.services.metadata.maintain import create_metadata
from hudi_core.timeline.instant import Action
from hudi_core.transaction.owner import Owner
from tests.support.damaged_tables import DamagedTable
from tests.support.golden_data import GoldenCase, golden_cases, open_case
from tests.support.metadata_damages import ALONE, COMBINED, Damage
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
FOLDERS = ("6", "6-by-1.2.0", "8", "8-by-1.2.0", "9")
CREATED = ("files", "column_stats", "bloom_filters", "record_index")
EVERY = sorted(damage.__name__ for damage in (*COMBINED, *ALONE))


def damaged(path: Path, scratch: Path, damages: tuple[Damage, ...]) -> tuple[set[str], list[str]]:
    """Which of the damages a copy of the table could have, and which of these were not found. They are done in turn,
    and looked for at once.
    """
    copy = scratch / "copy"
    shutil.copytree(path, copy)
    table = DamagedTable(copy)
    done = {damage.__name__: expected for damage in damages if (expected := damage(table)) is not None}
    found = table.found() if done else []
    shutil.rmtree(copy)
    return set(done), [name for name, expected in done.items() if not expected.is_among(found)]


def all_damages(path: Path, scratch: Path) -> tuple[set[str], list[str]]:
    done, missed = damaged(path, scratch, COMBINED)
    for damage in ALONE:
        more, not_found = damaged(path, scratch, (damage,))
        done |= more
        missed += not_found
    return done, missed


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
def test_on_a_table_with_every_partition_type(golden: Golden, version: str, tmp_path: Path) -> None:
    done, missed = all_damages(golden(version, "mdt_all_mor").table, tmp_path)
    assert missed == []
    assert sorted(done) == EVERY


@pytest.mark.conformance
@pytest.mark.parametrize("folder", FOLDERS)
def test_on_every_golden_table(folder: str, tmp_path: Path) -> None:
    """What is not created must be refused: a table without record keys has no record index, for one; and in version 6
    nothing begins while actions are pending, so that such a table has the partition types that it came with.
    """
    counts: Counter[str] = Counter()
    missed: dict[str, list[str]] = {}
    for name in golden_cases(folder):
        table = open_case(folder, name, tmp_path).table
        for partition_type in CREATED:
            add_partition_type(table, partition_type)
        if not DamagedTable(table).context.has_metadata_table:
            counts["no metadata table"] += 1
            continue
        # What real Hudi did wrong before is none of the damages.
        done, not_found = all_damages(table, tmp_path)
        counts.update(done)
        if not_found:
            missed[name] = not_found
        shutil.rmtree(table)
    assert missed == {}
    assert [damage for damage in EVERY if not counts[damage]] == [], counts


def add_partition_type(table: Path, partition_type: str) -> None:
    context = DamagedTable(table).context
    if partition_type in context.config.metadata_partitions:
        return
    if context.config.features.metadata_needs_rest and any(
        item.action != Action.INDEXING for item in context.active.load().pending()
    ):
        with pytest.raises(ConflictError, match="cannot begin while actions of the table are pending"):
            create_metadata(context, [partition_type], LocalEngine(1), Owner.current("test"), 1)
        return
    with suppress(UnsupportedError):
        create_metadata(context, [partition_type], LocalEngine(1), Owner.current("test"), 1)

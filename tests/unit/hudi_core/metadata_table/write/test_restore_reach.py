"""A restore that goes back behind several compactions of the metadata table never shows a reader two pending ones: Hudi
refuses such a table.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.metadata_table.write import restore as metadata_restore
from hudi_core.services.restore.candidates import restorable_instants
from hudi_core.services.restore.verb import restore
from hudi_core.storage.local import LocalStorage
from tests.support.changed_tables import an_owner, open_context
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, Operation
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import has_metadata_table, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]


def pending_compactions(table: Path) -> set[str]:
    """By the names of the metadata timeline's files."""
    folder = table / ".hoodie" / "metadata" / ".hoodie"
    folder = folder / "timeline" if (folder / "timeline").is_dir() else folder
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    planned = {name.split(".")[0] for name in names if re.fullmatch(r"\d+\.compaction\.(requested|inflight)", name)}
    return planned - {re.split(r"[_.]", name)[0] for name in names if re.fullmatch(r"\d+(_\d+)?\.commit", name)}


def most_at_once(source: Path, target: str, path: Path) -> int:
    """The largest number of pending compactions that the metadata timeline had before any change of the restore."""
    table = Path(shutil.copytree(source, path, symlinks=True))
    seen: list[int] = []

    def look(operation: Operation) -> bool:
        if operation.kind in MUTATIONS:
            seen.append(len(pending_compactions(table)))
        return False

    restore(open_context(table, storage=FaultStorage(LocalStorage(table), FaultPlan(when=look))), target, an_owner())
    if has_metadata_table(table):
        assert_same_rows(read_rows(table, "on"), read_rows(table, "off"))
    shutil.rmtree(table)
    return max(seen)


@pytest.mark.slow
@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["8"]))
def test_one_compaction_at_a_time(
    golden: Golden, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = golden(version, "mdt_all_mor_compacted").table
    targets = [item.instant for item in restorable_instants(open_context(source)) if item.reason is None]
    found = [most_at_once(source, target, tmp_path / target) for target in targets]
    assert max(found) <= 1, found
    monkeypatch.setattr(metadata_restore, "_COMPACTING", frozenset())
    unguarded = [most_at_once(source, target, tmp_path / target) for target in targets]
    assert max(unguarded) > 1, unguarded

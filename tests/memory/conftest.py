"""A file group that is many times larger than the budgets, made once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.engine.serializer import from_text, to_text
from hudi_core.services.compaction.merge_slice import CompactionUnit
from tests.memory.test_compaction import make_table


@pytest.fixture(scope="session")
def made_group(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of make_table, which nothing is written to."""
    folder = tmp_path_factory.mktemp("made")
    make_table(folder)
    return folder


@pytest.fixture
def large_group(made_group: Path) -> Callable[[Path], CompactionUnit]:
    """`large_group(folder)`: a new folder with the files of that one, as links, and its unit, which it returns."""

    def link(folder: Path) -> CompactionUnit:
        shutil.copytree(made_group, folder, copy_function=os.link)
        stored = folder / "unit.json"
        unit = from_text(CompactionUnit, stored.read_text())
        stored.unlink()
        unit = replace(unit, target=replace(unit.target, uri=str(folder)))
        stored.write_text(to_text(unit))
        return unit

    return link

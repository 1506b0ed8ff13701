"""Log files that a downgrade cut off from their base files are slices that nothing may read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.errors import UnsupportedError
from hudi_core.view.file_system_view import CutOff, cut_off_slices, refuse_cut_off
from hudi_core.view.listing import StorageListing
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase


def cut_off(table: Path) -> list[CutOff]:
    context = open_context(table)
    return cut_off_slices(context.active, context.active.load(), StorageListing(context.storage))


def test_each_slice_of_log_files_alone_is_named_with_what_ended_it(reported: Callable[[str], Path]) -> None:
    table = reported("downgraded_9_to_6")
    found = cut_off(table)
    assert found
    compaction = "20261128133429495"
    for item in found:
        assert item.path.rpartition("/")[2].startswith(".")
        assert (table / item.path).is_file()
        assert item.end is not None
        assert item.end <= compaction
    assert compaction in {item.end for item in found}


def test_slices_of_a_table_that_was_always_of_version_6_are_whole(golden: Callable[[str, str], GoldenCase]) -> None:
    assert cut_off(golden("6", "mor_basic").table) == []


def test_a_cut_off_slice_is_refused_by_its_first_log_file(reported: Callable[[str], Path]) -> None:
    context = open_context(reported("downgraded_9_to_6"))
    groups = context.view(context.active.load(), "off").all_file_groups("p0")
    cut = [(group, item) for group in groups for item in group.slices if group.is_cut_off(item)]
    whole = [(group, item) for group in groups for item in group.slices if not group.is_cut_off(item)]
    assert cut
    assert whole
    for group, item in cut:
        with pytest.raises(UnsupportedError, match="no base file there") as caught:
            refuse_cut_off(group, item)
        assert caught.value.path == item.log_files[0].path
    for group, item in whole:
        refuse_cut_off(group, item)

"""What a query reads a table by: the metadata table or the listing of the storage."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from hudi_core.errors import MetadataUnavailableError
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.timeline.instant import Action
from hudi_core.view.listing import StorageListing
from tests.support.changed_tables import open_context
from tests.support.golden_cleans import without_metadata_table
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]


@pytest.mark.parametrize("version", VERSIONS)
def test_both_listings_show_the_same_slices(golden: Golden, version: str) -> None:
    context = open_context(golden(version, "mor_basic").table)
    timeline = context.active.load()
    views = [context.view(timeline, mode) for mode in ("auto", "on", "off")]
    shown = [
        {partition: list(view.latest_slices(partition)) for partition in sorted(view.partitions())} for view in views
    ]
    names = [
        {partition: sorted(file.name for item in slices for file in item.files) for partition, slices in one.items()}
        for one in shown
    ]
    assert names[0] == names[1] == names[2] != {}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_metadata_table_that_lacks_a_write_is_not_used(
    golden: Golden, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As a writer of version 6 leaves it that has an index to begin while a compaction is pending."""
    context = open_context(golden(version, "mor_basic").table)
    timeline = context.active.load()
    last = timeline.commits().instants[-1].requested_time
    recorded = MetadataTimeline(context.storage, context.config).active
    context.storage.delete(recorded.path_of(recorded.load().get(last, Action.DELTA_COMMIT)))
    assert context.metadata_table("auto", timeline) is None
    assert f"the metadata table lacks deltacommit {last}" in caplog.text
    with pytest.raises(MetadataUnavailableError) as caught:
        context.metadata_table("on", timeline)
    assert "hudictl metadata update" in (caught.value.remedy or "")
    assert context.metadata_table("on", timeline.before(last)) is not None


def test_off_reads_no_metadata_table(golden: Golden) -> None:
    context = open_context(golden("9", "mor_basic").table)
    assert context.metadata_table("off", context.active.load()) is None
    assert isinstance(context.listing(None), StorageListing)


def test_on_needs_a_metadata_table(golden: Golden) -> None:
    context = open_context(without_metadata_table(golden("9", "mor_basic").table))
    timeline = context.active.load()
    assert context.metadata_table("auto", timeline) is None
    with pytest.raises(MetadataUnavailableError):
        context.metadata_table("on", timeline)


def test_auto_goes_on_without_a_metadata_table_that_cannot_be_read(
    golden: Golden, caplog: pytest.LogCaptureFixture
) -> None:
    table = golden("9", "mor_basic").table
    shutil.rmtree(table / ".hoodie" / "metadata")
    context = open_context(table)
    timeline = context.active.load()
    assert context.metadata_table("auto", timeline) is None
    assert "the files are listed in storage" in caplog.text
    with pytest.raises(MetadataUnavailableError):
        context.metadata_table("on", timeline)

from __future__ import annotations

import pytest

from hudi_core.config.versions import SUPPORTED, V6, V8, V9, require_supported
from hudi_core.errors import UnsupportedVersionError


@pytest.mark.parametrize("version", SUPPORTED)
def test_each_version_with_its_layout(version: object) -> None:
    number, layout = version.number, version.layout  # type: ignore[attr-defined]
    assert require_supported(number, layout, "x") is version
    with pytest.raises(UnsupportedVersionError, match=f"has timeline layout {layout}") as caught:
        require_supported(number, 3 - layout, "the properties")
    assert caught.value.path == "the properties"


@pytest.mark.parametrize("number", [0, 5, 7, 10])
def test_other_versions_are_named_with_those_that_are_read(number: int) -> None:
    with pytest.raises(UnsupportedVersionError, match="reads the table versions 6, 8, 9"):
        require_supported(number, 2, "x")


def test_what_the_layouts_differ_in() -> None:
    assert (V6.completion_time_in_name, V8.completion_time_in_name, V9.completion_time_in_name) == (False, True, True)
    assert V6.json_commits
    assert not V8.json_commits


def test_version_9_types_its_statistics() -> None:
    assert [item.typed_statistics for item in SUPPORTED] == [False, False, True]

"""Storage options from the request and from a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hudi_core.errors import ConfigError
from hudi_core.request.options_file import merge_storage_options


def test_the_request_overrules_the_file(tmp_path: Path) -> None:
    file = tmp_path / "options.json"
    file.write_text(json.dumps({"secret": "hidden", "region": "a"}))
    assert merge_storage_options({"region": "b"}, str(file)) == {"secret": "hidden", "region": "b"}
    assert merge_storage_options({"region": "b"}, None) == {"region": "b"}


def test_a_secret_outside_the_file_is_refused() -> None:
    with pytest.raises(ConfigError, match="secret") as caught:
        merge_storage_options({"secret": "hidden"}, None)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "[1]", "not json: hidden", '{"secret": 1}', '{"secret": {"a": "hidden"}}'])
def test_a_file_of_another_shape_is_refused_by_name_without_its_content(tmp_path: Path, content: str) -> None:
    file = tmp_path / "options.json"
    file.write_text(content)
    with pytest.raises(ConfigError) as caught:
        merge_storage_options({}, str(file))
    assert caught.value.path == str(file)
    assert "hidden" not in str(caught.value)


def test_a_file_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        merge_storage_options({}, str(tmp_path / "gone.json"))
    assert caught.value.path == str(tmp_path / "gone.json")

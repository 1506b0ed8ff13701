"""The gzip libraries: chosen by the options, checked, and read by any inflater."""

from __future__ import annotations

import gzip
from importlib.machinery import ModuleSpec
from random import Random

import pytest

from hudi_core.codec import gzip as codec
from hudi_core.codec.gzip import LEVELS, GzipLibrary, checked_level, chosen_library, gzip_compressor
from hudi_core.errors import ConfigError

COMPILED = [GzipLibrary.ISAL, GzipLibrary.LIBDEFLATE]


def without(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """As where these wheels are not installed."""
    monkeypatch.setattr(codec, "find_spec", lambda name: None if name in modules else ModuleSpec(name, None))


@pytest.mark.parametrize("library", COMPILED)
@pytest.mark.parametrize("size", [0, 1, 70_000])
def test_what_each_library_makes_is_a_gzip_member(library: GzipLibrary, size: int) -> None:
    data = bytes(Random(size).choices(b"abc", k=size))
    low, high = LEVELS[library]
    for level in {low, high, checked_level(library, None)}:
        compress = gzip_compressor(library, level)
        assert compress is not None
        assert gzip.decompress(compress(data)) == data


def test_arrow_compresses_by_itself() -> None:
    assert gzip_compressor(GzipLibrary.PYARROW, 6) is None


def test_auto_takes_the_first_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen_library(GzipLibrary.AUTO) is GzipLibrary.ISAL
    without(monkeypatch, "isal")
    assert chosen_library(GzipLibrary.AUTO) is GzipLibrary.LIBDEFLATE
    without(monkeypatch, "isal", "deflate")
    assert chosen_library(GzipLibrary.AUTO) is GzipLibrary.PYARROW


def test_a_requested_library_is_never_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in GzipLibrary:
        if library is not GzipLibrary.AUTO:
            assert chosen_library(library) is library
    without(monkeypatch, "isal")
    with pytest.raises(ConfigError, match="'isal', which is not installed") as caught:
        chosen_library(GzipLibrary.ISAL)
    assert "install the wheel 'isal'" in str(caught.value.remedy)


@pytest.mark.parametrize(("library", "level"), [(GzipLibrary.ISAL, 4), (GzipLibrary.PYARROW, 10)])
def test_a_level_that_a_library_lacks_is_refused(library: GzipLibrary, level: int) -> None:
    with pytest.raises(ConfigError, match=f"{library.value} has the levels"):
        checked_level(library, level)

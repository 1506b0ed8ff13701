"""Compresses gzip members with ISA-L or libdeflate, or leaves that to Arrow.

All write the same format, which every reader inflates. ISA-L takes a tenth of zlib's time; its files have the same
size, or are up to a seventh larger. Under load it makes other bytes of equal input in one call of some thousand, which
inflate to the same: no rule may compare the bytes of two files. libdeflate makes smaller files than zlib in a third of
its time (docs/internals/benchmarks.md).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from hudi_core.errors import ConfigError

FASTEST: ModuleType
"""Inflates, deflates and counts CRC-32: ISA-L where it is installed, which takes a tenth to a fifth of zlib's time."""
try:
    from isal import isal_zlib as FASTEST
except ImportError:
    FASTEST = zlib

GZIP_WINDOW = 31


class GzipLibrary(Enum):
    """The compressor of gzip. AUTO is the first of the others that is installed."""

    AUTO = "auto"
    ISAL = "isal"
    LIBDEFLATE = "libdeflate"
    PYARROW = "pyarrow"


_MODULES = {GzipLibrary.ISAL: "isal", GzipLibrary.LIBDEFLATE: "deflate"}
LEVELS = {GzipLibrary.ISAL: (1, 3), GzipLibrary.LIBDEFLATE: (1, 12), GzipLibrary.PYARROW: (1, 9)}
"""Lowest and highest level of each library. ISA-L's 0 is left out: its files are half as large again."""
DEFAULT_LEVELS = {GzipLibrary.ISAL: 1, GzipLibrary.LIBDEFLATE: 5, GzipLibrary.PYARROW: 6}
"""ISA-L's higher levels make no smaller files of Hudi's tables; 6 is Java's default."""


def chosen_library(requested: GzipLibrary) -> GzipLibrary:
    """Returns the library for the option's value `requested`. Raises ConfigError when it is not installed."""
    if requested is GzipLibrary.AUTO:
        return next((library for library in _MODULES if _installed(library)), GzipLibrary.PYARROW)
    if not _installed(requested):
        message = f"airflow_hudi.parquet.gzip.library is {requested.value!r}, which is not installed here"
        remedy = f"install the wheel {_MODULES[requested]!r} where tasks run, or leave the option out"
        raise ConfigError(message, remedy=remedy)
    return requested


def checked_level(library: GzipLibrary, level: int | None) -> int:
    """Returns `level`, or the library's default. Raises ConfigError when the library has no such level."""
    low, high = LEVELS[library]
    if level is None:
        return DEFAULT_LEVELS[library]
    if not low <= level <= high:
        message = f"airflow_hudi.parquet.gzip.level is {level}, and {library.value} has the levels {low} to {high}"
        remedy = "choose one of these, or name the library by airflow_hudi.parquet.gzip.library"
        raise ConfigError(message, remedy=remedy)
    return level


def gzip_compressor(library: GzipLibrary, level: int) -> Callable[[bytes], bytes] | None:
    """Returns a function that makes a gzip member of bytes; None for PYARROW, which compresses by itself."""
    if library is GzipLibrary.ISAL:
        isal = import_module("isal.isal_zlib")
        return lambda data: bytes(isal.compress(data, level, wbits=GZIP_WINDOW))
    if library is GzipLibrary.LIBDEFLATE:
        libdeflate = import_module("deflate")
        return lambda data: bytes(libdeflate.gzip_compress(data, level))
    return None


def _installed(library: GzipLibrary) -> bool:
    return library not in _MODULES or find_spec(_MODULES[library]) is not None

"""The five kinds of data that the benchmark of codecs and encodings writes, each in its own order.

TPC-H comes from the wheel `tpchgen-cli`; the other kinds are made from a seed, so that every run writes the same rows.
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hudi_core.model.names import META_FIELDS

_SEED: Final = 20240101
_FIRST_DAY: Final = 19_723
"""2024-01-01, in days since 1970."""
_START: Final = _FIRST_DAY * 86_400_000_000
"""The same in microseconds."""
_TIME = pa.timestamp("us", tz="UTC")
_TPCH_ROWS: Final = {"lineitem": 6_000_000, "orders": 1_500_000}
"""Rows at scale factor 1, about."""
_READINGS: Final = 1_440
"""Readings of one sensor: a day of minutes."""

Integers = NDArray[np.int64]


def hudi_table(rows: int) -> pa.Table:
    """One base file of the table that `benchmarks.tables` makes: partition 0, with the even ids, in their order."""
    random = np.random.default_rng(_SEED)
    instant, ids = "20240101000000000", np.arange(rows, dtype=np.int64) * 2
    key = _joined("key-", _padded(ids, 12))
    values = (
        pa.repeat(instant, rows),
        _joined(f"{instant}_0_", _text(np.arange(rows))),
        key,
        pa.repeat("0", rows),
        pa.repeat(f"6f1c0a52-9f0e-4c7b-8d61-3b1f8f0f7a11-0_0-10-12_{instant}.parquet", rows),
    )
    columns: dict[str, Any] = {
        **dict(zip(META_FIELDS, values, strict=True)),
        "id": key,
        "part": pa.repeat("0", rows),
        "ts": pa.array(ids + 1),
        "a": pa.array(random.integers(-(2**63), 2**63 - 1, rows)),
        "b": pa.array(random.random(rows)),
        "c": _joined("name-", _text(ids % 5_000)),
        "d": _hexadecimal(random, rows, 20),
        "e": pa.array((_FIRST_DAY + ids % 365).astype(np.int32)).cast(pa.date32()),
        "f": pa.array(ids % 100_000).cast(pa.decimal128(38, 2)).cast(pa.decimal128(12, 2)),
    }
    return pa.table(columns)


def lineitem(rows: int) -> pa.Table:
    """TPC-H's order lines, by order."""
    return _tpch("lineitem", rows)


def orders(rows: int) -> pa.Table:
    """TPC-H's orders, by key."""
    return _tpch("orders", rows)


def logs(rows: int) -> pa.Table:
    """Requests to a web shop in order of their time: identifiers, addresses, URLs, user agents, and JSON as text."""
    random = np.random.default_rng(_SEED)
    users = np.minimum(random.zipf(1.3, rows), 50_000)
    items, price = random.integers(1, 9, rows), random.integers(100, 99_999, rows)
    session = _hexadecimal(random, rows, 8)
    agents = [
        f"Mozilla/5.0 ({system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{major}.0.{build}.0 Safari/537.36"
        for system in ("X11; Linux x86_64", "Windows NT 10.0; Win64; x64", "Macintosh; Intel Mac OS X 10_15_7")
        for major in range(110, 130)
        for build in (0, 5_481, 6_099)
    ]
    words = ("bags", "shoes", "lamps", "chairs", "books", "garden", "audio", "kitchen")
    slug = _picked(random, rows, [f"{word}/{tone}-{word}" for word in words for tone in ("red", "green", "grand", "s")])
    url = _joined("https://shop.example.com/", slug, "?item=", _text(random.integers(1, 200_000, rows)), "&ref=")
    body = _joined('{"user": ', _text(users), ', "session": "', session, '", "items": ', _text(items), ', "total": ')
    return pa.table(
        {
            "time": pa.array(_START + np.cumsum(random.exponential(50_000, rows)).astype(np.int64)).cast(_TIME),
            "request": _hexadecimal(random, rows, 16),
            "host": _picked(random, rows, [f"web-{number:02}" for number in range(64)]),
            "address": _joined("10.", _text(users % 256), ".", _text(users // 256), ".", _text(users % 7)),
            "method": _picked(random, rows, ["GET", "GET", "GET", "GET", "POST", "PUT"]),
            "url": _joined(url, _picked(random, rows, ["home", "search", "mail", "basket"])),
            "status": pa.array(random.choice(np.array([200, 200, 200, 200, 301, 404, 500], np.int32), rows)),
            "bytes": pa.array(random.lognormal(8, 1.5, rows).astype(np.int64)),
            "seconds": pa.array(random.lognormal(-3, 1, rows)),
            "agent": _picked(random, rows, agents),
            "body": _joined(body, _text(price // 100), ".", _padded(price % 100, 2), ', "paid": true}'),
        }
    )


def numbers(rows: int) -> pa.Table:
    """Readings of sensors, by sensor and time: no text, and floats of few and of many digits."""
    random = np.random.default_rng(_SEED)
    row = np.arange(rows, dtype=np.int64)
    minute = row % _READINGS
    daily = np.sin(minute * (2 * math.pi / _READINGS))
    jitter = random.integers(-50, 50, rows) * 1_000
    return pa.table(
        {
            "sensor": pa.array((row // _READINGS).astype(np.int32)),
            "time": pa.array(_START + minute * 60_000_000 + jitter).cast(_TIME),
            "sequence": pa.array(row),
            "state": pa.array(random.choice(np.array([0, 0, 0, 0, 0, 1, 2], np.int32), rows)),
            "temperature": pa.array(np.round(20 + 5 * daily + random.normal(0, 0.3, rows), 1)),
            "humidity": pa.array((50 - 10 * daily + random.normal(0, 1, rows)).astype(np.float32)),
            "pressure": pa.array((101_300 + 400 * daily + random.integers(-3, 4, rows)).astype(np.int32)),
            "energy": pa.array(np.cumsum(random.integers(0, 900, rows))),
            "voltage": pa.array(230 + random.normal(0, 1.5, rows)),
            "noise": pa.array(random.integers(0, 2**40, rows)),
        }
    )


KINDS: Final[Mapping[str, Callable[[int], pa.Table]]] = {
    "hudi": hudi_table,
    "lineitem": lineitem,
    "orders": orders,
    "logs": logs,
    "numbers": numbers,
}
"""What makes so many rows of each kind."""


def _tpch(name: str, rows: int) -> pa.Table:
    """The table's first rows, in the types that Spark reads them as. Raises RuntimeError when there are too few."""
    program = Path(sys.executable).parent / "tpchgen-cli"
    scale = math.ceil(rows / _TPCH_ROWS[name] * 1_050) / 1_000
    with tempfile.TemporaryDirectory() as folder:
        options = ["--scale-factor", str(scale), "--tables", name, "--output-dir", folder]
        subprocess.run([str(program), "parquet", "--quiet", "--num-threads", "1", *options], check=True)
        table = pq.read_table(Path(folder) / f"{name}.parquet").slice(0, rows)
    if table.num_rows < rows:
        raise RuntimeError(f"tpchgen-cli made {table.num_rows:,} rows of {name} at scale {scale}, fewer than {rows:,}")
    kinds = [pa.string() if kind == pa.string_view() else kind for kind in table.schema.types]
    # Not compacted, each slice would be a chunk of the generator's row groups.
    return table.cast(pa.schema(list(zip(table.schema.names, kinds, strict=True)))).combine_chunks()


def _text(values: Integers) -> pa.Array:
    return pa.array(values).cast(pa.string())


def _padded(values: Integers, width: int) -> pa.Array:
    return pc.utf8_lpad(_text(values), width=width, padding="0")


def _joined(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def _picked(random: np.random.Generator, rows: int, values: Sequence[str]) -> pa.Array:
    """Values of a list, some much more often than others."""
    most = len(values)
    return pa.array(values).take(pa.array((random.random(rows) ** 2 * most).astype(np.int64)))


def _hexadecimal(random: np.random.Generator, rows: int, octets: int) -> pa.Array:
    """Random digits, two for each octet."""
    digits = pa.py_buffer(random.bytes(rows * octets).hex().encode())
    offsets = pa.py_buffer(np.arange(rows + 1, dtype=np.int32) * np.int32(octets * 2))
    return pa.Array.from_buffers(pa.string(), rows, [None, offsets, digits])

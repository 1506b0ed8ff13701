from __future__ import annotations

import contextlib
import datetime as dt
import io
import zlib
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pytest

from hudi_core.codec.orc import _LZ4, OrcBaseFile, _inflate, _plain, read_tail, writer_zones
from hudi_core.errors import CorruptFileError, FormatError, SizeLimitError, UnsupportedError
from hudi_core.model.size_limits import Limit, SizeLimits

AT = dt.datetime(2026, 3, 1, 12, tzinfo=dt.timezone.utc)
ROWS = pa.table(
    {
        "id": pa.array([1, 2, None], pa.int64()),
        "at": pa.array([AT, None, AT], pa.timestamp("us", tz="UTC")),
        "seen": pa.array([[AT], [], None], pa.list_(pa.timestamp("us", tz="UTC"))),
    }
)


def zones_of(file: BinaryIO) -> list[str]:
    return writer_zones(file, "f", read_tail(file, "f"))


def written(table: pa.Table) -> bytes:
    out = io.BytesIO()
    orc.write_table(table, out)
    return out.getvalue()


def test_rows_and_columns() -> None:
    file = OrcBaseFile(io.BytesIO(written(ROWS)), "x.orc")
    assert (file.num_rows, file.schema.names) == (3, ["id", "at", "seen"])
    assert pa.Table.from_batches(file.batches()).to_pydict() == ROWS.to_pydict()
    assert [batch.schema.names for batch in file.batches(["at", "absent"])] == [["at"]]


def test_rows_are_counted_without_a_column() -> None:
    file = OrcBaseFile(io.BytesIO(written(ROWS)), "x.orc")
    assert sum(batch.num_rows for batch in file.batches([])) == 3


@pytest.mark.parametrize("kept", [0, 3, -20])
def test_a_cut_file_is_named(kept: int) -> None:
    data = written(ROWS)
    with pytest.raises(CorruptFileError) as caught:
        OrcBaseFile(io.BytesIO(data[:kept]), "x.orc")
    assert caught.value.path == "x.orc"


WALL = [dt.datetime(2026, 1, 2, 3, 4, 5, 678901), None, dt.datetime(2026, 7, 2, 3)]
TABLE = pa.table({"t": pa.array(WALL, pa.timestamp("ns")), "n": pa.array([1, 2, 3])})


def orc_bytes(table: pa.Table = TABLE, **more: object) -> bytes:
    """An ORC file, which Arrow writes in GMT."""
    sink = pa.BufferOutputStream()
    orc.write_table(table, sink, **more)
    return bytes(sink.getvalue().to_pybytes())


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_each_stripe_names_its_zone_whatever_the_compression(compression: str) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({f"a_rather_long_name_{index}": rng.integers(0, 1 << 62, 20_000) for index in range(20)})
    data = orc_bytes(table, compression=compression, stripe_size=64 << 10, batch_size=1024)
    zones = zones_of(io.BytesIO(data))
    assert zones == ["GMT"] * orc.ORCFile(pa.BufferReader(data)).nstripes
    assert len(zones) > 1


def test_wall_time_of_another_zone_becomes_the_moment() -> None:
    """A file stores seconds since the first of January 2015 of its writer's zone, so under MET the same bytes are
    moments an hour earlier.
    """
    data = orc_bytes(compression="uncompressed").replace(b"GMT", b"MET")
    (batch,) = OrcBaseFile(io.BytesIO(data), "f").batches()
    utc = dt.timezone.utc
    assert batch["t"].to_pylist() == [
        dt.datetime(2026, 1, 2, 2, 4, 5, 678901, utc),
        None,
        dt.datetime(2026, 7, 2, 2, tzinfo=utc),
    ]
    (same,) = OrcBaseFile(io.BytesIO(orc_bytes(compression="uncompressed")), "f").batches()
    assert same["t"].to_pylist() == [None if moment is None else moment.replace(tzinfo=utc) for moment in WALL]


def test_an_unknown_zone_is_not_supported() -> None:
    data = orc_bytes(compression="uncompressed").replace(b"GMT", b"XXX")
    with pytest.raises(UnsupportedError, match="XXX"):
        list(OrcBaseFile(io.BytesIO(data), "f").batches())


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_damage_is_a_typed_error(compression: str) -> None:
    data = orc_bytes(compression=compression)
    for at in range(len(data)):
        for value in (0, 0x7F, 0xFF):
            broken = data[:at] + bytes([value]) + data[at + 1 :]
            with contextlib.suppress(FormatError):
                zones_of(io.BytesIO(broken))
    with pytest.raises(CorruptFileError):
        zones_of(io.BytesIO(b""))


def test_lz4_blocks() -> None:
    text = b"the same words, the same words, and again the same words" * 20
    assert _inflate(pa.compress(text, codec="lz4_raw", asbytes=True), _LZ4, 1 << 20, "f") == text
    for broken in (b"\x10a\x05\x00\x00", b"\x1fa\x01\x00\xff\xff\x00", b""):
        with pytest.raises(CorruptFileError):
            _inflate(broken, _LZ4, 100, "f")


def test_a_file_that_real_hudi_wrote_in_new_york() -> None:
    """Hudi 0.15 on Spark with `-Duser.timezone=America/New_York`, zlib; `at` was 2026-07-02 03:04:05.678901 there,
    `at2` 2026-01-02 03:04:05.

    Its milliseconds are lost in the file: AvroOrcUtils sets `nanos` to what is below a millisecond.
    """
    data = (Path(__file__).with_name("data") / "hudi_0_15_new_york.orc").read_bytes()
    assert zones_of(io.BytesIO(data)) == ["America/New_York"]
    (batch,) = OrcBaseFile(io.BytesIO(data), "f").batches(columns=["id", "at", "at2", "ats", "st", "price", "m"])
    rows = {row["id"]: row for row in batch.to_pylist()}
    utc = dt.timezone.utc
    assert len(rows) == 20
    assert rows["k7"] == {
        "id": "k7",
        "at": dt.datetime(2026, 7, 2, 7, 4, 5, 901, utc),
        "at2": dt.datetime(2026, 1, 2, 8, 4, 5, tzinfo=utc),
        "ats": [dt.datetime(2026, 7, 2, 7, 4, 5, tzinfo=utc), None],
        "st": {"a": 7, "b": dt.datetime(2026, 1, 2, 8, 4, 5, tzinfo=utc)},
        "price": Decimal("8.75"),
        "m": [("k", 7)],
    }


def test_a_stripe_that_claims_more_than_allowed() -> None:
    data = written(ROWS)
    tail = read_tail(io.BytesIO(data), "f")
    assert [stripe.rows for stripe in tail.stripes] == [3]
    assert 0 < tail.stripes[0].length < len(data)
    most = max(8 * 3 * 4, tail.stripes[0].length, tail.block * 4)
    list(OrcBaseFile(io.BytesIO(data), "f", SizeLimits({Limit.ORC_STRIPE: most})).batches())
    with pytest.raises(SizeLimitError, match="a stripe of the ORC file has") as caught:
        list(OrcBaseFile(io.BytesIO(data), "f", SizeLimits({Limit.ORC_STRIPE: most - 1})).batches())
    assert "airflow_hudi.limit.orc_stripe.bytes" in str(caught.value.remedy)


def test_a_tail_that_decompresses_to_very_much() -> None:
    """Of each chunk the compression block's size at most, and of all chunks in all the limit of a tail."""
    chunk = zlib.compressobj(wbits=-15)
    packed = chunk.compress(bytes(40 << 20)) + chunk.flush()
    head = (len(packed) << 1).to_bytes(3, "little")
    with pytest.raises(CorruptFileError, match="has more than"):
        _plain((head + packed) * 2, 1, 64 << 20, "f")


def test_a_tail_without_bytes_in_a_chunk_is_refused() -> None:
    """To zlib no bytes at most are as many as there are."""
    out = io.BytesIO()
    orc.write_table(ROWS, out, compression="zlib", compression_block_size=1 << 16)
    data = bytearray(out.getvalue())
    block = bytes([3 << 3, 0x80, 0x80, 0x04])  # field 3 of the postscript
    assert data.count(block, len(data) - 40) == 1
    at = data.index(block, len(data) - 40)
    data[at + 1 : at + 4] = b"\x80\x80\x00"
    with pytest.raises(CorruptFileError, match="chunks of 0 bytes"):
        read_tail(io.BytesIO(bytes(data)), "f")

"""Footers that Arrow's binding does not survive are refused; whole ones pass."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.footer import check_footer, footer_of
from hudi_core.codec.parquet.statistics import chunk_ranges, leaf_columns
from hudi_core.codec.parquet.thrift import CompactReader
from hudi_core.errors import CorruptFileError, HudiError, UnsupportedError
from tests.support.golden_data import GoldenCase

TABLE = pa.table(
    {
        "key": ["a", "b", None] * 10,
        "number": pa.array(range(30), pa.int64()),
        "flag": pa.array([True, False] * 15),
        "fixed": pa.array([b"12345678"] * 30, pa.binary(8)),
        "list": pa.array([[1, 2], None, []] * 10, pa.list_(pa.int32())),
    }
)
CHANGES = (0, 1, 2, 0x18, 0x7F, 0x80, 0xFF)
PYARROW_ALONE = """
import sys, pyarrow.parquet as pq
metadata = pq.ParquetFile(sys.argv[1]).metadata
for group in range(metadata.num_row_groups):
    for number in range(metadata.num_columns):
        metadata.row_group(group).column(number)
"""


def written(**options: object) -> bytes:
    target = io.BytesIO()
    pq.write_table(TABLE, target, row_group_size=15, compression="none", **options)
    return target.getvalue()


def parts(data: bytes) -> tuple[int, bytes, pq.ParquetSchema]:
    """Where the footer starts, the footer, and the schema."""
    length, footer = footer_of(data)
    assert footer is not None
    return len(data) - 8 - length, footer, pq.ParquetFile(io.BytesIO(data)).metadata.schema


def use(data: bytes) -> None:
    """All that is done with a footer."""
    with ParquetBaseFile(io.BytesIO(data), "a/f.parquet") as file:
        assert file.compression is not None
        for number in leaf_columns(file.metadata).values():
            chunk_ranges(file.metadata, number, file.schema.field(number).type)


def sweep(data: bytes) -> int:
    """Every byte of the footer changed; how many of the files were refused. Any other error passes."""
    start, _, _ = parts(data)
    refused = 0
    for place in range(start, len(data)):
        for value in CHANGES:
            try:
                use(data[:place] + bytes([value]) + data[place + 1 :])
            except HudiError:
                refused += 1
            except (pa.ArrowException, KeyError, ValueError, OverflowError):
                pass  # of Arrow's schema or values, in Python: its own concern
    return refused


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_dictionary": False, "data_page_version": "2.0"},
        {"write_statistics": False},
        {"write_page_index": True},
    ],
)
def test_whole_footers_pass(options: dict[str, object]) -> None:
    use(written(**options))


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_footers_of_hudi_pass(golden: object, version: str) -> None:
    case: GoldenCase = golden(version, "mor_basic")  # type: ignore[operator]
    files = [path for path in case.table.rglob("*.parquet") if ".hoodie" not in path.parts]
    assert files
    for path in files:
        _, footer, schema = parts(path.read_bytes())
        check_footer(footer, schema, str(path))


def test_a_sound_footer_is_looked_through_once_and_a_damaged_one_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[bytes] = []

    class Reader(CompactReader):
        def __init__(self, data: bytes) -> None:
            looked.append(data)
            super().__init__(data)

    monkeypatch.setattr("hudi_core.codec.parquet.footer.CompactReader", Reader)
    monkeypatch.setattr("hudi_core.codec.parquet.footer._passed", {})
    monkeypatch.setattr("hudi_core.codec.parquet.footer._KEPT", 2)
    footers = [parts(written(compression_level=None, store_schema=False, version=name))[1] for name in ("1.0", "2.6")]
    schema = parts(written())[2]
    for footer in footers * 2:
        check_footer(footer, schema, "f")
    assert looked == footers
    for _ in range(2):
        with pytest.raises(CorruptFileError):
            check_footer(footers[0][:-40], schema, "f")
    third = parts(written(write_statistics=False))[1]
    for footer in (third, footers[0]):
        check_footer(footer, schema, "f")
    assert looked[-2:] == [third, footers[0]], "no more are kept than the bound"


def test_a_longer_footer_than_arrow_reads_at_once_is_found() -> None:
    target = io.BytesIO()
    table = pa.table({f"column_{number:04}": [number] for number in range(1500)})
    pq.write_table(table, target)
    length, footer = footer_of(target.getvalue()[-(64 << 10) :])
    assert (length > 64 << 10, footer) == (True, None)
    with ParquetBaseFile(io.BytesIO(target.getvalue()), "f") as file:
        assert file.num_rows == 1


def with_wrong_histogram(data: bytes) -> bytes:
    """The file with one byte changed: Arrow opens it, and a histogram of levels has another length than the levels."""
    start, footer, schema = parts(data)
    for place in range(len(footer)):
        for value in range(6, 256, 16):  # the first byte of a list of i64, of any short length
            changed = footer[:place] + bytes([value]) + footer[place + 1 :]
            try:
                check_footer(changed, schema, "f")
            except HudiError as error:
                if "histogram" not in error.message:
                    continue
                file = data[:start] + changed + data[start + len(footer) :]
                with suppress(pa.ArrowException, OSError):
                    pq.ParquetFile(io.BytesIO(file))
                    return file
    raise AssertionError("no byte of the footer is the length of a histogram")


@pytest.mark.slow
def test_arrow_alone_dies_of_what_is_refused(tmp_path: Path) -> None:
    """The null control, in a process of its own."""
    changed = with_wrong_histogram(written())
    (tmp_path / "f.parquet").write_bytes(changed)
    done = subprocess.run(
        [sys.executable, "-c", PYARROW_ALONE, str(tmp_path / "f.parquet")], capture_output=True, check=False
    )
    assert done.returncode < 0, "this release of Arrow catches it: the check may go"
    with pytest.raises(CorruptFileError, match="histogram"):
        use(changed)


@pytest.mark.slow
def test_no_byte_of_a_footer_ends_the_process() -> None:
    """In a process of its own, which would die with the defect."""
    program = "from tests.unit.hudi_core.codec.parquet.test_footer import sweep, written; print(sweep(written()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 1000


def struct(*fields: bytes) -> bytes:
    return b"".join(fields) + b"\0"


def footer_with(chunk: bytes) -> bytes:
    """A FileMetaData with one row group of one column chunk."""
    return struct(b"\x49\x1c", struct(b"\x19\x1c", chunk))


SCHEMA = pq.ParquetFile(io.BytesIO(written())).metadata.schema


@pytest.mark.parametrize(
    ("chunk", "word"),
    [
        (struct(b"\x3c", struct(b"\x15\x0e")), "type 7"),
        (struct(b"\x3c", struct(b"\x15\x0c", b"\x0c\x20", struct(b"\x29\x56" + b"\0" * 5))), "histogram"),
        (struct(b"\x3c", struct(b"\x15\x0c", b"\x0c\x20", struct(b"\x29\x19\x06"))), "field 2 has elements of type 9"),
        (struct(b"\x3c", struct(b"\x15\x0c", b"\x19\x16\x00")), "field 2 has elements of type 6"),
        (struct(b"\x3c", struct(b"\x15\x0c", b"\x0c\x18", struct(b"\x18\x7f"))), "longer than all that follows"),
        (struct(b"\x3c", struct(b"\x1e")), "no type"),
        (b"\x3c" + b"\x1c" * 60, "damaged"),
    ],
)
def test_what_is_wrong_is_named(chunk: bytes, word: str) -> None:
    with pytest.raises(CorruptFileError, match=word) as caught:
        check_footer(footer_with(chunk), SCHEMA, "a/f.parquet")
    assert (caught.value.path, bool(caught.value.remedy)) == ("a/f.parquet", True)


@pytest.mark.parametrize("number", [2, 5, 7])
def test_lists_before_the_row_groups_have_elements_of_the_format(number: int) -> None:
    """Arrow reads structs there whatever the list says, and finds the row groups somewhere else."""
    with pytest.raises(CorruptFileError, match="elements of another type"):
        check_footer(struct(bytes([number << 4 | 9]) + b"\x16\x00"), SCHEMA, "f")


def test_encrypted_columns_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="encrypted"):
        check_footer(footer_with(struct(b"\x8c", struct())), SCHEMA, "f")


def test_bounds_shorter_than_a_value_are_refused() -> None:
    schema = pq.ParquetFile(io.BytesIO(_only_numbers())).metadata.schema
    short = struct(b"\x3c", struct(b"\x15\x04", b"\xbc", struct(b"\x18\x03abc")))
    with pytest.raises(CorruptFileError, match="a bound of 3 bytes is shorter than a value of 8"):
        check_footer(footer_with(short), schema, "f")


def _only_numbers() -> bytes:
    target = io.BytesIO()
    pq.write_table(TABLE.select(["number"]), target)
    return target.getvalue()


@given(st.binary(max_size=200))
def test_any_bytes_are_a_footer_or_an_error(data: bytes) -> None:
    with suppress(CorruptFileError, UnsupportedError):
        check_footer(data, SCHEMA, "f")

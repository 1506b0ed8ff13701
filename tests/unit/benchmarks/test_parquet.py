"""The benchmark of codecs and encodings: its data, its files, and how results are put together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.parquet import Measured, default_beside, measure
from benchmarks.parquet_columns import chosen_encodings, columns, possible_encodings, summary
from benchmarks.parquet_data import KINDS, hudi_table
from benchmarks.parquet_files import (
    ARROW,
    CODECS,
    DELTA,
    DICTIONARY,
    ENCODINGS,
    Codec,
    check,
    default_codec,
    default_encodings,
    in_row_groups,
    write,
    write_cost,
)
from hudi_core.codec.gzip import GzipLibrary
from hudi_core.codec.parquet.writer import ParquetStyle

ROWS = 300


@pytest.mark.parametrize("kind", ["hudi", "logs", "numbers"])
def test_each_kind_has_as_many_rows_as_asked_and_the_same_ones_again(kind: str) -> None:
    table = KINDS[kind](ROWS)
    assert table.num_rows == ROWS
    assert table.equals(KINDS[kind](ROWS))


@pytest.mark.slow
def test_order_lines_are_of_the_types_that_spark_reads() -> None:
    table = KINDS["lineitem"](ROWS)
    assert table.num_rows == ROWS
    assert table["l_orderkey"].to_pylist() == sorted(table["l_orderkey"].to_pylist())
    assert all(field.nullable and field.type != pa.string_view() for field in table.schema)


def test_the_keys_of_the_hudi_table_are_in_order() -> None:
    table = hudi_table(ROWS)
    keys = table["_hoodie_record_key"].to_pylist()
    assert keys == sorted(set(keys)) == table["id"].to_pylist()
    assert table.schema.field("f").type == pa.decimal128(12, 2)


def test_labels_and_styles_of_codecs() -> None:
    assert [codec.label for codec in CODECS] == [
        "uncompressed",
        "snappy",
        "zstd-1",
        "zstd-3",
        "gzip-pyarrow-6",
        "gzip-isal-1",
        "gzip-libdeflate-1",
        "gzip-libdeflate-5",
        "gzip-libdeflate-6",
    ]
    assert Codec("ZSTD", 1).style(delta=True) == ParquetStyle("ZSTD")
    style = Codec("GZIP", 5, GzipLibrary.LIBDEFLATE).style(delta=False)
    assert style == ParquetStyle("GZIP", gzip_library=GzipLibrary.LIBDEFLATE, gzip_level=5, delta=False)
    assert Codec("SNAPPY").style(delta=True, group_rows=7).row_group_rows == 7


def test_the_default_is_among_what_is_measured() -> None:
    assert default_codec() in CODECS
    assert default_encodings() == DELTA
    assert default_codec().label == "gzip-isal-1"


def test_row_groups_are_of_the_rows_asked_for_or_as_the_writer_cuts_them() -> None:
    table = pa.table({"number": pa.array(range(ROWS))})
    assert [group.num_rows for group in in_row_groups(table, 128).groups] == [128, 128, 44]
    assert [group.num_rows for group in in_row_groups(table).groups] == [ROWS]
    most = ParquetStyle().row_group_rows
    table = pa.table({"flag": pa.array([True] * (most + 1))})
    assert [group.num_rows for group in in_row_groups(table).groups] == [most, 1]


def test_every_codec_with_every_choice_of_encodings_is_written_read_and_checked(tmp_path: Path) -> None:
    rows = in_row_groups(hudi_table(ROWS), 128)
    ways = [
        Measured(codec, encodings, tmp_path / f"{codec.label}-{encodings}", rows)
        for codec in CODECS
        for encodings in ENCODINGS
    ]
    measure(ways, 1, None)
    for way in ways:
        key = pq.read_metadata(way.path).row_group(0).column(2)
        assert ("DELTA_BYTE_ARRAY" in key.encodings) == (way.encodings == DELTA)
        assert key.has_dictionary_page == (way.encodings == ARROW)
        found = way.as_json()
        assert found["codec"] == way.codec.label
        assert found["mb"] > 0
        assert "spark_cpu" not in found


def test_both_ways_to_write_our_encodings_make_files_of_one_size(tmp_path: Path) -> None:
    rows = in_row_groups(hudi_table(ROWS), 128)
    for codec in (Codec("ZSTD", 1), Codec("ZSTD", 3)):
        with (tmp_path / codec.label).open("wb") as file:
            write(file, rows, codec, DICTIONARY)
    # 300 rows do not tell the levels apart, so what is left is what else the two would do differently.
    by_writer, by_arrow = (pq.read_metadata(tmp_path / name).row_group(0) for name in ("zstd-1", "zstd-3"))
    for index in range(by_writer.num_columns):
        assert by_writer.column(index).encodings == by_arrow.column(index).encodings
        assert by_writer.column(index).total_uncompressed_size == by_arrow.column(index).total_uncompressed_size


def test_a_file_with_other_rows_or_of_another_codec_is_a_fault(tmp_path: Path) -> None:
    rows = in_row_groups(hudi_table(ROWS), ROWS)
    path = tmp_path / "file"
    write_cost(path, partial(write, rows=rows, codec=default_codec(), encodings=DELTA))
    check(path, rows, default_codec())
    with pytest.raises(RuntimeError, match="does not read back"):
        check(path, in_row_groups(rows.table.slice(1), ROWS), default_codec())
    with pytest.raises(RuntimeError, match=r"GZIP in row groups of \[300\], not ZSTD, \[300\]"):
        check(path, rows, Codec("ZSTD", 1))
    with pytest.raises(RuntimeError, match=r"not GZIP, \[200, 100\]"):
        check(path, in_row_groups(rows.table, 200), default_codec())


def test_the_default_beside_its_peers() -> None:
    def setting(codec: str, encodings: str, figure: float) -> Mapping[str, Any]:
        return {"codec": codec, "encodings": encodings, "write_cpu": figure, "mb": figure, "read_cpu": figure}

    found = default_beside(
        [
            setting("gzip-pyarrow-6", ARROW, 4.0),
            setting("zstd-1", ARROW, 2.0),
            setting("zstd-1", DELTA, 0.5),
            setting("gzip-isal-1", DELTA, 1.0),
        ]
    )
    assert (found["codec"], found["mb"]) == ("gzip-isal-1", 1.0)
    assert {peer: shares["mb"] for peer, shares in found["of"].items()} == {
        "gzip-pyarrow-6, arrow": 0.25,
        "zstd-1, arrow": 0.5,
        "zstd-1, delta": 2.0,
    }
    assert "spark_cpu" not in found["of"]["zstd-1, arrow"]


def test_columns_whose_choice_is_larger_than_another_are_named() -> None:
    found = summary(
        {"a": "PLAIN", "b": "DICTIONARY"},
        {
            "a": {"PLAIN": {"mb": 2.0}, "DICTIONARY": {"mb": 1.0}},
            "b": {"PLAIN": {"mb": 1.0}, "DICTIONARY": {"mb": 1.002}},
        },
    )
    assert (found["mb_as_chosen"], found["mb_of_smallest"]) == (3.002, 2.0)
    assert found["larger_than_smallest"] == {"a": "PLAIN, 2.0 MB; DICTIONARY, 1.0 MB"}


def test_every_column_is_written_with_every_encoding_of_its_type(tmp_path: Path) -> None:
    table = hudi_table(ROWS).select(["id", "ts", "b"])
    found = columns(in_row_groups(table, 128), tmp_path, 1)["each"]
    chosen = chosen_encodings(table)
    for field in table.schema:
        assert list(found[field.name]) == ["chosen", *possible_encodings(field.type)]
        assert found[field.name]["chosen"] == chosen[field.name]
    assert found["ts"]["DELTA_BINARY_PACKED"]["mb"] < found["ts"]["PLAIN"]["mb"]

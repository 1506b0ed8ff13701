from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.errors import FormatError, UnsupportedError
from hudi_core.model.names import (
    ROLLBACK_TOKEN,
    BaseFileName,
    LogFileName,
    WriteToken,
    parse_base_file,
    parse_data_file,
    parse_log_file,
)

NUMBERS = st.integers(0, 10**12)
TOKENS = st.builds(WriteToken, NUMBERS, NUMBERS, NUMBERS)
FILE_IDS = st.from_regex(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9]", fullmatch=True)
INSTANTS = st.from_regex(r"[0-9]{17}", fullmatch=True)


@pytest.mark.slow
@given(st.builds(BaseFileName, FILE_IDS, TOKENS, INSTANTS, st.sampled_from(["parquet", "orc", "hfile"])))
def test_base_file_names_round_trip(name: BaseFileName) -> None:
    assert parse_base_file(str(name)) == name
    assert parse_data_file(str(name)) == name


@given(st.builds(LogFileName, FILE_IDS, INSTANTS, st.integers(1, 10**6), TOKENS, st.booleans()))
def test_log_file_names_round_trip(name: LogFileName) -> None:
    assert parse_log_file(str(name)) == name
    assert parse_data_file(str(name)) == name


def test_a_log_file_may_have_no_token() -> None:
    name = parse_log_file(".f-0_20260101000000000.log.1")
    assert name == LogFileName("f-0", "20260101000000000", 1, None)
    assert str(name) == ".f-0_20260101000000000.log.1"


def test_scan_order_is_instant_version_token_text() -> None:
    names = [".f-0_1.log.10_1-0-1", ".f-0_1.log.2_1-0-10", ".f-0_1.log.2_1-0-9", ".f-0_1.log.2", ".f-0_0.log.99_9-9-9"]
    assert [str(name) for name in sorted(map(parse_log_file, names), key=lambda name: name.scan_order)] == [
        ".f-0_0.log.99_9-9-9",
        ".f-0_1.log.2",
        ".f-0_1.log.2_1-0-10",
        ".f-0_1.log.2_1-0-9",
        ".f-0_1.log.10_1-0-1",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "f-0_1-2-3_20260101000000000.txt",
        "f-0_1-2_20260101000000000.parquet",
        "a/f-0_1-2-3_20260101000000000.parquet",
        "f-0_1-2-3_20260101000000000.parquet\n",
        "f-0_1-2-3_2026010100000000\u0660.parquet",
        ".hoodie_partition_metadata",
        ".f-0_20260101000000000.log",
        "../f-0_20260101000000000.log.1_1-0-1",
        ".a/b_20260101000000000.log.1_1-0-1",
        ".commits_.archive.1_1-0-1",
    ],
)
def test_other_names_are_no_data_files(name: str) -> None:
    assert parse_data_file(name) is None
    for parse in (parse_base_file, parse_log_file):
        with pytest.raises(FormatError):
            parse(name)


@pytest.mark.parametrize(
    "name",
    ["part-0.parquet_20240101000000000_hudiext", "a_b.parquet_20240101000000_fg%3Dbucket-0_hudiext"],
)
@pytest.mark.parametrize("parse", [parse_base_file, parse_data_file])
def test_files_of_other_writers_are_refused_by_name(name: str, parse: Callable[[str], object]) -> None:
    """ExternalFilePathUtil: Apache XTable registers files of other formats; passed over, their rows would be lost."""
    with pytest.raises(UnsupportedError, match=r"not by a writer of Hudi") as caught:
        parse(name)
    assert caught.value.path == name


def test_tokens() -> None:
    assert str(ROLLBACK_TOKEN) == "1-0-1"
    assert parse_base_file("f-0_7-8-9_001.parquet").token == WriteToken(7, 8, 9)
    for text in ("", "1-2", "1-2-3-4", "-1-2-3", "1-2-x", "1-2-3\n"):
        with pytest.raises(FormatError):
            parse_base_file(f"f-0_{text}_001.parquet")


def test_file_ids_of_a_record_index_per_partition_hold_the_escaped_path() -> None:
    """`escapeFileName` of Hudi 1.1 leaves no underscore, dash or slash, and everything else as it is."""
    file_id = "record-index-eu%5Fwest%2F2024%2D01%2D01 ü.-0001-0"
    assert parse_base_file(f"{file_id}_0-147-398_20261120225114896.hfile").file_id == file_id
    assert parse_log_file(f".{file_id}_20261120225114896.log.1_0-0-0").file_id == file_id

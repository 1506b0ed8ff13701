"""Which tables the compaction benchmark makes, what it measures again, and its figures."""

from __future__ import annotations

import shutil
from argparse import Namespace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.compaction import CHANGED, chosen_cases, figures, pending
from benchmarks.compaction_cases import SIZES, Case, default_cases, matrix
from benchmarks.measure import Cost
from benchmarks.tables import check_layout, check_metadata


def test_a_name_is_read_back() -> None:
    for case in matrix(SIZES):
        assert Case.parse(case.name) == case
    assert Case("4m").name == "4m/0.15.0/gzip/uniform:30"


@pytest.mark.parametrize("name", ["2m/0.15.0/gzip/uniform:30", "1m/0.14.0/gzip/uniform:30", "1m/1.2.0/lz4/recent:1"])
def test_an_unknown_value_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is none of"):
        Case.parse(name)


def test_the_default_tables_keep_their_folders_and_the_others_have_their_own() -> None:
    assert Case("1m").folder.name == "compaction-1m"
    assert Case("1m", "1.2.0", "zstd", "recent", 1).folder.name == "compaction-1m-1.2.0-zstd-recent-1"
    cases = matrix(SIZES)
    assert len({case.folder for case in cases}) == len(cases) == 72


def test_uniform_updates_are_the_ones_of_the_tables_in_the_cache() -> None:
    assert Case("1m").written(2) == "abs(hash(id, 2)) % 1000000 < 100000"


def test_few_updates_are_as_many_in_each_file_group() -> None:
    case = Case.parse("1m/1.2.0/gzip/scattered:21")
    assert (case.updates, case.written(0)) == (84, "abs(hash(id, 0)) % 1000000 < 28")
    with pytest.raises(ValueError, match="is none of"):
        Case("1m", pattern="uniform", amount=100)


def test_recent_updates_are_at_the_end_of_both_halves() -> None:
    condition = Case("1m", pattern="recent", amount=1).written(0)
    assert condition == "id % 500000 >= 490000 AND pmod(hash(id, 0), 6) = 0"


def test_without_an_axis_the_default_cases_are_chosen() -> None:
    none = {"sizes": None, "hudi": None, "codecs": None, "updates": None}
    assert chosen_cases(Namespace(**none)) == default_cases()
    assert len(set(default_cases())) == 29
    chosen = chosen_cases(Namespace(**{**none, "sizes": "20k", "updates": "recent:5"}))
    assert [case.name for case in chosen] == [
        f"20k/{hudi}/{codec}/recent:5" for hudi in ("0.15.0", "1.2.0") for codec in ("gzip", "zstd")
    ]


def test_a_case_of_another_commit_or_of_changed_code_is_measured_again() -> None:
    done, old, new = Case("1m"), Case("1m", codec="zstd"), Case("4m")
    stored = {done.name: {"commit": "b"}, old.name: {"commit": "a"}}
    assert pending([done, old, new], stored, "b") == [old, new]
    changed = {case.name: {"commit": "b" + CHANGED} for case in (done, old)}
    assert pending([done, old], changed, "b" + CHANGED) == [done, old]


def test_ratios_are_of_medians() -> None:
    whole = {
        "hudi": [Cost(10, 20, 1), Cost(12, 40, 1), Cost(11, 30, 1)],
        "spark": [Cost(5, 10, 1)],
        "local": [Cost(2, 3, 1)],
    }
    warm = {"hudi": [{"wall": 8.0, "cpu": 16.0}], "spark": [{"wall": 2.0, "cpu": 4.0}]}
    found = figures(whole, warm, {"hudi": 1.0, "spark": 1.1, "local": 1.2})
    assert found["cpu_ratios"] == {"spark_whole": 3.0, "spark_warm": 4.0, "local_whole": 10.0}
    assert found["wall_ratios"] == {"spark_whole": 2.2, "spark_warm": 4.0, "local_whole": 5.5}
    assert found["local"] == {"whole": {"wall": 2, "cpu": 3, "peak_mib": 1}, "new_base_mib": 1.2}


def base_files(table: Path, case: Case, *, codec: str = "gzip", backwards: bool = False) -> Path:
    half = case.rows // 2
    for part in (0, 1):
        (table / str(part)).mkdir(parents=True)
        for start in (0, half):
            ids = np.arange(start + part, start + half, 2)[:: -1 if backwards else 1]
            keys = pa.table({"id": [f"key-{number:012}" for number in ids]})
            pq.write_table(keys, table / str(part) / f"{start}-0_0-1-1_20260101000000000.parquet", compression=codec)
    return table


def test_the_layout_of_a_table_is_checked(tmp_path: Path) -> None:
    case = Case("20k")
    good = base_files(tmp_path / "good", case)
    check_layout(good, case)
    with pytest.raises(RuntimeError, match="rows from"):
        check_layout(base_files(tmp_path / "backwards", case, backwards=True), case)
    with pytest.raises(RuntimeError, match="ZSTD"):
        check_layout(base_files(tmp_path / "zstd", case, codec="zstd"), case)
    older = next(good.glob("0/*.parquet"))
    shutil.copy(older, older.with_name(older.name.replace("_20260101", "_20250101")))
    check_layout(good, case)
    next(good.glob("1/*.parquet")).unlink()
    with pytest.raises(RuntimeError, match="no base file"):
        check_layout(good, case)


def test_the_metadata_table_has_files_only(tmp_path: Path) -> None:
    metadata = tmp_path / ".hoodie" / "metadata"
    for name in (".hoodie", "files"):
        (metadata / name).mkdir(parents=True)
    check_metadata(tmp_path)
    (metadata / "column_stats").mkdir()
    with pytest.raises(RuntimeError, match="column_stats"):
        check_metadata(tmp_path)

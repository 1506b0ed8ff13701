"""The units of a clean: how deletes are spread, what a unit deletes, and what its results prove."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ExecutionError, FormatError
from hudi_core.services.clean.job import SMALLEST_UNIT, CleanedFiles, CleanUnit, clean_units, delete_files, prove
from hudi_core.timeline.actions.clean import CleanPlan

ATTEMPT = TaskAttempt(0, 0, 0)
BASE, LOG = "g_0-0-0_1.parquet", ".g_1.log.1_0-0-0"


def plan_of(**counts: int) -> CleanPlan:
    return CleanPlan(
        "p",
        {
            partition: tuple(f"g{number}-0_0-0-0_1.parquet" for number in range(count))
            for partition, count in counts.items()
        },
    )


@pytest.mark.parametrize(
    ("counts", "parallelism", "sizes"),
    [
        ({"a": 10}, 200, [10]),
        ({"a": 1000}, 4, [250] * 4),
        ({"a": 150, "b": 150}, 200, [SMALLEST_UNIT] * 3),
        ({chr(97 + number): 1 for number in range(20)}, 200, [20]),
        ({"a": 1001}, 4, [251, 251, 251, 248]),
    ],
)
def test_deletes_are_spread_evenly(counts: dict[str, int], parallelism: int, sizes: list[int]) -> None:
    plan = plan_of(**counts)
    units = clean_units(plan, uri="t", storage_options={}, parallelism=parallelism)
    assert [sum(len(names) for names in unit.files.values()) for unit in units] == sizes
    named = [(partition, name) for unit in units for partition, names in unit.files.items() for name in names]
    assert sorted(named) == sorted((partition, name) for partition, names in plan.files.items() for name in names)


@pytest.mark.parametrize(
    "files",
    [{"a": ("../x",)}, {"a": ("notes.txt",)}, {"..": ("g_0-0-0_1.parquet",)}, {".hoodie": ("g_0-0-0_1.parquet",)}],
)
def test_a_unit_checks_its_names_itself(files: dict[str, tuple[str, ...]], tmp_path: Path) -> None:
    with pytest.raises(FormatError):
        delete_files(CleanUnit(str(tmp_path), {}, files), TaskAttempt(0, 0, 0))


@pytest.mark.parametrize(
    "results", [[], [CleanedFiles(9, 0)], [CleanedFiles(11, 0)], [CleanedFiles(5, 0), CleanedFiles(4, 0)]]
)
def test_results_must_cover_the_plan(results: list[CleanedFiles]) -> None:
    with pytest.raises(ExecutionError):
        prove(plan_of(a=10), results)


def test_results_that_cover_the_plan_say_what_was_deleted_now() -> None:
    assert prove(plan_of(a=10), [CleanedFiles(6, 2), CleanedFiles(4, 0)]) == 8


def test_a_plan_without_files_has_no_units() -> None:
    assert clean_units(plan_of(), uri="t", storage_options={}, parallelism=4) == []
    assert prove(plan_of(), []) == 0


@pytest.mark.parametrize("partition", ["", "2024-01-01", "a/b"])
def test_a_unit_deletes_its_files_and_no_others(partition: str, tmp_path: Path) -> None:
    folder = tmp_path / partition
    folder.mkdir(parents=True, exist_ok=True)
    for name in (BASE, LOG, "other_0-0-0_1.parquet"):
        (folder / name).write_text("x")
    unit = CleanUnit(str(tmp_path), {}, {partition: (BASE, LOG)})
    assert delete_files(unit, ATTEMPT) == CleanedFiles(2, 0)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["other_0-0-0_1.parquet"]


def test_a_unit_may_run_again(tmp_path: Path) -> None:
    (tmp_path / LOG).write_text("x")
    unit = CleanUnit(str(tmp_path), {}, {"": (BASE, LOG)})
    assert delete_files(unit, ATTEMPT) == CleanedFiles(2, 1)
    assert delete_files(unit, ATTEMPT) == CleanedFiles(2, 2)


def test_a_unit_with_a_wrong_name_deletes_nothing(tmp_path: Path) -> None:
    (tmp_path / BASE).write_text("x")
    with pytest.raises(FormatError, match="neither a base file nor a log file"):
        delete_files(CleanUnit(str(tmp_path), {}, {"": (BASE, "notes.txt")}), ATTEMPT)
    assert (tmp_path / BASE).exists()

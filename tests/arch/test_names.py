"""Where modules and tests lie: a module's test is found by its name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENGINE = ("hudi_core", "hudi_health", "hudi_spark", "hudi_submit", "hudi_cli")
PRODUCT = ("airflow_hudi", *(f"spark_jobs/{package}" for package in ENGINE))
CORE = ROOT / "spark_jobs" / "hudi_core"
CORE_TESTS = ROOT / "tests" / "unit" / "hudi_core"
MAX_MODULES = 16
LINES_WITHOUT_A_TEST = 60


def product_modules() -> Iterator[Path]:
    for folder in PRODUCT:
        yield from sorted(path for path in (ROOT / folder).rglob("*.py") if path.name != "__init__.py")


def test_folders_are_small() -> None:
    modules = Counter(path.parent.relative_to(ROOT).as_posix() for path in product_modules())
    assert {folder: count for folder, count in modules.items() if count > MAX_MODULES} == {}


def test_every_module_has_a_test_of_its_name() -> None:
    missing = [
        relative.as_posix()
        for path in sorted(CORE.rglob("*.py"))
        if path.name != "__init__.py"
        and len(path.read_text().splitlines()) > LINES_WITHOUT_A_TEST
        and not (CORE_TESTS / (relative := path.relative_to(CORE)).with_name(f"test_{path.name}")).is_file()
    ]
    assert missing == []


def test_every_test_is_named_after_a_module() -> None:
    """`test_job_claims.py` is a part of the tests of `job.py`."""
    lost = []
    for path in sorted(CORE_TESTS.rglob("test_*.py")):
        folder, name = CORE / path.parent.relative_to(CORE_TESTS), path.stem.removeprefix("test_")
        if not any(name == module.stem or name.startswith(f"{module.stem}_") for module in folder.glob("*.py")):
            lost.append(path.relative_to(ROOT).as_posix())
    assert lost == []


def test_unit_holds_tests_only() -> None:
    """What tests share is in tests/support."""
    others = [path for path in (ROOT / "tests" / "unit").rglob("*.py") if not path.name.startswith("test_")]
    assert {path.name for path in others} <= {"__init__.py", "conftest.py"}

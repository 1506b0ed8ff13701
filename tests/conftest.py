"""Fixtures that several test folders share."""

from __future__ import annotations

import gc
import os
import sys
import tarfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.interop.real_hudi import RealHudi
from tests.support.golden_data import WRITTEN, GoldenCase, open_case, reported_table
from tests.support.stale_indexes import StaleTable, stale_table
from tests.support.tiers import part_of

# The cyclic collector at its default takes a twelfth of the CPU time of the unit tests (42.5 s of 939 tests, 38.9 so).
gc.set_threshold(200_000, 20, 100)

# A busy machine takes longer than Hypothesis expects of one example. Each run draws the same examples: what `make test`
# finds does not depend on chance. The fuzz of `make soak` draws others.
settings.register_profile("tests", deadline=None, derandomize=True)
settings.load_profile("tests")


def pytest_addoption(parser: pytest.Parser) -> None:
    """See tests/support/tiers.py."""
    parser.addoption("--part", help="the part of the chosen tests to run, as in 2/4")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, object, object]:
    """Cuts a run into parts behind -m and -k."""
    chosen = yield
    part = config.getoption("--part")
    if part is not None:
        kept = part_of(items, part)
        config.hook.pytest_deselected(items=list(set(items).difference(kept)))
        items[:] = kept
    return chosen


@pytest.fixture
def golden(tmp_path: Path) -> Callable[[str, str], GoldenCase]:
    """`golden("6", "mor_basic")`: a fresh copy of a table that real Hudi wrote."""

    def make(version: str, name: str) -> GoldenCase:
        return open_case(version, name, tmp_path)

    return make


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tables that tests/golden/make_metadata_tables.py had real Hudi write. Tests that change one
    copy it first.
    """
    folder = tmp_path_factory.mktemp("written")
    with tarfile.open(WRITTEN) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)  # from 3.10.12 and 3.11.4 on
        tar.extractall(folder)
    return folder


@pytest.fixture
def reported(tmp_path: Path) -> Callable[[str], Path]:
    """`reported("duplicate_keys_v9")`: a fresh copy of a table that was once read or served wrongly."""

    def make(name: str) -> Path:
        return reported_table(name, tmp_path)

    return make


@pytest.fixture
def stale(tmp_path: Path) -> Callable[[str], StaleTable]:
    """A fresh copy of a table that tests/golden/make_stale_indexes.py had real Hudi write."""

    def make(name: str) -> StaleTable:
        return stale_table(name, tmp_path)

    return make


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One plain Spark 3.5 session without any Hudi jar, for all tests that need one."""
    from hudi_core.request.java import find_java

    os.environ["JAVA_HOME"] = find_java()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC -XX:+UseSerialGC -XX:TieredStopAtLevel=1")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def _worker(version: str) -> Iterator[RealHudi]:
    hudi = RealHudi(version)
    yield hudi
    hudi.close()


@pytest.fixture(scope="session")
def hudi_0_15() -> Iterator[RealHudi]:
    """Real Hudi 0.15.0: the native version of table version 6."""
    yield from _worker("0.15.0")


@pytest.fixture(scope="session")
def hudi_1_0() -> Iterator[RealHudi]:
    """Real Hudi 1.0.2: the native version of table version 8."""
    yield from _worker("1.0.2")


@pytest.fixture(scope="session")
def hudi_1_1() -> Iterator[RealHudi]:
    """Real Hudi 1.1.1, kept from upgrading the tables it writes; native to table version 9 as well."""
    yield from _worker("1.1.1")


@pytest.fixture(scope="session")
def hudi_1_2() -> Iterator[RealHudi]:
    """Real Hudi 1.2.0, kept from upgrading the tables it writes."""
    yield from _worker("1.2.0")

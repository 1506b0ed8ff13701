"""One worker of each Hudi version for the whole test session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.real_hudi import RealHudi


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

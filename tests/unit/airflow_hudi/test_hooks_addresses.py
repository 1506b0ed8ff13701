"""Addresses as Airflow's names are made of them."""

from __future__ import annotations

import pytest

from airflow_hudi.hooks import is_absolute, split_address
from hudi_core.errors import ConfigError


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("s3a://lake/a/t#old?x", ("s3", "lake", "/a/t#old?x")),
        ("S3://lake", ("s3", "lake", "")),
        ("abfss://c@account/t", ("abfss", "c@account", "/t")),
        ("gs://la[ke/t", ("gs", "la[ke", "/t")),
        ("/data/t#old/", ("file", "", "/data/t#old/")),
        ("/data/a%20b", ("file", "", "/data/a%20b")),
        ("FILE:///data/a%20b?x", ("file", "", "/data/a b?x")),
        ("file:/data/t", ("file", "", "/data/t")),
        ("sales/orders", ("file", "", "sales/orders")),
    ],
)
def test_the_parts_of_an_address(address: str, parts: tuple[str, str, str]) -> None:
    assert split_address(address) == parts


@pytest.mark.parametrize("address", ["", "file://other/t"])
def test_no_address(address: str) -> None:
    with pytest.raises(ConfigError):
        split_address(address)


def test_absolute_addresses() -> None:
    given = ("s3://lake/t", "/t", "file:/t", "File:///t", "t", "a:b/t", "")
    assert [is_absolute(address) for address in given] == [True] * 4 + [False] * 3

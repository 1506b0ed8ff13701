from __future__ import annotations

import pytest

from hudi_core.config.options import KEYS, check_options, misspelt
from hudi_core.errors import ConfigError


def test_no_options_are_valid() -> None:
    check_options({})


@pytest.mark.parametrize(
    "options",
    [
        {"airflow_hudi.memory.byte": "1"},
        {"airflow_hudi.memory.bytes": "1k"},
        {"hoodie.index.bloom.fpp": "1"},
        {"hoodie.parquet.compression.codec": "RAR"},
        {"hoodie.client.heartbeat.interval_in_ms": "0"},
    ],
)
def test_options_that_mean_nothing_are_refused_by_name(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        check_options(options)
    assert next(iter(options)) in str(caught.value)


def test_options_of_hudi_that_this_release_has_no_use_for_pass() -> None:
    check_options({"hoodie.cleaner.policy": "KEEP_LATEST_COMMITS"})


def test_every_option_is_documented_once() -> None:
    assert len({key.name for key in KEYS}) == len(KEYS)
    assert all(key.doc for key in KEYS)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("hoodie.clean.commit.retained", "hoodie.clean.commits.retained"),
        ("hoodie.cleaner.commits.retain", "hoodie.cleaner.commits.retained"),
        ("hoodie.keep.min.comits", "hoodie.keep.min.commits"),
        ("hoodie.write.lock.providr", "hoodie.write.lock.provider"),
    ],
)
def test_a_misspelt_option_of_hudi(name: str, meant: str) -> None:
    assert misspelt({name: "1", meant: "2"}) == {name: meant}

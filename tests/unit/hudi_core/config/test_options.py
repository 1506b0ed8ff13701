from __future__ import annotations

import json
import logging
from collections.abc import Callable
from importlib import import_module
from importlib.resources import files
from pkgutil import walk_packages

import pytest

from hudi_core import config
from hudi_core.config.keys import keys_in
from hudi_core.config.metadata_config import METADATA_TABLE_KEYS
from hudi_core.config.options import KEYS, check_options, misspelt, warn_of_misspelt
from hudi_core.errors import ConfigError
from hudi_core.filegroup.write import key_generator
from hudi_core.table import HudiTable
from tests.support.golden_data import GoldenCase


def test_no_options_are_valid() -> None:
    check_options({})


@pytest.mark.parametrize(
    "options",
    [
        {"airflow_hudi.memory.byte": "1"},
        {" airflow_hudi.memory.bytes": "1"},
        {"Airflow_hudi.memory.bytes": "1"},
        {"hoodie.compaction.partition.path.regex": "2024-01-0[1-3&&[^2]]"},
        {"hoodie.compaction.partition.path.regex": r"\p{Digit}+"},
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
    assert all(key.doc for key in (*KEYS, *METADATA_TABLE_KEYS))


def test_meanings_are_sorted_and_those_of_keys() -> None:
    meanings = json.loads((files("hudi_core.config") / "options.json").read_bytes())
    assert list(meanings) == sorted(meanings)
    modules = [import_module(module.name) for module in walk_packages(config.__path__, "hudi_core.config.")]
    named = {key.name for module in (*modules, key_generator) for key in keys_in(vars(module))}
    assert meanings.keys() == named


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


MISSPELT = {"hoodie.clean.commit.retained": "3"}
WARNING = (
    "the option hoodie.clean.commit.retained does not exist and has no effect; hoodie.clean.commits.retained does: "
    "was that meant?"
)


def test_a_misspelt_option_is_warned_about_with_the_nearest_name(caplog: pytest.LogCaptureFixture) -> None:
    warn_of_misspelt({**MISSPELT, "hoodie.clean.commits.retained": "3", "hoodie.of.another.program": "1"})
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [(logging.WARNING, WARNING)]


def test_whoever_opens_a_table_is_warned(
    golden: Callable[[str, str], GoldenCase], caplog: pytest.LogCaptureFixture
) -> None:
    HudiTable.open(str(golden("9", "cow_basic").table), options=MISSPELT)
    assert caplog.messages.count(WARNING) == 1

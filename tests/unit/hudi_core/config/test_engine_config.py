"""Options of the local engine."""

from __future__ import annotations

import os

import pytest

from hudi_core.config.engine_config import EngineConfig
from hudi_core.config.options import check_options
from hudi_core.errors import ConfigError


def test_the_width_is_that_of_the_process_unless_an_option_says_so() -> None:
    assert EngineConfig.of({}).width == len(os.sched_getaffinity(0))
    assert EngineConfig.of({"airflow_hudi.engine.local.processors": "3"}).width == 3


@pytest.mark.parametrize("name", ["max.bytes", "max.units", "memory.bytes", "processors"])
def test_wrong_numbers_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        check_options({f"airflow_hudi.engine.local.{name}": "-1"})

"""Names of which there are only some."""

from __future__ import annotations

import pytest

from hudi_core.errors import ConfigError
from hudi_core.request.texts import check_choice, nearest

ENGINES = ("spark", "auto", "local")


@pytest.mark.parametrize(("given", "meant"), [("sprak", "spark"), ("locl", "local"), ("flink", None), ("", None)])
def test_a_misspelt_name_is_told_from_another_one(given: str, meant: str | None) -> None:
    assert nearest(given, ENGINES) == meant


def test_the_remedy_has_the_name_that_is_meant_and_all_others() -> None:
    check_choice("engine", "auto", ENGINES)
    with pytest.raises(ConfigError) as error:
        check_choice("engine", "sprak", ENGINES)
    assert str(error.value) == "engine is 'sprak' (did you mean spark? one of spark, auto, local)"
    with pytest.raises(ConfigError) as error:
        check_choice("engine", 5, ENGINES)
    assert str(error.value) == "engine is 5 (one of spark, auto, local)"

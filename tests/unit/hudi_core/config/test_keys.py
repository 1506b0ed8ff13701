from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from hudi_core.config.keys import (
    ConfigKey,
    boolean,
    flag,
    keys_in,
    name_list,
    names,
    number,
    one_of,
    optional,
    read_fields,
    real_number,
    whole_number,
)
from hudi_core.errors import ConfigError


def test_the_first_name_that_is_set_wins_and_absence_gives_the_default() -> None:
    key: ConfigKey[int] = ConfigKey("new", 7, whole_number(0, 10), ("old",), "a number")
    assert key.read({}) == 7
    assert key.read({"old": " 3 "}) == 3
    assert key.read({"old": "3", "new": "4"}) == 4
    assert key.is_set({"old": "3"})
    assert not key.is_set({"other": "3"})
    with pytest.raises(ConfigError) as caught:
        key.read({"old": "11"}, path="file")
    assert "old" in str(caught.value)
    assert (caught.value.path, caught.value.remedy) == ("file", "a number")


def test_parsers() -> None:
    assert name_list(" a, b,,c ") == ("a", "b", "c")
    assert name_list("") == ()
    assert TITLE.read({"title": ""}) is None
    assert boolean("TRUE") is True
    assert one_of("GZIP", "ZSTD")("gzip") == "GZIP"
    assert real_number(0, 1)("1e-9") == 1e-9
    for parse, text in (
        (boolean, "1"),
        (one_of("A"), "B"),
        (real_number(0, 1), "0"),
        (real_number(0, 1), "nan"),
        (whole_number(0, 9), "1.5"),
    ):
        with pytest.raises(ValueError):
            parse(text)


@pytest.mark.parametrize(("parse", "kind"), [(whole_number(0, 9), "a whole number"), (real_number(0, 9), "a number")])
def test_a_value_that_is_no_number_is_named_in_words(parse: Callable[[str], float], kind: str) -> None:
    key: ConfigKey[float] = ConfigKey("k", 1, parse)
    with pytest.raises(ConfigError) as refused:
        key.read({"k": "soon"})
    assert refused.value.message == f"k is 'soon': not {kind}"


COUNT = number("count", 3, within=(0, 9), aliases=("old.count",))
LISTED = names("listed")
QUIET = flag("quiet")
TITLE = optional("title")


@dataclass(frozen=True)
class Chosen:
    place: str
    count: int = COUNT.field()
    listed: tuple[str, ...] = LISTED.field()
    quiet: bool = QUIET.field()
    title: str | None = TITLE.field()


def test_an_object_is_read_by_the_keys_of_its_fields() -> None:
    assert read_fields(Chosen, {}, place="here") == Chosen("here") == Chosen("here", 3, (), False, None)
    options = {"old.count": "4", "listed": "a, b", "quiet": "TRUE", "title": "t"}
    assert read_fields(Chosen, options, place="here") == Chosen("here", 4, ("a", "b"), True, "t")


def test_a_given_field_is_not_read() -> None:
    assert read_fields(Chosen, {"count": "many"}, place="here", count=7).count == 7
    with pytest.raises(ConfigError, match="count is 'many'") as caught:
        read_fields(Chosen, {"count": "many"}, source="the properties", place="here")
    assert caught.value.path == "the properties"


def test_the_keys_of_a_module_come_in_their_order() -> None:
    assert keys_in(globals()) == (COUNT, LISTED, QUIET, TITLE)

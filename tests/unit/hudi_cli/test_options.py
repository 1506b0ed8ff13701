from __future__ import annotations

import os

import pytest

from hudi_cli import options
from hudi_cli.options import Target, parse_pairs
from hudi_core.errors import ConfigError
from tests.support.hudictl_runner import hudictl


@pytest.mark.parametrize("error", [KeyError("getpwuid(): uid not found: 1000680000"), OSError("No username set")])
def test_a_user_without_a_name_is_its_number(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """As in a container of OpenShift; an OSError from Python 3.13 on."""

    def fail() -> str:
        raise error

    monkeypatch.setattr(options, "getuser", fail)
    assert Target("t", (), None).request_fields(())["owner"] == f"hudictl of uid {os.getuid()}"


@pytest.mark.parametrize(
    "words",
    [
        ("run", "compaction", "t", "--instant", "1", "--instant", "2"),
        ("run", "compaction", "t", "--max-minutes=1", "--max-minutes=1"),
        ("insert-overwrite", "t", "--source", "a", "--token", "1", "--token", "2"),
        ("read", "t", "--output", "a", "--columns", "a", "--columns", "b"),
        ("savepoint", "delete", "t", "--instant", "1", "--instant", "2"),
        ("metadata", "create", "t", "--engine", "local", "--engine", "spark"),
    ],
)
def test_an_option_of_one_value_is_given_once(words: tuple[str, ...]) -> None:
    done = hudictl(*words, "--json")
    assert (done.code, done.error["type"]) == (2, "UsageError")
    assert "is given more than once" in done.error["message"]
    assert " ".join(words[: 2 if words[0] in ("savepoint", "metadata") else 1]) in done.error["remedy"]


def test_blanks_around_a_name_are_not_of_it() -> None:
    assert parse_pairs([" a =1 ", "b= c"], option="--option") == {"a": "1 ", "b": " c"}
    with pytest.raises(ConfigError, match="names a twice"):
        parse_pairs(["a=1", " a=2"], option="--option")


def test_what_may_be_repeated_may() -> None:
    words = ("metadata", "create", "t", "--json", "--json", "--partition", "a", "--partition", "b")
    assert "not a Hudi table" in hudictl(*words, "--option", "a=1", "--option", "b=1").error["message"]
    assert "Usage: hudictl run" in hudictl("run", "--help", "--help").out

"""JSON of a timeline is JSON as Jackson reads it."""

from __future__ import annotations

import pytest

from hudi_core.errors import CorruptFileError
from hudi_core.timeline.actions.content import load_object, member


def test_an_object() -> None:
    assert load_object(b'{"a": -1e3, "b": "NaN"}', path="p") == {"a": -1000.0, "b": "NaN"}


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "[1, NaN]"])
def test_what_python_reads_and_jackson_refuses(text: str) -> None:
    with pytest.raises(CorruptFileError, match="is no number") as caught:
        load_object(f'{{"a": {text}}}'.encode(), path="p")
    assert (caught.value.path, bool(caught.value.remedy)) == ("p", True)


def test_a_number_that_is_no_long_is_refused_as_by_jackson() -> None:
    raw = load_object(b'{"most": 9223372036854775807, "more": 9223372036854775808}', path="T.commit")
    assert member(raw, "most", int, path="T.commit") == 2**63 - 1
    with pytest.raises(CorruptFileError, match="'more' holds a number that is no long"):
        member(raw, "more", int, path="T.commit")

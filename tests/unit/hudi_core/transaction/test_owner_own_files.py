"""JSON files of ours that anybody may have written."""

from __future__ import annotations

import pytest

from hudi_core.errors import CorruptFileError
from hudi_core.transaction.owner import parse_own


def test_an_object() -> None:
    assert parse_own(b'{"owner": {"pid": 7}}', "the claim", path="f") == {"owner": {"pid": 7}}


@pytest.mark.parametrize(
    "data", [b"", b"{", b"null", b"[]", b"7", b"\xff", b'{"a": ' + b"9" * 10_000 + b"}", b"[" * 100_000]
)
def test_what_is_no_object_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match="the claim is not") as caught:
        parse_own(data, "the claim", path="f")
    assert caught.value.path == "f"

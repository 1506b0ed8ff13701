from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.config.properties import parse_properties, render_properties
from hudi_core.errors import CorruptFileError

PATH = ".hoodie/hoodie.properties"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", {}),
        (b"#c\n!c\n  # c\n\n", {}),
        (b"a=b", {"a": "b"}),
        (b"a = b ", {"a": "b "}),
        (b"a:b\r\nc d\re\tf", {"a": "b", "c": "d", "e": "f"}),
        (b"a", {"a": ""}),
        (b"a=", {"a": ""}),
        (b"a==b", {"a": "=b"}),
        (b"a = = b", {"a": "= b"}),
        (rb"a\=\:\ b=c\=d", {"a=: b": "c=d"}),
        (rb"yyyy-MM-dd'T'HH\:mm=x\:y", {"yyyy-MM-dd'T'HH:mm": "x:y"}),
        (b"a=1,\\\n   2,\\\n\t3\nb=4", {"a": "1,2,3", "b": "4"}),
        (b"a=x\\\\\nb=y", {"a": "x\\", "b": "y"}),
        (rb"a=\t\n\r\f\q", {"a": "\t\n\r\fq"}),
        (rb"a=\u00e9\u4e2d\ud83d\ude00", {"a": "é中😀"}),
        ("a=é".encode("latin-1"), {"a": "é"}),
        (b"a=1\na=2", {"a": "2"}),
        (b"a=x\\\n# no comment\nb=1", {"a": "x# no comment", "b": "1"}),
        (b"a\\\\=b", {"a\\": "b"}),
        (b"a=end\\", {"a": "end"}),
    ],
)
def test_java_properties(text: bytes, expected: dict[str, str]) -> None:
    assert parse_properties(text, path=PATH) == expected


def store(properties: dict[str, str]) -> bytes:
    """As java.util.Properties.store writes them."""
    return b"".join(_escape(key, True) + b"=" + _escape(value, False) + b"\n" for key, value in properties.items())


def _escape(text: str, is_key: bool) -> bytes:
    out = []
    units = text.encode("utf-16-be", "surrogatepass")
    for number in range(0, len(units), 2):
        code = int.from_bytes(units[number : number + 2], "big")
        char = chr(code)
        if char == " " and (is_key or number == 0):
            out.append("\\ ")
        elif char in "\t\n\r\f":
            out.append({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}[char])
        elif char in "\\=:#!":
            out.append("\\" + char)
        elif not 0x20 <= code <= 0x7E:
            out.append(f"\\u{code:04X}")
        else:
            out.append(char)
    return "".join(out).encode("ascii")


@settings(max_examples=200)
@given(st.dictionaries(st.text(max_size=8).filter(bool), st.text(max_size=12), max_size=4))
def test_what_java_stores_is_read_back(properties: dict[str, str]) -> None:
    assert parse_properties(store(properties), path=PATH) == properties


@settings(max_examples=200)
@given(st.binary(max_size=60))
def test_any_bytes_parse_or_are_corrupt(data: bytes) -> None:
    try:
        found = parse_properties(data, path=PATH)
    except CorruptFileError:
        return
    assert all(isinstance(value, str) for value in found.values())


@pytest.mark.parametrize("data", [b"a=\x00", rb"a=\u12", rb"a=\u", rb"a=\uzzzz", rb"a=\ud83d"])
def test_what_is_no_properties_file_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFileError) as caught:
        parse_properties(data, path=PATH)
    assert caught.value.path == PATH


@settings(deadline=None)
@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"]))
    )
)
def test_what_is_rendered_is_parsed_again(properties: dict[str, str]) -> None:
    data = render_properties(properties, comments=["one\ntwo", "three"])
    assert parse_properties(data, path=PATH) == properties
    assert data.isascii()
    assert data.startswith(b"#one two\n#three\n")


def test_properties_are_escaped_as_java_does() -> None:
    """Properties.store: all blanks of a key, the leading one of a value, `= : # !` everywhere."""
    data = render_properties({"a b:c": " x =y", "d": "#é!\t\\😀"})
    assert data == b"a\\ b\\:c=\\ x \\=y\nd=\\#\\u00E9\\!\\t\\\\\\uD83D\\uDE00\n"

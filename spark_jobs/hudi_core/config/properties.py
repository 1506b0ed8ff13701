r"""Java `.properties` text: Latin-1, `\` escapes, `#` and `!` comments, continued lines (Properties.load, store)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Final

from hudi_core.errors import CorruptFileError

CREATED: Final = "Properties saved on"
"""What Hudi says of the time of a new file."""
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|u|.|$)", re.DOTALL)
_KEY_END = re.compile(r"(?<!\\)(?:\\\\)*([=: \t\f])")
_PLAIN = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = str.maketrans({char: f"\\{name}" for name, char in (*_PLAIN.items(), *zip("\\=:#!", "\\=:#!", strict=True))})
_FOREIGN = re.compile(r"[^ -~]+")


def parse_properties(data: bytes, *, path: str) -> dict[str, str]:
    """Returns the properties in file order. The last of a repeated key wins. Raises CorruptFileError naming `path`."""
    if b"\x00" in data:
        raise CorruptFileError(
            "the file holds NUL bytes, so it is not a properties file", path=path, remedy="restore it from a backup"
        )
    properties: dict[str, str] = {}
    for line in _logical_lines(data.decode("iso-8859-1")):
        key, value = _split(line)
        properties[_unescape(key, path)] = _unescape(value, path)
    return properties


def render_properties(properties: Mapping[str, str], *, comments: Iterable[str] = ()) -> bytes:
    """Returns the text of `properties`, escaped as by Properties.store, after a `#` line for each of `comments`."""
    lines = [f"#{' '.join(comment.split())}" for comment in comments]
    lines += [
        f"{_escape(key, all_blanks=True)}={_escape(value, all_blanks=False)}" for key, value in properties.items()
    ]
    return "".join(f"{line}\n" for line in lines).encode("ascii", "backslashreplace")


def stamped_properties(properties: Mapping[str, str], said: str) -> bytes:
    """Returns the text of `properties` after the two lines that Hudi writes: what is `said` of this time, and it."""
    now = datetime.now(timezone.utc)
    stamp = now.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return render_properties(properties, comments=(f"{said} {stamp}", now.strftime("%a %b %d %H:%M:%S UTC %Y")))


def _escape(text: str, *, all_blanks: bool) -> str:
    """Returns the escaped text: all blanks of a key; of a value only a leading one, which looks like a separator's."""
    escaped = _FOREIGN.sub(_unicode, text.translate(_ESCAPED))
    if all_blanks:
        return escaped.replace(" ", "\\ ")
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _unicode(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex().upper()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    parts: list[str] = []
    for natural in re.split(r"\r\n|\r|\n", text):
        line = natural.lstrip(" \t\f")
        if not parts and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            parts.append(line[:-1])
            continue
        lines.append("".join((*parts, line)))
        parts.clear()
    lines.append("".join(parts))
    return [line for line in lines if line]


def _split(line: str) -> tuple[str, str]:
    """Returns key and value. The key ends at the first unescaped `=`, `:` or blank. Blanks around it are in neither."""
    match = _KEY_END.search(line)
    if match is None:
        return line, ""
    end = match.start(1)
    rest = line[end:].lstrip(" \t\f")
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(" \t\f")
    return line[:end], rest


def _unescape(text: str, path: str) -> str:
    if "\\" not in text:
        return text

    def replace(match: re.Match[str]) -> str:
        code = match[1]
        if len(code) == 5:
            return chr(int(code[1:], 16))
        if code == "u":
            raise CorruptFileError(
                "a \\u escape without four hexadecimal digits", path=path, remedy="restore the file from a backup"
            )
        return _PLAIN.get(code, code)

    joined = _ESCAPE.sub(replace, text)
    if not any("\ud800" <= char <= "\udfff" for char in joined):
        return joined
    try:
        # Java escapes a character beyond U+FFFF as two surrogates.
        return joined.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError as error:
        raise CorruptFileError(
            "a \\u escape is half of a surrogate pair", path=path, remedy="restore the file from a backup"
        ) from error

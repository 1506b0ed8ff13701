"""The console that prints text for people. It is imported with the first text: help needs none."""

from __future__ import annotations

from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from hudi_core.errors import without_controls

_WIDTH_WITHOUT_TERMINAL = 200


class _TableConsole(Console):
    """A console that escapes control characters in texts of a table, in lines and in cells."""

    def render_str(self, text: str, **given: Any) -> Text:
        return super().render_str(without_controls(text), **given)


def open_console(stream: TextIO) -> Console:
    return _TableConsole(file=stream, width=None if stream.isatty() else _WIDTH_WITHOUT_TERMINAL)

"""What hudictl prints and where: results to stdout, everything else to stderr.

Also what Java and native libraries print.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from hudi_core.engine.protocol import Json
from hudi_core.errors import CONTROLS, HudiError, without_controls
from hudi_core.request.outcome import error_to_json

_WIDTH_WITHOUT_TERMINAL = 200


@contextmanager
def results_only_stdout() -> Iterator[TextIO]:
    """Yields the real stdout while file descriptor 1 points at stderr, for native code and child processes."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with os.fdopen(os.dup(kept), "w", encoding="utf-8") as stream:
            yield stream
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


class Output:
    """One command's output. With `json_mode` stdout receives exactly one JSON document; without, tables for people."""

    def __init__(self, stdout: TextIO, stderr: TextIO, *, json_mode: bool = False, debug: bool = False) -> None:
        self.json_mode = json_mode
        self.debug = debug
        self._stdout = stdout
        self._people = _console(stdout)
        self.log = _console(stderr)
        self._written = False

    @property
    def width(self) -> int:
        """Columns that results for people have."""
        return self._people.width

    def result(self, document: Json, shown: Iterable[RenderableType]) -> None:
        """Prints the command's JSON document, or what is `shown` to people: lines of text, and tables."""
        if self.json_mode:
            self._write(document)
            return
        for item in shown:
            self._people.print(item, highlight=False, soft_wrap=not isinstance(item, Table))

    def error(self, error: HudiError) -> None:
        """Prints an error with its file and remedy: as the JSON document, or to stderr."""
        self._failure(error_to_json(error))

    def failure(self, kind: str, message: str, remedy: str | None = None) -> None:
        """As `error`, for what is not a HudiError."""
        self._failure({"type": kind, "message": message, "path": None, "remedy": remedy})

    def trace(self) -> None:
        """With --debug: the traceback of the exception that is being handled."""
        if self.debug:
            self.log.print(traceback.format_exc(), markup=False, highlight=False)

    def note(self, text: str) -> None:
        """A line about the work on stderr, in both modes."""
        self._log_line(escape(text))

    def warn(self, text: str) -> None:
        """A warning on stderr, in both modes."""
        self._log_line(f"[yellow]warning:[/] {escape(text)}")

    def complain(self, text: str) -> None:
        """An error on stderr, in both modes."""
        self._log_line(f"[bold red]error:[/] {escape(text)}")

    def _failure(self, body: Json) -> None:
        self.complain(body["message"])
        for label, key in (("file:", "path"), ("fix: ", "remedy")):
            if body[key]:
                self._log_line(f"  [bold]{label}[/] {escape(body[key])}")
        if self.json_mode and not self._written:
            self._write({"error": body})

    def _log_line(self, text: str) -> None:
        self.log.print(text.replace("\n", "\n  "), highlight=False, soft_wrap=True)

    def _write(self, document: Json) -> None:
        # JSON escapes most control characters itself; of the others, inside of texts, the escape is JSON as well.
        text = CONTROLS.sub(
            lambda found: f"\\u{ord(found[0]):04x}", json.dumps(document, ensure_ascii=False, default=_plain)
        )
        self._written = True
        self._stdout.write(text + "\n")
        self._stdout.flush()


class _TableConsole(Console):
    """Texts from a table, in lines and in cells, have their control characters escaped."""

    def render_str(self, text: str, **given: Any) -> Text:
        """See Console."""
        return super().render_str(without_controls(text), **given)


def _console(stream: TextIO) -> Console:
    return _TableConsole(file=stream, width=None if stream.isatty() else _WIDTH_WITHOUT_TERMINAL)


def _plain(value: Any) -> Any:
    """Avro's bytes and fixed values, which JSON has no form for, as base64."""
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode("ascii")
    raise TypeError(f"{type(value).__name__} has no JSON form")

"""What hudictl prints and where: results to stdout, everything else to stderr.

Also what Java and native libraries print.
"""

from __future__ import annotations

import base64
import io
import json
import math
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import date, time
from decimal import Decimal
from typing import Any, TextIO

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from hudi_core.engine.protocol import Json
from hudi_core.errors import CONTROLS, HudiError, without_controls
from hudi_core.request.results import error_to_json

_WIDTH_WITHOUT_TERMINAL = 200


class NotPrintedError(Exception):
    """Stdout took no more: its disk is full, or the process that read it is gone. The message is the system's."""


class _Results(io.TextIOWrapper):
    """Stdout. Its failures are NotPrintedError: a broken pipe of a storage is something else."""

    def write(self, text: str) -> int:
        with _as_not_printed():
            return super().write(text)

    def flush(self) -> None:
        with _as_not_printed():
            super().flush()


class _Log(io.TextIOWrapper):
    """Stderr. What it does not take is lost: that ends no work."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


@contextmanager
def _as_not_printed() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise NotPrintedError(error.strerror) from error


def open_streams() -> None:
    """Opens the null device for each of the descriptors 0 to 2 that is closed: otherwise the next file of a table
    would get that number, and what is printed. Makes sys.stderr a stream whose failures end no work.
    """
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(handle, True)
    os.close(handle)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115 (as the interpreter's own)
    encoding = sys.stderr.encoding if sys.stderr else None
    stream = open(2, "wb", closefd=False)  # noqa: SIM115
    sys.stderr = _Log(stream, encoding, errors="backslashreplace", line_buffering=True)


@contextmanager
def results_only_stdout() -> Iterator[TextIO]:
    """Yields the real stdout while file descriptor 1 points at stderr, for native code and child processes.

    Each result is flushed by the code that prints it, so what is left at the end was reported then.
    """
    sys.stdout.flush()
    # Half of a surrogate pair, which JSON of a table may hold, is escaped; that is its form in JSON as well.
    stream = _Results(open(os.dup(1), "wb"), encoding="utf-8", errors="backslashreplace")  # noqa: SIM115 (closed below)
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield stream
    finally:
        with suppress(NotPrintedError, OSError):
            stream.close()
        with suppress(OSError):
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
            line = item.replace("\n", "\n  ") if isinstance(item, str) else item
            self._people.print(line, highlight=False, soft_wrap=not isinstance(item, Table))

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
            with suppress(NotPrintedError):  # it is on stderr, and the exit code remains that of the error
                self._write({"error": body})

    def _log_line(self, text: str) -> None:
        self.log.print(text.replace("\n", "\n  "), highlight=False, soft_wrap=True)

    def _write(self, document: Json) -> None:
        # JSON escapes most control characters itself; of the others, inside of texts, the escape is JSON as well.
        text = CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", json_text(document))
        self._written = True
        self._stdout.write(text + "\n")
        self._stdout.flush()


class _TableConsole(Console):
    """Texts from a table, in lines and in cells, have their control characters escaped."""

    def render_str(self, text: str, **given: Any) -> Text:
        return super().render_str(without_controls(text), **given)


def _console(stream: TextIO) -> Console:
    return _TableConsole(file=stream, width=None if stream.isatty() else _WIDTH_WITHOUT_TERMINAL)


def json_text(document: Any) -> str:
    """The document as one line of JSON."""
    try:
        return json.dumps(document, ensure_ascii=False, default=_plain, allow_nan=False)
    except ValueError:  # Avro of a table may hold NaN and infinity, for which JSON has no form
        return json.dumps(_finite(document), ensure_ascii=False, default=_plain, allow_nan=False)


def _finite(value: Any) -> Any:
    """`value` with null for each number that is not finite."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any) -> Any:
    """What JSON has no form for: bytes and fixed values as base64, times as ISO 8601, decimals in digits."""
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode("ascii")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")

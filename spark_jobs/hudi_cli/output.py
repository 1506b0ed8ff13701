"""Prints hudictl's results to stdout, and all else to stderr, also the output of Java and native libraries."""

from __future__ import annotations

import io
import json
import math
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO

from hudi_core.errors import CONTROLS, HudiError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from hudi_core.engine.protocol import Json


class NotPrintedError(Exception):
    """Stdout accepts no more: its disk is full, or the process that read it is gone. The message is the system's."""


class _Results(io.TextIOWrapper):
    """Stdout. Its failures are NotPrintedError, to tell them from a broken pipe of a storage."""

    def write(self, text: str) -> int:
        with _as_not_printed():
            return super().write(text)

    def flush(self) -> None:
        with _as_not_printed():
            super().flush()


class _Log(io.TextIOWrapper):
    """Stderr. Text that it does not accept is lost, so that its failures do not end the work."""

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
    """Opens the null device for each closed descriptor from 0 to 2. Otherwise the next file of a table would get that
    number, and the printed text. Also replaces sys.stderr by a stream whose failures do not end the work.
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

    The code that prints a result also flushes it. So a failure at the end was already reported.
    """
    sys.stdout.flush()
    # JSON of a table may hold half of a surrogate pair. It is escaped, which is also its form in JSON.
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
    """The output of one command. With `json_mode` stdout gets exactly one JSON document, else tables for people."""

    def __init__(self, stdout: TextIO, stderr: TextIO, *, json_mode: bool = False, debug: bool = False) -> None:
        self.json_mode = json_mode
        self.debug = debug
        self._stdout = stdout
        self._stderr = stderr
        self._written = False

    @cached_property
    def log(self) -> Console:
        """Stderr, for people."""
        return self._console(self._stderr)

    @cached_property
    def _people(self) -> Console:
        return self._console(self._stdout)

    def _console(self, stream: TextIO) -> Console:
        from hudi_cli.console import open_console

        return open_console(stream)

    @property
    def width(self) -> int:
        """The number of columns of results for people."""
        return self._people.width

    def result(self, document: Json, shown: Iterable[RenderableType]) -> None:
        """Prints the command's JSON document, or `shown` for people: lines of text, and tables."""
        if self.json_mode:
            self._write(document)
            return
        from rich.table import Table

        for item in shown:
            line = item.replace("\n", "\n  ") if isinstance(item, str) else item
            self._people.print(line, highlight=False, soft_wrap=not isinstance(item, Table))

    def error(self, error: HudiError) -> None:
        """Prints an error with its file and remedy: as the JSON document, or to stderr."""
        from hudi_core.request.results import error_to_json

        self._failure(error_to_json(error))

    def failure(self, kind: str, message: str, remedy: str | None = None) -> None:
        """Prints an error that is not a HudiError, in the form of `error`."""
        self._failure({"type": kind, "message": message, "path": None, "remedy": remedy})

    def trace(self) -> None:
        """Prints the traceback of the current exception, with --debug."""
        if self.debug:
            self.log.print(traceback.format_exc(), markup=False, highlight=False)

    def note(self, text: str) -> None:
        """Prints a line about the work to stderr, in both modes."""
        self._log_line(text)

    def warn(self, text: str) -> None:
        """Prints a warning to stderr, in both modes."""
        self._log_line(text, "[yellow]warning:[/] ")

    def complain(self, text: str) -> None:
        """Prints an error to stderr, in both modes."""
        self._log_line(text, "[bold red]error:[/] ")

    def _failure(self, body: Json) -> None:
        self.complain(body["message"])
        for label, key in (("file:", "path"), ("fix: ", "remedy")):
            if body[key]:
                self._log_line(body[key], f"  [bold]{label}[/] ")
        if self.json_mode and not self._written:
            with suppress(NotPrintedError):  # The error is on stderr, and the exit code remains the error's.
                self._write({"error": body})

    def _log_line(self, text: str, head: str = "") -> None:
        """Prints `head`, which is markup, and the text, which is not."""
        from rich.markup import escape

        self.log.print((head + escape(text)).replace("\n", "\n  "), highlight=False, soft_wrap=True)

    def _write(self, document: Json) -> None:
        # json escapes most control characters itself. The others, inside of texts, may be escaped in JSON, too.
        text = CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", json_text(document))
        self._written = True
        self._stdout.write(text + "\n")
        self._stdout.flush()


def json_text(document: Any) -> str:
    """Returns the document as one line of JSON."""
    try:
        return json.dumps(document, ensure_ascii=False, default=_plain, allow_nan=False)
    except ValueError:  # Avro of a table may hold NaN and infinity, which JSON cannot express.
        return json.dumps(_finite(document), ensure_ascii=False, default=_plain, allow_nan=False)


def _finite(value: Any) -> Any:
    """Returns `value` with null in place of each number that is not finite."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any) -> Any:
    """Returns a JSON form of other values: bytes and fixed values as base64, times as ISO 8601, decimals as digits."""
    # Most documents hold no such value.
    import base64
    from datetime import date, time
    from decimal import Decimal

    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode("ascii")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")

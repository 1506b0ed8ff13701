"""What comes from a table cannot steer the terminal, nor look like another message."""

from __future__ import annotations

import io
import json

import pytest
from rich.markup import escape
from rich.table import Table

from hudi_cli.output import Output
from hudi_core.errors import CONTROLS, FormatError

HOSTILE = "a\x1b[31mb\x9b2Jc\x07d\u202ee\x7f[bold]f"
SHOWN = "a\\x1b[31mb\\x9b2Jc\\x07d\\u202ee\\x7f[bold]f"


def test_control_characters_are_escaped_for_people() -> None:
    stdout, stderr = io.StringIO(), io.StringIO()
    output = Output(stdout, stderr)
    table = Table("name")
    table.add_row(escape(HOSTILE))
    output.result({}, [escape(HOSTILE), table])
    output.warn(HOSTILE)
    output.error(FormatError(HOSTILE, path=HOSTILE))
    assert stdout.getvalue().count(SHOWN) == 2
    assert stderr.getvalue().count(SHOWN) == 3
    assert not CONTROLS.search(stdout.getvalue() + stderr.getvalue())


def test_json_has_them_escaped_and_whole() -> None:
    stdout = io.StringIO()
    Output(stdout, io.StringIO(), json_mode=True).result({"name": HOSTILE, "text": "plain \u00e9"}, [])
    assert json.loads(stdout.getvalue()) == {"name": HOSTILE, "text": "plain \u00e9"}
    assert not CONTROLS.search(stdout.getvalue())
    assert "\u00e9" in stdout.getvalue()


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\x0b", "\x85", "\u2028"])
def test_an_error_of_several_lines_keeps_them_apart_from_others(line_break: str) -> None:
    stderr = io.StringIO()
    Output(io.StringIO(), stderr).error(FormatError(f"name{line_break}error: forged"))
    assert not [line for line in stderr.getvalue().splitlines()[1:] if line.startswith("error:")]

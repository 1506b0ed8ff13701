"""What comes from a table cannot steer the terminal, nor look like another message."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from collections.abc import Callable

import pytest
from rich.markup import escape
from rich.table import Table

from hudi_cli.output import Output
from hudi_core.errors import CONTROLS, FormatError
from tests.support.golden_data import GoldenCase
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]

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


FULL = "the result could not be printed (No space left on device)"
GONE = "the result could not be printed (Broken pipe)"


@pytest.mark.parametrize(
    ("words", "where", "code", "said"),
    tiered(
        [
            ("timeline {table} --json", ">&-", 0, ""),
            ("timeline {table}", ">&-", 0, ""),
            ("timeline {table} --json", ">/dev/full", 1, FULL),
            ("timeline {table}", ">/dev/full", 1, FULL),
            ("timeline {table} --json", "| true", 1, GONE),
            ("timeline {table}", "| true", 1, GONE),
            ("--help", "| true", 1, GONE),
            ("timeline {table}/nowhere --json", ">/dev/full", 2, "not a Hudi table"),
            ("timeline {table}/nowhere --json", "2>&-", 2, ""),
            ("timeline {table} --json", "2>&-", 0, ""),
            ("timeline {table} --json", "<&- >&- 2>&-", 0, ""),
            ("timeline {table}/nowhere", "2>/dev/full", 2, ""),
            ("timeline {table}/nowhere", "2>&1 | true", 2, ""),
        ],
        [
            ("timeline {table}", ">/dev/full", 1, FULL),
            ("timeline {table} --json", "| true", 1, GONE),
            ("--help", "| true", 1, GONE),
            ("timeline {table}/nowhere --json", ">/dev/full", 2, "not a Hudi table"),
            ("timeline {table} --json", "<&- >&- 2>&-", 0, ""),
            ("timeline {table}/nowhere", "2>&1 | true", 2, ""),
        ],
    ),
)
def test_streams_that_take_nothing(golden: Golden, words: str, where: str, code: int, said: str) -> None:
    """`| true`: the process that reads the pipe has ended."""
    table = shlex.quote(str(golden("9", "mor_basic").table))
    command = f"{shlex.quote(sys.executable)} -m hudi_cli.main {words.format(table=table)}"
    # The pipe has no reader when the command begins.
    script = (
        f"({{ sleep 0.2; {command}; echo $? >&3; }} {where}) 3>&1 1>/dev/null"
        if "|" in where
        else (f"{{ {command} {where}; }} 1>/dev/null; echo $?")
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert (done.stdout, said in done.stderr) == (f"{code}\n", True), done.stderr


def test_without_stderr_the_result_is_whole(golden: Golden) -> None:
    command = [sys.executable, "-m", "hudi_cli.main", "timeline", str(golden("9", "mor_basic").table), "--json"]
    done = subprocess.run(["bash", "-c", f"{shlex.join(command)} 2>&-"], capture_output=True, text=True, check=False)
    assert (done.returncode, json.loads(done.stdout)["version"], done.stderr) == (0, 9, "")


def test_json_has_no_form_for_what_is_not_finite() -> None:
    def refuse(name: str) -> None:
        pytest.fail(f"{name} is no JSON")

    stdout = io.StringIO()
    found = {"a": [float("nan"), 1.5, (float("inf"), b"x")], "b": {"c": -float("inf")}}
    Output(stdout, io.StringIO(), json_mode=True).result(found, [])
    assert json.loads(stdout.getvalue(), parse_constant=refuse) == {"a": [None, 1.5, [None, "eA=="]], "b": {"c": None}}

"""Commands of `airflow` that print JSON, in this process; each answer is a line after RESULT."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout

from tests.airflow.airflow_forks import RESULT


def main(*commands: str) -> None:
    """Prints a line for each command."""
    from airflow.cli.cli_parser import get_parser

    for command in commands:
        arguments = get_parser().parse_args(command.split())
        printed = io.StringIO()
        with redirect_stdout(printed):
            arguments.func(arguments)
        text = printed.getvalue()
        print(RESULT + json.dumps(json.loads(text[text.index("[") :])), flush=True)

"""What holds for every command: exit codes, one JSON document, nothing else on stdout."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from hudi_cli.main import hudictl as hudictl_group
from hudi_cli.output import Output
from hudi_core.request.services import SERVICES
from hudi_core.storage.local import LocalStorage
from hudi_core.transaction.claim_file import claimed_instants, has_let_go
from hudi_core.verbs.registry import VERBS
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
COMMANDS = (
    ["timeline"],
    ["show", "{table}", "20240101000000000"],
    ["files"],
    ["read", "--output", "{out}"],
    ["run", "compaction"],
)


def arguments_of(command: list[str], table: Path, out: Path) -> list[str]:
    filled = [part.format(table=table, out=out) for part in command]
    return filled if str(table) in filled else [*filled, str(table)]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_folder_that_is_no_table_is_bad_input(tmp_path: Path, command: list[str]) -> None:
    done = hudictl(*arguments_of(command, tmp_path, tmp_path / "out.parquet"), "--json")
    assert (done.code, done.error["type"]) == (2, "ConfigError")
    assert "not a Hudi table" in done.error["message"]
    assert "hoodie.properties" in str(done.error["path"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_another_table_version_is_refused_by_number(golden: Golden, tmp_path: Path, command: list[str]) -> None:
    table = golden("6", "mor_basic").table
    properties = table / ".hoodie" / "hoodie.properties"
    properties.write_bytes(properties.read_bytes().replace(b"hoodie.table.version=6", b"hoodie.table.version=5"))
    done = hudictl(*arguments_of(command, table, tmp_path / "out.parquet"), "--json")
    assert (done.code, done.error["type"]) == (2, "UnsupportedVersionError")
    assert "5" in done.error["message"]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_people_get_the_file_and_the_remedy_on_stderr(tmp_path: Path, command: list[str]) -> None:
    done = hudictl(*arguments_of(command, tmp_path, tmp_path / "out.parquet"))
    assert (done.code, done.out) == (2, "")
    assert "error:" in done.err
    assert "file:" in done.err
    assert "fix:" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("group", [[], ["metadata"], ["savepoint"]], ids=str)
@pytest.mark.parametrize("columns", [50, 80])
def test_no_summary_of_a_command_is_cut(monkeypatch: pytest.MonkeyPatch, group: list[str], columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = hudictl(*group, "--help").out.partition("Commands:\n")[2].splitlines()
    assert not [line for line in lines if "..." in line or len(line) > columns]
    shown = " ".join(" ".join(lines).split())
    commands = hudictl_group.commands if not group else hudictl_group.commands[group[0]].commands
    for name, command in commands.items():
        assert f"{name} {command.get_short_help_str(1000)}" in shown


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    said = {name: command.get_short_help_str(1000) for name, command in hudictl_group.commands.items()}
    assert hudictl_group.commands.summaries == said


def test_every_verb_has_a_written_command() -> None:
    """A verb that begins with a command's name and `_` gets no command that is made of its fields."""
    written = set()
    for name, command in hudictl_group.commands.items():
        parts = [f"{name}-{part}" for part in command.commands] if isinstance(command, click.Group) else [name]
        written.update(part.replace("-", "_") for part in parts)
    assert VERBS.keys() - written == set()


@pytest.mark.parametrize("command", ["run", "schedule"])
def test_the_services_of_the_registry_are_listed(command: str) -> None:
    shown = " ".join(hudictl(command, "--help").out.split())
    assert f"SERVICE is one of {', '.join(sorted(SERVICES))}." in shown


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["timeline"],
        ["timeline", "t", "--nonsense"],
        ["timeline", "t", "--state", "done"],
        ["read", "t"],
        ["run", "t"],
        ["run", "nonsense", "t"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_2_in_both_modes(arguments: list[str]) -> None:
    done = hudictl(*arguments, "--json")
    assert (done.code, done.error["type"]) == (2, "UsageError")
    assert "--help" in done.error["remedy"]
    people = hudictl(*arguments)
    assert (people.code, people.out) == (2, "")
    assert "error:" in people.err


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["run", "--help"]])
def test_help_goes_to_stdout(arguments: list[str]) -> None:
    done = hudictl(*arguments)
    assert (done.code, done.err) == (0, "")
    assert "Usage: hudictl" in done.out


def test_a_defect_is_one_line_and_a_traceback_only_on_demand(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(self: Output, document: object, shown: object) -> None:
        raise RuntimeError("a [bold]defect[/]")

    monkeypatch.setattr(Output, "result", break_down)
    table = golden("6", "mor_basic").table
    done = hudictl("timeline", table, "--json")
    assert (done.code, done.error["type"], done.error["message"]) == (1, "RuntimeError", "a [bold]defect[/]")
    assert "Traceback" not in done.err
    assert "Traceback" in hudictl("timeline", table, "--json", "--debug").err


def test_the_console_script_keeps_stdout_for_the_document(golden: Golden, tmp_path: Path) -> None:
    """What a process prints to descriptor 1 meanwhile, as a JVM may, ends up on stderr."""
    table = golden("6", "mor_basic").table
    (tmp_path / "sitecustomize.py").write_text(
        "import os, click\n"
        "begin = click.Group.main\n"
        "def noisy(*args, **kwargs):\n"
        "    os.write(1, b'native noise\\n')\n"
        "    os.system('echo noise of a child')\n"
        "    print('noise of a library')\n"
        "    return begin(*args, **kwargs)\n"
        "click.Group.main = noisy\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-m", "hudi_cli.main", "timeline", str(table), "--json"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["version"] == 6
    assert done.stderr.split("\n")[:2] == ["native noise", "noise of a child"]
    assert "noise of a library" in done.stderr


def test_the_exit_code_reaches_the_shell(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hudi_cli.main", "timeline", str(tmp_path), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["type"] == "ConfigError"


def test_a_misspelt_option_is_warned_about_on_stderr(golden: Golden) -> None:
    table = golden("9", "mor_basic").table
    words = ["run", "clean", str(table), "--schedule", "--option", "hoodie.clean.commit.retained=1", "--json"]
    done = subprocess.run([sys.executable, "-m", "hudi_cli.main", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["instants"] == [], "the option had no effect"
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("WARNING: ")]
    assert "hoodie.clean.commit.retained does not exist" in line
    assert "hoodie.clean.commits.retained does" in line


def ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.mark.slow
@pytest.mark.parametrize(
    "before", tiered([None, ignore_interrupts], [ignore_interrupts]), ids=["foreground", "background"]
)
def test_a_signal_ends_a_run_and_releases_its_claim(golden: Golden, before: Callable[[], None] | None) -> None:
    """A script starts `hudictl … &` with SIGINT ignored."""
    table = golden("9", "mor_compaction_requested").table
    lock = table / ".hoodie" / "lock"
    lock.touch()
    words = ["run", "compaction", str(table), "--engine", "local", "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "hudi_cli.main", *words], stdout=subprocess.PIPE, text=True, preexec_fn=before
    ) as process:
        deadline = time.monotonic() + 60
        while not list(table.glob(".hoodie/.airflow_hudi/claims/*/*.json")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(0.5)  # until it waits for the lock
        process.terminate()
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 143
    assert json.loads(out)["error"]["type"] == "Interrupted"
    (instant,) = claimed_instants(LocalStorage(table))
    assert has_let_go(LocalStorage(table), instant)
    lock.unlink()
    assert [item["state"] for item in hudictl(*words).document["instants"]] == ["completed"]


@pytest.mark.slow
def test_a_signal_ends_a_run_of_tables_that_wait_for_locks(golden: Golden) -> None:
    """The document has the result of the table that ended before."""
    empty = golden("9", "mor_basic").table
    waiting = [golden(version, "mor_compaction_requested").table for version in ("8", "9")]
    for table in waiting:
        (table / ".hoodie" / "lock").touch()
    words = ["run", "compaction", *map(str, (empty, *waiting)), "--engine", "local", "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "hudi_cli.main", *words], stdout=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 60
        while not all(list(table.glob(".hoodie/.airflow_hudi/claims/*/*.json")) for table in waiting):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(1.0)  # until they wait for the lock
        process.terminate()
        signalled = time.monotonic()
        out, _ = process.communicate(timeout=60)
    assert time.monotonic() - signalled < 15
    assert process.returncode == 143
    document = json.loads(out)
    assert document["error"]["type"] == "Interrupted"
    assert [(item["table"], item["exit_code"]) for item in document["results"]] == [
        (str(empty), 0),
        *((str(table), 143) for table in waiting),
    ]
    assert "nothing" in document["results"][0]["reason"] or document["results"][0]["instants"] == []
    for table in waiting:
        (instant,) = claimed_instants(LocalStorage(table))
        assert has_let_go(LocalStorage(table), instant)
        (table / ".hoodie" / "lock").unlink()
    again = hudictl(*words).document["results"]
    assert [[one["state"] for one in item["instants"]] for item in again] == [[], ["completed"], ["completed"]]


@pytest.mark.parametrize("arguments", [("timeline", "t\udcff"), ("read", "t", "--where", "a = '\udcff'")])
def test_an_argument_that_is_no_text_is_bad_input(arguments: tuple[str, ...]) -> None:
    done = hudictl(*arguments, "--json")
    assert done.code == 2
    assert "UTF-8" in done.error["message"]


@pytest.mark.parametrize(
    ("command", "forbidden"),
    [
        ("--help", {"rich", "hudi_cli.options", "hudi_cli.inspect_commands", "hudi_core.verbs.request"}),
        ("run --help", {"hudi_core.table"}),
        ("timeline {table}", {"hudi_cli.run_command", "hudi_cli.verb_commands"}),
    ],
)
def test_a_command_without_data_files_imports_no_arrow(golden: Golden, command: str, forbidden: set[str]) -> None:
    """Arrow, NumPy, sqlglot and the engine take a second of CPU time to import (benchmarks/fleet.py measures it)."""
    heavy = {"pyarrow", "numpy", "pandas", "sqlglot", "pyspark", "airflow"}
    words = command.format(table=golden("8", "mor_basic").table).split()
    code = (
        "import sys\nsys.argv = ['hudictl', *sys.argv[1:]]\nfrom hudi_cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        f"print(sorted({forbidden | heavy} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "imported"), [("local", False), ("auto", True)])
def test_pandas_is_imported_only_where_spark_may_start(golden: Golden, engine: str, imported: bool) -> None:
    """pyarrow imports it, and would not see what a user's function makes of it, had it been hidden."""
    words = ["run", "compaction", str(golden("9", "mor_compaction_requested").table), "--engine", engine, "--json"]
    code = (
        "import sys\nsys.argv = ['hudictl', *sys.argv[1:]]\nfrom hudi_cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "print('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    document, found = done.stdout.splitlines()
    assert [item["state"] for item in json.loads(document)["instants"]] == ["completed"]
    assert found == str(imported)

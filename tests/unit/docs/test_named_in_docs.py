"""What README and docs name exists: options, arguments, extras, variables of the environment, options of hudictl."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from airflow.sdk import BaseOperator

from hudi_cli.main import hudictl
from hudi_core.config.metadata_config import METADATA_TABLE_KEYS
from hudi_core.config.new_table import NewTable
from hudi_core.config.options import KEYS

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OPTIONS = {name for key in (*KEYS, *METADATA_TABLE_KEYS) for name in (key.name, *key.aliases)}

OPTIONS_OF_NEW_TABLES = {
    name
    for field in dataclasses.fields(NewTable)
    for key in field.metadata.values()
    for name in (key.name, *key.aliases)
}
OPTIONS_OF_WRITERS = {
    "hoodie.archive.automatic",
    "hoodie.clean.automatic",
    "hoodie.clustering.preserve.commit.metadata",
    "hoodie.clustering.updates.strategy",
    "hoodie.compact.inline",
    "hoodie.compact.schedule.inline",
    "hoodie.datasource.write.record.merger.strategy",
    "hoodie.datasource.write.row.writer.enable",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop",
    "hoodie.logfile.data.block.max.size",
    "hoodie.metadata.auto.delete.partitions",
    "hoodie.metadata.index.async",
    "hoodie.optimized.log.blocks.scan.enable",
    "hoodie.rollback.instant.backup",
    "hoodie.table.services.incremental.enabled",
    "hoodie.write.empty.clean.interval.hours",
    "hoodie.write.lock",
}
"""Options of Hudi's writers alone, each as Hudi 0.15 to 1.2 spells it; `hoodie.write.lock` is their prefix, and
`preserve.commit.metadata` is of earlier releases.
"""

PROPERTIES_OF_TABLES = {
    "hoodie.bulkinsert.overwrite.operation.type",
    "hoodie.compaction.record.merger.strategy",
    "hoodie.populate.meta.fields",
    "hoodie.properties",
    "hoodie.record.merge.mode",
    "hoodie.record.merge.property",
    "hoodie.record.merge.strategy.id",
    "hoodie.table.cdc.enabled",
    "hoodie.table.index.defs.path",
    "hoodie.table.keygenerator.type",
    "hoodie.table.metadata.partitions",
    "hoodie.table.metadata.partitions.inflight",
    "hoodie.table.ordering.fields",
    "hoodie.table.partial.update.mode",
    "hoodie.table.precombine.field",
    "hoodie.table.timeline.timezone",
    "hoodie.timeline.path",
}
"""Names in `hoodie.properties`, the file's own name, and a name in Hudi's clustering plans."""

METADATA_OF_COMMITS = {
    "airflow_hudi.index.whole_until.<index",
    "airflow_hudi.limit.NAME.bytes",
    "airflow_hudi.owner",
    "airflow_hudi.run_id",
    "airflow_hudi.version",
}
"""Keys of the extra metadata of commits, and a pattern of options."""

_OPTION = re.compile(r"(?<![\w/.])(?:hoodie|airflow_hudi)\.[a-zA-Z0-9_.*<]+[a-zA-Z0-9_*]")
_EXTRAS = re.compile(r"(?P<of>airflow-hudi(?:-engine|/spark_jobs)?|'\.|'\./spark_jobs)\[(?P<extras>[a-z0-9,]+)\]")
_FENCED = re.compile(r"^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_ARGUMENTS = re.compile(
    r"(?:^- )?`operators\.(?P<module>\w+)\.(?P<name>\w+)`\n+\s*- Arguments: (?P<text>.*?)(?=\n\s*- XCom)",
    re.MULTILINE | re.DOTALL,
)


def is_known(name: str) -> bool:
    """Whether an option, a property, a key of a commit or a module has this name."""
    named = OPTIONS | OPTIONS_OF_NEW_TABLES | OPTIONS_OF_WRITERS | PROPERTIES_OF_TABLES | METADATA_OF_COMMITS
    if name in named:
        return True
    if name.endswith("*"):
        return any(option.startswith(name[:-1]) for option in OPTIONS)
    return name == "airflow_hudi.__path__" or (name.startswith("airflow_hudi.") and is_module(name))


def is_module(name: str) -> bool:
    """Whether the package has a module of this name."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def blocks(language: str) -> Iterator[tuple[str, str]]:
    """The fenced blocks of a language: name of the page, text."""
    for page in PAGES:
        for block in _FENCED.finditer(page.read_text()):
            if block["language"] == language:
                yield page.name, block["text"]


def parameters(of: type) -> set[str]:
    """The arguments that the class takes, those of its bases included."""
    return {
        name
        for kind in of.__mro__
        if kind is not object
        for name in inspect.signature(kind.__init__).parameters  # type: ignore[misc]
    }


def test_every_option_exists() -> None:
    unknown = {
        f"{page.name}: {name}" for page in PAGES for name in _OPTION.findall(page.read_text()) if not is_known(name)
    }
    assert sorted(unknown) == []


@pytest.mark.parametrize("name", ["hoodie.clean.commits.retain", "airflow_hudi.batch", "hoodie.cleaning.*"])
def test_a_misspelt_option_is_not_known(name: str) -> None:
    assert not is_known(name)


def test_the_lists_name_nothing_that_is_an_option_of_ours() -> None:
    assert not (OPTIONS_OF_WRITERS | PROPERTIES_OF_TABLES | METADATA_OF_COMMITS) & OPTIONS


def test_every_argument_of_an_operator_in_an_example_exists() -> None:
    checked, unknown = 0, []
    for page, text in blocks("python"):
        tree = ast.parse(text)
        classes = {
            name.name: getattr(import_module(node.module), name.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("airflow_hudi.")
            for name in node.names
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in classes:
                found = classes[node.func.id]
                if isinstance(found, type) and issubclass(found, BaseOperator):
                    checked += 1
                    unknown += [
                        f"{page}: {found.__name__}({word.arg}=)"
                        for word in node.keywords
                        if word.arg not in parameters(found)
                    ]
    assert checked > 8
    assert unknown == []


def test_every_argument_in_the_lists_of_arguments_exists() -> None:
    """The words in backticks behind `Arguments:`; values stand in brackets behind their argument."""
    entries = list(_ARGUMENTS.finditer((ROOT / "docs" / "use" / "airflow.md").read_text()))
    assert len(entries) == 11
    for entry in entries:
        operator = getattr(import_module(f"airflow_hudi.operators.{entry['module']}"), entry["name"])
        text = re.sub(r"\([^)]*\)", "", entry["text"])
        named = set(re.findall(r"`([a-z_]+)`", text)) - {"create", "drop"}
        assert named, entry["name"]
        assert sorted(named - parameters(operator)) == [], entry["name"]


def test_every_extra_exists_and_is_explained() -> None:
    """In README and docs, and in the remedies of errors; of the distribution that is named with them."""
    known = {("provider", extra) for extra in extras_of(ROOT)} | {
        ("engine", extra) for extra in extras_of(ROOT / "spark_jobs")
    }
    sources = [path for folder in ("airflow_hudi", "spark_jobs") for path in (ROOT / folder).rglob("*.py")]
    named = {
        ("engine" if found["of"].endswith(("engine", "spark_jobs")) else "provider", extra)
        for path in [*PAGES, ROOT / "docker" / "Dockerfile", ROOT / "spark_jobs" / "README.md", *sources]
        for found in _EXTRAS.finditer(path.read_text())
        for extra in found["extras"].split(",")
    }
    assert named >= {("provider", "spark3"), ("provider", "java"), ("provider", "amazon"), ("engine", "polars")}
    assert sorted(named - known) == []
    table = (ROOT / "docs" / "use" / "install.md").read_text().split("## Extras", 1)[1].split("\n## ", 1)[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    assert {
        (one, extra)
        for extras, of in rows
        for one in (("provider", "engine") if of.strip() == "both" else (of.strip(),))
        for extra in re.findall(r"`(\w+)`", extras)
    } == known


def extras_of(project: Path) -> list[str]:
    """The extras of the distribution that is built in this folder."""
    text = (project / "pyproject.toml").read_text().split("[project.optional-dependencies]", 1)[1].split("\n[", 1)[0]
    return re.findall(r"^(\w+) = \[", text, re.MULTILINE)


def test_every_variable_of_the_environment_is_read() -> None:
    read = "".join(
        path.read_text()
        for folder in ("dags", "airflow_hudi", "spark_jobs", "docker", "tests")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".example"}
    )
    named = {name for page in PAGES for name in re.findall(r"\bAIRFLOW_HUDI_[A-Z_]*[A-Z]\b", page.read_text())}
    assert "AIRFLOW_HUDI_TABLE" in named
    parts = set(re.findall(r"AIRFLOW_HUDI_[A-Z_]*[A-Z]", read))
    assert sorted(named - parts) == []


@pytest.mark.parametrize("page", ["airflow.md", "install.md"])
def test_the_setting_that_shows_the_test_button_is_named_where_connections_are(page: str) -> None:
    assert "AIRFLOW__CORE__TEST_CONNECTION=Enabled" in (ROOT / "docs" / "use" / page).read_text()


def test_what_a_backfill_does_is_said() -> None:
    """Of the DAGs that ship, and of the operators in others."""
    page = (ROOT / "docs" / "use" / "airflow.md").read_text()
    section = page.split("## Backfills, missed runs", 1)[1].split("\n## ", 1)[0]
    for words in ("airflow backfill create", "refuse a backfill", "does not allow backfill runs", "once per interval"):
        assert words in section


def test_every_option_of_hudictl_in_an_example_exists() -> None:
    checked, unknown = 0, []
    for page in PAGES:
        for line in re.findall(r"^(?:\$ )?hudictl (.+)$", page.read_text(), re.MULTILINE):
            words = shlex.split(line.removesuffix("\\"), comments=True)
            command, known = command_of(words)
            for word in words:
                if word.startswith("--"):
                    checked += 1
                    if word.split("=")[0] not in known:
                        unknown.append(f"{page.name}: hudictl {command} {word}")
    assert checked > 5
    assert unknown == []


def test_every_option_of_every_command_is_in_its_signature() -> None:
    """In hudictl.md, but for those that all commands have, which it lists before."""
    text = (ROOT / "docs" / "use" / "hudictl.md").read_text()
    everywhere = {"--json", "--debug", "--help", "-h", "--storage-option", "--storage-options-file"}
    paths = [*commands_of(hudictl, [])]
    assert len(paths) > 15
    for words in paths:
        command, known = command_of(words)
        (signature,) = re.findall(rf"^`{command} [A-Z][^`]*`(?:\n`[^`]*`)*", text, re.MULTILINE)
        assert [name for name in known - everywhere if name not in signature] == [], command


def commands_of(command: click.Command, words: list[str]) -> Iterator[list[str]]:
    """The words of every command below, but of groups."""
    if not isinstance(command, click.Group):
        yield words
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from commands_of(below, [*words, name])


def command_of(words: list[str]) -> tuple[str, set[str]]:
    """The command that the words call, and the options that it takes."""
    command: click.Command = hudictl
    path = []
    context = click.Context(command)
    for word in words:
        below = command.get_command(context, word) if isinstance(command, click.Group) else None
        if below is None:
            break
        command, context = below, click.Context(below, parent=context)
        path.append(word)
    return " ".join(path), {
        name for parameter in command.params if isinstance(parameter, click.Option) for name in parameter.opts
    }

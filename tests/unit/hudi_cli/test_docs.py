"""docs/hudictl.md names every command and every option that there is."""

from __future__ import annotations

import re
from pathlib import Path

import click

import hudi_core
from hudi_cli.main import hudictl
from hudi_core.config.service_config import KEYS
from hudi_core.request.services import SERVICES

SOURCE = Path(hudi_core.__path__[0]) / "metadata_table"
PAGE = (Path(__file__).resolve().parents[3] / "docs" / "hudictl.md").read_text()


def commands(group: click.Group, prefix: str = "") -> list[str]:
    found = []
    for name, command in group.commands.items():
        found += commands(command, f"{name} ") if isinstance(command, click.Group) else [f"{prefix}{name}"]
    return found


def test_every_command_is_there() -> None:
    assert [name for name in commands(hudictl) if f"`{name} " not in PAGE] == []


def test_every_option_is_there_under_all_its_names() -> None:
    names = [name for key in KEYS for name in (key.name, *key.aliases)]
    assert [name for name in names if f"`{name}`" not in PAGE] == []


def test_every_option_of_the_metadata_table_is_there() -> None:
    """Those that are no typed keys: texts in the modules of the kinds, and of the metadata table's own services."""
    modules = [path for name in ("partitions", "services") for path in (SOURCE / name).glob("*.py")]
    names = {name for path in modules for name in re.findall(r'"((?:hoodie|spark)\.[a-z.A-Z_]+)"', path.read_text())}
    assert "hoodie.metadata.compact.max.delta.commits" in names
    assert sorted(name for name in names if f"`{name}`" not in PAGE) == []


def test_every_service_is_there() -> None:
    assert [name for name in sorted(SERVICES) if f"`{name}`" not in PAGE] == []

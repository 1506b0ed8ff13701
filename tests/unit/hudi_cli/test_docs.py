"""docs/use/hudictl.md names every command and every service that there is."""

from __future__ import annotations

from pathlib import Path

import click

from hudi_cli.main import hudictl
from hudi_core.request.services import SERVICES

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "use" / "hudictl.md").read_text()


def commands(group: click.Group, prefix: str = "") -> list[str]:
    found = []
    for name, command in group.commands.items():
        found += commands(command, f"{name} ") if isinstance(command, click.Group) else [f"{prefix}{name}"]
    return found


def test_every_command_is_there() -> None:
    assert [name for name in commands(hudictl) if f"`{name} " not in PAGE] == []


def test_every_service_is_there() -> None:
    assert [name for name in sorted(SERVICES) if f"`{name}`" not in PAGE] == []

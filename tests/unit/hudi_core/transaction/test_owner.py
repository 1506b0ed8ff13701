from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

from hudi_core.errors import CorruptFileError
from hudi_core.transaction import owner as owner_module
from hudi_core.transaction.owner import Owner
from tests.support.racing_processes import Holder

PATH = ".hoodie/lock"


def nothing() -> None:
    """Holds nothing."""


def test_this_process_is_alive_and_known() -> None:
    here = Owner.current("dag x")
    assert here.pid == os.getpid()
    assert here.is_this_process
    assert not here.is_provably_dead()
    assert "dag x" in here.describe()
    assert Owner.from_json(json.loads(json.dumps(here.to_json())), path=PATH) == here


@pytest.mark.parametrize("reap", [True, False])
def test_a_killed_process_is_provably_dead_also_as_a_zombie(reap: bool) -> None:
    child = Holder(nothing)
    start = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19]
    owner = dataclasses.replace(Owner.current(), pid=child.pid, process_start=start)
    assert not owner.is_this_process
    assert not owner.is_provably_dead()
    child.kill(reap=reap)
    assert owner.is_provably_dead()
    child.process.join(30)


def test_a_reused_process_number_is_another_process() -> None:
    old = dataclasses.replace(Owner.current(), process_start="1")
    assert old.is_provably_dead()
    assert not old.is_this_process


@pytest.mark.parametrize(
    "changes",
    [
        {"boot_id": "other"},
        {"pid_namespace": "pid:[1]"},
        {"boot_id": ""},
        {"pid_namespace": ""},
        {"process_start": ""},
        {"host": "other"},
    ],
)
def test_a_process_that_cannot_be_seen_from_here_is_never_proven_dead(changes: dict[str, str]) -> None:
    gone = dataclasses.replace(Owner.current(), pid=2**22 + 1, process_start="1")
    assert gone.is_provably_dead()
    assert dataclasses.replace(gone, **changes).is_provably_dead() == ("host" in changes), (
        "the kernel counts, not the host's name"
    )


@pytest.mark.parametrize(
    ("state", "ticks", "due"), [("S", ["77"], "77"), ("S", ["77", "5"], "77"), ("S", [], None), ("Z", ["77"], None)]
)
def test_the_start_is_the_22nd_field_of_the_status(state: str, ticks: list[str], due: str | None) -> None:
    assert owner_module._start_in(" ".join(["9", "(a) b)", state, *["1"] * 18, *ticks])) == due


def test_a_process_that_proc_hides_is_not_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    parent = dataclasses.replace(Owner.current(), pid=os.getppid(), process_start="1")
    assert parent.is_provably_dead()
    read = owner_module._read_line
    monkeypatch.setattr(owner_module, "_read_line", lambda path: read(path) if "boot_id" in path else "")
    assert not parent.is_provably_dead()


@pytest.mark.parametrize("value", [{}, {"pid": 0}, {"pid": "1"}, {"pid": 2**40}, {"text": 1}, {"boot_id": None}])
def test_what_is_no_owner_is_corrupt(value: dict[str, Any]) -> None:
    with pytest.raises(CorruptFileError) as caught:
        Owner.from_json({**(Owner.current().to_json() if value else {}), **value}, path=PATH)
    assert caught.value.path == PATH

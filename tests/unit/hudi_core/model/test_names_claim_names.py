"""The names of claim files, which processes of other releases look for."""

from __future__ import annotations

from hudi_core.model.names import ClaimFolder, epochs_of, is_released


def test_names_are_those_of_every_release() -> None:
    folder = ClaimFolder("7")
    claims = ".hoodie/.airflow_hudi/claims/7"
    assert folder.path == claims
    assert folder.claim(1) == f"{claims}/000001.json"
    assert folder.heartbeat(12) == f"{claims}/000012.heartbeat"
    assert folder.released(1) == f"{claims}/000001.released"
    assert folder.decision(1) == f"{claims}/000001.decision"
    assert folder.dropped_plan == f"{claims}/dropped.plan"
    assert folder.hudi_heartbeat == ".hoodie/.heartbeat/7"


def test_the_highest_epoch_counts() -> None:
    names = ["000002.json", "000001.json", "000001.released", "1.json", "000003.json.tmp", "dropped.plan"]
    assert epochs_of(names) == [1, 2]
    assert not is_released(names)
    assert is_released([*names, "000002.released"])
    assert not is_released(["000001.released"])

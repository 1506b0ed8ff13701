"""What every completed instant of ours tells of its run, and what it carries over from the commit before."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from hudi_core.services.provenance import OWNER_KEY, RUN_KEY, VERSION_KEY, provenance
from hudi_core.timeline.instant import Action
from hudi_core.transaction.owner import Owner
from tests.support.golden_cleans import context_of, run_clean
from tests.support.golden_data import GoldenCase
from tests.unit.hudi_core.services.clean.test_job import clean_of
from tests.unit.hudi_core.services.compaction.test_job import commit_of, compact, pending_instant

Golden = Callable[[str, str], GoldenCase]


@pytest.mark.parametrize("version", ["6", "6-by-1.2.0", "8", "8-by-1.2.0", "9"])
def test_a_clean_names_its_run(golden: Golden, version: str) -> None:
    table = golden(version, "clean_requested_mor").table
    owner = Owner.current("nightly job", "run-7")
    run_clean(table, clean_of(table), owner=owner)
    active = context_of(table).active
    found = active.read_of(active.load().get(clean_of(table), Action.CLEAN))["extraMetadata"]
    assert {key: found[key] for key in (OWNER_KEY, RUN_KEY, VERSION_KEY)} == provenance(owner)
    assert found[RUN_KEY] == "run-7"


def test_a_compaction_names_its_run_and_keeps_the_streamers_checkpoint(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").table
    instant = pending_instant(table)
    before = context_of(table).active.load().commits().before(instant).last()
    assert before is not None
    path = table / ".hoodie" / f"{before.requested_time}.deltacommit"
    raw = json.loads(path.read_text())
    raw["extraMetadata"]["deltastreamer.checkpoint.key"] = "topic,0:7"
    path.write_text(json.dumps(raw))
    compact(table, owner="nightly job")
    found = commit_of(table, instant).extra_metadata
    assert str(found[OWNER_KEY]).startswith("nightly job")
    assert found[RUN_KEY]
    assert found[VERSION_KEY]
    assert found["deltastreamer.checkpoint.key"] == "topic,0:7"

"""What the commit of a compaction names: its run, and the checkpoint of the commit before."""

from __future__ import annotations

import json

from hudi_core.services.context import OWNER_KEY, RUN_KEY, VERSION_KEY
from hudi_core.table import HudiTable
from tests.unit.hudi_core.services.compaction.test_job import Golden, commit_of, compact, pending_instant


def test_streamer_checkpoints_are_carried_over_from_the_commit_before(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").table
    instant = pending_instant(table)
    before, after = (
        HudiTable.open(str(table)).timeline().commits().before(instant).last(),
        HudiTable.open(str(table)).timeline().commits().after(instant).last(),
    )
    assert before is not None
    assert after is not None
    for commit, offset in ((before, "topic,0:7"), (after, "topic,0:9")):
        path = table / ".hoodie" / f"{commit.requested_time}.deltacommit"
        raw = json.loads(path.read_text())
        raw["extraMetadata"]["deltastreamer.checkpoint.key"] = offset
        path.write_text(json.dumps(raw))
    compact(table)
    assert commit_of(table, instant).extra_metadata["deltastreamer.checkpoint.key"] == "topic,0:7"


def test_a_compaction_names_its_run_and_keeps_the_streamers_checkpoint(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").table
    instant = pending_instant(table)
    before = HudiTable.open(str(table)).timeline().commits().before(instant).last()
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

from __future__ import annotations

import json

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

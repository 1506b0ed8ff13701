"""A log file of version 6 with the block of a pending write before one of a completed write, as writers that find
conflicts leave it: our compaction keeps the completed write, which real Hudi's loses.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_core.timeline.instant import Action
from tests.interop.changes import user_columns
from tests.interop.dying_writers import LAZY
from tests.interop.judged import MOR, Judged
from tests.interop.real_hudi import RealHudi
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]

OPTIONS = {**LAZY, "hoodie.metadata.enable": "false"}


def test_a_compaction_keeps_what_lies_behind_the_block_of_a_pending_write(hudi_0_15: RealHudi, tmp_path: Path) -> None:
    table = Judged.create(hudi_0_15, tmp_path / "table", MOR, "6", LAZY)
    table.options.update(OPTIONS)
    table.upsert(20, fresh=False)
    table.write(table.next_rows(20, fresh=False))
    pending = table.times(Action.DELTA_COMMIT)[-1]
    let_the_last_write_be_first(table.base, pending)
    unread = differing(table)
    assert unread, "queries of 0.15 end at the block of the pending write"
    assert_same_rows(read_rows(table.base, "off"), table.hudi.snapshot(table.base, metadata=False))
    instant = table.schedule_compaction()

    theirs = table.copy(tmp_path / "theirs")
    theirs.hudi.ask("compact", base=str(theirs.base), instant=instant, options=theirs.options)
    assert differing(theirs) == unread
    theirs.hudi.ask("service", base=str(theirs.base), name="rollback", instant=pending, options=theirs.options)
    theirs.write(theirs.next_rows(fresh=True).slice(6))
    assert differing(theirs) >= unread, "real Hudi keeps these rows: hudi-notes.md says otherwise"

    table.run(service="compaction", instant=instant, options=OPTIONS)
    assert differing(table) == set()
    table.roll_back(pending)
    table.upsert(fresh=False)
    assert differing(table) == set()


def let_the_last_write_be_first(base: Path, instant: str) -> None:
    """Changes the places of the two log files of each file slice, and makes the deltacommit at `instant` pending."""
    firsts = list(base.glob("*/.*.log.1_*"))
    for first in firsts:
        (second,) = first.parent.glob(f"{first.name.split('.log.')[0]}.log.2_*")
        blocks = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(blocks)
        for path in (first, second):
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    assert firsts
    (base / ".hoodie" / f"{instant}.deltacommit").unlink()


def differing(table: Judged) -> set[str]:
    """The keys of the rows that real Hudi reads otherwise than they must be."""
    found = user_columns(table.hudi.snapshot(table.base, metadata=False))
    due = {row["id"]: row for row in table.rows.to_pylist()}
    return {row["id"] for row in found.to_pylist() if row != due.pop(row["id"], None)} | due.keys()

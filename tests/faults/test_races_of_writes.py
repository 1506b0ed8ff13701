"""Two upserts of the same keys at once: one succeeds, or both in turn. No row is lost, and none is there twice.

Keys that are new to both are in one row as long as both would put them into one file group: a bucket's, or a small one.
Else each write makes a file group with them, as in Hudi (apache/hudi#7745).
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError, HudiError
from hudi_core.services.write import verb
from hudi_core.services.write.route import produce_routed
from hudi_core.transaction import commit
from hudi_core.transaction.owner import Owner
from tests.support.changed_tables import choose_payload, open_context
from tests.support.fault_storage import MUTATIONS, FaultPlan, InjectedCrash
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import BUCKETS, BY_HASH, put_source
from tests.support.service_calls import dead_process
from tests.support.table_invariants import assert_metadata_true, leftovers, read_rows
from tests.support.tiers import tiered
from tests.support.writes import Model, changed, like, own_columns, staged, write

Golden = Callable[[str, str], GoldenCase]
MODES: dict[str, dict[str, str]] = {
    "one writer": {},
    "a writer that does not look": {},
    "several": {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"},
    "none waits": {"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"},
}
MOMENTS = ("before tagging", "before writing", "once written")
CASES = [
    (version, case)
    for version in ("6", "8", "9")
    for case in ("cow_basic", "mor_basic", "bucket_index_cow", "bucket_index_mor", "bucket_index_consistent_mor")
]
OPTIONS = {"cow_basic": {}, "mor_basic": {}, "bucket_index_consistent_mor": BY_HASH}
SWEPT = [(*case, mode, moment) for case in CASES for mode in MODES for moment in MOMENTS]
CORE = [
    ("6", "cow_basic", "several", "once written"),
    ("6", "mor_basic", "a writer that does not look", "before writing"),
    ("8", "bucket_index_mor", "none waits", "before tagging"),
    ("9", "bucket_index_cow", "several", "before writing"),
    ("9", "mor_basic", "several", "once written"),
    ("9", "bucket_index_consistent_mor", "several", "before tagging"),
    ("9", "cow_basic", "one writer", "before writing"),
    ("9", "bucket_index_cow", "a writer that does not look", "once written"),
]


class At(LocalEngine):
    """An engine that calls `meanwhile` once at a moment of a write."""

    def __init__(self, moment: str, meanwhile: Callable[[], object]) -> None:
        super().__init__(1)
        self._moment = moment
        self._meanwhile = meanwhile

    def exchange(self, produce: Any, *given: Any, **named: Any) -> list[Any]:
        """LocalEngine.exchange."""
        writes = produce is produce_routed
        if self._moment == ("before writing" if writes else "before tagging"):
            self._meanwhile()
        results = super().exchange(produce, *given, **named)
        if writes and self._moment == "once written":
            self._meanwhile()
        return results


def sources(rows: pa.Table, case: str) -> tuple[pa.Table, pa.Table]:
    """Two sources with the same keys: some that are there, some new ones. The rows of the second one are newer."""
    new = [{"id": "new 1"}, {"id": "new 2"}]
    if case.startswith("bucket"):
        new.append({"id": "new 3", "dt": "2031-01-01"})
    first = changed(pa.concat_tables([rows.slice(0, 5), like(rows, *new)]), ts=lambda ts: ts + 10**6, qty=1)
    return first, changed(first, ts=lambda ts: ts + 1, qty=2)


def table_of(golden: Golden, version: str, case: str) -> Path:
    """A table whose rows are compared by their ordering values, so that the order of two writes does not matter."""
    table = golden(version, case).table
    if version == "6":
        choose_payload(table, "org.apache.hudi.common.model.DefaultHoodieRecordPayload")
    return table


@pytest.mark.parametrize(("version", "case", "mode", "moment"), tiered(SWEPT, CORE))
def test_another_upsert_of_the_same_keys_meanwhile(
    golden: Golden, tmp_path: Path, version: str, case: str, mode: str, moment: str
) -> None:
    """It is refused, or succeeds; then the first one is refused, or merged with it. What was refused is done again."""
    table = table_of(golden, version, case)
    model = Model.of(table, event_time=True)
    options = {**OPTIONS.get(case, BUCKETS), **MODES[mode]}
    # Without blocking nobody makes a simple bucket of a merge-on-read table (check_makes_no_bucket).
    kept = "2024" if (mode, case) == ("none waits", "bucket_index_mor") else "2"
    both = (
        given.filter(pc.starts_with(given.column("dt"), kept)) for given in sources(own_columns(read_rows(table)), case)
    )
    rows = dict(zip(("first", "second"), both, strict=True))
    given = {name: put_source(rows[name], tmp_path, name=name) for name in rows}
    done: list[str] = []
    refused: list[str] = []

    def upsert(name: str, engine: LocalEngine | None = None) -> None:
        owner = Owner.current(f"the {name}")
        try:
            write(table, "upsert", given[name], options, owner=owner, token=name, engine=engine)
            done.append(name)
        except ConflictError:
            refused.append(name)

    def meanwhile() -> None:
        with pytest.MonkeyPatch.context() as patch:
            if mode == "a writer that does not look":
                patch.setattr(verb, "live_writer", lambda *_: None)
            upsert("second")

    upsert("first", At(moment, meanwhile))
    assert sorted(done + refused) == ["first", "second"]
    assert done, "one of them succeeds"
    assert mode != "one writer" or done == ["first"]
    for name in done:
        model.upsert(rows[name])
    model.check(table)
    for name in refused:
        write(table, "upsert", given[name], options, token=name)
        model.upsert(rows[name])
    model.check(table)
    assert leftovers(table, "") == []
    assert staged(table) == []
    assert_metadata_true(table)


@pytest.mark.parametrize(
    ("version", "case"),
    tiered(
        [case for case in CASES if "bucket" not in case[1]],
        [("6", "cow_basic"), ("6", "mor_basic"), ("9", "cow_basic")],
    ),
)
def test_an_upsert_that_had_decided_to_complete_is_not_completed_behind_another(
    golden: Golden, tmp_path: Path, version: str, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its owner dies before it puts the completed file, and seems to be alive while the other writes the same rows. Log
    files of version 6 come beside each other.
    """
    table = table_of(golden, version, case)
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    first = changed(rows.slice(0, 5), ts=lambda ts: ts + 10**6, qty=1)
    second = changed(rows.slice(2, 5), ts=lambda ts: ts + 10**6 + 1, qty=2)
    older_rows, newer_rows = put_source(first, tmp_path, name="first"), put_source(second, tmp_path, name="second")
    plan = FaultPlan(when=lambda change: change.path.endswith(".decision"), timing="after", counts=MUTATIONS)
    with pytest.raises(InjectedCrash):
        write(table, "upsert", older_rows, MODES["several"], plan, dead_process(), token="first")
    (pending,) = open_context(table).active.load().pending()
    with monkeypatch.context() as patch:
        patch.setattr(verb, "_roll_failed_writes_back", lambda *_, **__: [])
        write(table, "upsert", newer_rows, MODES["several"], token="second")
    model.upsert(second)
    model.check(table)
    completes = (version, case) == ("6", "mor_basic")
    if not completes:
        with pytest.raises(ConflictError, match="the request of that run may still arrive"):
            write(table, "upsert", older_rows, MODES["several"], token="first")
        model.check(table)
    monkeypatch.setattr(commit, "LATE_SECONDS", 0)
    retried = write(table, "upsert", older_rows, MODES["several"], token="first")
    assert (retried.repeated, retried.instant == pending.requested_time) == (completes, completes)
    model.upsert(first)
    model.check(table)
    assert open_context(table).active.load().contains(pending.requested_time) == completes
    assert leftovers(table, "") == []
    assert staged(table) == []
    assert_metadata_true(table)


@pytest.mark.parametrize(("version", "case"), tiered(CASES, [("6", "mor_basic"), ("9", "bucket_index_cow")]))
@pytest.mark.parametrize("seed", tiered(range(5), [0]))
def test_two_threads_write_the_same_keys(golden: Golden, tmp_path: Path, version: str, case: str, seed: int) -> None:
    """Each its own rows, again and again until they are written, whoever is first."""
    table = table_of(golden, version, case)
    model = Model.of(table, event_time=True)
    options = {**OPTIONS.get(case, BUCKETS), **MODES["several"]}
    of_thread = sources(own_columns(read_rows(table)), case)
    errors: list[BaseException] = []
    start = threading.Barrier(2)

    def work(number: int) -> None:
        draw, owner = random.Random(f"{seed} {number}"), Owner.current(f"thread {number}")
        try:
            for step in range(2):
                mine = changed(of_thread[number], ts=lambda ts, by=10 * step: ts + by, qty=10 * number + step)
                given = put_source(mine, tmp_path, name=f"{number} {step}")
                start.wait(60)
                until = time.monotonic() + 60
                while True:
                    try:
                        write(table, "upsert", given, options, owner=owner, token=f"{number} {step}")
                        break
                    except HudiError:
                        if time.monotonic() > until:
                            raise
                        time.sleep(draw.random() / 10)
        except BaseException as error:
            errors.append(error)
            start.abort()
            raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    for step in range(2):
        for number in range(2):
            model.upsert(changed(of_thread[number], ts=lambda ts, by=10 * step: ts + by, qty=10 * number + step))
    model.check(table)
    assert leftovers(table, "") == []
    assert staged(table) == []
    assert_metadata_true(table)

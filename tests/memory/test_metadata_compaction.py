"""What a compaction of the metadata table holds in memory follows the blocks of a file group's files, not the mappings
of a record index.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hudi_core.metadata_table.partition_type import RECORD_INDEX
from hudi_core.timeline.instant import Action
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table
from tests.support.staged_rows import staged_rows
from tests.unit.hudi_core.metadata_table.services.test_compaction import compaction
from tests.unit.hudi_core.metadata_table.write.test_staged_logs import complete, writer

Golden = Callable[[str, str], GoldenCase]
MIB = 1 << 20
BOUND = 48 * MIB
"""A block of 1 MiB of each file inflated, the base file's index and filter, and what allocators keep back: 21 MB for
400,000 mappings and 20 for 3.2 million.
"""
PLACE = "2024-01-01"
UPDATED = 10
"""One mapping in so many is written again after the first compaction."""
KEY_BYTES = 16
"""What a key's 32 random hexadecimal digits hold, of which no compressor makes much less: of 3.2 million mappings
ISA-L makes 57.9 MB and zlib 61.9.
"""


def random_keys(count: int) -> pa.Array:
    """As UUIDs come: nothing of one follows from another."""
    halves = np.random.default_rng(0).integers(0, 1 << 63, (count, 2), dtype=np.int64)
    return pa.array([f"{first:016x}{second:016x}" for first, second in halves.tolist()])


def publish(table: Table, keys: pa.Array, instant: str) -> None:
    table.data.create_requested(instant, Action.DELTA_COMMIT)
    table.data.to_inflight(instant, Action.DELTA_COMMIT)
    writer(table).write_alone(instant, {}, {RECORD_INDEX: staged_rows(table, instant, PLACE, keys)})
    complete(table, instant)


def compacted(table: Table, mappings: int) -> dict[str, Any]:
    """The probe's answer: two file groups of so many mappings together, of which a tenth is in logs."""
    keys, instant = random_keys(mappings), table.new_instant()
    publish(table, keys, f"{instant[:-3]}997")
    compaction(table).run(trigger=1)
    publish(table, keys.slice(0, mappings // UPDATED), f"{table.new_instant()[:-3]}998")
    probe = Path(__file__).with_name("metadata_compaction_probe.py")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, str(probe), str(table.path)], capture_output=True, text=True, check=True, timeout=900, env=env
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    assert answer["instants"] == 1
    held = table.metadata_timeline.load().completed().of_actions(Action.COMMIT).last()
    assert held is not None
    stats = [
        stat for stat in table.metadata_timeline.read_commit(held).write_stats() if stat.partition_path == RECORD_INDEX
    ]
    assert sum(stat.num_writes for stat in stats) >= mappings
    assert answer["bytes"] > mappings * KEY_BYTES
    return answer


@pytest.mark.parametrize(
    "version", [pytest.param("6", marks=pytest.mark.soak), pytest.param("9", marks=pytest.mark.conformance)]
)
def test_it_does_not_grow_with_the_mappings(golden: Golden, version: str) -> None:
    answer = compacted(Table(golden(version, "mdt_all_mor").table), 200_000)
    assert answer["peak"] < BOUND, answer


@pytest.mark.soak
def test_of_three_million(golden: Golden) -> None:
    answer = compacted(Table(golden("9", "mdt_all_mor").table), 3_200_000)
    assert answer["peak"] < BOUND, answer

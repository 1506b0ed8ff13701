"""Worker processes of the local engine stay within the memory that `airflow_hudi.engine.local.memory.bytes` gives it:
that decides how many there are, each with its share.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from hudi_core.config.engine_config import LOCAL_MEMORY, LOCAL_WIDTH, EngineConfig, Extent
from hudi_core.config.rows_config import WriteConfig
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.services.compaction.merge_slice import CompactionUnit, compact_operation
from hudi_core.services.engine_choice import choose, task_memory
from tests.memory.test_compaction import BASE_ROWS, LOG_ROWS, TEXT
from tests.support.peak_memory import anonymous, measured

WORKERS = 2


@dataclass(frozen=True, slots=True)
class Measured:
    """A unit's run: the process, its anonymous memory at the peak, that of the interpreter and its libraries included,
    and the rows that it wrote.
    """

    pid: int
    peak: int
    rows: int


def compact_and_measure(unit: CompactionUnit, attempt: TaskAttempt) -> Measured:
    """The task: a compaction's, with its peak."""
    before = anonymous()
    result, above, _ = measured(lambda: compact_operation(unit, attempt))
    assert result.stat is not None
    return Measured(os.getpid(), before + above, result.stat.num_writes)


def with_default_options(unit: CompactionUnit) -> CompactionUnit:
    config = replace(WriteConfig.of({}), parquet_codec="UNCOMPRESSED")
    return replace(unit, target=replace(unit.target, files=replace(unit.target.files, config=config)))


def test_the_workers_stay_within_the_memory_of_the_engine(
    large_group: Callable[[Path], CompactionUnit], tmp_path: Path
) -> None:
    units = [with_default_options(large_group(tmp_path / str(number))) for number in range(WORKERS)]
    size = sum(file.stat().st_size for file in (tmp_path / "0" / "p").iterdir())
    extent = Extent(100, 3 * size, size)
    memory = WORKERS * task_memory(extent, units[0].target.config)
    config = EngineConfig.of({LOCAL_MEMORY.name: str(memory), LOCAL_WIDTH.name: "8"})
    choice = choose(extent, config, units[0].target.config)
    assert (choice.local, choice.width, choice.in_processes) == (True, WORKERS, True), "as many as the memory is for"
    with choice.engine() as engine:
        done = engine.run(compact_and_measure, units, run_epoch=1)
    peaks: dict[int, int] = {}
    for item in done:
        assert item.rows > BASE_ROWS
        peaks[item.pid] = max(peaks.get(item.pid, 0), item.peak)
    assert os.getpid() not in peaks
    assert len(peaks) <= WORKERS
    assert max(peaks.values()) < memory // WORKERS, peaks
    assert min(peaks.values()) > (BASE_ROWS + LOG_ROWS) * TEXT, "the measurement sees what is in memory"

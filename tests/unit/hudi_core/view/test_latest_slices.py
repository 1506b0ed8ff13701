"""The columns of the newest slices hold what FileSystemView.latest_slices returns as objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from unittest import mock

import numpy as np
import pytest

from hudi_core.errors import UnsupportedError
from hudi_core.model.names import FileGroupId
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.naming import timeline_of
from hudi_core.timeline.timeline import Timeline
from hudi_core.view import file_system_view
from hudi_core.view.file_group import FileSlice
from hudi_core.view.file_system_view import FileSystemView, PendingWork
from hudi_core.view.latest_slices import latest_slices
from hudi_core.view.slice_columns import LatestSlices, ids_by_partition
from hudi_core.view.slicing import Slicing
from tests.support.listed_names import base, log, plan

FOREIGN = ("notes.txt", ".f-0_003.log.x", "f_0_0-1-2_003.parquet", "f-0_0-1_003.parquet", ".f-0_0-1-2_003.parquet")
"""Names that are no data files, some of them nearly."""


class Listing:
    def __init__(self, files: Mapping[str, Sequence[FileInfo]]) -> None:
        self._files = files

    def partitions(self) -> list[str]:
        return sorted(self._files)

    def files(self, partition: str) -> list[FileInfo]:
        return sorted(self._files[partition], key=lambda info: info.path)


def objects(found: LatestSlices) -> list[FileSlice]:
    return found.slices(np.arange(len(found)))


def random_view(random: Random) -> FileSystemView:
    """A view of either layout with pending, archived and legacy writes, retried tasks, a pending compaction, replaced
    groups, change-data logs and foreign names.
    """
    layout, times = random.choice((1, 2)), [f"{number:03}" for number in range(10, 28, 2)]
    completions = {
        time: f"{int(time) + random.choice((1, 1, 5, 9)):03}{random.choice(('', '', '0'))}" for time in times
    }
    instants = [Instant("021", Action.COMPACTION, State.REQUESTED)]
    for time in times[3:]:
        if random.random() < 0.2:
            del completions[time]
            instants.append(Instant(time, Action.DELTA_COMMIT, State.INFLIGHT))
        else:
            is_legacy = layout == 2 and random.random() < 0.3
            completion = completions[time] if layout == 2 else None
            instants.append(Instant(time, Action.DELTA_COMMIT, State.COMPLETED, completion, is_legacy=is_legacy))
    timeline = Timeline.in_order(sorted(instants, key=lambda item: item.sort_key))
    files = {}
    for partition in random.sample(["a/b", "o", "p", "q"], 3):
        names = random.sample(FOREIGN, 2)
        for _ in range(random.randrange(20)):
            file_id, time = random.choice(("f-0", "f-1", "é-0", "z")), random.choice((*times, "021"))
            token = f"{random.choice(('0', '00', '10', '9'))}-1-{random.randrange(3)}"
            tail = random.choice(("", "", ".cdc"))
            is_base = random.random() < 0.4
            names.append(
                base(time, token, file_id) if is_base else log(time, random.randrange(1, 12), token, file_id, tail)
            )
        files[partition] = [FileInfo(f"{partition}/{name}", random.randrange(5), 0.0) for name in set(names)]
    groups = [FileGroupId(partition, file_id) for partition in ("p", "q", "x") for file_id in ("f-0", "f-1", "gone")]
    by = Instant("022", Action.REPLACE_COMMIT, State.COMPLETED)
    return FileSystemView(
        Listing(files),
        timeline,
        PendingWork({"021": plan(*random.sample(["f-0", "z", "gone"], 2))}),
        dict.fromkeys(random.sample(groups, 3), by),
        Slicing(timeline, completions.get if layout == 2 else None),
    )


@pytest.mark.parametrize("seed", range(20))
def test_columns_hold_the_newest_slices(seed: int) -> None:
    for number in range(20):
        check(Random(20 * seed + number))


def check(random: Random) -> None:
    view, at_once = random_view(random), random.choice((1, 12, 1 << 16))
    with mock.patch.object(file_system_view, "_FILES_AT_ONCE", at_once):
        parts = list(view.latest_slice_columns(view.partitions()))
    assert [item for part in parts for item in objects(part)] == [
        item for partition in view.partitions() for item in view.latest_slices(partition)
    ]
    for part in parts:
        slices = objects(part)
        logs = [(*item.log_files, *item.cdc_files) for item in slices]
        assert part.data_bytes.tolist() == [item.size for item in slices]
        assert part.base_bytes.tolist() == [item.base_file.size if item.base_file else 0 for item in slices]
        assert part.log_counts.tolist() == list(map(len, logs))
        assert part.log_bytes.tolist() == [sum(file.size for file in files) for files in logs]
        kept = np.array([random.random() < 0.5 for _ in slices], np.bool_)
        assert objects(part.where(kept)) == [item for item, is_kept in zip(slices, kept, strict=True) if is_kept]
        order = np.array(random.sample(range(len(slices)), len(slices)), np.int64)
        assert part.slices(order) == [slices[at] for at in order]
        held = [item.file_group for item in slices if random.random() < 0.3]
        others = [FileGroupId("p", "gone"), FileGroupId("elsewhere", "f-0")]
        assert part.among(ids_by_partition([*held, *others])).tolist() == [item.file_group in held for item in slices]


def test_a_file_that_no_writer_of_hudi_made_is_refused_by_name() -> None:
    infos = [FileInfo(f"p/{name}", 1, 0.0) for name in (base("001"), "part-0.parquet_001_hudiext")]
    with pytest.raises(UnsupportedError, match="not by a writer of Hudi") as caught:
        latest_slices([("p", infos)], Slicing(timeline_of(["001.commit"])), {}, {})
    assert caught.value.path == "part-0.parquet_001_hudiext"

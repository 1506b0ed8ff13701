"""Which file groups a plan takes, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

import pytest

from hudi_core.config.services.compaction_config import CompactionConfig, Strategy
from hudi_core.errors import ConfigError
from hudi_core.services.compaction.candidates import Candidates
from hudi_core.services.compaction.strategies import Strategies
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.actions.compaction import metrics_of
from hudi_core.timeline.naming import timeline_of
from hudi_core.view.latest_slices import latest_slices
from hudi_core.view.slicing import Slicing
from tests.support.listed_names import base, log

MIB = 1 << 20
TODAY = date(2026, 3, 1)
DAYS = ["2026/02/27", "2026/02/28", "2026/03/01", "2026/03/02", "2025/12/31"]


@dataclass(frozen=True)
class Sized:
    """A slice with files of so many MiB."""

    name: str
    partition: str = "p"
    base: int | None = 10
    logs: Sequence[int] = (1,)


def candidates(slices: Sequence[Sized]) -> Candidates:
    listed = []
    for partition in dict.fromkeys(item.partition for item in slices):
        files = {}
        for item in slices:
            if item.partition == partition:
                files |= {log("1", number, file_id=item.name): size for number, size in enumerate(item.logs)}
                files |= {} if item.base is None else {base("1", file_id=item.name): item.base}
        infos = [FileInfo(f"{partition}/{name}", size * MIB, 0.0) for name, size in sorted(files.items())]
        listed.append((partition, infos))
    part = latest_slices(listed, Slicing(timeline_of(["1.deltacommit"])), {}, {})
    return Candidates(part.partitions, [part], no_base_bytes=120 * MIB)


def strategies(*names: Strategy, **options: str) -> Strategies:
    full = {
        "io": "hoodie.compaction.target.io",
        "bytes": "hoodie.compaction.logfile.size.threshold",
        "number": "hoodie.compaction.logfile.num.threshold",
        "days": "hoodie.compaction.daybased.target.partitions",
        "regex": "hoodie.compaction.partition.path.regex",
    }
    given = {full[name]: value for name, value in options.items()}
    named = {"hoodie.compaction.strategy": ",".join(name.value for name in names)}
    return Strategies(CompactionConfig.of({**given, **named}), TODAY)


def ids(chosen: Strategies, found: Sequence[Sized]) -> str:
    """The file ids of the plan."""
    every = candidates(found)
    return "".join(item.file_id for item in every.operations(chosen.rows(every)))


@pytest.mark.parametrize(
    ("names", "options"),
    [
        ((Strategy.UNBOUNDED,), []),
        ((Strategy.BOUNDED_IO,), []),
        ((Strategy.LOG_FILE_NUM,), ["logfile.num.threshold"]),
        ((Strategy.DAY_BASED, Strategy.UNBOUNDED_PARTITION_AWARE), ["daybased.target.partitions"]),
        ((Strategy.PARTITION_REGEX, Strategy.LOG_FILE_SIZE), ["partition.path.regex", "logfile.size.threshold"]),
    ],
)
def test_the_options_of_strategies_are_named(names: tuple[Strategy, ...], options: list[str]) -> None:
    assert strategies(*names).options == ", ".join(f"hoodie.compaction.{name}" for name in ("strategy", *options))


def test_sizes_are_whole_mebibytes_of_all_files_together() -> None:
    metrics = metrics_of([(3 * MIB // 2, [MIB // 2, MIB // 4])])
    assert metrics == {
        "TOTAL_LOG_FILES": 2.0,
        "TOTAL_IO_MB": 3.0,
        "TOTAL_IO_READ_MB": 2.0,
        "TOTAL_LOG_FILES_SIZE": 0.75 * MIB,
        "TOTAL_IO_WRITE_MB": 1.0,
    }
    assert metrics_of([(None, [MIB])])["TOTAL_IO_WRITE_MB"] == 120.0
    assert metrics_of([(None, [MIB])], no_base_bytes=7 * MIB)["TOTAL_IO_MB"] == 8.0


def test_by_log_size_the_largest_come_first_and_the_one_that_spends_the_budget_is_taken() -> None:
    found = [Sized("a", logs=[1]), Sized("b", logs=[3]), Sized("c", logs=[2])]
    assert ids(strategies(Strategy.LOG_FILE_SIZE), found) == "bca"
    assert ids(strategies(Strategy.LOG_FILE_SIZE, io="24"), found) == "bc", "23 and 22 MiB"
    assert ids(strategies(Strategy.LOG_FILE_SIZE, io="23"), found) == "b"
    assert ids(strategies(Strategy.LOG_FILE_SIZE, io="1"), found) == "b"
    assert ids(strategies(Strategy.LOG_FILE_SIZE, bytes=str(2 * MIB)), found) == "bc"


def test_by_number_of_log_files() -> None:
    found = [Sized("a", logs=[9]), Sized("b", logs=[1, 1, 1]), Sized("c", logs=[1, 1])]
    assert ids(strategies(Strategy.LOG_FILE_NUM), found) == "bca"
    assert ids(strategies(Strategy.LOG_FILE_NUM, number="2"), found) == "bc"
    assert ids(strategies(Strategy.LOG_FILE_NUM, number="4"), found) == ""


def test_bounded_io_keeps_the_order_and_unbounded_takes_all() -> None:
    found = [Sized("a", logs=[1]), Sized("b", logs=[3]), Sized("c", logs=[2])]
    assert ids(strategies(Strategy.BOUNDED_IO, io="22"), found) == "ab"
    assert ids(strategies(Strategy.UNBOUNDED, io="1"), found) == "abc"


def by_days(paths: Sequence[str]) -> list[Sized]:
    return [Sized(str(number), partition=path, logs=[1 + number]) for number, path in enumerate(paths)]


def test_by_day_the_latest_partitions_are_taken() -> None:
    chosen = strategies(Strategy.DAY_BASED, days="2")
    assert chosen.partitions(DAYS) == ["2026/03/02", "2026/03/01"]
    of_0_15 = replace(strategies(Strategy.DAY_BASED, days="2", io="1"), bounds_days=False)
    assert ids(of_0_15, by_days(DAYS)) == "32"
    assert ids(strategies(Strategy.DAY_BASED, days="2", io="22"), by_days(DAYS)) == "01", "21 and 22 MiB"
    assert strategies(Strategy.DAY_BASED, days="9").partitions(DAYS) == sorted(DAYS, reverse=True)


def test_partitions_around_today_and_the_others() -> None:
    bounded, rest = (
        strategies(name, days="1") for name in (Strategy.BOUNDED_PARTITION_AWARE, Strategy.UNBOUNDED_PARTITION_AWARE)
    )
    assert bounded.partitions(DAYS) == ["2026/03/02", "2026/03/01", "2026/02/28"]
    assert rest.partitions(DAYS) == ["2026/02/27", "2025/12/31"]
    assert ids(bounded, by_days(DAYS)) == "321"
    assert ids(rest, by_days(DAYS)) == "04"


def test_a_regular_expression_is_searched_in_the_path() -> None:
    assert strategies(Strategy.PARTITION_REGEX, regex="02/2[78]$").partitions(DAYS) == DAYS[:2]


def test_strategies_in_a_row_narrow_each_other() -> None:
    chosen = strategies(Strategy.DAY_BASED, Strategy.LOG_FILE_SIZE, days="3", io="24")
    assert chosen.partitions(DAYS) == ["2026/03/02", "2026/03/01", "2026/02/28"]
    assert ids(chosen, [Sized("a", logs=[1]), Sized("b", logs=[3]), Sized("c", logs=[2])]) == "ba"


@pytest.mark.parametrize("path", ["year=2026/month=03/day=02", "dt=2026/3/2", "2026/02/30", "2026/03/02/5"])
def test_a_day_is_read_leniently(path: str) -> None:
    assert strategies(Strategy.DAY_BASED, days="1").partitions([path, "2026/03/01"]) == [path]


@pytest.mark.parametrize("path", ["", "2026-03-02", "__HIVE_DEFAULT_PARTITION__", "0/0/0", "9999/99/1"])
def test_a_partition_that_is_no_day_is_refused_by_name(path: str) -> None:
    with pytest.raises(ConfigError, match="is no day") as caught:
        strategies(Strategy.DAY_BASED).partitions([path])
    assert repr(path) in caught.value.message
    assert "hoodie.compaction.strategy" in str(caught.value.remedy)

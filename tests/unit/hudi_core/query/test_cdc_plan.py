"""Change-data queries at their edges: what is gone, and what cannot be computed. The changes themselves:
tests/golden/test_cdc.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.errors import ConfigError, CorruptFileError, StorageNotFoundError, UnsupportedError
from hudi_core.query.read_plan import read_split, split_of
from hudi_core.storage.registry import open_storage
from hudi_core.table import HudiTable
from hudi_core.timeline.actions.commit import CommitMetadata, encode_commit, encode_commit_avro
from hudi_core.timeline.actions.write_stats import NULL_COMMIT, WriteStat
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Instant
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.splits import change_of
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]


def count(table: HudiTable, begin: str = "000", end: str | None = None) -> int:
    return sum(batch.num_rows for batch in table.read("cdc", begin=begin, end=end, metadata="off").batches)


def rows(table: HudiTable, begin: str, end: str) -> list[tuple[object, ...]]:
    batches = table.read("cdc", begin=begin, end=end, metadata="off").batches
    return sorted((tuple(row.values()) for batch in batches for row in batch.to_pylist()), key=repr)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_change_data_log_that_was_cleaned(golden: Golden, version: str) -> None:
    base = golden(version, "cdc_cow").table
    victim: Path = next(base.rglob("*.cdc"))
    victim.unlink()
    with pytest.raises(StorageNotFoundError, match="with the changes is missing") as caught:
        count(HudiTable.open(str(base)))
    assert caught.value.path == str(victim.relative_to(base))


class Archive:
    """As much of an ArchivedTimeline as a change-data query reads, of commits that were read before they left the
    timeline.
    """

    def __init__(self, known: dict[Instant, CommitMetadata]) -> None:
        self.known = known

    def completed_in(self, begin: str, end: str | None) -> list[Instant]:
        return [
            instant
            for instant in self.known
            if begin < instant.completed_at and (end is None or instant.completed_at <= end)
        ]

    def commits(self, instants: Iterable[Instant]) -> Iterator[tuple[Instant, CommitMetadata]]:
        return ((instant, self.known[instant]) for instant in instants)

    def completion_time(self, requested_time: str) -> str | None:
        return next((instant.completed_at for instant in self.known if instant.requested_time == requested_time), None)


@pytest.mark.slow
@pytest.mark.parametrize("archived", tiered([1, 3], [3]))
@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_archived_commits_change_what_they_changed_when_they_were_active(
    golden: Golden, version: str, archived: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No compaction ran, so the archived commits' log files are still there."""
    base = golden(version, "mor_basic").table
    table = HudiTable.open(str(base))
    commits = list(table.timeline().commits())
    active = ActiveTimeline(open_storage(str(base)), table.config)
    ranges = list(
        zip(
            ["000", *(commit.completed_at for commit in commits)],
            [commit.completed_at for commit in commits],
            strict=False,
        )
    )
    before = [rows(table, begin, end) for begin, end in ranges]
    assert sum(map(len, before)) > 0
    known = {instant: active.read_commit(instant) for instant in commits[:archived]}
    for instant in known:
        for path in (base / ".hoodie").rglob(f"{instant.requested_time}*commit*"):
            if "metadata" not in path.parts:
                path.unlink()
    monkeypatch.setattr("hudi_core.query.context.load_history", lambda storage, config: Archive(known))
    assert [rows(table, begin, end) for begin, end in ranges] == before


@pytest.mark.parametrize("version", VERSIONS)
def test_a_replaced_group_that_was_cleaned(golden: Golden, version: str) -> None:
    """Hudi leaves its deletes out; here nothing is omitted silently."""
    table = HudiTable.open(str(golden(version, "insert_overwrite_cleaned").table))
    with pytest.raises(StorageNotFoundError, match="cleaned since"):
        count(table)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_damaged_change_data_log(golden: Golden, version: str) -> None:
    base = golden(version, "cdc_cow").table
    victim: Path = next(base.rglob("*.cdc"))
    content = victim.read_bytes()
    victim.write_bytes(content[:-40])
    with pytest.raises(CorruptFileError) as caught:
        count(HudiTable.open(str(base)))
    assert victim.name in str(caught.value)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "change", [lambda data: data + data, lambda data: data[: len(data) // 2]], ids=["twice", "cut"]
)
def test_a_change_data_log_of_another_size_than_its_commit_says(
    golden: Golden, version: str, change: Callable[[bytes], bytes]
) -> None:
    """The blocks are whole: nothing but the size shows that changes are there twice."""
    base = golden(version, "cdc_cow").table
    victim: Path = next(base.rglob("*.cdc"))
    victim.write_bytes(change(victim.read_bytes()))
    with pytest.raises(CorruptFileError, match="by its commit") as caught:
        count(HudiTable.open(str(base)))
    assert caught.value.path == str(victim.relative_to(base))


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_without_keys_cannot_be_compared(golden: Golden, version: str) -> None:
    table = HudiTable.open(str(golden(version, "no_meta_fields_cow").table))
    with pytest.raises(UnsupportedError, match="rows lack _hoodie_ columns"):
        count(table)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_empty_range(golden: Golden, version: str) -> None:
    table = HudiTable.open(str(golden(version, "cdc_cow").table))
    last = max(table.timeline().commits(), key=lambda item: item.completed_at)
    plan = table.plan("cdc", begin=last.completed_at)
    assert (plan.splits, plan.schema.names) == ((), ["op", "ts_ms", "before", "after"])


@pytest.mark.parametrize("version", VERSIONS)
def test_services_change_nothing(golden: Golden, version: str) -> None:
    table = HudiTable.open(str(golden(version, "mor_compacted").table))
    compactions = [commit for commit in table.timeline().commits() if commit.action == "commit"]
    assert compactions
    plan = table.plan("cdc", begin="000")
    assert not {change_of(split).instant for split in plan.splits} & {commit.requested_time for commit in compactions}


def test_columns_that_change_data_lacks(golden: Golden) -> None:
    table = HudiTable.open(str(golden("9", "cdc_cow").table))
    with pytest.raises(ConfigError, match="no column 'id'"):
        table.plan("cdc", ["op", "id"], begin="000")
    with pytest.raises(ConfigError, match="id"):
        table.plan("cdc", begin="000", where="id = 'k00001'")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("image", ["before", "after"])
def test_a_log_that_names_keys_which_its_file_group_lacks(golden: Golden, version: str, image: str) -> None:
    plan = HudiTable.open(str(golden(version, "cdc_cow_op_key").table)).plan("cdc", begin="000")
    logged = next(change for change in map(change_of, plan.splits) if change.logs and change.after)
    with pytest.raises(CorruptFileError, match="keys of the change-data log are not in the file group") as caught:
        list(
            read_split(
                plan.common,
                split_of(replace(logged, before=None) if image == "before" else replace(logged, after=None)),
            )
        )
    assert caught.value.path is not None
    assert caught.value.path.endswith(".cdc")


def rewrite(base: Path, new: Callable[[pa.Table, str], pa.Table]) -> tuple[str, str, int]:
    """A file group's rows in the newest commit that rewrote it become those of `new` of its old rows and the instant.

    Its write stat counts them as inserts and all old rows as deletes. Returns instant, file id and count of old rows.
    """
    context = context_of(base)
    found: tuple[Instant, CommitMetadata, WriteStat] | None = None
    for instant in context.active.load().commits():
        commit = context.active.read_commit(instant)
        for stats in commit.partition_to_write_stats.values():
            found = next(((instant, commit, stat) for stat in stats if stat.prev_commit != NULL_COMMIT), found)
    assert found is not None
    instant, commit, stat = found
    previous = next((base / stat.partition_path).glob(f"{stat.file_id}_*_{stat.prev_commit}.parquet"))
    old = pq.read_table(previous, partitioning=None)
    rows = new(old, instant.requested_time)
    pq.write_table(rows, base / stat.path)
    counted = replace(
        stat,
        num_writes=rows.num_rows,
        num_inserts=rows.num_rows,
        num_update_writes=0,
        num_deletes=old.num_rows,
        file_size_in_bytes=(base / stat.path).stat().st_size,
    )
    by_partition = {
        partition: tuple(counted if item is stat else item for item in stats)
        for partition, stats in commit.partition_to_write_stats.items()
    }
    encode = encode_commit if context.active.layout == 1 else encode_commit_avro
    (base / context.active.path_of(instant)).write_bytes(encode(replace(commit, partition_to_write_stats=by_partition)))
    return instant.requested_time, stat.file_id, old.num_rows


def others(old: pa.Table, instant: str) -> pa.Table:
    """Three rows with other keys."""
    rows = old.slice(0, 3)
    for name, values in (("_hoodie_record_key", ["new-1", "new-2", "new-3"]), ("_hoodie_commit_time", [instant] * 3)):
        rows = rows.set_column(rows.schema.get_field_index(name), name, [values])
    return rows


@pytest.mark.parametrize(
    ("new", "inserted"), [(lambda old, instant: old.slice(0, 0), 0), (others, 3)], ids=["emptied", "replaced"]
)
@pytest.mark.parametrize("version", VERSIONS)
def test_deletes_of_every_row_of_a_file(
    golden: Golden, version: str, new: Callable[[pa.Table, str], pa.Table], inserted: int
) -> None:
    """Without change-data logs, and with as many writes as inserts, as of a file of which nothing was deleted."""
    base = golden(version, "cow_basic").table
    instant, file_id, deleted = rewrite(base, new)
    plan = HudiTable.open(str(base)).plan("cdc", begin="000", metadata="off")
    ops: Counter[str] = Counter()
    for split in plan.splits:
        change = change_of(split)
        image = change.before or change.after
        if image is not None and (change.instant, image.file_slice.file_group.file_id) == (instant, file_id):
            for batch in read_split(plan.common, split):
                ops.update(batch.column("op").to_pylist())
    assert (ops["d"], ops["i"], ops["u"]) == (deleted, inserted, 0)

"""Archival side by side with real Hudi: of two copies of one table, one is archived by us and one by the Hudi that
wrote it.

The archives must be the same record by record, and every judge must answer the same about both tables, and go on
writing, cleaning and archiving on both.
"""

from __future__ import annotations

import io
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.history.log_archive import archive_files
from hudi_core.history.manifest import read_snapshot
from hudi_core.services.archive.job import ArchiveService
from hudi_core.services.context import TableContext
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.transaction.owner import Owner
from tests.golden.test_archive_writers import records
from tests.interop.changes import after_upsert, upsert_rows, user_columns, write_parquet
from tests.interop.judged import BASE_OPTIONS, first_rows
from tests.interop.real_hudi import RealHudi, RealHudiError
from tests.support.rows import assert_same_rows, read_parquet
from tests.support.table_invariants import read_rows

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]

WRITERS = {"6": "hudi_0_15", "8": "hudi_1_0", "9": "hudi_1_2"}
JUDGES = {"6": ("hudi_0_15", "hudi_1_2"), "8": ("hudi_1_0", "hudi_1_2"), "9": ("hudi_1_2",)}
KEEP = {
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.compact.inline.max.delta.commits": "3",
    "hoodie.timeline.compaction.batch.size": "2",
}
WRITE = {
    **BASE_OPTIONS,
    **KEEP,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.archive.automatic": "false",
    "hoodie.clean.automatic": "true",
    "hoodie.compact.inline": "true",
    "hoodie.metadata.compact.max.delta.commits": "2",
}
OURS = {"airflow_hudi.timeline.zone": "UTC", "hoodie.time.generator.max_expected_clock_skew_ms": "0"}


def context_of(table: Path) -> TableContext:
    storage = LocalStorage(str(table))
    config = TableConfig.load(storage)
    return TableContext(str(table), storage, config, ActiveTimeline(storage, config), {**KEEP, **OURS}, {})


def build(hudi: RealHudi, base: Path, folder: Path) -> None:
    """A table of upserts, compactions, cleans and an overwritten partition whose old file groups are cleaned."""
    hudi.ask(
        "create",
        base=str(base),
        parquet=write_parquet(first_rows(), folder, "rows"),
        options={**WRITE, "hoodie.datasource.write.operation": "upsert"},
    )
    for number in range(9):
        operation = "insert_overwrite" if number == 2 else "upsert"
        rows = upsert_rows(read_rows(base), 4, f"round{number}")
        rows = rows.filter(pa.compute.equal(rows["dt"], rows["dt"][0])) if operation != "upsert" else rows
        hudi.ask(
            "write",
            base=str(base),
            operation=operation,
            parquet=write_parquet(rows, folder, f"rows{number}"),
            options=WRITE,
        )


def answer(hudi: RealHudi, table: Path, metadata: bool, **options: str) -> pa.Table | str:
    """The rows of a query, or how real Hudi failed."""
    with tempfile.TemporaryDirectory() as scratch:
        output = f"{scratch}/answer.parquet"
        try:
            hudi.ask(
                "read",
                base=str(table),
                output=output,
                metadata=metadata,
                options={key.replace("__", "."): value for key, value in options.items()},
            )
        except RealHudiError as error:
            return str(error).split("\n")[0].replace(str(table), "TABLE")
        return read_parquet(output)


def queries(archived: list[str], kept: list[str]) -> list[dict[str, str]]:
    """Snapshot, time travel and incremental queries over what is archived and what is not."""
    travel = [{"as__of__instant": time} for time in (archived[-1], kept[0], kept[-1])]
    begins = [
        {"hoodie__datasource__read__begin__instanttime": time} for time in ("000", archived[0], archived[-1], kept[0])
    ]
    return [{}, *travel, *({"hoodie__datasource__query__type": "incremental", **begin} for begin in begins)]


def assert_same_answers(hudi: RealHudi, ours: Path, theirs: Path, requested: list[dict[str, str]]) -> None:
    for metadata in (True, False):
        for options in requested:
            mine, expected = answer(hudi, ours, metadata, **options), answer(hudi, theirs, metadata, **options)
            if isinstance(expected, str) or isinstance(mine, str):
                assert mine == expected, options
            else:
                assert_same_rows(mine, expected)
        assert not isinstance(answer(hudi, ours, metadata), str)


def archive_of(table: Path) -> Any:
    """Every record of the archive, in its order."""
    context = context_of(table)
    folder = context.config.history_folder
    if context.config.features.completion_time_in_name:
        return [
            pq.read_table(io.BytesIO(context.storage.read(file.path))).to_pylist()
            for file in read_snapshot(context.storage, folder)
        ]
    return [
        list(records(context.storage.read(file.path), file.path)) for _, file in archive_files(context.storage, folder)
    ]


@pytest.fixture(scope="module", params=WRITERS)
def tables(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Path]:
    """The version, the copy that we archived and the copy that real Hudi archived."""
    version = str(request.param)
    hudi: RealHudi = request.getfixturevalue(WRITERS[version])
    folder = tmp_path_factory.mktemp("archived")
    build(hudi, folder / "built", folder)
    ours, theirs = folder / "ours", folder / "theirs"
    for copy in (ours, theirs):
        shutil.copytree(folder / "built", copy, symlinks=True)
    hudi.ask("service", base=str(theirs), name="archive", options=KEEP)
    results = ArchiveService().run_now(context_of(ours), Owner.current("test"), None).instants
    assert len(results) > 6
    return version, ours, theirs


def test_same_instants_and_same_records(tables: tuple[str, Path, Path]) -> None:
    _, ours, theirs = tables
    mine, expected = context_of(ours), context_of(theirs)
    assert mine.active.names() == expected.active.names()
    assert "replacecommit" in {item.action for item in mine.history().instants()}
    assert mine.history().instants() == expected.history().instants()
    assert archive_of(ours) == archive_of(theirs)
    assert archive_files_of(mine) == archive_files_of(expected)


def archive_files_of(context: TableContext) -> list[str]:
    """The names of the archive's files, without Hadoop's side files."""
    return [
        info.name
        for info in context.storage.list_files(context.config.history_folder)
        if not info.name.endswith(".crc")
    ]


def test_every_judge_answers_the_same(tables: tuple[str, Path, Path], request: pytest.FixtureRequest) -> None:
    version, ours, theirs = tables
    context = context_of(ours)
    archived = [item.requested_time for item in context.history().timeline().commits()]
    kept = [item.requested_time for item in context.active.load().commits()]
    for judge in JUDGES[version]:
        assert_same_answers(request.getfixturevalue(judge), ours, theirs, queries(archived, kept))


def test_every_judge_goes_on(tables: tuple[str, Path, Path], request: pytest.FixtureRequest, tmp_path: Path) -> None:
    version, ours, theirs = tables
    for judge in JUDGES[version]:
        hudi: RealHudi = request.getfixturevalue(judge)
        copies = [tmp_path / f"{judge}-{source.name}" for source in (ours, theirs)]
        for source, copy in zip((ours, theirs), copies, strict=True):
            shutil.copytree(source, copy, symlinks=True)
        options = {**WRITE, "hoodie.archive.automatic": "true"}
        for copy in copies:
            before = len(context_of(copy).history().instants())
            for number in range(3):
                current = read_rows(copy)
                rows = upsert_rows(current, 5, f"{judge}-{number}")
                hudi.ask(
                    "write",
                    base=str(copy),
                    operation="upsert",
                    parquet=write_parquet(rows, tmp_path, f"more{number}"),
                    options=options,
                )
                assert_same_rows(user_columns(hudi.snapshot(copy, metadata=True)), after_upsert(current, rows))
                assert_same_rows(user_columns(hudi.snapshot(copy, metadata=False)), after_upsert(current, rows))
            hudi.ask("service", base=str(copy), name="clean", options=KEEP)
            hudi.ask("service", base=str(copy), name="archive", options=KEEP)
            context = context_of(copy)
            history = context.history().instants()
            assert len(history) > before
            assert not {item.sort_key for item in history} & {item.sort_key for item in context.active.load()}
            again = (
                ArchiveService()
                .run_now(
                    replace(context, options={**context.options, "hoodie.keep.min.commits": "3"}),
                    Owner.current("test"),
                    None,
                )
                .instants
            )
            assert_same_rows(hudi.snapshot(copy, metadata=True), read_rows(copy))
            assert len(context_of(copy).history().instants()) == len(history) + len(again)
        assert_same_rows(user_columns(read_rows(copies[0])), user_columns(read_rows(copies[1])))

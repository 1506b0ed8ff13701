"""Archival on an object store: the same code, files created by conditional PUT, no folder that could be left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.table import HudiTable
from hudi_core.verbs.run import RunRequest
from tests.contract.s3_server import S3Server, keys, rows, s3_server, upload
from tests.support.golden_archives import TIGHT, archive, history_of
from tests.support.golden_cleans import SKEW
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as started:
        yield started


@pytest.mark.parametrize(("folder", "lost_answers"), tiered([("6", 2), ("8", 0), ("9", 2)], [("9", 2)]))
def test_the_same_files_as_on_the_local_disk(folder: str, lost_answers: int, server: S3Server, golden: Golden) -> None:
    """Also when the store carries a conditional PUT out and the answer is lost."""
    case = golden(folder, "archived_timeline_mor")
    key = f"{folder}-{lost_answers}"
    uri = upload(server, case.table, key)
    table = HudiTable.open(uri, server.options, {**SKEW, **TIGHT})
    before = rows(table, "off")
    server.lost_answers = lost_answers
    done = table.run(RunRequest(table=uri, service="archive"), LocalEngine(2)).instants
    local = archive(case.table)
    assert [(item.instant, item.action) for item in done] == local
    assert {item.state for item in done} == {"archived"}
    assert_same_rows(rows(HudiTable.open(uri, server.options, SKEW), "off"), before)
    below = ".hoodie/" if folder == "6" else ".hoodie/timeline/"
    expected = sorted(
        path.relative_to(case.table).as_posix()
        for path in (case.table / below).rglob("*")
        if path.is_file() and path.suffix != ".crc"
    )
    assert keys(server, key, below) == expected
    assert set(local) <= set(history_of(case.table))
    assert_metadata_true(case.table)
    assert table.run(RunRequest(table=uri, service="archive"), LocalEngine(2)).instants == ()

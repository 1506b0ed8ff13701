"""Cleaning on an object store: plans of real Hudi and of our own, files and whole partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.table import HudiTable
from hudi_core.verbs.run import RunRequest
from hudi_health.table import validate_metadata
from tests.contract.s3_server import S3Server, keys, rows, s3_server, upload
from tests.support.golden_cleans import SKEW, before_clean, data_files
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows, read_parquet
from tests.support.table_invariants import has_metadata_table
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.clean.test_job import clean_of

Golden = Callable[[str, str], GoldenCase]
CASES = ("clean_requested_cow", "insert_overwrite_clean_requested")


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as started:
        yield started


@pytest.mark.parametrize(("folder", "lost_answers"), tiered([("6", 2), ("8", 0), ("9", 0)], [("6", 2)]))
@pytest.mark.parametrize("name", tiered(CASES, CASES[:1]))
def test_a_clean_of_real_hudi_is_run(
    name: str, folder: str, lost_answers: int, server: S3Server, golden: Golden
) -> None:
    """Also when the store carries a conditional PUT out and the answer is lost."""
    case = golden(folder, name)
    key = f"{folder}-{name}-{lost_answers}"
    uri = upload(server, case.table, key)
    table = HudiTable.open(uri, server.options, SKEW)
    server.lost_answers = lost_answers
    (done,) = table.run(RunRequest(table=uri, service="clean"), LocalEngine(2)).instants
    assert (done.state, done.instant) == ("completed", clean_of(case.table))
    assert [item for item in keys(server, key) if not item.startswith(".hoodie/")] == data_files(case.after())
    for metadata in ("on", "off") if has_metadata_table(case.table) else ("off",):
        assert_same_rows(rows(table, metadata), read_parquet(case.expected / "after_snapshot.parquet"))  # type: ignore[arg-type]
        assert metadata == "off" or validate_metadata(table).differences == ()
    left = [
        item
        for item in keys(server, key, ".hoodie/")
        if item.startswith((".hoodie/.airflow_hudi/", ".hoodie/.heartbeat/", ".hoodie/lock"))
    ]
    assert left == []


@pytest.mark.parametrize("folder", tiered(["6", "9"], ["9"]))
def test_a_clean_is_planned_and_run(folder: str, server: S3Server, golden: Golden) -> None:
    case = golden(folder, CASES[1])
    before = before_clean(case, clean_of(case.table))
    key = f"{folder}-planned"
    uri = upload(server, before.table, key)
    table = HudiTable.open(uri, server.options, {**SKEW, **case.info["write_options"]})
    (done,) = table.run(RunRequest(table=uri, service="clean", schedule=True), LocalEngine(2)).instants
    assert (done.state, done.files_deleted) == ("completed", before.plan.file_count)
    assert [item for item in keys(server, key) if not item.startswith(".hoodie/")] == data_files(case.after())
    shown = table.show(done.instant)
    assert shown.plan is not None
    addresses = [
        entry["filePath"] for entries in shown.plan["filePathsToBeDeletedPerPartition"].values() for entry in entries
    ]
    assert all(address.startswith(f"{uri}/") for address in addresses)

"""Real Hudi judges golden tables of all partition types after each of our services.

It reads by the metadata table what it reads by listing, answers point and range queries by our indexes, and writes on
by them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.fully_indexed_golden_table import WITH_INDEXES, Served
from tests.interop.fully_indexed_table import BY_RECORD_INDEX
from tests.interop.judged import EVERY_JUDGE, JUDGES
from tests.interop.real_hudi import RealHudi
from tests.support.changed_tables import an_owner
from tests.support.fully_indexed_tables import SUBJECTS, compacted
from tests.support.golden_data import GoldenCase
from tests.support.service_calls import perform
from tests.support.table_invariants import has_metadata_table

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]

Golden = Callable[[str, str], GoldenCase]
COMPACTION = "compaction"
TOGETHER = ("rollback of a failed write", COMPACTION, "clean by versions")
"""Services one after another on one table."""
WITH_BASE_FILES = (COMPACTION, "clean by versions", "rollback of the newest commit", "restore")
"""Services of which the metadata table has HFile base files, too."""
SERVICES = {
    COMPACTION: ["mdt_all_mor", "mdt_record_index_lookup"],
    **{name: [subject.one] for name, subject in SUBJECTS.items()},
}
EACH = [
    (name, version, case)
    for name, cases in SERVICES.items()
    for version in JUDGES
    for case in [*cases, *(["mdt_all_mor_compacted"] if name in WITH_BASE_FILES else [])]
]
EACH += [(COMPACTION, version, case) for version, case in WITH_INDEXES if case == "mor_basic"]


def serve(table: Path, name: str) -> None:
    """What the service is about happens to the table, then the service."""
    if name == COMPACTION:
        compacted(table)
        return
    subject = SUBJECTS[name]
    perform(table, subject.act(subject.begins(table)), an_owner(), options=subject.options)


def run_pending(table: Served) -> None:
    """Real Hudi runs the compactions that a service left pending."""
    for instant in table.instants(completed=False):
        if not instant.is_completed:
            table.hudi.ask("compact", base=str(table.base), instant=instant.requested_time, options=table.options)


def started(golden: Golden, request: pytest.FixtureRequest, version: str, case: str) -> tuple[RealHudi, GoldenCase]:
    """The judge and the table."""
    return request.getfixturevalue(EVERY_JUDGE[version]), golden(version, case)


@pytest.mark.parametrize("version", JUDGES)
def test_real_hudi_goes_on_after_several_services(golden: Golden, request: pytest.FixtureRequest, version: str) -> None:
    hudi, case = started(golden, request, version, "mdt_all_mor")
    kinds = Served.of(hudi, case).kinds
    for name in TOGETHER:
        serve(case.table, name)
    table = Served.of(hudi, case)
    assert table.kinds == kinds
    table.judge()
    table.write_by(BY_RECORD_INDEX)


@pytest.mark.parametrize(
    ("name", "version", "case"), EACH, ids=[f"{name}-{version}-{case}" for name, version, case in EACH]
)
def test_real_hudi_goes_on_after_each_service(
    golden: Golden, request: pytest.FixtureRequest, name: str, version: str, case: str
) -> None:
    hudi, chosen = started(golden, request, version, case)
    kinds = Served.of(hudi, chosen).kinds
    serve(chosen.table, name)
    table = Served.of(hudi, chosen)
    if not has_metadata_table(chosen.table):
        assert SUBJECTS[name].may_drop
        table.go_on_without()
        return
    assert table.kinds == kinds
    table.judge()
    run_pending(table)
    table.go_on()

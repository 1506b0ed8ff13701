"""Real Hudi judges clusterings that we ran: rows, metadata table, filters through every index, and what it writes next.

`make test` takes two tables, `make soak` every order on tables of every index, and every golden table
without pending work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_core.timeline.instant import Action
from tests.interop.fully_indexed_golden_table import Served
from tests.interop.judged import JUDGES, KINDS, MOR, Judged
from tests.interop.real_hudi import RealHudi
from tests.support.golden_clusterings import LAYOUT, SORT_COLUMNS, cluster, plan_of_all
from tests.support.golden_data import GoldenCase

pytestmark = [pytest.mark.hudi, pytest.mark.slow]

Golden = Callable[[str, str], GoldenCase]
ORDERS = {
    "none": {},
    "linear": {SORT_COLUMNS: "name"},
    "z-order": {SORT_COLUMNS: "qty,name", LAYOUT: "z-order"},
    "hilbert": {SORT_COLUMNS: "ts,qty", LAYOUT: "hilbert"},
}
IN_TEST = {("6", "mdt_all_mor", "linear"), ("9", "mdt_all_mor", "z-order")}


def indexed() -> Iterator[Any]:
    for version in JUDGES:
        for case in ("mdt_all_cow", "mdt_all_mor", "mdt_all_mor_compacted", "mdt_record_index_lookup"):
            for order in ORDERS:
                chosen = (version, case, order)
                yield pytest.param(*chosen, marks=() if chosen in IN_TEST else pytest.mark.soak)


@pytest.mark.parametrize(("version", "name", "order"), indexed())
def test_every_index_leads_to_the_new_file_groups(
    golden: Golden, request: pytest.FixtureRequest, version: str, name: str, order: str
) -> None:
    """Real Hudi answers by the indexes what a scan answers, finds by them the rows that it changes, deletes, compacts
    and cleans the file groups that were replaced.
    """
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    table = Served.of(hudi, golden(version, name))
    replaced = set(table.groups().values())
    instant = plan_of_all(table.base, ORDERS[order], 2)
    cluster(table.base, instant)
    assert not replaced & set(table.groups().values())
    table.judge()
    table.go_on()


@pytest.mark.soak
@pytest.mark.parametrize("order", list(ORDERS))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", list(JUDGES))
def test_real_hudi_clusters_on_top(
    request: pytest.FixtureRequest, tmp_path: Path, version: str, kind: str, order: str
) -> None:
    """Its own clustering takes our file groups; ours takes its, with log files in them; both clean."""
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    table = Judged.create(hudi, tmp_path / "table", kind, version)
    table.upsert()
    table.upsert(fresh=False)
    params = {name: value.replace("qty", "amount") for name, value in ORDERS[order].items()}
    for _ in range(2):
        cluster(table.base, plan_of_all(table.base, params, 2))
        table.check()
        table.upsert(fresh=False)
        hudi.ask("service", base=str(table.base), name="cluster", options=table.options)
        table.check()
        table.upsert()
    assert len(table.instants(Action.REPLACE_COMMIT)) == 4
    table.goes_on()
    assert table.is_mor == (kind == MOR)

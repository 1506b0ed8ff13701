"""Names that change their case between two writes: real Hudi reads what we compacted and clustered, and goes on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.table import HudiTable
from hudi_core.verbs.run import RunRequest
from tests.golden.make_column_case import OPTIONS, row, rows
from tests.golden.test_column_case import ARCHIVE, COW_SNAPSHOT, SNAPSHOT
from tests.interop.changes import write_parquet
from tests.interop.judged import JUDGES, QUICK
from tests.interop.real_hudi import RealHudi
from tests.support.golden_data import unpacked_once

pytestmark = [pytest.mark.hudi, pytest.mark.slow]

PLAN = {
    **QUICK,
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true",
}
NAMES = ("name", "box", "items", "attrs")


def by_key(table: pa.Table) -> dict[str, list[object]]:
    return {item["Id"]: [item[name] for name in NAMES] for item in table.to_pylist()}


@pytest.mark.conformance
@pytest.mark.parametrize("version", JUDGES)
def test_real_hudi_reads_what_services_wrote(request: pytest.FixtureRequest, tmp_path: Path, version: str) -> None:
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    for kind, due in (("mor", SNAPSHOT), ("cow", COW_SNAPSHOT)):
        base = Path(shutil.copytree(unpacked_once(ARCHIVE, "column-case") / f"{kind}_v{version}", tmp_path / kind))
        expected = {item["Id"]: [item[name] for name in NAMES] for item in due}
        for service in ("compaction", "clustering") if kind == "mor" else ("clustering",):
            asked = RunRequest(str(base), service=service, schedule=True, owner="the tests", options=PLAN)
            done = HudiTable.open(str(base)).run(asked, LocalEngine(1))
            assert done.instants, done
            for metadata in (True, False):
                assert by_key(hudi.snapshot(base, metadata=metadata)) == expected
        # All files have the present name now, and so have their statistics.
        answers = hudi.ask("skipping", base=str(base), predicates=["name = 'oa2'", "name = 'ob1'", "name < 'o'"])
        assert all(answer["same"] for answer in answers), answers
        upsert = write_parquet(rows(["b1"], "n", str.lower), tmp_path, "upsert")
        hudi.ask("write", base=str(base), operation="upsert", parquet=upsert, options=OPTIONS)
        expected["b1"] = [row("b1", "n", str.lower)[name] for name in NAMES]
        assert by_key(hudi.snapshot(base, metadata=True)) == expected
        found = (item for batch in HudiTable.open(str(base)).read().batches for item in batch.to_pylist())
        assert {item["Id"]: [item[name] for name in NAMES] for item in found} == expected

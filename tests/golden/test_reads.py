"""Every golden table of every version, read by this engine, against what real Hudi reads: all rows and all columns,
`_hoodie_*` included.

Each expected file of a case is one read: snapshot, read-optimized, time travel, incremental and change data, before and
after real Hudi ran what was pending. Tables with a metadata table are read with it and without it (in `make test` only
snapshots without it). A read is equal, or
it is in DIFFERENCES with a reason that docs/reference/differences.md gives evidence for; a difference that has gone
fails, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from _pytest.mark import ParameterSet

from hudi_core.table import HudiTable
from tests.golden.differences import DIFFERENCES, UNANSWERED
from tests.support.golden_data import GoldenCase, golden_cases, golden_root
from tests.support.rows import assert_same_rows
from tests.support.tiers import tiered

VERSIONS = ("6", "6-by-1.2.0", "8", "8-by-1.2.0", "9")

Golden = Callable[[str, str], GoldenCase]


@dataclass(frozen=True)
class Read:
    """One expected file: which table, which query."""

    version: str
    case: str
    file: str
    metadata: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.version, self.case, self.file

    @property
    def after(self) -> bool:
        return self.file.startswith("after_")

    @property
    def query(self) -> dict[str, Any]:
        """The arguments of HudiTable.read."""
        name = self.file.removeprefix("after_").removesuffix(".parquet")
        times = name.split("_")[-2:]
        if name.startswith("incremental_"):
            return {"query": "incremental", "begin": times[0], "end": times[1]}
        if name.startswith("cdc_"):
            return {"query": "cdc", "begin": times[0], "end": times[1]}
        if name.startswith("as_of_"):
            return {"query": "snapshot", "as_of": times[1]}
        return {"query": name.split(".")[0]}


def reads() -> list[Read]:
    """Every expected file of every case; with the metadata table and without it where there is one."""
    found = []
    for version in VERSIONS:
        for case in golden_cases(version):
            folder = golden_root() / version / f"{case}.expected"
            has_metadata = bool(
                json.loads((folder / "case.json").read_text())["table_config"].get("hoodie.table.metadata.partitions")
            )
            for path in sorted(folder.glob("*.parquet")):
                found.append(Read(version, case, path.name, "off"))
                if has_metadata:
                    found.append(Read(version, case, path.name, "auto"))
    return found


def type_text(kind: pa.DataType) -> str:
    """A type without the names that writers give to the entries of maps."""
    return re.sub(r" \('[^']*'\)", "", str(kind))


def read(base: Path, arguments: dict[str, Any]) -> pa.Table:
    result = HudiTable.open(str(base)).read(**arguments)
    return pa.Table.from_batches(result.batches, result.schema)


def cases() -> list[ParameterSet]:
    """Every read by its name. In `make test` the file groups of a table with a metadata table come from that, and from
    listings for snapshots.
    """
    every = [pytest.param(one, id=f"{one.version}-{one.case}-{one.file}-{one.metadata}") for one in reads()]
    through_it = {one.key for one in reads() if one.metadata == "auto"}
    return tiered(
        every,
        [
            case.id
            for case, one in zip(every, reads(), strict=True)
            if one.metadata == "auto" or one.key not in through_it or one.query == {"query": "snapshot"}
        ],
    )


@pytest.mark.parametrize("requested", cases())
def test_rows_are_those_of_real_hudi(golden: Golden, requested: Read) -> None:
    case = golden(requested.version, requested.case)
    expected = pq.read_table(case.expected / requested.file)
    base = case.after() if requested.after else case.table
    arguments = {**requested.query, "metadata": requested.metadata}
    difference = DIFFERENCES.get(requested.key)
    if difference is not None:
        difference.check(lambda: read(base, arguments), expected)
        return
    found = read(base, arguments)
    assert found.column_names == expected.column_names
    assert [type_text(field.type) for field in found.schema] == [type_text(field.type) for field in expected.schema]
    assert found.num_rows == expected.num_rows
    assert_same_rows(found, expected, ignore=())


@pytest.mark.parametrize(("version", "case"), sorted(UNANSWERED))
def test_tables_that_real_hudi_cannot_read(golden: Golden, version: str, case: str) -> None:
    """No answer of the version that wrote the table exists; the rows are those of a table with the same input."""
    UNANSWERED[version, case].check(lambda name: read(golden(version, name).table, {"query": "snapshot"}), case)


def test_every_case_is_compared(capsys: pytest.CaptureFixture[str]) -> None:
    every = reads()
    compared = {(requested.version, requested.case) for requested in every} | set(UNANSWERED)
    assert compared == {(version, case) for version in VERSIONS for case in golden_cases(version)}
    assert set(DIFFERENCES) <= {requested.key for requested in every}
    rows = sum(
        pq.read_metadata(golden_root() / requested.version / f"{requested.case}.expected" / requested.file).num_rows
        for requested in every
    )
    with capsys.disabled():
        print(
            f"\ngolden: {len(compared)} cases, {len(every)} reads, {rows} rows compared, {len(DIFFERENCES)} known "
            "differences"
        )
    assert (len(compared), len({requested.key for requested in every})) == (340, 906)

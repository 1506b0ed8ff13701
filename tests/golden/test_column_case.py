"""Columns and fields whose names change their case between two writes (make_column_case.py): values under the older
name are read, filtered and rewritten as real Hudi has them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.request.results import Result
from hudi_core.table import HudiTable
from hudi_core.verbs.run import RunRequest
from hudi_core.verbs.write import InsertOverwriteRequest
from hudi_health.table import validate_metadata
from tests.golden import make_column_case
from tests.golden.make_column_case import row
from tests.support.golden_data import unpacked_once
from tests.support.tiers import tiered

ARCHIVE = Path(__file__).parent / "data" / "column_case.tar.xz"
VERSIONS = ("6", "8", "9")
OLD = [row(key, "o", str.lower) for key in ("a1", "a2", "b1", "b2")]
SNAPSHOT = [row("a1", "n", str.lower), *OLD[1:]]
NEW_NAMES = {"name", "box", "items", "attrs"}
REPORTED = {"K0": "N0", "K1": "N1", "K2": "N2", "K3": "N3", "K4": "N4u", "K5": "N5"}
NO_STATISTICS = "has no statistics of name"
QUICK = {"hoodie.time.generator.max_expected_clock_skew_ms": "0"}
Reported = Callable[[str], Path]


def lost(item: dict[str, Any]) -> dict[str, Any]:
    """The row as real Hudi's own copy-on-write upsert of another row leaves it."""
    return {**item, **dict.fromkeys(NEW_NAMES)}


COW_SNAPSHOT = [SNAPSHOT[0], lost(SNAPSHOT[1]), *SNAPSHOT[2:]]


@pytest.fixture
def table(tmp_path: Path) -> Callable[[str], Path]:
    def make(name: str) -> Path:
        return Path(shutil.copytree(unpacked_once(ARCHIVE, "column-case") / name, tmp_path / name))

    return make


Tables = Callable[[str], Path]


def read(base: Path, **query: Any) -> list[dict[str, Any]]:
    found = (item for batch in HudiTable.open(str(base)).read(**query).batches for item in batch.to_pylist())
    rows = ({name: value for name, value in item.items() if not name.startswith("_hoodie_")} for item in found)
    return sorted(rows, key=lambda item: str(item["Id"]))


def run(base: Path, service: str, **options: str) -> Result:
    request = RunRequest(str(base), service=service, schedule=True, owner="the tests", options={**QUICK, **options})
    result = HudiTable.open(str(base)).run(request, LocalEngine(1))
    assert result.exit_code == 0, result
    assert result.instants, result
    return result


@pytest.mark.parametrize("metadata", ["on", "off"])
@pytest.mark.parametrize("version", VERSIONS)
def test_values_under_the_older_name_are_read(table: Tables, version: str, metadata: str) -> None:
    logged, copied = table(f"mor_v{version}"), table(f"cow_v{version}")
    assert read(logged, metadata=metadata) == SNAPSHOT
    assert read(logged, query="read_optimized", metadata=metadata) == OLD
    assert read(logged, query="incremental", begin="000", metadata=metadata) == SNAPSHOT
    assert read(copied, metadata=metadata) == COW_SNAPSHOT


@pytest.mark.parametrize("version", VERSIONS)
def test_an_older_state_has_the_older_names(table: Tables, version: str) -> None:
    base = table(f"mor_v{version}")
    first = HudiTable.open(str(base)).timeline().commits().instants[0]
    assert read(base, as_of=first.requested_time) == [row(item["Id"], "o") for item in OLD]


WHERE: dict[str, Callable[[dict[str, Any]], bool]] = {
    "name = 'oa2'": lambda item: bool(item["name"] == "oa2"),
    "NAME = 'ob1' or Name = 'na1'": lambda item: item["name"] in ("ob1", "na1"),
    "name >= 'o' and name < 'ob'": lambda item: item["name"] is not None and "o" <= item["name"] < "ob",
    "name is null": lambda item: item["name"] is None,
    "name is not null": lambda item: item["name"] is not None,
    "box.inner = 2": lambda item: item["box"] is not None and item["box"]["inner"] == 2,
    "Box.Inner < 2": lambda item: item["box"] is not None and item["box"]["inner"] < 2,
}


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
def test_a_predicate_finds_them(table: Tables, version: str, where: str) -> None:
    """Statistics of files and partitions, and of row groups, are under the older name."""
    for base, rows in ((table(f"mor_v{version}"), SNAPSHOT), (table(f"cow_v{version}"), COW_SNAPSHOT)):
        assert read(base, where=where) == list(filter(WHERE[where], rows))


def test_columns_are_named_in_any_case(table: Tables) -> None:
    base = table("mor_v9")
    found = HudiTable.open(str(base)).read(columns=["NAME", "Id", "BOX"], query="read_optimized")
    assert found.schema.names == ["name", "Id", "box"]
    assert read(base, columns=["ID", "NAME"]) == [{"Id": item["Id"], "name": item["name"]} for item in SNAPSHOT]


@pytest.mark.parametrize("version", tiered(VERSIONS, ["8"]))
def test_a_compaction_keeps_them(table: Tables, version: str) -> None:
    """Of real Hudi's, that of 0.15.0 loses them, and those of 1.0.2 and 1.2.0 do not."""
    base = table(f"mor_v{version}")
    run(base, "compaction", **{"hoodie.compact.inline.max.delta.commits": "1"})
    assert read(base) == read(base, query="read_optimized") == SNAPSHOT
    newest = max(base.glob("p/*.parquet"), key=lambda path: path.name.rsplit("_", 1)[1])
    assert {*pq.read_schema(newest).names} >= NEW_NAMES
    for where, matches in WHERE.items():
        assert read(base, where=where) == list(filter(matches, SNAPSHOT))


@pytest.mark.parametrize(
    ("version", "columns"),
    tiered([("6", ""), ("6", "NAME"), ("8", ""), ("9", "Box.INNER,id")], [("6", ""), ("9", "Box.INNER,id")]),
)
def test_a_clustering_keeps_them(table: Tables, version: str, columns: str) -> None:
    """Joined, where row groups of a file with the older names are not copied as they are, and sorted."""
    options = {"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"}
    if columns:
        options["hoodie.clustering.plan.strategy.sort.columns"] = columns
    for base, rows in ((table(f"mor_v{version}"), SNAPSHOT), (table(f"cow_v{version}"), COW_SNAPSHOT)):
        run(
            base, "clustering", **{"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true", **options}
        )
        assert read(base) == rows
        for partition in ("p", "q"):
            newest = max(base.glob(f"{partition}/*.parquet"), key=lambda path: path.name.rsplit("_", 1)[1])
            assert {*pq.read_schema(newest).names} >= NEW_NAMES
        # Files of before, which the clustering replaced, have theirs under the older name.
        differences = validate_metadata(HudiTable.open(str(base))).differences
        assert {(item.partition_type, item.what) for item in differences} <= {("column_stats", NO_STATISTICS)}


@pytest.mark.parametrize("version", ["6", "9"])
def test_the_tables_of_users(reported: Reported, version: str) -> None:
    base = reported(f"column_case_v{version}_mor")
    assert {item["Id"]: item["name"] for item in read(base)} == REPORTED
    run(base, "compaction", **{"hoodie.compact.inline.max.delta.commits": "1"})
    run(base, "clustering", **{"hoodie.clustering.plan.strategy.sort.columns": "Name"})
    run(
        base,
        "clean",
        **{"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "1"},
    )
    assert {item["Id"]: item["name"] for item in read(base)} == REPORTED


SPELLED = {"upper": str.upper, "lower": str.lower}


@pytest.mark.parametrize("spell", tiered(SPELLED, ["upper"]))
@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_a_source_in_another_case_is_written_under_the_names_of_the_table(
    table: Tables, tmp_path: Path, version: str, spell: str
) -> None:
    """Columns of keys, partitions and ordering, and nested fields; where rows of one key are combined, too."""
    given = make_column_case.rows(["b1", "b2"], "n", SPELLED[spell])
    given = given.rename_columns([SPELLED[spell](name) for name in given.column_names])
    given = pa.concat_tables([given, given])
    pq.write_table(given, tmp_path / "rows.parquet")
    expected = [row(key, "n", str.lower) for key in ("b1", "b2")]
    for base, kept in ((table(f"mor_v{version}"), SNAPSHOT[:2]), (table(f"cow_v{version}"), COW_SNAPSHOT[:2])):
        columns = HudiTable.open(str(base)).read().schema.names
        request = InsertOverwriteRequest(
            str(base),
            source=str(tmp_path / "rows.parquet"),
            options={**QUICK, "hoodie.combine.before.insert": "true"},
        )
        done = HudiTable.open(str(base)).run(request, LocalEngine(1))
        assert done.exit_code == 0, done
        assert read(base) == kept + expected
        assert HudiTable.open(str(base)).read().schema.names == columns
        assert read(base, where="box.inner = 2 and name = 'nb2'") == expected[1:]
        newest = max(base.glob("q/*.parquet"), key=lambda path: path.name.rsplit("_", 1)[1])
        assert {*pq.read_schema(newest).names} >= {"Id", "Part", "Ts", *NEW_NAMES}

"""What is made for, and stored of, the triggers of a thousand tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_hudi.timeline_reader import TimelineReader
from benchmarks.measure import percentiles
from benchmarks.triggerer import WRITES, is_in_time, make_tables, measurements, run
from benchmarks.triggerer_process import WAITS, WATCHERS, Counts, Measurement, lags
from hudi_core.storage.local import LocalStorage


def test_tables_have_as_many_writes_as_archival_leaves(tmp_path: Path) -> None:
    tables = sorted(make_tables(3, tmp_path).iterdir())
    assert len(tables) == 3
    for table in tables:
        timeline = TimelineReader(LocalStorage(table)).load()
        assert len(timeline.commits()) == WRITES
        assert not timeline.pending().instants
    first, second, *_ = timeline.commits()
    assert str(first.completion_time) < second.requested_time


@pytest.mark.slow
def test_each_measurement_has_tables_of_its_own(tmp_path: Path) -> None:
    seen = []
    for item in measurements(4, 2, [2.0], 60.0, tmp_path):
        tables = Path(item.folder)
        seen.append((item.kind, item.triggers, len(list(tables.iterdir()))))
    assert seen == [(WATCHERS, 4, 4), (WAITS, 4, 4), (WAITS, 4, 2)]
    assert not tables.exists()


def test_lags_are_in_intervals_and_what_is_missed_is_counted() -> None:
    counts = Counts(planted={"1": 10.0, "2": 20.0}, fired=[("1", 11.0), ("1", 13.0), ("2", 20.0)], taken=[("1", 14.0)])
    found = lags(counts, Measurement(WAITS, "", triggers=20, interval=2.0, seconds=60.0), tables=10)
    assert found == {
        "planted": 2,
        "events": 3,
        "missed": 1,
        "lag_polls": {"p50": 0.5, "p95": 1.5, "max": 1.5},
        "taken_by_airflow_lag_polls": {"p50": 2.0, "p95": 2.0, "max": 2.0},
    }
    assert not is_in_time(found)


def test_percentiles() -> None:
    assert percentiles([]) == {}
    assert percentiles(range(1, 101)) == {"p50": 50, "p95": 95, "max": 100}


def test_two_intervals_are_too_late() -> None:
    assert is_in_time({"missed": 0, "lag_polls": {"max": 1.999}})
    assert not is_in_time({"missed": 0, "lag_polls": {"max": 2.0}})
    assert not is_in_time({"missed": 1, "lag_polls": {"max": 1.0}})


@pytest.mark.airflow
@pytest.mark.slow
@pytest.mark.conformance
@pytest.mark.parametrize(("kind", "tables"), [(WATCHERS, 4), (WAITS, 4), (WAITS, 2)])
def test_airflows_own_runner_fires_every_event(kind: str, tables: int, tmp_path: Path) -> None:
    folder = make_tables(tables, tmp_path)
    found = run(Measurement(kind, str(folder), triggers=4, interval=0.5, seconds=2.0), tmp_path / "airflow")
    assert found["planted"] > 0
    assert (found["events"], found["missed"]) == (found["planted"] * 4 // tables, 0)
    assert found["lag_polls"]["max"] > 0
    assert found["peak_mib"] >= found["mib_before"] > 0
    # A look of each table and interval, however many triggers it has, and some time for making and cleaning up.
    assert found["lists_per_minute"] <= tables * 120 * 1.3

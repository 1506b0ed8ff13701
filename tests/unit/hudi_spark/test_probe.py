"""What a probe's report demands and warns of."""

from __future__ import annotations

import pytest

from hudi_core.codec import gzip
from hudi_core.engine.protocol import Json
from hudi_core.errors import ConfigError
from hudi_spark.probe import ProbeReport, local_setup


def setup(**changes: str | None) -> Json:
    full = {"python": "3.11.7", "pyarrow": "26.0.1", "numpy": "2.1", "polars": "2.1", "fastavro": "compiled"}
    return {**full, "gzip": "isal", **changes}


def test_this_process_has_what_the_engine_needs() -> None:
    found = local_setup()
    assert sorted(found) == sorted(setup())
    ProbeReport((found,)).require()


@pytest.mark.parametrize(
    ("missing", "library"), [((), "isal"), (("isal",), "libdeflate"), (("isal", "deflate"), "pyarrow")]
)
def test_a_set_up_says_what_compresses_gzip(
    monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...], library: str
) -> None:
    monkeypatch.setattr(gzip, "find_spec", lambda name: None if name in missing else name)
    assert local_setup()["gzip"] == library


def test_a_full_set_up_gives_no_warning() -> None:
    report = ProbeReport((setup(),))
    report.require()
    assert report.warnings() == []


@pytest.mark.parametrize("name", ["pyarrow", "numpy", "fastavro"])
def test_a_missing_module_on_one_executor_is_refused_with_the_remedy(name: str) -> None:
    report = ProbeReport((setup(), setup(**{name: None})))
    with pytest.raises(ConfigError, match=f"have no Python module {name}") as caught:
        report.require()
    assert "--archives" in str(caught.value.remedy)


def test_what_only_costs_time_is_a_warning() -> None:
    report = ProbeReport((setup(), setup(polars=None), setup(fastavro="pure"), setup(gzip="pyarrow")))
    report.require()
    assert [warning.split(" and ")[0].split(",")[0] for warning in report.warnings()] == [
        "executors have no compiled fastavro",
        "executors have no polars",
        "executors have no isal",
    ]
    assert "--archives" in report.warnings()[-1]


def test_libdeflate_will_do() -> None:
    assert ProbeReport((setup(gzip="libdeflate"),)).warnings() == []

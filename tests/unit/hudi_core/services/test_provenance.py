from __future__ import annotations

from importlib.metadata import version

from hudi_core.services.provenance import provenance
from hudi_core.transaction.owner import Owner


def test_the_version_is_that_of_the_distribution() -> None:
    assert provenance(Owner.current("x", "run-7"))["airflow_hudi.version"] == version("airflow-hudi")


def test_owner_and_run_are_named() -> None:
    owner = Owner.current("airflow:d/t/r", "manual__2026")
    made = provenance(owner)
    assert made["airflow_hudi.run_id"] == "manual__2026"
    assert made["airflow_hudi.owner"].startswith("airflow:d/t/r (process ")


def test_a_run_that_nobody_names_gets_an_id_of_its_own() -> None:
    assert Owner.current().run_id != Owner.current().run_id


def test_an_owner_of_an_older_release_has_no_run() -> None:
    value = {name: item for name, item in Owner.current("a").to_json().items() if name != "run_id"}
    assert Owner.from_json(value, path="claim").run_id == ""

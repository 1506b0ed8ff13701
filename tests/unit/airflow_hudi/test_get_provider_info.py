from __future__ import annotations

import importlib
import json
import pkgutil
from pathlib import Path

import airflow
import jsonschema

import airflow_hudi
from airflow_hudi.get_provider_info import get_provider_info
from airflow_hudi.hooks import STORAGE_OPTIONS, HudiHook
from hudi_core.config.engine_config import ENGINES


def test_is_valid_by_airflows_own_schema() -> None:
    schema = json.loads(Path(airflow.__file__).with_name("provider_info.schema.json").read_text())
    jsonschema.validate(get_provider_info(), schema)


def test_names_every_module_of_the_package() -> None:
    info = get_provider_info()
    for kind, base in (
        ("hooks", "BaseHook"),
        ("operators", "BaseOperator"),
        ("sensors", "BaseSensorOperator"),
        ("triggers", "BaseTrigger"),
    ):
        listed = {name for entry in info[kind] for name in entry["python-modules"]}
        package = importlib.import_module(f"airflow_hudi.{kind}")
        found = set()
        below = pkgutil.iter_modules(getattr(package, "__path__", ()), f"airflow_hudi.{kind}.")
        for name in (package.__name__, *(module.name for module in below)):
            classes = vars(importlib.import_module(name)).values()
            own = [
                value
                for value in classes
                if isinstance(value, type) and value.__module__ == name and not value.__name__.startswith("Base")
            ]
            if any(base in (parent.__name__ for parent in value.__mro__) for value in own):
                found.add(name)
        assert found == listed


def test_the_connection_is_the_hooks() -> None:
    (connection,) = get_provider_info()["connection-types"]
    assert connection["connection-type"] == HudiHook.conn_type
    assert connection["hook-class-name"] == f"{HudiHook.__module__}.{HudiHook.__qualname__}"
    assert connection["hook-name"] == HudiHook.hook_name
    azure = {"azure_subscription_id", "azure_resource_group"}
    assert set(connection["conn-fields"]) == {"storage_conn_id", "engine", *azure, *STORAGE_OPTIONS}
    assert connection["conn-fields"]["engine"]["schema"]["enum"] == [None, *ENGINES]


def test_has_the_distributions_name() -> None:
    # Airflow compares the two and refuses to start any command when they differ.
    pyproject = (Path(airflow_hudi.__path__[0]).parent / "pyproject.toml").read_text()
    assert f'name = "{get_provider_info()["package-name"]}"' in pyproject

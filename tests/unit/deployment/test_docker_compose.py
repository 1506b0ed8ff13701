"""docker-compose.yml without a Docker engine: its own references, pins and secrets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from airflow_hudi.get_provider_info import get_provider_info

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
ONE_SHOT = {"airflow-init", "s3-bucket"}


def test_the_services_are_all_there() -> None:
    assert set(SERVICES) == ONE_SHOT | {
        "postgres",
        "s3",
        "spark-master",
        "spark-worker",
        "airflow-apiserver",
        "airflow-scheduler",
        "airflow-dag-processor",
        "airflow-triggerer",
    }


@pytest.mark.parametrize("name", SERVICES)
def test_waits_only_for_what_can_come_true(name: str) -> None:
    for other, how in SERVICES[name].get("depends_on", {}).items():
        assert other in SERVICES
        if how["condition"] == "service_healthy":
            assert "healthcheck" in SERVICES[other]
        else:
            assert how["condition"] == "service_completed_successfully"
            assert other in ONE_SHOT


@pytest.mark.parametrize("name", sorted(set(SERVICES) - ONE_SHOT))
def test_what_stays_up_says_whether_it_is_healthy(name: str) -> None:
    check = SERVICES[name]["healthcheck"]
    assert check["test"][0] in ("CMD", "CMD-SHELL")
    assert {"interval", "timeout", "retries", "start_period"} <= set(check)


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_pinned(name: str) -> None:
    image = SERVICES[name]["image"]
    tag = re.sub(r"\$\{\w+:-(.*)\}", r"\1", image.rpartition(":")[2])
    assert re.search(r"\d+\.\d+|RELEASE\.\d{4}", tag), image
    assert tag != "latest"


def test_the_base_image_is_pinned_to_the_airflow_that_the_provider_needs() -> None:
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text()
    assert re.search(r"^ARG AIRFLOW_VERSION=3\.[3-9]\.\d+$", dockerfile, re.MULTILINE)
    assert "openjdk-17" in dockerfile
    for source in re.findall(r"^COPY (?:--\S+ )*(\S+) ", dockerfile, re.MULTILINE):
        assert (ROOT / source).exists(), source


def test_the_image_holds_every_dag() -> None:
    """The whole folder is copied, so that a DAG that is new is there as well."""
    copies = re.findall(r"^COPY (?:--\S+ )*(\S+) (\S+)$", (ROOT / "docker" / "Dockerfile").read_text(), re.MULTILINE)
    assert [source for source, target in copies if target.rstrip("/") == "/opt/airflow/dags"] == ["dags/"]
    ignored = ROOT / ".dockerignore"
    assert not ignored.exists() or "dags" not in ignored.read_text()
    mounted = [volume.split(":")[1] for service in SERVICES.values() for volume in service.get("volumes", [])]
    assert [target for target in mounted if target.startswith("/opt/airflow/dags")] == [], "nothing hides the folder"
    folders = {service.get("environment", {}).get("AIRFLOW__CORE__DAGS_FOLDER") for service in SERVICES.values()}
    assert folders <= {None, "/opt/airflow/dags"}


def test_secrets_must_be_given() -> None:
    names = set(re.findall(r"\$\{(\w+):\?", TEXT))
    assert names == {"POSTGRES_PASSWORD", "AIRFLOW_FERNET_KEY", "AIRFLOW_JWT_SECRET", "S3_ACCESS_KEY", "S3_SECRET_KEY"}
    for variable in re.findall(r"\$\{(\w+)[^}?]*\}", TEXT):
        assert "SECRET" not in variable, variable
        assert "PASSWORD" not in variable, variable
    example = (ROOT / "docker" / "env.example").read_text()
    assert names == set(re.findall(r"^(\w+)=$", example, re.MULTILINE))


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_open_to_this_machine_only(name: str) -> None:
    for port in SERVICES[name].get("ports", []):
        assert port.startswith("127.0.0.1:")


def test_volumes_are_declared() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", []):
            assert volume.split(":")[0] in COMPOSE["volumes"]


def test_every_airflow_service_shares_the_keys_and_connections() -> None:
    environments = [SERVICES[name]["environment"] for name in SERVICES if name.startswith("airflow-")]
    for key in (
        "AIRFLOW__API_AUTH__JWT_SECRET",
        "AIRFLOW__CORE__FERNET_KEY",
        "AIRFLOW_CONN_HUDI_DEFAULT",
        "AIRFLOW_CONN_SPARK_DEFAULT",
    ):
        assert len({environment[key] for environment in environments}) == 1


def test_the_hudi_connection_is_one_that_the_provider_knows() -> None:
    value = yaml.safe_load(SERVICES["airflow-scheduler"]["environment"]["AIRFLOW_CONN_HUDI_DEFAULT"])
    (known,) = get_provider_info()["connection-types"]
    assert value["conn_type"] == known["connection-type"]
    assert set(value["extra"]) <= set(known["conn-fields"])


def test_the_driver_is_where_spark_calls_it_back() -> None:
    defaults = (ROOT / "docker" / "spark-defaults.conf").read_text()
    host = re.search(r"^spark\.driver\.host\s+(\S+)$", defaults, re.MULTILINE)
    assert host is not None
    assert SERVICES["airflow-scheduler"]["hostname"] == host[1]

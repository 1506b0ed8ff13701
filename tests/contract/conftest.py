"""Servers that several contract tests share: each is started once, when the first test requests it."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import botocore.session
import pytest

from tests.contract.racing_servers import RacingServer, racing_server
from tests.contract.s3_server import s3_server
from tests.contract.zookeeper_server import zookeeper_server


@pytest.fixture(scope="session", autouse=True)
def _models_are_read_once() -> Iterator[None]:
    """Clients share botocore's description of S3, which is most of what one costs: each command makes its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", functools.cache(botocore.session.create_loader))
        yield


@pytest.fixture(scope="session")
def s3() -> Iterator[RacingServer]:
    """S3 with atomic conditional puts: moto, or the server that AIRFLOW_HUDI_S3_SERVER names."""
    with racing_server() as server:
        yield server


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[str]:
    """The address of a ZooKeeper."""
    with zookeeper_server() as address:
        yield address


@pytest.fixture(scope="session")
def dynamodb() -> Iterator[str]:
    """The address of a DynamoDB."""
    with s3_server() as server:
        yield server.url

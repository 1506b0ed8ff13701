from __future__ import annotations

import pytest

from hudi_core.errors import ConfigError
from hudi_core.request.secrets import is_secret_key, mask, refuse_secrets

SECRET = [
    "key",
    "secret",
    "token",
    "hoodie.aws.access.key",
    "hoodie.aws.secret.key",
    "hoodie.aws.session.token",
    "hoodie.metrics.datadog.api.key",
    "fs.s3a.access.key",
    "aws_secret_access_key",
    "AWS_SESSION_TOKEN",
    "account_key",
    "connection_string",
    "password",
    "accessKey",
]
HARMLESS = [
    "hoodie.table.recordkey.fields",
    "hoodie.datasource.write.recordkey.field",
    "hoodie.write.lock.zookeeper.lock_key",
    "hoodie.write.lock.dynamodb.partition_key",
    "hoodie.table.keygenerator.class",
    "hoodie.payload.delete.marker",
    "endpoint_url",
    "region",
    "anon",
]


@pytest.mark.parametrize("name", SECRET)
def test_secrets_are_known(name: str) -> None:
    assert is_secret_key(name)


@pytest.mark.parametrize("name", HARMLESS)
def test_other_keys_are_no_secrets(name: str) -> None:
    assert not is_secret_key(name)


def test_values_are_masked_and_never_in_messages() -> None:
    assert mask({"key": "hunter2", "region": "r"}) == {"key": "***", "region": "r"}
    with pytest.raises(ConfigError) as caught:
        refuse_secrets({"key": "hunter2", "region": "r"}, where="options")
    assert "hunter2" not in str(caught.value)
    assert "key" in str(caught.value)

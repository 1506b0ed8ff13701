from __future__ import annotations

import json
from pathlib import Path

import pytest

from hudi_core.errors import ConfigError
from hudi_core.request.secrets import is_secret_key, merge_storage_options, refuse_secrets

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


def test_values_are_never_in_messages() -> None:
    with pytest.raises(ConfigError) as caught:
        refuse_secrets({"key": "hunter2", "region": "r"}, where="options")
    assert "hunter2" not in str(caught.value)
    assert "key" in str(caught.value)


def test_the_request_overrules_the_file(tmp_path: Path) -> None:
    file = tmp_path / "options.json"
    file.write_text(json.dumps({"secret": "hidden", "region": "a"}))
    assert merge_storage_options({"region": "b"}, str(file)) == {"secret": "hidden", "region": "b"}
    assert merge_storage_options({"region": "b"}, None) == {"region": "b"}


def test_a_secret_outside_the_file_is_refused() -> None:
    with pytest.raises(ConfigError, match="secret") as caught:
        merge_storage_options({"secret": "hidden"}, None)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "[1]", "not json: hidden", '{"secret": 1}', '{"secret": {"a": "hidden"}}'])
def test_a_file_of_another_shape_is_refused_by_name_without_its_content(tmp_path: Path, content: str) -> None:
    file = tmp_path / "options.json"
    file.write_text(content)
    with pytest.raises(ConfigError) as caught:
        merge_storage_options({}, str(file))
    assert caught.value.path == str(file)
    assert "hidden" not in str(caught.value)


def test_a_file_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        merge_storage_options({}, str(tmp_path / "gone.json"))
    assert caught.value.path == str(tmp_path / "gone.json")

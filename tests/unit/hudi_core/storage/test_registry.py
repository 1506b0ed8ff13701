from __future__ import annotations

import pytest

from hudi_core.errors import ConfigError, StorageError
from hudi_core.request.secrets import refuse_secrets
from hudi_core.storage.registry import arrow_s3_options, fsspec_options, open_storage, scheme_of


@pytest.mark.parametrize(
    ("uri", "scheme"),
    [
        ("/a/b", "file"),
        ("a/b", "file"),
        ("file:///a", "file"),
        ("s3a://b/t", "s3"),
        ("S3N://b", "s3"),
        ("gs://b", "gs"),
        ("memory://x", "memory"),
    ],
)
def test_schemes(uri: str, scheme: str) -> None:
    assert scheme_of(uri) == scheme


def test_one_vocabulary_serves_both_clients() -> None:
    options = {"endpoint_url": "http://127.0.0.1:9000", "region": "eu-west-1", "key": "k", "secret": "s", "token": "t"}
    assert fsspec_options("s3", options) == {
        "endpoint_url": "http://127.0.0.1:9000",
        "key": "k",
        "secret": "s",
        "token": "t",
        "anon": False,
        "client_kwargs": {"region_name": "eu-west-1"},
        "config_kwargs": {"max_pool_connections": 32},
    }
    assert arrow_s3_options(options) == {
        "access_key": "k",
        "secret_key": "s",
        "session_token": "t",
        "region": "eu-west-1",
        "scheme": "http",
        "endpoint_override": "127.0.0.1:9000",
    }
    assert fsspec_options("s3", {"anon": "True"})["anon"] is True
    assert arrow_s3_options({"anon": "yes"}) == {"anonymous": True}
    assert arrow_s3_options({}) == {}
    assert fsspec_options("sftp", {"host": "h"}) == {"host": "h"}


@pytest.mark.parametrize("options", [{"endpoint": "x"}, {"anon": "maybe"}, {"endpoint_url": "127.0.0.1:9000"}])
def test_options_that_mean_nothing_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        arrow_s3_options(options)


def test_secrets_are_refused_in_arguments_without_showing_them() -> None:
    refuse_secrets({"endpoint_url": "http://x", "region": "r"}, where="arguments")
    for name in (
        "key",
        "secret",
        "token",
        "fs.s3a.secret.key",
        "account_key",
        "sas_token",
        "connection_string",
        "password",
    ):
        with pytest.raises(ConfigError) as caught:
            refuse_secrets({name: "hunter2"}, where="arguments")
        assert name in str(caught.value)
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("uri", ["nowhere://x/t", "file:///t/%00", "/t\0", "file://elsewhere/t", " "])
def test_an_address_that_no_storage_opens_is_bad_input(uri: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_storage(uri)
    assert caught.value.remedy


def test_a_library_that_lacks_an_option_is_bad_input() -> None:
    with pytest.raises(ConfigError, match="cannot be opened") as caught:
        open_storage("memory://t", {"no_such_option": "1", "use_listings_cache": "x"})
    assert caught.value.path == "memory://t"


def test_the_host_of_an_address_is_given_to_its_library() -> None:
    with pytest.raises(StorageError, match=r"ftp://127\.0\.0\.1:1/t"):
        open_storage("ftp://127.0.0.1:1/t")


def test_an_absolute_path_has_no_scheme() -> None:
    assert (scheme_of("/lake/x://y"), scheme_of("S3A://b/y"), scheme_of("file:///y")) == ("file", "s3", "file")

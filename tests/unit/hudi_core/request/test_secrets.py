from __future__ import annotations

import inspect
import json
import re
import zipfile
from pathlib import Path

import boto3
import botocore.config
import pyarrow.fs as pa_fs
import pyspark
import pytest
import s3fs

from hudi_core.config.options import KEYS
from hudi_core.errors import ConfigError
from hudi_core.request.secrets import is_secret_key, merge_storage_options, refuse_secret_address, refuse_secrets
from hudi_core.storage.registry import open_storage
from hudi_health.verbs import DoctorRequest

SECRET = [
    "key",
    "secret",
    "token",
    "password",
    "accessKey",
    "pwd",
    "pass",
    "auth",
    "bearer",
    "signature",
    "sig",
    "cookie",
    "headers",
    "Headers",
    "COOKIE",
    "Authorization",
    "passphrase",
    "credential",
    "apikey",
    "apiKey",
    "pkey",
    "private_key",
    "secretKey",
    "sharedKey",
    "storageKey",
    "accountKey",
    "session_token",
    "clientSecret",
    "client_secret",
    "clientsecret",
    "CLIENTSECRET",
    "CLIENT-SECRET",
    "sasToken",
    "sas_token",
    "sastoken",
    "accessToken",
    "access.token",
    "X-Amz-Signature",
    "X-Amz-Security-Token",
    "X-Amz-Credential",
    "aws_access_key_id",
    "AWS_ACCESS_KEY_ID",
    "aws_secret_access_key",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "account_key",
    "connection_string",
    "azure_storage_account_key",
    "AZURE_STORAGE_CONNECTION_STRING",
    "AZURE_CLIENT_SECRET",
    "hoodie.aws.access.key",
    "hoodie.aws.secret.key",
    "hoodie.aws.session.token",
    "hoodie.metrics.datadog.api.key",
    "fs.s3a.access.key",
    "fs.s3a.secret.key",
    "fs.s3a.session.token",
    "fs.s3a.encryption.key",
    "fs.s3a.proxy.password",
    "fs.azure.account.key.acct.dfs.core.windows.net",
    "fs.azure.sas.fixed.token.acct",
    "fs.azure.account.oauth2.client.secret",
    "fs.azure.account.oauth2.refresh.token",
    "fs.gs.auth.service.account.private.key",
    "fs.gs.auth.service.account.private.key.id",
    "fs.gs.auth.client.secret",
    "fs.gs.encryption.key",
    "fs.gs.proxy.password",
    "fs.oss.accessKeySecret",
    "fs.oss.securityToken",
    "fs.cosn.userinfo.secretKey",
    "fs.obs.secret.key",
    "spark.ssl.keyPassword",
    "spark.ssl.keyStorePassword",
    "spark.authenticate.secret",
    "spark.kubernetes.authenticate.submission.oauthToken",
    "spark.databricks.token",
    "spark.hadoop.fs.s3a.secret.key",
    "sasl.jaas.config",
    "spark.kubernetes.driver.annotations.token",
    "spark.kubernetes.container.image.pullSecrets.token",
    "spark.x.renewal.credentials",
]
"""Of s3fs, gcsfs, adlfs, pyarrow, paramiko and fsspec's HTTP storage; of Hadoop's connectors, Spark, Kafka and Hudi."""
HARMLESS = [
    "hoodie.table.recordkey.fields",
    "hoodie.datasource.write.recordkey.field",
    "hoodie.write.lock.zookeeper.lock_key",
    "hoodie.write.lock.dynamodb.partition_key",
    "hoodie.table.keygenerator.class",
    "hoodie.payload.delete.marker",
    "hoodie.keep.max.commits",
    "endpoint_url",
    "region",
    "anon",
    "client_id",
    "tenant_id",
    "account_name",
    "use_ssl",
    "bypass",
    "keyboard",
    "authority",
    "spark.ssl.keyStore",
    "spark.ssl.keyStoreType",
    "spark.ssl.trustStore",
    "spark.yarn.keytab",
    "spark.kerberos.keytab",
    "spark.kerberos.principal",
    "spark.authenticate",
    "spark.network.crypto.keyLength",
    "spark.io.encryption.keySizeBits",
    "spark.hadoop.fs.s3a.aws.credentials.provider",
    "hadoop.security.credential.provider.path",
    "fs.azure.account.auth.type",
    "fs.azure.account.oauth.provider.type",
    "fs.azure.account.oauth2.client.id",
    "fs.gs.auth.access.token.provider",
    "fs.gs.auth.service.account.email",
    "fs.gs.auth.service.account.json.keyfile",
    "fs.s3a.signing-algorithm",
    "spark.kubernetes.driver.secrets.spark-secret",
    "spark.kubernetes.executor.secretKeyRef.AWS_SECRET_ACCESS_KEY",
    "spark.kubernetes.driver.annotation.vault.hashicorp.com/agent-inject-secret-x",
    "spark.kubernetes.driver.service.annotation.x/token",
    "spark.kubernetes.executor.label.secret",
    "spark.kubernetes.container.image.pullSecrets",
    "spark.kerberos.renewal.credentials",
    "spark.hadoop.hadoop.security.token.service.use_ip",
    "spark.hadoop.hive.metastore.token.signature",
    "spark.kubernetes.authenticate.submission.oauthTokenFile",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
]


def test_no_option_of_ours_is_a_secret() -> None:
    assert not [key.name for key in KEYS if is_secret_key(key.name)]


ADDRESSES = [
    "s3://AKIA:hunter2@bucket/table",
    "s3://AKIA:hun/ter2@bucket/table",
    "https://user:hunter2@host:9000/x",
    "jdbc:mysql://host/db?user=me&password=hunter2",
    "https://acct.blob.core.windows.net/c/t?sv=2024&sig=hunter2",
    "https://bucket.s3.amazonaws.com/t?X-Amz-Credential=hunter2&X-Amz-Signature=hunter2",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_with_a_secret_is_refused_and_not_shown(address: str) -> None:
    for refused in (
        lambda: refuse_secret_address(address, what="the address of the table"),
        lambda: refuse_secrets({"endpoint_url": address}, where="options"),
        lambda: open_storage(address),
        lambda: DoctorRequest(address),
    ):
        with pytest.raises(ConfigError, match="must not hold secrets") as caught:
            refused()
        assert "hunter2" not in str(caught.value)
        assert "ter2" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "/data/a?sig=b",
        "s3://bucket/t",
        "hdfs://nn:8020/tables/t@v1",
        "abfss://container@account.dfs.core.windows.net/t",
        "http://[::1]:9000/x@y",
        "https://host:443/t?version=3",
        "s3://bucket/dt=10:30/x",
    ],
)
def test_other_addresses_are_let_pass(address: str) -> None:
    refuse_secret_address(address, what="the table")


@pytest.mark.parametrize("name", SECRET)
def test_secrets_are_known(name: str) -> None:
    assert is_secret_key(name)


@pytest.mark.parametrize("name", HARMLESS)
def test_other_keys_are_no_secrets(name: str) -> None:
    assert not is_secret_key(name)


STORED = {
    # By the constructors of adlfs 2026.8.0, gcsfs 2026.10.1 and ossfs 2025.5.0.
    "adlfs": {
        *("account_name", "account_key*", "connection_string*", "credential*", "sas_token*", "request_session"),
        *("socket_timeout", "blocksize", "client_id", "client_secret*", "tenant_id", "anon", "location_mode", "loop"),
        *("asynchronous", "default_fill_cache", "default_cache_type", "version_aware", "assume_container_exists"),
        *("max_concurrency", "timeout", "connection_timeout", "read_timeout", "account_host"),
    },
    "gcsfs": {
        *("project", "access", "token*", "block_size", "consistency", "cache_timeout", "secure_serialize", "timeout"),
        *("check_connection", "requests_timeout", "requester_pays", "asynchronous", "session_kwargs", "loop"),
        *("endpoint_url", "default_location", "version_aware", "finalize_on_close"),
    },
    "ossfs": {"endpoint", "key*", "secret*", "token*", "default_cache_type", "default_block_size", "psize"},
    # By the documentation of Hadoop's ABFS and WASB, of Google's connector, and of Spark 3.5.
    "hadoop": {
        *("fs.azure.account.key*", "fs.azure.account.key.a.dfs.core.windows.net*", "fs.azure.account.auth.type"),
        *(
            "fs.azure.account.oauth.provider.type",
            "fs.azure.account.oauth2.client.id",
            "fs.azure.sas.token.provider.type",
        ),
        *("fs.azure.account.oauth2.client.secret*", "fs.azure.account.oauth2.client.endpoint"),
        *("fs.azure.account.oauth2.user.name", "fs.azure.account.oauth2.user.password*", "fs.azure.sas.fixed.token*"),
        *("fs.azure.account.oauth2.refresh.token*", "fs.azure.account.oauth2.refresh.token.endpoint"),
        *("fs.azure.account.oauth2.msi.tenant", "fs.azure.account.oauth2.token.file"),
        *("fs.azure.sas.container.a.blob.core.windows.net*", "fs.azure.encryption.encoded.client-provided-key*"),
        *("fs.gs.auth.type", "fs.gs.auth.service.account.json.keyfile", "fs.gs.auth.client.id", "fs.gs.proxy.address"),
        *(
            "fs.gs.auth.client.secret*",
            "fs.gs.auth.refresh.token*",
            "fs.gs.encryption.algorithm",
            "fs.gs.encryption.key*",
        ),
        *(
            "fs.gs.auth.service.account.private.key*",
            "fs.gs.proxy.username",
            "fs.gs.proxy.password*",
            "fs.gs.project.id",
        ),
        *("fs.s3a.bucket.b.access.key*", "fs.s3a.bucket.b.secret.key*", "fs.s3a.bucket.b.session.token*"),
    },
    "spark": {
        *("spark.ssl.enabled", "spark.ssl.keyStore", "spark.ssl.keyStoreType", "spark.ssl.keyStorePassword*"),
        *(
            "spark.ssl.keyPassword*",
            "spark.ssl.trustStore",
            "spark.ssl.trustStorePassword*",
            "spark.ssl.trustStoreType",
        ),
        *("spark.ssl.ui.keyPassword*", "spark.ssl.ui.keyStorePassword*", "spark.ssl.historyServer.keyPassword*"),
        *("spark.ssl.standalone.trustStorePassword*", "spark.ssl.protocol", "spark.ssl.enabledAlgorithms"),
        *(
            "spark.authenticate",
            "spark.authenticate.secret*",
            "spark.authenticate.secret.file",
            "spark.kerberos.keytab",
        ),
        *("spark.authenticate.secret.driver.file", "spark.authenticate.secretBitLength", "spark.redaction.regex"),
        *("spark.authenticate.enableSaslEncryption", "spark.network.crypto.authEngineVersion"),
        *("spark.kubernetes.authenticate.driver.oauthToken*", "spark.kubernetes.authenticate.submission.oauthToken*"),
        *("spark.kubernetes.authenticate.oauthToken*", "spark.kubernetes.authenticate.oauthTokenFile"),
        *("spark.kubernetes.authenticate.driver.clientKeyFile", "spark.kubernetes.authenticate.caCertFile"),
        *("spark.kubernetes.kerberos.tokenSecret.name", "spark.security.credentials.hive.enabled"),
        *("spark.io.encryption.keySizeBits", "spark.io.encryption.keygen.algorithm", "spark.yarn.am.tokenConfRegex"),
    },
}
"""All names that bear on secrets; the secrets have a star."""
INSTALLED = {
    "s3fs": {"key", "secret", "token", "password"},
    "boto3": {"aws_access_key_id", "aws_secret_access_key", "aws_session_token"},
    "botocore": {"s3_disable_express_session_auth"},
    "pyarrow": {
        "access_key",
        "secret_key",
        "session_token",
        "access_token",
        "account_key",
        "client_secret",
        "sas_token",
    },
    "hadoop": {
        *("fs.s3a.access.key", "fs.s3a.secret.key", "fs.s3a.session.token", "fs.s3a.proxy.password"),
        *("fs.s3a.encryption.key", "fs.adl.oauth2.credential", "fs.adl.oauth2.refresh.token"),
        # No secrets, and refused for their words.
        *("fs.s3a.delegation.token.binding", "fs.s3a.select.input.csv.header", "fs.azure.sas.expiry.period"),
        "fs.azure.authorization",
    },
}
"""What is taken for a secret of the names that a library declares; a new one of a later release is found here."""


def declared(library: str) -> set[str]:
    """The names of options that an installed library declares, in its signatures, documentation or defaults."""
    if library == "s3fs":
        return {*inspect.signature(s3fs.S3FileSystem.__init__).parameters}
    if library == "boto3":
        return {*inspect.signature(boto3.session.Session.client).parameters}
    if library == "botocore":
        return {*botocore.config.Config.OPTION_DEFAULTS}
    if library == "pyarrow":
        classes = (pa_fs.S3FileSystem, pa_fs.GcsFileSystem, pa_fs.AzureFileSystem)
        return {name for each in classes for name in re.findall(r"^ *(\w+) : ", each.__doc__, re.MULTILINE)}
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    with zipfile.ZipFile(jar) as opened:
        names = re.findall(r"<name>\s*(fs\.\S+?)\s*</name>", opened.read("core-default.xml").decode())
    return {*names}


@pytest.mark.parametrize("library", sorted(STORED))
def test_the_secrets_among_all_options_of_a_library(library: str) -> None:
    names = {name.rstrip("*") for name in STORED[library]}
    assert {name for name in names if is_secret_key(name)} == {name[:-1] for name in STORED[library] if name[-1] == "*"}


@pytest.mark.parametrize("library", sorted(INSTALLED))
def test_the_secrets_among_the_options_that_an_installed_library_declares(library: str) -> None:
    names = declared(library)
    assert len(names) > 10
    assert {name for name in names if is_secret_key(name)} == INSTALLED[library]


def test_the_address_of_a_key_is_no_secret() -> None:
    arn = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    for name in ("spark.hadoop.fs.s3a.encryption.key", "fs.s3a.bucket.b.encryption.key"):
        refuse_secrets({name: arn}, where="conf")
        with pytest.raises(ConfigError, match="must not hold secrets"):
            refuse_secrets({name: "aHVudGVyMg=="}, where="conf")
    with pytest.raises(ConfigError, match="must not hold secrets"):
        refuse_secrets({"fs.s3a.secret.key": arn}, where="conf")


def test_a_value_that_is_no_text_is_refused_by_name() -> None:
    for value in (24, True, None, {"password": "hunter2"}):
        with pytest.raises(ConfigError, match="the values of a, b in options are no texts") as caught:
            DoctorRequest("/t", options={"b": value, "a": value, "c": "d"})  # type: ignore[dict-item]
        assert "hunter2" not in str(caught.value)


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

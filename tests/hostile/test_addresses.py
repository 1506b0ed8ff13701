"""Where output goes, what an address may hold, and which options are secrets."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.hudictl_server import hudictl
from tests.hostile.refusals import HostileTable, refused
from tests.hostile.table_copies import difference, tree_of, write_copy

Hostile = Callable[[str, str], HostileTable]
SECRET = "Hunter2Hunter2"


@pytest.mark.parametrize("place", [".hoodie/hoodie.properties", "2024-01-01/new.parquet", "out.parquet", "../{}/x"])
@pytest.mark.parametrize("address", ["path", "uri", "link"])
def test_output_below_the_table_is_refused(hostile: Hostile, tmp_path: Path, address: str, place: str) -> None:
    table = hostile("9", "cow_basic")
    before = tree_of(table.base)
    (tmp_path / "alias").symlink_to(table.base)
    where = {"path": str(table.base), "uri": table.base.as_uri(), "link": str(tmp_path / "alias")}[address]
    output = table.base / place.format(table.base.name)
    refused(hudictl("read", where, "--output", output, "--json"), codes=(2,))
    refused(hudictl("read", table.base, "--output", tmp_path / "alias" / place.format("alias"), "--json"), codes=(2,))
    assert difference(before, tree_of(table.base)) == []


def test_a_query_that_fails_leaves_the_output_as_it_was(hostile: Hostile, tmp_path: Path) -> None:
    table = hostile("6", "cow_basic")
    output = tmp_path / "out.parquet"
    output.write_bytes(b"before")
    for path in table.base.glob("*/*.parquet"):
        path.write_bytes(path.read_bytes()[:-100])
    table.refuses("read", "--output", str(output), "--metadata", "off")
    assert output.read_bytes() == b"before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.parquet", "table"]


@pytest.mark.parametrize(
    "address",
    [
        f"s3://user:{SECRET}@bucket/table",
        f"https://bucket.s3.amazonaws.com/table?X-Amz-Signature={SECRET}",
        f"abfs://container@account/table?sig={SECRET}",
        f"ftp://user:{SECRET}@127.0.0.1:1/table",
    ],
)
@pytest.mark.parametrize("verb", ["timeline", "read", "run clean"])
def test_secrets_in_an_address_are_refused_and_not_printed(tmp_path: Path, verb: str, address: str) -> None:
    more = ("--output", str(tmp_path / "x.parquet")) if verb == "read" else ()
    ended = hudictl(*verb.split(), address, *more, "--json")
    refused(ended, codes=(2,), of_file=False)
    assert SECRET not in ended.out + ended.err


@pytest.mark.parametrize(
    "name",
    [
        *("clientSecret", "client-secret", "CLIENT_SECRET", "sasToken", "accessToken", "auth", "bearer", "pwd", "pass"),
        *("signature", "cookie", "headers", "fs.s3a.secret.key", "aws_secret_access_key", "account_key", "password"),
    ],
)
def test_secret_options_are_refused_and_not_printed(hostile: Hostile, name: str) -> None:
    table = hostile("9", "empty_table_no_commits")
    ended = hudictl("timeline", table.base, "--storage-option", f"{name}={SECRET}", "--json")
    refused(ended, codes=(2,), of_file=False)
    assert SECRET not in ended.out + ended.err


@pytest.mark.parametrize(
    "address",
    [
        *("ftp://127.0.0.1/table", "http://127.0.0.1:1/t", "nowhere://x", "s3://", "file://elsewhere/t", "", "\x00"),
        *("file://[x/t", "file://#/t"),
        *("x" * 5000, "/" + "y" * 300, "/dev/null", "/proc/self/mem", "file:///tmp/%00"),
    ],
)
def test_an_address_that_is_no_table(address: str) -> None:
    refused(hudictl("timeline", address.replace("\0", "\\0"), "--json"), codes=(1, 2), of_file=False)


@pytest.mark.parametrize("name", ["t#old", "t?x=1", "t;x", "t%23old"])
def test_an_address_opens_the_table_that_it_names(tmp_path: Path, name: str) -> None:
    """Hadoop's Path takes `#` and `?` for characters of the path."""
    base, other = write_copy(("9", "cow_basic"), tmp_path / "a"), write_copy(("9", "mor_basic"), tmp_path / "b")
    base.rename(tmp_path / "t")
    other.rename(tmp_path / name.replace("%23", "#"))
    before = tree_of(tmp_path / "t")
    for address in (f"file://{tmp_path}/{name}", f"FILE:{tmp_path}/{name}"):
        ended = hudictl("timeline", address, "--action", "deltacommit", "--json")
        assert json.loads(ended.out)["instants"], ended
    assert hudictl("savepoint", "create", f"file://{tmp_path}/{name}", "--json").code == 0
    assert hudictl("savepoint", "create", f"file://{tmp_path}/t#gone", "--json").code == 2
    assert difference(before, tree_of(tmp_path / "t")) == []


def test_a_table_that_is_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    refused(hudictl("timeline", tmp_path / "pipe", "--json"), codes=(2,))

"""Exit 2 wrote nothing, claims included, and every error is one that was raised on purpose."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.hostile.forked import MEMORY_MIB
from tests.hostile.hudictl_server import hudictl
from tests.hostile.refusals import LOCAL, HostileTable, refused
from tests.hostile.table_copies import difference, tree_of
from tests.hostile.values import NUMBERS

Hostile = Callable[[str, str], HostileTable]


@pytest.mark.parametrize(
    ("pattern", "at", "code"),
    [
        *(("*/*.parquet", at, 1) for at in (0, 1, -1)),
        *(("*/.*.log.*", at, 1) for at in (0, 1)),
        (".hoodie/timeline/*.compaction.requested", 0, 2),
    ],
)
@pytest.mark.parametrize("more", [(), ("--all-pending",)])
def test_a_service_that_meets_a_damaged_file_names_it(
    hostile: Hostile, pattern: str, at: int, code: int, more: tuple[str, ...]
) -> None:
    """One of its files alone is damaged; exit code 1 where that shows behind the claim. A run of all that is pending
    has the error with its instant, since it stops no other.
    """
    table = hostile("9", "mor_compaction_requested")
    path = table.change(pattern, lambda data: data[: len(data) // 2], at)
    before = tree_of(table.base)
    ended = table.run("run compaction", *LOCAL, *more)
    assert ended.code == code, ended
    assert ended.code != 2 or difference(before, tree_of(table.base)) == []
    document = json.loads(ended.out)
    if more:
        (failed,) = document["instants"]
        assert path.name in failed["error"]
    else:
        assert document["error"]["path"] == path.relative_to(table.base).as_posix()
        assert document["error"]["remedy"]


@pytest.mark.parametrize("where", ["\udcff\udcfe", "id = '\udcff'", "(" * 2000, "id = " + "9" * 5000, "a" * 100_000])
def test_a_predicate_that_is_none(hostile: Hostile, where: str) -> None:
    table = hostile("9", "mor_basic")
    table.refuses_read("--where", where, of_file=False)


@pytest.mark.parametrize("name", ["x" * 300, "a/" * 3000, "..", "\udcff"])
@pytest.mark.parametrize("verb", ["show", "unschedule", "takeover", "rollback --instant", "restore --instant"])
def test_an_instant_that_is_none(hostile: Hostile, verb: str, name: str) -> None:
    table = hostile("9", "mor_basic")
    words = verb.split()
    before = tree_of(table.base)
    ended = hudictl(words[0], table.base, *words[1:], name, "--json")
    refused(ended, codes=(1, 2), changes=difference(before, tree_of(table.base)), of_file=False)


ODD_NAME = "\x1b[31m\u202e"
PROPERTIES = (
    *("hoodie.table.version", "hoodie.table.type", "hoodie.timeline.layout.version", "hoodie.table.base.file.format"),
    *("hoodie.table.recordkey.fields", "hoodie.table.partition.fields", "hoodie.table.create.schema"),
    *(
        "hoodie.table.metadata.partitions",
        "hoodie.archivelog.folder",
        "hoodie.timeline.path",
        "hoodie.populate.meta.fields",
    ),
)


@pytest.mark.parametrize("name", PROPERTIES)
def test_absurd_properties(hostile: Hostile, name: str) -> None:
    table = hostile("9", "mor_basic")
    path = table.path(".hoodie/hoodie.properties")
    lines = [line for line in path.read_text().splitlines() if not line.startswith(f"{name}=")]
    for value in ("", "..", "/etc/passwd", ODD_NAME, "x" * 70_000, "null", *map(str, NUMBERS[:4])):
        shown = value.replace("\\", "\\\\").replace("\n", "\\n")
        path.write_text("\n".join([*lines, f"{name}={shown}", ""]))
        ended = table.read()
        assert ended.code in (0, 2), (value[:80], ended)
        if ended.code:
            assert json.loads(ended.out)["error"]["path"], (value[:80], ended)


def claim_with(**members: Any) -> bytes:
    texts = ("boot_id", "pid_namespace", "process_start", "run_id")
    owner = {"text": "me", "host": "h", "pid": 1, **dict.fromkeys(texts, "")}
    claim = {"version": 1, "token": "t", "owner": owner, "interval_ms": 60_000, "tolerable_misses": 2}
    return json.dumps({**claim, **members}).encode()


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[]", b"[" * 100_000, bytes(100), b"\xff\xfe", b'{"version": 1}'),
        *(claim_with(interval_ms=number) for number in (-1, 0, 1 << 62, 1e308)),
        *(claim_with(tolerable_misses=number) for number in (-1, 0, 1 << 62)),
        *(claim_with(owner=owner) for owner in (None, [], {}, "me", {"pid": -1})),
        claim_with(token=None),
        claim_with(version=99),
        claim_with(pad="x" * 2_000_000),
    ],
)
@pytest.mark.parametrize("verb", ["run compaction", "takeover", "unschedule"])
def test_absurd_claims(hostile: Hostile, verb: str, content: bytes) -> None:
    table = hostile("9", "mor_compaction_requested")
    instant = table.path(".hoodie/timeline/*.compaction.requested").name.split(".")[0]
    folder = table.base / ".hoodie/.airflow_hudi/claims" / instant
    folder.mkdir(parents=True)
    (folder / "000001.json").write_bytes(content)
    table.refuses(verb, *(LOCAL if verb.startswith("run") else (instant,)), codes=(1, 2, 3))


def test_a_claim_of_a_century_is_not_waited_for(hostile: Hostile) -> None:
    """The longest interval and number of misses that a claim may say are bounded, and with them how long it holds."""
    table = hostile("9", "mor_compaction_requested")
    instant = table.path(".hoodie/timeline/*.compaction.requested").name.split(".")[0]
    folder = table.base / ".hoodie/.airflow_hudi/claims" / instant
    folder.mkdir(parents=True)
    claim = folder / "000001.json"
    claim.write_bytes(claim_with(interval_ms=10**8, tolerable_misses=1000))
    assert "86400 s" in table.refuses("run compaction", *LOCAL, codes=(3,))["remedy"]
    silent = time.time() - 86_500
    os.utime(claim, (silent, silent))
    assert table.run("run compaction", *LOCAL).code == 0


@pytest.mark.parametrize(
    "schema", ["{", '"string"', '{"type":"record","name":"r","fields":[{"name":"a","type":"nowhere"}]}']
)
def test_a_wrong_schema_in_a_commit_names_the_commit(hostile: Hostile, schema: str) -> None:
    table = hostile("6", "cow_basic")

    def changed(data: bytes) -> bytes:
        document = json.loads(data)
        document["extraMetadata"]["schema"] = schema
        return json.dumps(document).encode()

    path = table.change(".hoodie/*.commit", changed, -1)
    table.refuses_read(names=path.name.split(".")[0])


def test_the_limit_is_one_and_a_half_gibibytes() -> None:
    assert MEMORY_MIB == 1536

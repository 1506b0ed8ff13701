"""Pending files of overwrites; their bytes are compared with real Hudi's in tests/golden/test_overwrites.py."""

from __future__ import annotations

import pytest

from hudi_core.errors import CorruptFileError
from hudi_core.timeline.actions.commit import Operation
from hudi_core.timeline.actions.content import decode_any
from hudi_core.timeline.actions.replacecommit import (
    TOKEN_KEY,
    decode_clustering_plan,
    encode_inflight_overwrite,
    encode_requested_overwrite,
    encode_requested_write,
    requested_extra,
)
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("names_deletes", [False, True])
def test_a_token_is_read_back_and_makes_no_clustering(layout: int, names_deletes: bool) -> None:
    for operation in (Operation.INSERT_OVERWRITE, Operation.DELETE_PARTITION):
        for token in (None, "dag/2024-01-01"):
            data = encode_requested_overwrite(operation, token=token, layout=layout, names_deletes=names_deletes)
            assert requested_extra(data, Action.REPLACE_COMMIT, path="T").get(TOKEN_KEY) == token
            assert decode_clustering_plan(data, path="T") is None
            is_named = names_deletes and operation == Operation.DELETE_PARTITION
            assert decode_any(data, path="T")["operationType"] == (operation if is_named else None)


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("action", [Action.COMMIT, Action.DELTA_COMMIT])
def test_a_token_of_a_write_of_rows_is_read_back(layout: int, action: str) -> None:
    data = encode_requested_write(Operation.UPSERT, {TOKEN_KEY: "dag/2024-01-01"}, layout=layout)
    assert requested_extra(data, action, path="T") == {TOKEN_KEY: "dag/2024-01-01"}
    assert decode_any(data, path="T")["operationType"] == Operation.UPSERT


@pytest.mark.parametrize("action", sorted(COMMIT_ACTIONS))
def test_an_empty_file_has_no_token_and_others_are_refused(action: str) -> None:
    assert requested_extra(b"", action, path="T") == {}
    with pytest.raises(CorruptFileError, match=r"T\.requested"):
        requested_extra(b"garbage", action, path="T.requested")


@pytest.mark.parametrize("layout", [1, 2])
def test_the_inflight_file_counts_the_rows_to_come(layout: int) -> None:
    raw = decode_any(encode_inflight_overwrite(Operation.INSERT_OVERWRITE, {"a": 3}, layout=layout), path="T")
    assert raw["operationType"] == "INSERT_OVERWRITE"
    (stat,) = raw["partitionToWriteStats"]["a"]
    assert (stat["numInserts"], stat["fileId"], stat["path"], stat["prevCommit"]) == (3, "", None, "null")

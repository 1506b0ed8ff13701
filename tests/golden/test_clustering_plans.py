"""Clustering plans of real Hudi in the golden tables: encoded again, they are the same bytes."""

from __future__ import annotations

import pytest

from hudi_core.timeline.actions.clustering import decode_clustering_plan, encode_clustering_plan
from tests.support.golden_clusterings import clustered_tables, requested_clustering

SYNC_BYTES = 16


@pytest.mark.parametrize("name", clustered_tables())
def test_a_plan_is_encoded_as_real_hudi_did(name: str) -> None:
    found = requested_clustering(name)
    assert found is not None
    _, path, data = found
    plan = decode_clustering_plan(data, path=path)
    assert plan is not None
    first = plan.slices[0]
    names_it = f"/{first.partition}/{first.base_file}".encode()
    root = data[: data.index(names_it)].rpartition(b"/warehouse")
    scheme = b"file:" if root[0].endswith(b"file:") else b""
    base = (scheme + root[1] + root[2]).decode()

    ours = encode_clustering_plan(plan, lambda relative: f"{base}/{relative}")

    assert ours.replace(ours[-SYNC_BYTES:], data[-SYNC_BYTES:]) == data, "but for the sync marker, which is random"

"""Completed files of commits, as short as they can be."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence


def commit_file(rows: Mapping[str, int], operation: str = "UPSERT", removed: Sequence[str] = ()) -> bytes:
    """Of a commit of layout 1 that wrote so many `rows` to each partition, and replaced a file group in `removed`."""
    found = {
        "partitionToWriteStats": {
            name: [{"fileId": "f", "path": f"{name}/f", "partitionPath": name, "numWrites": count}]
            for name, count in rows.items()
        },
        "compacted": operation == "COMPACT",
        "extraMetadata": {},
        "operationType": operation,
    }
    if removed:
        found["partitionToReplaceFileIds"] = {name: ["f"] for name in removed}
    return json.dumps(found).encode()

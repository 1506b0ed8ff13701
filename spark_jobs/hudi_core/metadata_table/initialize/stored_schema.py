"""The Avro schema that a new metadata table's records are stored by, of each table version (HoodieMetadata.avsc).

An existing metadata table is written by the schema in its latest commit (delta_commit.latest_schema): these are for its
initialization alone.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources

from hudi_core.config.versions import V6, V8, TableVersion
from hudi_core.model.names import META_FIELDS


def stored_schema(version: TableVersion) -> str:
    """The schema of log blocks and base files: that of the records, the `_hoodie_*` columns first. Without Hudi's doc
    texts.
    """
    return _text(_FILES.get(version.number, _LATEST))


@lru_cache(maxsize=4)
def commit_schema(version: TableVersion) -> str:
    """The schema that commits carry: without the `_hoodie_*` columns."""
    schema = json.loads(stored_schema(version))
    fields = [field for field in schema["fields"] if field["name"] not in META_FIELDS]
    return json.dumps({**schema, "fields": fields}, separators=(",", ":"), ensure_ascii=False)


_FILES = {V6.number: "schema_v6.avsc", V8.number: "schema_v8.avsc"}
_LATEST = "schema_v9.avsc"


@lru_cache(maxsize=4)
def _text(name: str) -> str:
    return resources.files("hudi_core.metadata_table").joinpath(name).read_text(encoding="utf-8").strip()

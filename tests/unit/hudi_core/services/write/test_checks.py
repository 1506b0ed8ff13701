"""Whether the table still has the schema and the buckets that a write counts on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.errors import ConfigError, ConflictError
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.filegroup.write.buckets import Buckets
from hudi_core.services.write.checks import check_bucket_ids, check_same_schema
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]


def test_a_change_of_columns_is_a_conflict(golden: Golden) -> None:
    context = open_context(golden("9", "cow_basic").table)
    now = context.active.load()
    schema = table_schema(context.storage, context.config, now)
    check_same_schema(context, now, "T", {**schema, "name": "flinks_record", "namespace": "org.acme", "doc": "a"})
    column = schema["fields"][-1]
    for fields in (
        [*schema["fields"], {**column, "name": "more"}],
        [*schema["fields"][:-1], {**column, "type": "bytes"}],
    ):
        with pytest.raises(ConflictError, match="schema was changed since the work of T began"):
            check_same_schema(context, now, "T", {**schema, "fields": fields})


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_commit_with_new_columns_must_be_the_newest(golden: Golden, version: str) -> None:
    """The table's schema is that of the newest instant: queries would not show the columns."""
    context = open_context(golden(version, "cow_basic").table)
    now = context.active.load()
    schema, (*_, before, last) = table_schema(context.storage, context.config, now), now.commits().instants
    check_same_schema(context, now, before.requested_time, schema)
    check_same_schema(context, now, last.requested_time, schema, evolves=True)
    with pytest.raises(ConflictError, match=f"commit {last.requested_time} is newer than {before.requested_time}"):
        check_same_schema(context, now, before.requested_time, schema, evolves=True)


def test_file_ids_show_buckets_without_base_files(golden: Golden) -> None:
    context = open_context(golden("9", "bucket_index_cow").table)
    ids = ["00000002-64c6-4d82-bc70-3d88ba276ea1-0"]
    check_bucket_ids(context, ids, Buckets(3, ("id",), ("id",)))
    with pytest.raises(ConfigError, match="is none of 2 buckets"):
        check_bucket_ids(context, ids, Buckets(2, ("id",), ("id",)))

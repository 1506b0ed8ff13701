from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_core.expr.bind import bind
from hudi_core.expr.sql import parse_predicate
from hudi_core.index.key_lookups import MAX_VALUES, key_candidates
from tests.support.table_configs import config_of

SCHEMA = pa.schema(
    [
        pa.field("_hoodie_record_key", pa.string()),
        pa.field("id", pa.string()),
        pa.field("n", pa.int64()),
        pa.field("d", pa.float64()),
        pa.field("v", pa.int64()),
    ]
)


def keys(text: str, fields: str = "id", hidden: frozenset[str] = frozenset()) -> set[str] | None:
    found = key_candidates(
        bind(parse_predicate(text), SCHEMA), config_of({"hoodie.table.recordkey.fields": fields}), hidden
    )
    return None if found is None else set(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id = 'a'", {"a", "id:a"}),
        ("id IN ('a', 'b') AND v = 1", {"a", "b", "id:a", "id:b"}),
        ("id IN ('a', 'b') AND id <> 'a'", {"a", "b", "id:a", "id:b"}),
        ("id IN ('a', 'b') AND id = 'b'", {"b", "id:b"}),
        ("id = 'a' OR id = 'b'", {"a", "b", "id:a", "id:b"}),
        ("id = 'a' OR v = 1", None),
        ("id = 'a' OR 1 = 2", {"a", "id:a"}),
        ("id > 'a'", None),
        ("NOT (id = 'a')", None),
        ("id NOT IN ('a')", None),
        ("NOT (id <> 'a')", {"a", "id:a"}),
        ("_hoodie_record_key = 'x'", {"x"}),
        ("_hoodie_record_key IN ('a', 'x') AND id = 'a'", {"a"}),
        ("id = ''", {"id:__empty__"}),
        ("v = 1", None),
        ("1 = 2", set()),
        ("id = 'a' AND id = 'b'", set()),
    ],
)
def test_keys_of_a_predicate(text: str, expected: set[str] | None) -> None:
    assert keys(text) == expected


def test_whole_numbers_and_no_others() -> None:
    assert keys("n = 5", "n") == {"5", "n:5"}
    assert keys("n IN (5, 6.0, 6.5)", "n") == {"5", "6", "n:5", "n:6"}
    assert keys("n = 5e0", "n") is None
    assert keys("d = 5", "d") is None


@pytest.mark.slow
def test_complex_keys_need_all_their_fields() -> None:
    assert keys("id = 'a' AND n IN (1, 2)", "id,n") == {"id:a,n:1", "id:a,n:2"}
    assert keys("id = '' AND n = 1", "id,n") == {"id:__empty__,n:1"}
    assert keys("id = 'a'", "id,n") is None
    values = ", ".join(map(str, range(MAX_VALUES // 2)))
    assert keys(f"id IN ('a', 'b', 'c') AND n IN ({values})", "id,n") is None


def test_columns_that_a_query_does_not_read_from_rows_make_no_keys() -> None:
    assert keys("id = 'a'", hidden=frozenset({"id"})) is None
    assert keys("_hoodie_record_key = 'a'", hidden=frozenset({"id"})) == {"a"}
    assert keys("id = 'a'", "") is None


def test_keys_of_a_users_own_generator_are_not_those_of_columns() -> None:
    """Such a class may make a key of any value in any way; Hudi's own is the control."""
    for package, expected in (("com.example", None), ("org.apache.hudi.keygen", {"a", "id:a"})):
        config = config_of(
            {"hoodie.table.recordkey.fields": "id", "hoodie.table.keygenerator.class": f"{package}.SimpleKeyGenerator"}
        )
        found = key_candidates(bind(parse_predicate("id = 'a'"), SCHEMA), config, frozenset())
        assert found == expected
        direct = key_candidates(bind(parse_predicate("_hoodie_record_key = 'x'"), SCHEMA), config, frozenset())
        assert direct == {"x"}

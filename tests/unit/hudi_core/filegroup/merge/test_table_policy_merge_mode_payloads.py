from __future__ import annotations

import pytest

from hudi_core.config.rows_config import Payload
from hudi_core.errors import UnsupportedError
from hudi_core.filegroup.merge.table_policy import POSTGRES_ORDER, payload_of


@pytest.mark.parametrize("payload", list(Payload))
def test_classes_by_their_names(payload: Payload) -> None:
    assert payload.value.startswith("org.apache.hudi.common.model.")
    assert payload_of(payload.value, (POSTGRES_ORDER,), default=Payload.LATEST, path="x") is payload


def test_without_a_name_it_is_the_default() -> None:
    for name in ("", None):
        assert payload_of(name, (), default=Payload.DEFAULT, path="x") is Payload.DEFAULT


def test_other_classes_are_named_with_a_way_out() -> None:
    with pytest.raises(UnsupportedError, match=r"com\.example\.Mine") as caught:
        payload_of("com.example.Mine", (), default=Payload.LATEST, path="the properties")
    assert caught.value.path == "the properties"
    assert "register_merger" in str(caught.value.remedy)


@pytest.mark.parametrize("fields", [(), ("ts",), ("_event_lsn", "ts")])
def test_postgres_compares_by_its_own_column(fields: tuple[str, ...]) -> None:
    with pytest.raises(UnsupportedError, match="ordering field"):
        payload_of(Payload.POSTGRES.value, fields, default=Payload.LATEST, path="x")
    found = payload_of(Payload.POSTGRES.value, ("_event_lsn",), default=Payload.LATEST, path="x")
    assert found is Payload.POSTGRES
    assert payload_of(Payload.DEFAULT.value, fields, default=Payload.LATEST, path="x") is Payload.DEFAULT

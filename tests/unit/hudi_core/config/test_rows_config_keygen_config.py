"""Options of key generators: the table's properties come first, and older names are read."""

from __future__ import annotations

import pytest

from hudi_core.config.rows_config import TIME_OUTPUT, TIME_TYPE, TYPED_PARTITION_FIELDS, with_properties
from hudi_core.errors import ConfigError


def test_properties_come_before_options() -> None:
    settings = with_properties({TIME_OUTPUT.name: "yyyy"}, {TIME_OUTPUT.name: "MM", TIME_TYPE.name: "MIXED"})
    assert TIME_OUTPUT.read(settings) == "yyyy"
    assert TIME_TYPE.read(settings) == "MIXED"


def test_older_names_are_read_and_unknown_types_refused() -> None:
    assert TIME_TYPE.read({"hoodie.deltastreamer.keygen.timebased.timestamp.type": "scalar"}) == "SCALAR"
    with pytest.raises(ConfigError, match=r"timestamp\.type"):
        TIME_TYPE.read({TIME_TYPE.name: "SUNDIAL"})
    assert TYPED_PARTITION_FIELDS.read({TYPED_PARTITION_FIELDS.name: "a:SIMPLE, b:TIMESTAMP"}) == (
        "a:SIMPLE",
        "b:TIMESTAMP",
    )

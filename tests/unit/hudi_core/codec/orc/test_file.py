from __future__ import annotations

import datetime as dt
import io

import pyarrow as pa
import pyarrow.orc as orc
import pytest

from hudi_core.codec.orc.file import OrcBaseFile
from hudi_core.errors import CorruptFileError

AT = dt.datetime(2026, 3, 1, 12, tzinfo=dt.timezone.utc)
ROWS = pa.table(
    {
        "id": pa.array([1, 2, None], pa.int64()),
        "at": pa.array([AT, None, AT], pa.timestamp("us", tz="UTC")),
        "seen": pa.array([[AT], [], None], pa.list_(pa.timestamp("us", tz="UTC"))),
    }
)


def written(table: pa.Table) -> bytes:
    out = io.BytesIO()
    orc.write_table(table, out)
    return out.getvalue()


def test_rows_and_columns() -> None:
    file = OrcBaseFile(io.BytesIO(written(ROWS)), "x.orc")
    assert (file.num_rows, file.schema.names) == (3, ["id", "at", "seen"])
    assert pa.Table.from_batches(file.batches()).to_pydict() == ROWS.to_pydict()
    assert [batch.schema.names for batch in file.batches(["at", "absent"])] == [["at"]]


def test_rows_are_counted_without_a_column() -> None:
    file = OrcBaseFile(io.BytesIO(written(ROWS)), "x.orc")
    assert sum(batch.num_rows for batch in file.batches([])) == 3


@pytest.mark.parametrize("kept", [0, 3, -20])
def test_a_cut_file_is_named(kept: int) -> None:
    data = written(ROWS)
    with pytest.raises(CorruptFileError) as caught:
        OrcBaseFile(io.BytesIO(data[:kept]), "x.orc")
    assert caught.value.path == "x.orc"

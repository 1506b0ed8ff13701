from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.errors import CorruptFileError
from hudi_core.history.lsm import REMEDY, ROW_VERSION, SCHEMA, read_batches, write_batches
from tests.support.memory_storage import MemoryStorage


def test_a_file_has_the_columns_and_the_footer_of_hudi() -> None:
    """HoodieLSMTimelineInstant: Hudi's readers take the Avro schema from the footer."""
    out = io.BytesIO()
    row = {"instantTime": "001", "completionTime": "002", "action": "commit", "metadata": b"m", "plan": None}
    write_batches(out, [pa.RecordBatch.from_pylist([{**row, "version": ROW_VERSION}], schema=SCHEMA)], path="x")
    file = pq.ParquetFile(io.BytesIO(out.getvalue()))
    assert file.read().to_pylist() == [{**row, "version": 1}]
    assert file.metadata.row_group(0).column(0).compression == "GZIP"
    footer = file.metadata.metadata
    avro = json.loads(footer[b"parquet.avro.schema"])
    assert avro["name"] == "HoodieLSMTimelineInstant"
    assert [field["name"] for field in avro["fields"]] == SCHEMA.names
    assert b"org.apache.hudi.bloomfilter" not in footer


def stored(**columns: pa.Array) -> MemoryStorage:
    storage, out = MemoryStorage(), io.BytesIO()
    pq.write_table(pa.table(columns), out)
    storage.write("x", out.getvalue())
    return storage


def test_columns_are_read_some_rows_at_once() -> None:
    storage = stored(action=pa.array(["a", "b", "c"]), instantTime=pa.array(["1", "2", "3"]))
    batches = list(read_batches(storage, "x", ("instantTime", "action"), 2))
    assert [batch.num_rows for batch in batches] == [2, 1]
    assert [row["instantTime"] + row["action"] for batch in batches for row in batch.to_pylist()] == ["1a", "2b", "3c"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"instantTime": pa.array(["1"])}, "no string column 'action', so it is no file of the archive"),
        ({"instantTime": pa.array(["1"]), "action": pa.array([1])}, "no string column 'action'"),
    ],
)
def test_a_file_of_other_columns_is_damaged(columns: dict[str, pa.Array], message: str) -> None:
    with pytest.raises(CorruptFileError, match=message) as caught:
        list(read_batches(stored(**columns), "x", ("instantTime", "action")))
    assert (caught.value.path, caught.value.remedy) == ("x", REMEDY)


def test_a_damaged_file_and_one_that_is_gone_say_so() -> None:
    storage = MemoryStorage()
    storage.write("x", b"PAR1 but no more")
    with pytest.raises(CorruptFileError) as caught:
        list(read_batches(storage, "x", ("instantTime",)))
    assert (caught.value.path, caught.value.remedy) == ("x", REMEDY)
    with pytest.raises(CorruptFileError, match="which is not there"):
        list(read_batches(storage, "y", ("instantTime",)))

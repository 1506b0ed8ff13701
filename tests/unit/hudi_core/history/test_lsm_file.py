from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.history.lsm_file import ROW_VERSION, SCHEMA, HistoryFileWriter


def test_a_file_has_the_columns_and_the_footer_of_hudi() -> None:
    """HoodieLSMTimelineInstant: Hudi's readers take the Avro schema from the footer."""
    out = io.BytesIO()
    row = {"instantTime": "001", "completionTime": "002", "action": "commit", "metadata": b"m", "plan": None}
    writer = HistoryFileWriter(out, path="x")
    writer.write(pa.RecordBatch.from_pylist([{**row, "version": ROW_VERSION}], schema=SCHEMA))
    writer.close()
    file = pq.ParquetFile(io.BytesIO(out.getvalue()))
    assert file.read().to_pylist() == [{**row, "version": 1}]
    assert file.metadata.row_group(0).column(0).compression == "GZIP"
    footer = file.metadata.metadata
    avro = json.loads(footer[b"parquet.avro.schema"])
    assert avro["name"] == "HoodieLSMTimelineInstant"
    assert [field["name"] for field in avro["fields"]] == SCHEMA.names
    assert b"org.apache.hudi.bloomfilter" not in footer

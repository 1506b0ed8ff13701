//! A write by hudi-rs, for benchmarks/write.py: `hudi-rs-write OPERATION TABLE SOURCE KIND`.
//!
//! SOURCE is a Parquet file. `bulk_insert` makes the table first, of KIND: as benchmarks/tables.py makes it.

use std::{env, error::Error, fs::File};

use arrow_array::{RecordBatch, cast::AsArray};
use arrow_cast::cast;
use arrow_schema::DataType;
use hudi_core::{
    config::table::TableTypeValue,
    index::HoodieKey,
    table::Table,
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// Rows in a batch of the source.
const BATCH_ROWS: usize = 65_536;

async fn created(uri: &str, kind: &str) -> Result<Table, Box<dyn Error>> {
    let kind = match kind {
        "MERGE_ON_READ" => TableTypeValue::MergeOnRead,
        _ => TableTypeValue::CopyOnWrite,
    };
    let table = Table::create(uri)
        .with_table_name("bench")
        .with_table_type(kind)
        .with_record_key_fields(["id"])
        .with_partition_fields(["part"])
        .with_ordering_fields(["ts"])
        .with_record_index_enabled(false)
        .with_column_stats_enabled(false)
        .with_partition_stats_enabled(false)
        .with_option("hoodie.parquet.max.file.size", "512000000")
        .with_option("hoodie.parquet.small.file.limit", "0")
        .create()
        .await?;
    Ok(table)
}

/// The values of a column, as text.
fn texts(batch: &RecordBatch, name: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let column = batch.column_by_name(name).ok_or(format!("no column {name}"))?;
    let texts = cast(column, &DataType::Utf8)?;
    let values = texts.as_string::<i32>().iter();
    Ok(values.map(|value| value.unwrap_or_default().to_owned()).collect())
}

fn keys(batches: &[RecordBatch]) -> Result<Vec<HoodieKey>, Box<dyn Error>> {
    let mut keys = Vec::new();
    for batch in batches {
        let partitions = texts(batch, "part")?;
        for (record_key, partition_path) in texts(batch, "id")?.into_iter().zip(partitions) {
            keys.push(HoodieKey { record_key, partition_path });
        }
    }
    Ok(keys)
}

async fn write(operation: &str, uri: &str, source: &str, kind: &str) -> Result<(), Box<dyn Error>> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(source)?)?;
    let batches = reader.with_batch_size(BATCH_ROWS).build()?.collect::<Result<Vec<_>, _>>()?;
    let result = match operation {
        "bulk_insert" => created(uri, kind).await?.append(batches).await?,
        "upsert" => Table::new(uri).await?.upsert(batches).await?,
        "delete" => Table::new(uri).await?.delete_keys(keys(&batches)?).await?,
        _ => return Err(format!("{operation} is no operation").into()),
    };
    println!("{{\"rows\": {}}}", result.num_inserts + result.num_updates + result.num_deletes);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [operation, uri, source, kind] = arguments.as_slice() else {
        return Err("give OPERATION TABLE SOURCE KIND".into());
    };
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(write(operation, uri, source, kind))
}

"""Creates a table: its properties, before any row is written.

- ``verb``: who of two creates makes the table; which folders are refused; what the result says.
- ``properties``: which properties a table of each version begins with; which two tables are the same.
- ``schema``: the schema of a table like a Parquet file, or by an Avro schema; which columns and types it refuses.

Elsewhere: ``config/new_table`` says which fields and options name a property of a new table, and which exclude each
other; ``config/table_config`` how properties are changed later; ``metadata_table/write/lifetime`` which properties a
metadata table begins with.
"""

"""Reads and writes Avro: schemas, plans and commit metadata as Python values, records of log blocks as Arrow columns.

- ``schema``: which schemas are refused (too deep, too many types, many values without bytes); the `_hoodie_*` fields.
- ``resolve``: the meaning of a type of a schema: which unions are a nullable column, which logical types count.
- ``datum``: one value in Python: no logical type converts it, so that encoding gives the same bytes back.
- ``container``: files of plans and commit metadata: whether one is whole, which are refused, maps of very many entries.
- ``arrow_types``: the Arrow type of an Avro type, and back; the type that Spark reports; the unit of a timestamp in a
  file with another label than the table's schema.
- ``arrow``: records of log blocks as rows: the default of a column that an older record lacks, decimals, texts that
  are no UTF-8, vectors.
- ``arrow_routes``: whether polars or fastavro reads a log block, and when polars is imported for that.
- ``arrow_conform``: which changes of a column's type are read (int to long, number to text), and which are refused;
  numbers as text in Java's form; columns that the data lack.
- ``encode``: rows as the data of log blocks: the bytes of a decimal and of an array; which values are refused.
- ``column_walk``: fields of many records at once, for schemas with unions of several records.

Elsewhere: the schema of a table's rows is in ``filegroup/read/schema_resolver``; base files of an older schema in
``filegroup/read/base_file``; two columns that differ in case alone in ``model/names``; a plan that is half-written in
``timeline/actions/content``.
"""

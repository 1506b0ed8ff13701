"""Options that key generators of writers read, where the table's properties do not hold them (KeyGeneratorOptions,
TimestampKeyGeneratorConfig).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hudi_core.config.keys import ConfigKey, boolean, flag, keys_in, names, one_of, optional, whole_number

_TIME: Final = "hoodie.keygen.timebased."
_OLD_TIME: Final = "hoodie.deltastreamer.keygen.timebased."


def _of_time(name: str, doc: str) -> ConfigKey[str | None]:
    return ConfigKey(_TIME + name, None, lambda value: value or None, doc, (_OLD_TIME + name,))


TIME_TYPE: ConfigKey[str | None] = ConfigKey(
    _TIME + "timestamp.type",
    None,
    one_of("UNIX_TIMESTAMP", "EPOCHMILLISECONDS", "EPOCHMICROSECONDS", "DATE_STRING", "MIXED", "SCALAR"),
    "what a partition column of times holds",
    (_OLD_TIME + "timestamp.type",),
)
TIME_UNIT = ConfigKey(
    _TIME + "timestamp.scalar.time.unit",
    "SECONDS",
    one_of("NANOSECONDS", "MICROSECONDS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"),
    "unit of the numbers of type SCALAR",
    (_OLD_TIME + "timestamp.scalar.time.unit",),
)
TIME_INPUT = _of_time("input.dateformat", "format of the texts in a partition column of times; several with commas")
TIME_DELIMITER = _of_time(
    "input.dateformat.list.delimiter.regex", "what divides these formats; this release reads commas alone"
)
TIME_OUTPUT = _of_time("output.dateformat", "format of the partition paths of times")
TIME_ZONE = _of_time("timezone", "zone of both: a region, or an offset such as GMT+8:00")
TIME_INPUT_ZONE = _of_time("input.timezone", "zone of texts without one")
TIME_OUTPUT_ZONE = _of_time(
    "output.timezone", "zone of the partition paths; without it, of texts that of the input, or their own"
)
TYPED_PARTITION_FIELDS = names(
    "hoodie.datasource.write.partitionpath.field",
    "partition columns with their types (`day:SIMPLE,at:TIMESTAMP`), for a custom key generator of table version 6",
)
CONSISTENT_TIMESTAMPS = flag(
    "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled",
    "keys and partition paths have timestamps as text with fractions, which this release does not write",
)
NEW_ENCODING: ConfigKey[bool | None] = ConfigKey(
    "hoodie.write.complex.keygen.new.encoding",
    None,
    boolean,
    "keys of the complex key generator with one field are its bare values; only for versions 6 and 8, and where no row "
    "shows it",
)
COMBINE_INSERTS = flag(
    "hoodie.combine.before.insert",
    "of rows of a partition with one key an overwrite writes the one with the greatest ordering value, of several the "
    "last",
)
INDEX_TYPE = optional(
    "hoodie.index.type", "the index by which writers find rows; with a global one an overwrite combines none"
)
NUM_BUCKETS: ConfigKey[int | None] = ConfigKey(
    "hoodie.bucket.index.num.buckets",
    None,
    whole_number(1, 9_999),
    "buckets of each partition of a table whose writers have the index type BUCKET; an overwrite needs it",
)
PARTITION_BUCKETS = optional(
    "hoodie.bucket.index.partition.expressions",
    "numbers of buckets of single partitions, which an overwrite does not write",
)
HASH_FIELDS = names(
    "hoodie.bucket.index.hash.field", "fields of the record key by which rows have their bucket; all without it"
)
BUCKET_ENGINE = ConfigKey(
    "hoodie.index.bucket.engine",
    "SIMPLE",
    one_of("SIMPLE", "CONSISTENT_HASHING"),
    "how many buckets there are: a fixed number, or as their sizes need, which an overwrite does not write",
)
SLASHED_DATES = flag(
    "hoodie.datasource.write.slash.separated.date.partitioning",
    "dates in partition paths are divided by slashes; this release does not write them",
)

KEYGEN_KEYS = keys_in(globals())
"""Every option of this module."""


def with_properties(properties: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    """The options, and those that the table's properties hold, which come first."""
    return {**options, **properties}

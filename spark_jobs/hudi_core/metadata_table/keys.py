"""Keys of the metadata table's records (ColumnIndexID, PartitionIndexID, FileIndexID, SecondaryIndexKeyUtils). A column
or a partition is 12 characters of base64 over an xxHash64; a file is 24 characters over an MD5. codec.hashing says
which file group has a key; partition_type.py has the names of partitions.
"""

from __future__ import annotations

import base64
import hashlib
import re

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.hashing import xxh64
from hudi_core.errors import CorruptFileError
from hudi_core.model.partition import NON_PARTITIONED

ID_LENGTH = 12
"""The number of characters of a column's or a partition's id."""
PARTITION_STATISTICS = "__partition_stat__"
"""The text that an expression index hashes before the partition's id, in keys of statistics of whole partitions."""

# HashID's seed 0xdabadaba is a Java int, so it is sign-extended to the 64 bits of the hash's seed.
_SEED = 0xFFFFFFFFDABADABA
_ESCAPE = "\\"
_ESCAPED = re.compile(r"\\(.?)", re.DOTALL)
_SEPARATOR = "$"
_NULL = "\0"


def column_id(column: str) -> str:
    return _hashed(column)


def partition_id(partition: str) -> str:
    return _hashed(partition or NON_PARTITIONED)


def file_id(name: str) -> str:
    return base64.b64encode(hashlib.md5(name.encode("utf-8"), usedforsecurity=False).digest()).decode("ascii")


def column_stats_key(column: str, partition: str, name: str) -> str:
    return column_id(column) + partition_id(partition) + file_id(name)


def partition_stats_key(column: str, partition: str) -> str:
    return column_id(column) + partition_id(partition)


def bloom_filter_key(partition: str, name: str) -> str:
    return partition_id(partition) + file_id(name)


def secondary_keys(prefixes: pa.Array, record_keys: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(prefixes, _escaped_texts(record_keys), "")


def secondary_prefixes(values: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(pc.fill_null(_escaped_texts(values), _NULL), "", _SEPARATOR)


def secondary_prefix(value: str | None) -> str:
    """Returns the prefix of the keys of `value`. It ends with the separator: keys of other values do not match."""
    text: str = secondary_prefixes(pa.array([value], pa.string()))[0].as_py()
    return text


def secondary_hashed_part(key: str) -> str:
    """Returns the part of a key that version 2 hashes: value and separator. Raises CorruptFileError without one."""
    return key[: _separator(key) + 1]


def parse_secondary_key(key: str) -> tuple[str | None, str]:
    """Returns the value and the record key in a key. Raises CorruptFileError for a key without a separator."""
    at = _separator(key)
    value = key[:at]
    return None if value == _NULL else _unescaped(value), _unescaped(key[at + 1 :])


def _hashed(text: str) -> str:
    return base64.b64encode(xxh64(text.encode("utf-8"), _SEED).to_bytes(8, "big")).decode("ascii")


def _escaped_texts(texts: pa.Array) -> pa.Array:
    for char in (_ESCAPE, _SEPARATOR, _NULL):
        texts = pc.replace_substring(texts, char, _ESCAPE + char)
    return texts


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text) if _ESCAPE in text else text


def _separator(key: str) -> int:
    """Returns the position of the first separator that is not escaped. Raises CorruptFileError without one."""
    at = key.find(_SEPARATOR)
    while at >= 0:
        escapes = len(key[:at]) - len(key[:at].rstrip(_ESCAPE))
        if escapes % 2 == 0:
            return at
        at = key.find(_SEPARATOR, at + 1)
    raise CorruptFileError(f"{key!r} is not the key of a secondary index: no {_SEPARATOR!r} parts value and record key")

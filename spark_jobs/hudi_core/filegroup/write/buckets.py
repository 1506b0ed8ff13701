"""The simple bucket index: the hash of a row's key chooses one of a number of file groups in its partition
(BucketIdentifier, HoodieSimpleBucketIndex, SparkBucketIndexPartitioner). key_generator.py makes the keys.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.hashing import string_hashes
from hudi_core.config.rows_config import BUCKET_ENGINE, HASH_FIELDS, INDEX_TYPE, NUM_BUCKETS, PARTITION_BUCKETS
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, FormatError, UnsupportedError

BUCKET_ID: Final = re.compile(r"0000\d{4}-")
"""The start of file ids in a table with a bucket index, and of two in a million random ids: see are_buckets."""
BUCKETS_FOLDER: Final = ".hoodie/.bucket_index"
"""The folder of the places of buckets with consistent hashing, and of the numbers of buckets of single partitions."""
PARTITION_BUCKETS_FOLDER: Final = f"{BUCKETS_FOLDER}/partition_bucket_index_meta"
"""The folder of single partitions' numbers. Flink and a procedure of Spark SQL write it, Spark's writers do not."""
_DIGITS: Final = 8
_PLACE: Final = "\0"
"""Stands between the partition and the bucket in a place; no partition path holds it."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """`count` buckets in each partition, chosen by the values of `fields`, which are some of the `key_fields`."""

    count: int
    fields: tuple[str, ...]
    key_fields: tuple[str, ...]

    @staticmethod
    def of(config: TableConfig, options: Mapping[str, str]) -> Buckets | None:
        """Returns the buckets that the writers' options name; None when they name none. No property of a table names
        them. Raises UnsupportedError for consistent hashing and for numbers of single partitions, ConfigError for an
        index without a number of buckets, and for fields that are not of the record key.
        """
        path, kind = config.path, INDEX_TYPE.read(options, path=config.path)
        if kind.upper() != "BUCKET" if kind else not NUM_BUCKETS.is_set(options):
            return None
        if BUCKET_ENGINE.read(options, path=path) != "SIMPLE":
            remedy = "overwrite it with Hudi"
            raise UnsupportedError("the table has buckets by consistent hashing", path=path, remedy=remedy)
        if PARTITION_BUCKETS.read(options, path=path) is not None:
            message = f"{PARTITION_BUCKETS.name}, by which partitions have different numbers of buckets"
            raise UnsupportedError(message, path=path, remedy="overwrite the table with Hudi")
        count = NUM_BUCKETS.read(options, path=path)
        if count is None:
            remedy = f"give --option {NUM_BUCKETS.name}=NUMBER as the table's writers have it"
            raise ConfigError(f"{INDEX_TYPE.name} is BUCKET without {NUM_BUCKETS.name}", path=path, remedy=remedy)
        keys = config.record_key_fields
        fields = HASH_FIELDS.read(options, path=path) or keys
        other = next((name for name in fields if name not in keys), None)
        if other is not None:
            message = f"{HASH_FIELDS.name} names {other!r}, which is not of the record key {','.join(keys)}"
            raise ConfigError(message, path=path, remedy="name fields of the record key in it")
        return Buckets(count, fields, keys)

    def numbers(self, keys: pa.Array, *, path: str) -> NDArray[np.int64]:
        """Returns the bucket of each record key (string, without nulls). Raises FormatError naming `path` for a key in
        which releases of Hudi find different values: one with colons or commas besides those of its fields' names.
        """
        named = pc.match_substring(keys, ":").to_numpy(zero_copy_only=False)
        hashes = _list_hashes([keys])
        if named.any():
            hashes = np.where(named, _list_hashes(self._values(keys, named, path=path)), hashes)
        buckets: NDArray[np.int64] = (hashes & np.uint32(0x7FFFFFFF)).astype(np.int64) % self.count
        return buckets

    def places(self, partitions: pa.Array, keys: pa.Array, *, path: str) -> pa.Array:
        """Returns the partition and bucket of each row as one text, for place_of. Raises as `numbers`."""
        numbers = pa.array(self.numbers(keys, path=path)).cast(pa.string())
        return pc.binary_join_element_wise(partitions, pc.utf8_lpad(numbers, _DIGITS, "0"), _PLACE)

    def _values(self, keys: pa.Array, named: NDArray[np.bool_], *, path: str) -> list[pa.Array]:
        """Returns the values of the fields, each as text, of keys that have the names of their fields in them."""
        pattern = ",".join(f"{re.escape(name)}:(?P<f{at}>[^,:]*)" for at, name in enumerate(self.key_fields))
        matches = pc.extract_regex(keys, f"^{pattern}$")
        unread = named & pc.is_null(matches).to_numpy(zero_copy_only=False)
        if unread.any():
            key = keys[int(unread.argmax())].as_py()
            message = f"the bucket of the key {key!r} depends on the release of Hudi: it holds a colon or a comma"
            raise FormatError(message, path=path, remedy="overwrite the table with Hudi")
        return [pc.struct_field(matches, f"f{self.key_fields.index(name)}").fill_null("") for name in self.fields]


def _list_hashes(values: list[pa.Array]) -> NDArray[np.uint32]:
    hashes = np.ones(len(values[0]), np.uint32)
    for texts in values:
        hashes = hashes * np.uint32(31) + string_hashes(texts).astype(np.uint32)
    return hashes


def place_of(place: str) -> tuple[str, str | None]:
    """Returns the partition of a place, and the start of the file ids of its bucket; None without buckets."""
    partition, _, digits = place.partition(_PLACE)
    return partition, digits or None


def place_of_bucket(partition: str, file_id: str) -> str:
    """Returns the place of a file group, as Buckets.places makes it."""
    return f"{partition}{_PLACE}{file_id[:_DIGITS]}"


def bucket_file_id(random: str, digits: str) -> str:
    """Returns the prefix of a bucket's new file id, made of a random one (BucketIdentifier.newBucketFileIdPrefix)."""
    return digits + random[_DIGITS:]


def are_buckets(file_ids: Collection[str]) -> bool:
    """Whether file groups of a table are buckets. All are, or none, since Hudi reads a number from each id
    (HoodieSimpleBucketIndex.loadBucketIdToFileIdMappingForPartition). An id that begins with digits by chance is no
    bucket's.
    """
    return bool(file_ids) and all(map(BUCKET_ID.match, file_ids))


def bucket_of(file_id: str) -> int:
    return int(file_id[:_DIGITS])

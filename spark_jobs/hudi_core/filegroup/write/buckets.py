"""The bucket index: the hash of a row's key chooses a file group in its partition, one of a number of them
(BucketIdentifier, HoodieSimpleBucketIndex), or the one whose range has the hash (ConsistentBucketIdentifier).
key_generator.py makes the keys, hashing_metadata.py reads the ranges.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.hashing import string_hashes, xxh32_hashes
from hudi_core.config.rows_config import BUCKET_ENGINE, HASH_FIELDS, INDEX_TYPE, NUM_BUCKETS, PARTITION_BUCKETS
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, FormatError, UnsupportedError
from hudi_core.filegroup.merge.record_keys import EMPTY_KEY, NULL_KEY
from hudi_core.frozen import dataclass
from hudi_core.model.names import FileGroupId

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
class Ring:
    """The buckets of a partition by consistent hashing. Each has the hashes up to its end, ascending; the first one
    also has those behind the last end. `prefixes` are the buckets' file ids without the number of the file.
    """

    ends: tuple[int, ...]
    prefixes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Buckets:
    """`count` buckets in each partition, chosen by the values of `fields`, which are some of the `key_fields`, in their
    order. With `by_hash` they are by consistent hashing: `rings` are those of the partitions, some 45 bytes a bucket,
    and a new partition begins with `count` of them. `hashes_names`: a key of one field is hashed with its name, as Hudi
    1.x does, and 0.15 does not.
    """

    count: int
    fields: tuple[str, ...]
    key_fields: tuple[str, ...]
    by_hash: bool = False
    rings: Mapping[str, Ring] = field(default_factory=dict)
    hashes_names: bool = True

    def __str__(self) -> str:
        return f"{'consistent hashing' if self.by_hash else f'{self.count} buckets'} of {','.join(self.fields)}"

    @staticmethod
    def of(config: TableConfig, options: Mapping[str, str]) -> Buckets | None:
        """Returns the buckets that the writers' options name, without rings; None when they name none. No property of a
        table names them. Raises UnsupportedError for numbers of single partitions, and for consistent hashing in a
        copy-on-write table; ConfigError for an index without a number of buckets, and for fields that are not of the
        record key.
        """
        path, kind = config.path, INDEX_TYPE.read(options, path=config.path)
        if kind.upper() != "BUCKET" if kind else not NUM_BUCKETS.is_set(options):
            return None
        by_hash = BUCKET_ENGINE.read(options, path=path) != "SIMPLE"
        if by_hash and not config.is_merge_on_read:
            message = "buckets by consistent hashing in a copy-on-write table, into which Hudi's own upsert fails"
            raise UnsupportedError(message, path=path, remedy="use simple buckets, or a merge-on-read table")
        if PARTITION_BUCKETS.read(options, path=path) is not None:
            message = f"{PARTITION_BUCKETS.name}, by which partitions have different numbers of buckets"
            raise UnsupportedError(message, path=path, remedy="overwrite the table with Hudi")
        count = NUM_BUCKETS.read(options, path=path)
        if count is None:
            remedy = f"give --option {NUM_BUCKETS.name}=NUMBER as the table's writers have it"
            raise ConfigError(f"{INDEX_TYPE.name} is BUCKET without {NUM_BUCKETS.name}", path=path, remedy=remedy)
        keys = config.record_key_fields
        named = HASH_FIELDS.read(options, path=path) or keys
        other = next((name for name in named if name not in keys), None)
        if other is not None:
            message = f"{HASH_FIELDS.name} names {other!r}, which is not of the record key {','.join(keys)}"
            raise ConfigError(message, path=path, remedy="name fields of the record key in it")
        fields = tuple(name for name in keys if name in named)
        return Buckets(count, fields, keys, by_hash, hashes_names=config.version > 6)

    def hashes(self, keys: pa.Array, *, path: str) -> NDArray[np.int64]:
        """Returns the hash of each record key (string, without nulls), at least 0. Raises FormatError naming `path` for
        a key in which releases of Hudi find different values: one with colons or commas besides those of its fields'
        names (KeyGenUtils.extractRecordKeysByFields).
        """
        named = pc.match_substring(keys, ":").to_numpy(zero_copy_only=False)
        if self.hashes_names:
            named = named & pc.match_substring(keys, ",").to_numpy(zero_copy_only=False)
        hashes = self._of_values([keys])
        if named.any():
            hashes = np.where(named, self._of_values(self._values(keys, named, path=path)), hashes)
        positive: NDArray[np.int64] = (hashes & np.uint32(0x7FFFFFFF)).astype(np.int64)
        return positive

    def places(self, partitions: pa.Array, keys: pa.Array, *, path: str) -> pa.Array:
        """Returns the partition and bucket of each row as one text, for place_of. Raises as `hashes`, and KeyError for
        a partition without its ring.
        """
        hashes = self.hashes(keys, path=path)
        if self.by_hash:
            starts = self._prefixes(partitions.dictionary_encode(), hashes)
        else:
            starts = pc.utf8_lpad(pa.array(hashes % self.count).cast(pa.string()), _DIGITS, "0")
        return pc.binary_join_element_wise(partitions, starts, _PLACE)

    def place_of_group(self, group: FileGroupId) -> str:
        """Returns the place of a file group, as `places` makes it."""
        return place_of_bucket(group, by_hash=self.by_hash)

    def _prefixes(self, partitions: pa.DictionaryArray, hashes: NDArray[np.int64]) -> pa.Array:
        """Returns the prefix of each row's bucket (ConsistentBucketIdentifier.getBucket)."""
        if not len(partitions):
            return pa.array([], pa.string())
        rings = [self.rings[name] for name in partitions.dictionary.to_pylist()]
        starts = np.cumsum([0, *(len(ring.ends) for ring in rings)])
        ends = np.concatenate([np.array(ring.ends, np.int64) + (at << 32) for at, ring in enumerate(rings)])
        of_row = partitions.indices.to_numpy().astype(np.int64)
        numbers = np.searchsorted(ends, hashes + (of_row << 32))
        numbers = np.where(numbers == starts[of_row + 1], starts[of_row], numbers)
        return pa.array([prefix for ring in rings for prefix in ring.prefixes], pa.string()).take(pa.array(numbers))

    def _of_values(self, values: list[pa.Array]) -> NDArray[np.uint32]:
        if self.by_hash:
            return xxh32_hashes(pc.binary_join_element_wise(*values, ""))
        return _list_hashes(values)

    def _values(self, keys: pa.Array, named: NDArray[np.bool_], *, path: str) -> list[pa.Array]:
        """Returns the values of the fields, each as text, of keys that have the names of their fields in them."""
        pattern = ",".join(f"{re.escape(name)}:(?P<f{at}>[^,:]*)" for at, name in enumerate(self.key_fields))
        matches = pc.extract_regex(keys, f"^{pattern}$")
        unread = named & pc.is_null(matches).to_numpy(zero_copy_only=False)
        if unread.any():
            key = keys[int(unread.argmax())].as_py()
            message = f"the bucket of the key {key!r} depends on the release of Hudi: it holds a colon or a comma"
            raise FormatError(message, path=path, remedy="overwrite the table with Hudi")
        values = [pc.struct_field(matches, f"f{self.key_fields.index(name)}").fill_null("") for name in self.fields]
        # Java joins a null as "null", and in the hash of a list it counts as the empty text does.
        null = "null" if self.by_hash else ""
        return [
            pc.if_else(pc.equal(texts, NULL_KEY), null, pc.if_else(pc.equal(texts, EMPTY_KEY), "", texts))
            for texts in values
        ]


def _list_hashes(values: list[pa.Array]) -> NDArray[np.uint32]:
    hashes = np.ones(len(values[0]), np.uint32)
    for texts in values:
        hashes = hashes * np.uint32(31) + string_hashes(texts).astype(np.uint32)
    return hashes


def place_of_bucket(group: FileGroupId, *, by_hash: bool) -> str:
    """Returns the place of the bucket of a file group, as Buckets.places makes it."""
    start = group.file_id.rpartition("-")[0] if by_hash else group.file_id[:_DIGITS]
    return f"{group.partition}{_PLACE}{start}"


def place_of(place: str) -> tuple[str, str | None]:
    """Returns the partition of a place, and the start of the file ids of its bucket; None without buckets."""
    partition, _, start = place.partition(_PLACE)
    return partition, start or None


def bucket_file_id(random: str, start: str) -> str:
    """Returns the prefix of a bucket's new file id: its whole `start` by consistent hashing, else with the end of a
    random one (BucketIdentifier.newBucketFileIdPrefix).
    """
    return start + random[len(start) :]


def are_buckets(file_ids: Collection[str]) -> bool:
    """Whether file groups of a table are buckets. All are, or none, since Hudi reads a number from each id
    (HoodieSimpleBucketIndex.loadBucketIdToFileIdMappingForPartition). An id that begins with digits by chance is no
    bucket's.
    """
    return bool(file_ids) and all(map(BUCKET_ID.match, file_ids))


def are_by_hash(folders: Collection[str]) -> bool:
    """Whether a table has buckets by consistent hashing. `folders` are those in BUCKETS_FOLDER."""
    return any(folder != PARTITION_BUCKETS_FOLDER for folder in folders)


def bucket_of(file_id: str) -> int:
    return int(file_id[:_DIGITS])

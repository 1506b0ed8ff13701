"""Files excluded by the footers of their base files, for tables without an index; optional, as it opens each file."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from hudi_core.codec.bloom import DYNAMIC, BloomFilter
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.index.row_groups import RowGroups
from hudi_core.view.file_group import DataFile

if TYPE_CHECKING:
    from hudi_core.storage.base import Storage

MIN_KEY: Final = "hoodie_min_record_key"
MAX_KEY: Final = "hoodie_max_record_key"
BLOOM: Final = "org.apache.hudi.bloomfilter"
BLOOM_TYPE: Final = "hoodie_bloom_filter_type_code"
MAX_BLOOM_KEYS: Final = 1000
"""With more keys a filter is not tested: each costs some microseconds per file, and one of many is likely in it."""


def footer_may_match(storage: Storage, base: DataFile, choose: RowGroups | None, keys: Collection[str] | None) -> bool:
    """Whether the base file may hold a matching row, by row-group statistics and, unless None, by its `keys`.

    Raises StorageNotFoundError, or CorruptFileError for a file or filter that is broken.
    """
    with storage.open_input(base.path) as stream, ParquetBaseFile(stream, base.path) as file:
        if choose is not None and choose(file.metadata) == []:
            return False
        return keys is None or _may_hold(file.footer, keys, base.path)


def _may_hold(footer: dict[str, str], keys: Collection[str], path: str) -> bool:
    left = list(keys)
    if MIN_KEY in footer and MAX_KEY in footer:
        left = [key for key in left if _between(key, footer[MIN_KEY], footer[MAX_KEY])]
    if BLOOM not in footer or not left:
        return bool(left)
    found = BloomFilter.parse(footer[BLOOM], footer.get(BLOOM_TYPE, DYNAMIC), path=path)
    return any_may_be_in(found, left)


def _between(key: str, low: str, high: str) -> bool:
    """In an order by which Hudi's writers find the least and the greatest key: that of Java's strings, or Spark's."""
    in_java = (
        low.encode("utf-16-be", "surrogatepass")
        <= key.encode("utf-16-be", "surrogatepass")
        <= high.encode("utf-16-be", "surrogatepass")
    )
    return in_java or low <= key <= high


def any_may_be_in(bloom: BloomFilter, keys: Collection[str]) -> bool:
    """Whether one of the keys may be in the filter; true without asking it for more than MAX_BLOOM_KEYS."""
    return len(keys) > MAX_BLOOM_KEYS or any(bloom.might_contain(key.encode()) for key in keys)

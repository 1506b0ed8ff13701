"""Lists every option that this release reads, and checks the options that a user sets."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable, Mapping

from hudi_core.config.concurrency_config import LOCK_KEYS, ROLLBACK_USING_MARKERS, STALLED_MINUTES, TRANSACTION_KEYS
from hudi_core.config.engine_config import ENGINE_KEYS
from hudi_core.config.keys import ConfigKey, whole_number
from hudi_core.config.metadata_config import INDEXING_KEYS, METADATA_ENABLE, METADATA_TABLE_KEYS, REBUILD_ROW_INDEXES
from hudi_core.config.rows_config import KEYGEN_KEYS, READ_KEYS, WRITE_KEYS
from hudi_core.config.services.clustering_config import CLUSTERING_KEYS, TARGET_FILE_BYTES
from hudi_core.config.services.compaction_config import COMPACTION_KEYS
from hudi_core.config.services.retention_config import ARCHIVE_KEYS, CLEAN_KEYS
from hudi_core.errors import ConfigError
from hudi_core.model.size_limits import MAX_BYTES, Limit

LIMIT_KEYS: tuple[ConfigKey[object], ...] = tuple(
    ConfigKey(
        kind.option,
        kind.default,
        whole_number(1, MAX_BYTES),
        said=f"bytes of {kind.what}",
    )
    for kind in Limit
)
"""The largest size of each sort of file, or of a part of one."""
KEYS: tuple[ConfigKey[object], ...] = (
    *LOCK_KEYS,
    *WRITE_KEYS,
    *READ_KEYS,
    *ENGINE_KEYS,
    *CLEAN_KEYS,
    *COMPACTION_KEYS,
    *CLUSTERING_KEYS,
    *ARCHIVE_KEYS,
    *TRANSACTION_KEYS,
    ROLLBACK_USING_MARKERS,
    STALLED_MINUTES,
    *INDEXING_KEYS,
    REBUILD_ROW_INDEXES,
    METADATA_ENABLE,
    *KEYGEN_KEYS,
    *LIMIT_KEYS,
)
"""Every option except those of metadata_config, which are checked when they are used."""

log = logging.getLogger(__name__)

_NAMES = frozenset(name for key in (*KEYS, *METADATA_TABLE_KEYS) for name in (key.name, *key.aliases))
"""Every name of an option of this release. Those under `airflow_hudi.` are all in KEYS."""
_PLANS = {
    "clustering": "hoodie.clustering.plan.",
    "compaction": "hoodie.compaction.",
    "log_compaction": "hoodie.log.compaction.blocks.",
}
"""By service, the beginning of the options that only its planning reads."""
_ALIKE = 0.88
"""How alike two names must be. A letter more, less or other gives 0.95 and more."""
_OTHERS = frozenset(
    (
        "hoodie.bucket.index.max.num.buckets",
        "hoodie.bucket.index.min.num.buckets",
        "hoodie.datasource.read.incr.filters",
        "hoodie.datasource.write.partitionpath.urlencode",
        "hoodie.hbase.index.update.partition.path",
        "hoodie.metadata.bloom.filter.enable",
        "hoodie.metadata.compact.max.delta.seconds",
        "hoodie.metadata.index.partition.stats.parallelism",
        "hoodie.metadata.log.compaction.blocks.threshold",
        "hoodie.metadata.partitioned.record.index.max.filegroup.count",
        "hoodie.metadata.partitioned.record.index.min.filegroup.count",
        "hoodie.write.concurrency.early.conflict.detection.strategy",
    )
)
"""Options of Hudi that this release does not use. Their names look like those of its own options."""


def planned_before(service: str, instant: str, options: Iterable[str]) -> str | None:
    """Returns the note on `options` that only planning reads, for a plan that was made before; None without any."""
    prefix = _PLANS.get(service)
    if prefix is None:
        return None
    unused = [name for name in options if name in _NAMES and name.startswith(prefix) and name != TARGET_FILE_BYTES.name]
    said = f"{service} {instant} was planned before, and is run by its plan, not by this run's {', '.join(unused)}"
    return said if unused else None


def misspelt(options: Mapping[str, str]) -> dict[str, str]:
    """Returns the options under `hoodie.` that do not exist, each with the name of this release that it looks like."""
    unknown = (name for name in options if name.lower().startswith("hoodie.") and name not in _NAMES | _OTHERS)
    alike_names = {name: difflib.get_close_matches(name, _NAMES, 1, _ALIKE) for name in unknown}
    return {name: alike[0] for name, alike in alike_names.items() if alike}


def warn_of_misspelt(options: Mapping[str, str]) -> None:
    """Logs a warning for each option that has no effect since its name is wrong."""
    for name, meant in misspelt(options).items():
        log.warning("the option %s does not exist and has no effect; %s does: was that meant?", name, meant)


def check_options(options: Mapping[str, str]) -> None:
    """Raises ConfigError for an unknown option under `airflow_hudi.`, and for any known one that is not valid."""
    unknown = sorted(
        name for name in options if name.strip().lower().startswith("airflow_hudi.") and name not in _NAMES
    )
    if unknown:
        ours = ", ".join(sorted(name for name in _NAMES if name.startswith("airflow_hudi.")))
        raise ConfigError(f"unknown options: {', '.join(unknown)}", remedy=f"known options of airflow_hudi: {ours}")
    for key in KEYS:
        key.read(options)

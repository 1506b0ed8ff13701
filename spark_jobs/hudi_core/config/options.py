"""Every option that this release reads, and the check of what a user sets."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_core.config.archive_config import ARCHIVE_KEYS
from hudi_core.config.clean_config import CLEAN_KEYS
from hudi_core.config.indexing_config import INDEXING_KEYS
from hudi_core.config.keys import ConfigKey
from hudi_core.config.limits_config import LIMIT_KEYS
from hudi_core.config.lock_config import LOCK_KEYS
from hudi_core.config.metadata_config import REBUILD_ROW_INDEXES
from hudi_core.config.read_config import READ_KEYS
from hudi_core.config.transaction_config import ROLLBACK_USING_MARKERS, STALLED_MINUTES, TRANSACTION_KEYS
from hudi_core.config.write_config import WRITE_KEYS
from hudi_core.errors import ConfigError

KEYS: tuple[ConfigKey[object], ...] = (
    *LOCK_KEYS,
    *WRITE_KEYS,
    *READ_KEYS,
    *CLEAN_KEYS,
    *ARCHIVE_KEYS,
    *TRANSACTION_KEYS,
    ROLLBACK_USING_MARKERS,
    STALLED_MINUTES,
    *INDEXING_KEYS,
    REBUILD_ROW_INDEXES,
    *LIMIT_KEYS,
)
"""Every option but those of metadata_config, which are checked when they are used."""


def check_options(options: Mapping[str, str]) -> None:
    """Raises ConfigError for an option of ours that does not exist or any known option whose value is not valid.

    Options of Hudi that this release has no use for are let through: job configurations are shared with Hudi's own
    jobs.
    """
    known = {name for key in KEYS for name in (key.name, *key.aliases)}
    unknown = sorted(name for name in options if name.startswith("airflow_hudi.") and name not in known)
    if unknown:
        ours = ", ".join(sorted(name for name in known if name.startswith("airflow_hudi.")))
        raise ConfigError(f"unknown options: {', '.join(unknown)}", remedy=f"known options of airflow_hudi: {ours}")
    for key in KEYS:
        key.read(options)

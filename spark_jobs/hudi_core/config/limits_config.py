"""Options that raise or lower how large a file, or a part of one, may be: one for each kind of model.size_limits."""

from __future__ import annotations

from typing import Final

from hudi_core.config.keys import ConfigKey, number
from hudi_core.model.size_limits import MAX_BYTES, Limit

LIMIT_KEYS: Final[tuple[ConfigKey[object], ...]] = tuple(
    number(
        kind.option,
        kind.default,
        f"bytes of {kind.what}; a larger one is refused before memory is taken for it",
        high=MAX_BYTES,
    )
    for kind in Limit
)
"""Every limit, in the order of its table."""

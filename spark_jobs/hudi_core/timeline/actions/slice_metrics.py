"""The sizes of file slices that plans hold as metrics, and by which strategies choose (FileSliceMetricUtils)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

IO_MB: Final = "TOTAL_IO_MB"
LOG_BYTES: Final = "TOTAL_LOG_FILES_SIZE"
NO_BASE_BYTES: Final = 120 << 20
"""What Hudi takes a base file for that is not there yet (the default of hoodie.parquet.max.file.size)."""
_MIB: Final = 1 << 20


def slice_metrics(
    base_bytes: int | None, log_bytes: Iterable[int], *, no_base_bytes: int = NO_BASE_BYTES
) -> dict[str, float]:
    """The metrics of a slice with a base file of `base_bytes`, None without one, and log files of `log_bytes`.

    MiB are whole ones. The new base file is taken for as large as the one that is there, or as `no_base_bytes`.
    """
    logs = list(log_bytes)
    read = ((base_bytes or 0) + sum(logs)) // _MIB
    written = (base_bytes or no_base_bytes) // _MIB
    return {
        "TOTAL_LOG_FILES": float(len(logs)),
        IO_MB: float(read + written),
        "TOTAL_IO_READ_MB": float(read),
        LOG_BYTES: float(sum(logs)),
        "TOTAL_IO_WRITE_MB": float(written),
    }

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
    """The metrics of a slice with a base file of `base_bytes`, None without one, and log files of `log_bytes`."""
    return metrics_of([(base_bytes, log_bytes)], no_base_bytes=no_base_bytes)


def metrics_of(
    slices: Iterable[tuple[int | None, Iterable[int]]], *, no_base_bytes: int = NO_BASE_BYTES
) -> dict[str, float]:
    """The metrics of slices that are rewritten together, each by the bytes of its base file and of its log files.

    MiB are whole ones. A new base file is taken for as large as the one that is there, or as `no_base_bytes`.
    """
    count = logged = stored = written = 0
    for base_bytes, log_bytes in slices:
        sizes = list(log_bytes)
        count, logged = count + len(sizes), logged + sum(sizes)
        stored, written = stored + (base_bytes or 0), written + (base_bytes or no_base_bytes)
    read_mb, written_mb = (stored + logged) // _MIB, written // _MIB
    return {
        "TOTAL_LOG_FILES": float(count),
        IO_MB: float(read_mb + written_mb),
        "TOTAL_IO_READ_MB": float(read_mb),
        LOG_BYTES: float(logged),
        "TOTAL_IO_WRITE_MB": float(written_mb),
    }

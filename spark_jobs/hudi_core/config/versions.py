"""The one place that says which table versions exist, what each has, and which of them this release handles (facts 1.3, 1.4)."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_core.errors import UnsupportedVersionError


@dataclass(frozen=True, slots=True)
class TableVersion:
    """What a value of `hoodie.table.version` means. `timeline_path` is the default folder of the timeline below the base path."""

    number: int
    layout: int
    timeline_path: str
    json_commits: bool
    """Commit files are pretty-printed JSON (else Avro containers)."""
    completion_time_in_name: bool
    """Completed instants are named `<requested>_<completion>.<action>`."""
    log_name_has_own_instant: bool
    """A log file's name carries the deltacommit's own instant (else the base instant of its slice)."""
    ordering_key: str
    """The property that names the ordering column."""
    written_by: str


V6 = TableVersion(6, 1, ".hoodie", True, False, False, "hoodie.table.precombine.field", "Hudi 0.14 and 0.15")
V8 = TableVersion(8, 2, ".hoodie/timeline", False, True, True, "hoodie.table.precombine.field", "Hudi 1.0")
V9 = TableVersion(9, 2, ".hoodie/timeline", False, True, True, "hoodie.table.ordering.fields", "Hudi 1.1 and 1.2")

KNOWN = {version.number: version for version in (V6, V8, V9)}
SUPPORTED = (V6,)


def require_supported(version: int, layout: int, path: str) -> TableVersion:
    """The version's facts; raises UnsupportedVersionError, naming `path`, for a version or layout that this release does not handle."""
    supported = " or ".join(f"{known.number} (timeline layout {known.layout})" for known in SUPPORTED)
    for candidate in SUPPORTED:
        if candidate.number == version:
            if layout != candidate.layout:
                raise UnsupportedVersionError(
                    f"table version {version} has timeline layout {candidate.layout}, but the properties say {layout}",
                    path=path,
                    remedy="set hoodie.timeline.layout.version to what wrote the timeline, or finish the upgrade that changed it",
                )
            return candidate
    known = KNOWN.get(version)
    written = f", as written by {known.written_by}," if known else ""
    raise UnsupportedVersionError(
        f"table version {version}{written} is not supported; this release handles table version {supported}",
        path=path,
        remedy="use a release that handles it, or write the table with hoodie.write.table.version=6",
    )

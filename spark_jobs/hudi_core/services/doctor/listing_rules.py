"""What a metadata table means that lists other files than there are: readers that list by it see other rows than those
that list the storage.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hudi_core.services.doctor.finding import Finding
from hudi_core.services.doctor.observations import Observations

_SHOWN: Final = 5
_REBUILD: Final = (
    "stop the writers, drop the metadata table with Hudi (hoodie.metadata.enable=false), and let the next "
    "write build it anew"
)


def listings(observed: Observations) -> Iterator[Finding]:
    """Entries without a file, committed files without an entry, entries of another size, and a list that cannot be
    read.
    """
    found = observed.listings
    if found.problem is not None:
        yield Finding(
            "metadata_unreadable",
            "error",
            f"the metadata table's list of files cannot be read: {found.problem}",
            _REBUILD,
        )
    if found.unlisted_count:
        yield Finding(
            "metadata_unlisted",
            "error",
            f"the metadata table does not list {_some(found.unlisted, found.unlisted_count)} of completed commits: "
            "readers that use it miss rows",
            _REBUILD,
            path=found.unlisted[0],
        )
    if found.missing_count:
        yield Finding(
            "metadata_missing_file",
            "warning",
            f"the metadata table lists {_some(found.missing, found.missing_count)} not in the storage: "
            "readers that "
            "use it may fail",
            _REBUILD,
            path=found.missing[0],
        )
    if found.wrong_size_count:
        sizes = tuple(f"{item.path}: {item.listed} bytes listed, {item.there} there" for item in found.wrong_size)
        yield Finding(
            "metadata_wrong_size",
            "error",
            f"the metadata table has the wrong size of {_some(sizes, found.wrong_size_count)}: readers that use it "
            "fail, or miss rows",
            f"a file that was cut short has to come back from a copy; where the files are whole, {_REBUILD}",
            path=found.wrong_size[0].path,
        )


def _some(paths: tuple[str, ...], count: int) -> str:
    more = "" if count <= _SHOWN else f" and {count - _SHOWN} more"
    return f"{count} file{'' if count == 1 else 's'} ({', '.join(paths[:_SHOWN])}{more})"

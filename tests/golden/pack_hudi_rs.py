"""Packs the test tables of Apache Hudi-rs into tests/golden/data/hudi_rs.tar.xz: `python -m tests.golden.pack_hudi_rs
CHECKOUT`.

`tables/` holds the tables of crates/test/data, unzipped, each beside the `.sql` that made it; `core/` holds
crates/core/tests/data. Only data is taken: no code, and none of the side files that macOS puts into zips.
"""

from __future__ import annotations

import datetime
import io
import lzma
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.support.hudi_rs_data import ARCHIVE

JUNK = ("__MACOSX", ".DS_Store")


def files_of(checkout: Path) -> Iterator[tuple[str, bytes, float]]:
    """Every file to pack: its name in the archive, its content, and its modification time in seconds since the
    epoch.
    """
    core = checkout / "crates" / "core" / "tests" / "data"
    for path in sorted(core.rglob("*")):
        if path.is_file():
            yield f"core/{path.relative_to(core).as_posix()}", path.read_bytes(), 0.0
    tables = checkout / "crates" / "test" / "data"
    for path in sorted(tables.rglob("*.sql")):
        yield f"tables/{path.relative_to(tables).as_posix()}", path.read_bytes(), 0.0
    for path in sorted(tables.rglob("*.zip")):
        below = path.relative_to(tables).with_suffix("").as_posix()
        with zipfile.ZipFile(path) as zipped:
            for entry in sorted(zipped.infolist(), key=lambda entry: entry.filename):
                top, _, inside = entry.filename.partition("/")
                if (
                    entry.is_dir()
                    or top in JUNK
                    or any(part in JUNK or part.startswith("._") for part in inside.split("/"))
                ):
                    continue
                moment = datetime.datetime(*entry.date_time, tzinfo=datetime.timezone.utc).timestamp()
                yield f"tables/{below}/{inside}", zipped.read(entry), moment


def main(checkout: Path) -> None:
    """Writes the archive; the same checkout gives the same bytes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content, moment in files_of(checkout):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(content), int(moment)
            tar.addfile(entry, io.BytesIO(content))
    ARCHIVE.write_bytes(lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

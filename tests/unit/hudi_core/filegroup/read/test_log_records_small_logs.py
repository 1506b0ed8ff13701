"""Small log files are read by one request, others as they are asked for."""

from __future__ import annotations

from pathlib import Path

from hudi_core.filegroup.read.log_records import SmallLogs
from hudi_core.storage.base import ByteRange
from hudi_core.view.file_group import DataFile
from tests.support.counting_storage import CountingStorage


def test_a_small_file_is_read_once(tmp_path: Path) -> None:
    counted = CountingStorage(tmp_path)
    contents = {"p/small": bytes(range(100)), "p/large": bytes(1 << 17), "p/other": b"0123456789"}
    for path, data in contents.items():
        counted.write(path, data)
    storage = SmallLogs(counted)
    storage.expect(DataFile("p", name, len(contents[f"p/{name}"])) for name in ("small", "large"))
    for path, data in contents.items():
        for span in (ByteRange(0, 6), ByteRange(6, 4), ByteRange(8, 100)):
            assert storage.read_range(path, span) == data[span.start : span.start + span.length]
    assert storage.read_range("p/small", ByteRange(-3, 3)) == contents["p/small"][-3:]
    whole = [path for path, start in counted.ranges if path == "p/small" and start == 0]
    assert whole == ["p/small"]
    assert len([path for path, _ in counted.ranges if path == "p/large"]) == 3
    assert len([path for path, _ in counted.ranges if path == "p/other"]) == 3

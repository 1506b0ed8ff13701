from __future__ import annotations

import pytest

from hudi_core.table import HudiTable
from hudi_health.doctor.findings import DataFiles
from hudi_health.table import doctor_report
from tests.support.request_log import log_requests
from tests.unit.hudi_health.doctor.test_examine import Golden, rules


def test_what_was_written_meanwhile_is_no_difference(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    table = golden("9", "mor_compacted").table
    gone, *_ = sorted(table.glob("*/*.parquet"))
    gone.unlink()
    assert "metadata_missing_file" in rules(table)
    monkeypatch.setattr(DataFiles, "is_current", lambda files: False)
    assert not [rule for rule in rules(table) if rule.startswith("metadata")]


def test_one_look_serves_every_check(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each folder of data files is listed once, and each commit is read once; but for the latest, for its schema, as
    the timeline is looked at again when the files were listed.
    """
    table = golden("6", "mor_compacted").table
    partitions = sorted(path.name for path in table.iterdir() if path.is_dir() and path.name != ".hoodie")
    with monkeypatch.context() as patch:
        log = log_requests(patch)
        doctor_report(HudiTable.open(str(table)))
    listed = [folder for folder in log.of("list_files") if not folder.startswith(".hoodie")]
    assert sorted(listed) == ["", *partitions]
    assert sorted(log.of("list_folders")) == [""]
    commits = [path for path in log.of("read") if path.endswith((".commit", ".deltacommit"))]
    of_data = [path for path in commits if not path.startswith(".hoodie/metadata")]
    assert sorted([*set(of_data), max(of_data)]) == sorted(of_data)
    assert len(log.requests) <= 70

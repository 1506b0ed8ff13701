"""Limits of files by their kinds."""

from __future__ import annotations

import pytest

from hudi_core.config.options import LIMIT_KEYS, check_options
from hudi_core.errors import ConfigError, SizeLimitError
from hudi_core.model.size_limits import Limit, SizeLimits, limit_of, limit_options, without_limits

INSTANT = "20260101000000001"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (".hoodie/hoodie.properties", Limit.PROPERTIES),
        (".hoodie/hoodie.properties.backup", Limit.PROPERTIES),
        (".hoodie/metadata/.hoodie/hoodie.properties", Limit.PROPERTIES),
        (f".hoodie/{INSTANT}.commit", Limit.TIMELINE),
        (f".hoodie/timeline/{INSTANT}_2.deltacommit", Limit.TIMELINE),
        (f".hoodie/metadata/.hoodie/{INSTANT}.deltacommit", Limit.TIMELINE),
        (f".hoodie/metadata/.hoodie/timeline/{INSTANT}.compaction.requested", Limit.TIMELINE),
        (".hoodie/timeline/history/manifest_3", Limit.MANIFEST),
        (".hoodie/archived/mergeArchivePlan", Limit.TIMELINE),
        (f".hoodie/.heartbeat/{INSTANT}", Limit.CLAIM),
        (".hoodie/.locks/table_lock.json", Limit.CLAIM),
        (".hoodie/lock", Limit.CLAIM),
        ("locks/t1.lock", Limit.CLAIM),
        (f".hoodie/.airflow_hudi/claims/{INSTANT}/000001.json", Limit.CLAIM),
        (f".hoodie/.airflow_hudi/claims/{INSTANT}/000001.decision", Limit.TIMELINE),
        (f".hoodie/.airflow_hudi/claims/{INSTANT}/dropped.plan", Limit.TIMELINE),
        (".hoodie/.airflow_hudi/file_groups/ab.json", Limit.CLAIM),
        (f".hoodie/.airflow_hudi/metadata/{INSTANT}/1/x", Limit.OTHER),
        (".hoodie/.airflow_hudi/results/x.json", Limit.OTHER),
        (".hoodie/.index_defs/index.json", Limit.INDEX_DEFINITIONS),
        (f".hoodie/.schema/{INSTANT}.schemacommit", Limit.SCHEMA_HISTORY),
        (f".hoodie/.temp/{INSTANT}/MARKERS0", Limit.MARKERS),
        (".hoodie/metadata/files/.files-0000-0_1.log.1_0-0-0", Limit.OTHER),
        ("dt=1/.hoodie_partition_metadata", Limit.OTHER),
    ],
)
def test_the_kind_of_a_file(path: str, kind: Limit) -> None:
    assert limit_of(path) is kind


def test_an_option_for_each_kind() -> None:
    assert [key.name for key in LIMIT_KEYS] == [kind.option for kind in Limit]
    assert [key.default for key in LIMIT_KEYS] == [SizeLimits().most(kind) for kind in Limit]
    options = {"airflow_hudi.limit.timeline.bytes": " 7 ", "hoodie.x": "y"}
    check_options(options)
    limits = SizeLimits.of(options)
    assert (limits.most(Limit.TIMELINE), limits.most(Limit.CLAIM)) == (7, 1 << 20)
    assert limit_options(options) == {"airflow_hudi.limit.timeline.bytes": " 7 "}
    assert without_limits(options) == {"hoodie.x": "y"}
    for text in ("0", "-1", "x", str(2**60)):
        with pytest.raises(ConfigError, match="limit"):
            SizeLimits.of({"airflow_hudi.limit.claim.bytes": text})


def test_the_error_names_the_file_its_size_and_the_option() -> None:
    limits = SizeLimits({Limit.TIMELINE: 10})
    limits.check_file(".hoodie/1.commit", 10)
    with pytest.raises(SizeLimitError, match="11 bytes, more than the 10") as caught:
        limits.check_file(".hoodie/1.commit", 11)
    assert caught.value.path == ".hoodie/1.commit"
    assert caught.value.exit_code == 2
    assert "airflow_hudi.limit.timeline.bytes" in str(caught.value.remedy)

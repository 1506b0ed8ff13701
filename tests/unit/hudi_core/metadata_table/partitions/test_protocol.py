"""What a partition type has by default: no records, one file group, the whole key hashed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from hudi_core.config.keys import ConfigKey, whole_number
from hudi_core.errors import ConfigError
from hudi_core.metadata_table.partitions.protocol import PartitionType, numbered_file_ids, unknown_partition
from hudi_core.metadata_table.records.file_statistics import (
    CommitUpdate,
    DataFileRef,
    Expression,
    FileChanges,
    FileStatistics,
    Needs,
    Record,
)
from tests.support.clean_updates import INDEXED

GROUPS = ConfigKey("toy.groups", 3, whole_number(1, 9))
CHANGES = FileChanges({"p": {"a": 1}}, {"p": frozenset({"b"})})
FILES = tuple(FileStatistics(DataFileRef("p", name, 1, is_base=True)) for name in ("a", "b"))


class Silent(PartitionType):
    name = "silent"


class OfFiles(PartitionType):
    """A record for each file, by its name; a clean deletes it."""

    name = "toy_"
    groups = GROUPS

    @classmethod
    def of_files(cls, instant: str, files: Iterable[FileStatistics], expression: Expression | None) -> Iterator[Record]:
        return ((item.file.name, {"instant": instant}) for item in files)

    def of_clean(self, instant: str, changes: FileChanges) -> Iterator[Record]:
        return ((name, None) for names in changes.deleted.values() for name in names)


def test_without_hooks_no_action_makes_a_record() -> None:
    silent = Silent("silent", INDEXED)
    update = CommitUpdate("1", "UPSERT", {}, FILES)
    assert [*silent.of_commit(update), *silent.initial("1", FILES), *silent.of_clean("1", CHANGES)] == []
    assert [*silent.of_restore("1", CHANGES), *silent.of_rollback(CHANGES)] == []
    assert (silent.needs, silent.definition(), silent.by_file, silent.updated_by_clean) == (Needs(), None, False, False)
    silent.check()
    silent.check_commit()


def test_a_blank_setting_is_not_set() -> None:
    toy = OfFiles("toy_x", INDEXED)
    assert toy.group_count({"toy.groups": "  "}) == toy.group_count({}) == 3
    assert toy.group_count({"toy.groups": " 7 "}) == 7
    for text in ("0", "1.5", "10"):
        with pytest.raises(ConfigError, match=r"toy\.groups is"):
            toy.group_count({"toy.groups": text})


def test_records_of_files_are_those_of_commits_and_of_the_initialization() -> None:
    toy = OfFiles("toy_x", INDEXED)
    expected = [("a", {"instant": "1"}), ("b", {"instant": "1"})]
    update = CommitUpdate("1", "UPSERT", {}, FILES)
    assert list(toy.of_commit(update)) == list(toy.initial("1", FILES)) == expected
    prepared = CommitUpdate("1", "UPSERT", {}, FILES, by_partition=True)
    assert list(toy.of_commit(prepared)) == [], "executors prepare those of files"
    assert list(toy.of_restore("1", CHANGES)) == list(toy.of_clean("1", CHANGES)) == [("b", None)]


@pytest.mark.parametrize(
    ("settings", "expected"), [({}, 3), ({GROUPS.name: ""}, 3), ({GROUPS.name: "8"}, 8), ({"other": "8"}, 3)]
)
def test_an_option_gives_the_number_of_file_groups(settings: dict[str, str], expected: int) -> None:
    assert OfFiles("toy_x", INDEXED).group_count(settings) == expected
    assert Silent("silent", INDEXED).group_count(settings) == 1


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", str(1 << 31)])
def test_a_number_of_file_groups_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=GROUPS.name):
        OfFiles("toy_x", INDEXED).group_count({GROUPS.name: text})


def test_file_groups_are_named_after_the_folder_and_chosen_by_the_whole_key() -> None:
    assert OfFiles("toy_some_name", INDEXED).file_ids(2) == ["toy-some-name-0000-0", "toy-some-name-0001-0"]
    assert numbered_file_ids("x-", 10001)[9998:] == ["x-9998-0", "x-9999-0", "x-10000-0"]
    assert OfFiles.hashed_part(lambda: None)("any key") == "any key"


def test_an_unknown_partition_names_the_command_that_drops_it() -> None:
    error = unknown_partition("vector_index_x")
    assert error.path == ".hoodie/metadata/vector_index_x"
    assert "hudictl metadata drop TABLE --partition vector_index_x" in str(error.remedy)

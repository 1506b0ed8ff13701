"""Which changes of a storage are net changes, and the exit code of bad input behind them."""

from __future__ import annotations

import pytest

from hudi_core.errors import ConfigError, ConflictError, CorruptFileError, HudiError
from hudi_core.storage.base import Storage
from hudi_core.storage.recorded_changes import Changes, RecordingStorage, exit_code_of_changes
from tests.support.memory_storage import MemoryStorage


def a_storage() -> RecordingStorage:
    inner = MemoryStorage()
    for path in ("old", "folder/a", "folder/below/b"):
        inner.write(path, b"content")
    return RecordingStorage(inner)


def test_it_is_the_storage_that_it_records() -> None:
    storage: Storage = a_storage()
    assert storage.read("old") == b"content"
    assert (storage.exists("old"), storage.exists("new")) == (True, False)
    assert [info.path for info in storage.list_files("folder")] == ["folder/a"]
    assert storage.list_names("folder") == ["a"]
    assert storage.list_folders("folder") == ["folder/below"]
    assert storage.stat("old").size == 7


def test_net_changes() -> None:
    storage = a_storage()
    with storage.recording() as changes:
        assert not changes()
        storage.create_exclusive("came", b"x")
        storage.write("came and went", b"x")
        storage.delete("came and went")
        storage.delete("was never there")
        storage.delete("old")
        storage.write("old", b"again")
        with storage.open_output("streamed") as stream:
            stream.write(b"x")
        storage.delete_folder("folder")
        found = changes()
    assert found == Changes(("came", "old", "streamed"), ("folder/a", "folder/below/b"), ("came and went",))
    assert found.describe() == (
        "rolled back: came and went; deleted: folder/a, folder/below/b; still there: came, old, streamed"
    )


@pytest.mark.parametrize("goes", [True, False])
def test_what_others_removed_is_not_called_there(goes: bool) -> None:
    """As when the table is dropped while a run is at work on it."""
    inner = MemoryStorage()
    storage = RecordingStorage(inner)

    def run() -> None:
        with exit_code_of_changes(storage):
            storage.write("a", b"x")
            storage.write("b", b"x")
            if goes:
                inner.delete("a")
                inner.delete("b")
            raise ConfigError("the table is not one")

    with pytest.raises(ConfigError) as failure:
        run()
    assert failure.value.exit_code == 1
    assert failure.value.message.endswith("gone since: a, b" if goes else "begun: still there: a, b")


def test_what_came_and_went_is_no_change() -> None:
    storage = a_storage()
    with storage.recording() as changes:
        storage.write("probe", b"")
        storage.delete("probe")
        assert not changes()


def test_recordings_are_nested_and_forgotten() -> None:
    storage = a_storage()
    storage.write("before", b"")
    with storage.recording() as outer:
        storage.write("first", b"")
        with storage.recording() as inner:
            storage.write("second", b"")
            assert inner().written == ("second",)
        assert outer().written == ("first", "second")
    with storage.recording() as changes:
        assert not changes()


def test_many_paths_are_counted() -> None:
    paths = tuple(f"file {number}" for number in range(8))
    assert Changes(paths).describe() == "still there: file 0, file 1, file 2, file 3, file 4 and 3 others"


def test_claims_that_went_are_no_news() -> None:
    assert Changes((), ("a",), (".hoodie/.heartbeat/1", ".hoodie/1.inflight")).describe() == (
        "rolled back: .hoodie/1.inflight; deleted: a"
    )


def test_bad_input_before_a_change_is_bad_input() -> None:
    storage = a_storage()

    def fails() -> None:
        with exit_code_of_changes(storage):
            storage.write("probe", b"")
            storage.delete("probe")
            raise CorruptFileError("damaged", path="old")

    with pytest.raises(CorruptFileError) as caught:
        fails()
    assert (caught.value.exit_code, caught.value.message) == (2, "damaged")


def test_bad_input_behind_a_change_is_a_failure_that_says_what_is_left() -> None:
    storage = a_storage()

    def fails() -> None:
        with exit_code_of_changes(storage):
            storage.write("claim", b"")
            raise CorruptFileError("damaged", path="old", remedy="restore it")

    with pytest.raises(CorruptFileError) as caught:
        fails()
    error = caught.value
    assert (error.exit_code, error.path, error.remedy) == (1, "old", "restore it")
    assert error.message == "damaged; found after the run had begun: still there: claim"


@pytest.mark.parametrize("error", [ConflictError("another"), HudiError("failed")])
def test_other_errors_keep_their_exit_code(error: HudiError) -> None:
    storage = a_storage()

    def fails() -> None:
        with exit_code_of_changes(storage):
            storage.write("claim", b"")
            raise error

    with pytest.raises(HudiError) as caught:
        fails()
    assert caught.value is error


def test_a_storage_that_records_nothing_changes_no_error() -> None:
    storage = MemoryStorage()

    def fails() -> None:
        with exit_code_of_changes(storage):
            storage.write("claim", b"")
            raise CorruptFileError("damaged")

    with pytest.raises(CorruptFileError) as caught:
        fails()
    assert caught.value.exit_code == 2

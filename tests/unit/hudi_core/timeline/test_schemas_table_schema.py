from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.timeline.actions.commit import CommitMetadata, encode_commit
from hudi_core.timeline.instant import Instant, State
from hudi_core.timeline.naming import timeline_of
from hudi_core.timeline.schemas import schema_of
from hudi_core.timeline.timeline import Timeline


def named(name: str) -> str:
    return json.dumps({"type": "record", "name": name, "fields": []})


def commit(name: str | None, operation: str = "UPSERT") -> CommitMetadata:
    extra = {} if name is None else {"schema": named(name)}
    return CommitMetadata(operation_type=operation, extra_metadata=extra)


def timeline(*commits: CommitMetadata) -> tuple[Timeline, dict[str, bytes]]:
    times = [f"{number:03d}" for number in range(1, len(commits) + 1)]
    return timeline_of([f"{time}.commit" for time in times]), dict(zip(times, map(encode_commit, commits), strict=True))


def found(*commits: CommitMetadata, **others: object) -> str:
    listed, contents = timeline(*commits)
    schema = schema_of(listed, lambda instant: contents[instant.requested_time], **others)  # type: ignore[arg-type]
    return str(schema["name"])


def test_the_latest_commit_that_may_change_it() -> None:
    assert found(commit("first"), commit("second"), commit(None)) == "second"
    assert found(commit("written"), commit("rewritten", "COMPACT"), commit("moved", "CLUSTER")) == "written"
    assert found(commit("old", "COMPACT"), commit("new", "COMPACT")) == "new"


def test_where_no_commit_has_one() -> None:
    instant = Instant("000", "commit", State.COMPLETED)
    archive: Iterator[tuple[Instant, CommitMetadata]] = iter([(instant, commit("archived"))])
    assert found(commit(None), create_schema=named("created"), stored=lambda: {"name": "stored"}) == "created"
    assert found(commit(None), stored=lambda: {"name": "stored"}) == "stored"
    assert found(commit(None), stored=lambda: None, archived=lambda: archive) == "archived"
    with pytest.raises(FormatError, match="no completed commit records"):
        found(commit(None))


def test_later_sources_are_read_for_nothing_else() -> None:
    def fail() -> None:
        raise AssertionError

    assert found(commit("first"), stored=fail, archived=fail) == "first"


def test_a_schema_that_is_none_is_named_by_its_file() -> None:
    listed, contents = timeline(CommitMetadata(operation_type="UPSERT", extra_metadata={"schema": "{"}))
    with pytest.raises(CorruptFileError) as caught:
        schema_of(listed, lambda instant: contents[instant.requested_time], path_of=lambda _: "the commit")
    assert caught.value.path == "the commit"


@pytest.mark.parametrize(
    "schema", ["{", "7", '{"type": "record", "name": "r", "fields": [{"name": "a", "type": "x"}]}']
)
def test_a_schema_that_is_none_is_put_down_to_its_commit(schema: str) -> None:
    wrong = CommitMetadata(operation_type="UPSERT", extra_metadata={"schema": schema})
    with pytest.raises(FormatError) as caught:
        found(commit("first"), wrong)
    assert caught.value.path == "002.commit"

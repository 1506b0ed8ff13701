"""Runs that are killed between their decision to complete and their put, and commits of others that come between."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.model.names import FileGroupId, parse_base_file
from hudi_core.timeline.actions.commit import SCHEMA_KEY, encode_commit, encode_commit_avro
from hudi_core.timeline.instant import Action
from hudi_core.transaction.commit import Completer
from tests.support.changed_tables import open_context
from tests.support.fault_storage import InjectedCrash


def decided(act: Callable[[], object]) -> None:
    """`act` is killed right after its decision."""

    def killed(*_: object) -> None:
        raise InjectedCrash("right after the decision")

    with pytest.MonkeyPatch.context() as dying:
        dying.setattr(Completer, "_put", killed)
        with pytest.raises(InjectedCrash):
            act()


def foreign_write(
    table: Path,
    group: FileGroupId,
    time: str | None = None,
    column: str | None = None,
    *,
    log_version: int | None = None,
) -> str:
    """A commit of a writer that knows of nothing else, by default of a base file; `column` is one that it adds."""
    context = open_context(table)
    active, timeline = context.active, context.active.load()
    now, newest = context.new_instant(timeline), timeline.commits().instants[-1]
    metadata = active.read_commit(newest)
    stat = next(metadata.write_stats())
    stat = replace(stat, file_id=group.file_id, partition_path=group.partition, log_version=log_version)
    written = replace(metadata, partition_to_write_stats={group.partition: (stat,)})
    if column is not None:
        schema = json.loads(metadata.schema_text or "")
        schema["fields"].append({"name": column, "type": ["null", "int"], "default": None})
        written = replace(written, extra_metadata={**metadata.extra_metadata, SCHEMA_KEY: json.dumps(schema)})
    content = encode_commit(written) if active.layout == 1 else encode_commit_avro(written)
    active.create_requested(time or now, Action.COMMIT)
    active.to_inflight(time or now, Action.COMMIT, content)
    active.complete(time or now, Action.COMMIT, content, str(int(now) + 1))
    return time or now


def foreign_upsert(table: Path, partition: str, base_file: str, time: str | None = None) -> None:
    """A commit that has written a base file of the group anew; the rows are the same."""
    name = parse_base_file(base_file)
    instant = foreign_write(table, FileGroupId(partition, name.file_id), time)
    path = table / partition / base_file
    path.with_name(str(replace(name, instant=instant))).write_bytes(path.read_bytes())

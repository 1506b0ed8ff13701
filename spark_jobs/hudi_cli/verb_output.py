"""The output of hudictl's verbs: sentences about what happened, or would happen, and tables and JSON for details."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.filesize import decimal
from rich.json import JSON
from rich.markup import escape

from hudi_cli.tables import restorable_table
from hudi_core.engine.protocol import Json


def verb_output(verb: str, document: Json, *, dry_run: bool) -> Iterator[RenderableType]:
    """Yields, for people, the document of a verb other than `run`: in sentences, else the document itself."""
    yield from _lines(verb, document, dry_run)
    if verb == "schedule" and document["plan"] is not None:
        yield JSON.from_data(document["plan"], default=repr)
    if document.get("restorable"):
        yield restorable_table(document["restorable"])


def _lines(verb: str, document: Json, dry_run: bool) -> Iterator[RenderableType]:
    match verb:
        case "schedule":
            yield _scheduled(document, dry_run)
        case "rollback" | "restore":
            yield from _rolled_back_or_restored(verb, document, dry_run)
        case "savepoint_create":
            state = "is kept already" if document["existed"] else "is kept from now on"
            yield f"commit [bold]{document['instant']}[/] {state}: {document['files']} files{_comment(document)}"
        case "savepoint_delete":
            yield (
                f"the savepoint of commit [bold]{document['instant']}[/] is deleted: the next clean may delete its "
                f"files{_comment(document)}"
            )
        case "unschedule":
            yield _dropped(document)
            yield from _unblocks(document["unblocks"], dry_run=document["dry_run"])
        case "takeover":
            yield from _freed(document)
            yield from _unblocks(document["unblocks"])
            yield from _list("  may proceed once it is run or dropped:", document["after_the_run"]["work"])
            yield f"  next: {escape(document['next'])}"
        case "create":
            yield from _created(document)
        case "insert_overwrite" | "delete_partition":
            yield _replaced(document)
        case "write":
            yield _written(document)
        case "metadata_update":
            yield from _updated(document)
            yield _partitions(document)
        case "metadata_create" | "metadata_drop":
            yield from _changed("created" if verb == "metadata_create" else "dropped", document)
            yield _partitions(document)
        case _:
            yield JSON.from_data(document, default=repr)


def _scheduled(document: Json, dry_run: bool) -> str:
    if document["instant"] is not None:
        return f"requested [bold]{document['instant']}[/]"
    if document["plan"] is not None:
        return "would plan:" if dry_run else "what it would do now (it has no plans of its own):"
    return f"nothing to plan: {escape(document['reason'] or 'no reason given')}"


def _rolled_back_or_restored(verb: str, document: Json, dry_run: bool) -> Iterator[str]:
    if document["reason"] is not None:
        yield f"nothing to do: {escape(document['reason'])}"
        return
    if document["target"] is None:
        if not document["restorable"]:
            yield "the timeline holds no completed commit to go back to"
        return
    done = {"rollback": "rolled back", "restore": "restored to"}[verb]
    would = {"rollback": "would roll back", "restore": "would restore to"}[verb]
    by = "" if document["instant"] is None else f" as {verb} [bold]{document['instant']}[/]"
    yield (
        f"{would if dry_run else done} [bold]{document['target']}[/]{by}: {_removed(document['removed'])} "
        f"{_gone(dry_run)}"
    )
    if verb == "restore":
        yield from _list("  instants that go:" if dry_run else "  instants that went:", document["removed"]["instants"])


def _dropped(document: Json) -> str:
    if document["reason"] is not None:
        return escape(document["reason"] if document["action"] else f"nothing to do: {document['reason']}")
    verb = "would drop" if document["dry_run"] else "dropped"
    removed = f"{_removed(document['removed'])} of attempts {_gone(document['dry_run'])}"
    return f"{verb} {escape(document['action'])} [bold]{document['instant']}[/]: {removed}"


def _freed(document: Json) -> Iterator[str]:
    yield f"{escape(document['action'])} [bold]{document['instant']}[/] is free and {escape(document['state'])}"
    if document["reason"] is not None:
        yield f"  {escape(document['reason'])}"
        return
    yield f"  it was run by: {escape(document['previous_owner'] or 'no process of this engine')}"
    yield f"  removed of the attempt: {_removed(document['removed'])}"


def _unblocks(unblocks: Json, *, dry_run: bool = False) -> Iterator[str]:
    if unblocks["file_groups"]:
        where = ", ".join(name or "." for name in unblocks["partitions"])
        yield (
            f"  file groups that {'would be' if dry_run else 'are'} free: {unblocks['file_groups']}, in: "
            f"{escape(where)}"
        )
    yield from _list("  could proceed then:" if dry_run else "  may proceed:", unblocks["work"])


def _list(label: str, items: Iterable[str]) -> Iterator[str]:
    names = [name or "(unpartitioned)" for name in items]
    if names:
        yield f"{label} {escape(', '.join(names))}"


def _removed(removed: Json) -> str:
    return f"{removed['files']} file{'' if removed['files'] == 1 else 's'}, {decimal(removed['bytes'])}"


def _gone(dry_run: bool) -> str:
    return "to remove" if dry_run else "removed"


def _comment(document: Json) -> str:
    return f" ({escape(document['comment'])})" if document["comment"] else ""


def _created(document: Json) -> Iterator[RenderableType]:
    done = {None: "created", "a dry run": "would create"}.get(document["reason"], "nothing to do: the table is there:")
    kind = "merge-on-read" if document["type"] == "MERGE_ON_READ" else "copy-on-write"
    columns = f"{len(document['columns'])} columns"
    yield f"{done} [bold]{escape(document['name'])}[/], {kind}, version {document['version']}, {columns}"
    if done == "would create":
        yield JSON.from_data({"properties": document["properties"], "schema": document["schema"]}, default=repr)


def _replaced(document: Json) -> str:
    done = f"{document['replaced_file_groups']} file groups in {document['partitions']} partitions"
    rows = f"{document['records']} rows"
    if document["repeated"]:
        return f"done before, as [bold]{document['instant']}[/]: {done} were replaced by {rows}"
    if document["instant"] is not None:
        return f"[bold]{document['instant']}[/]: {done} are replaced by {rows} in {document['files_written']} files"
    if document["engine"] is not None:
        return f"would replace {done} by {rows}"
    return f"nothing to do: {escape(document['reason'])}"


def _written(document: Json) -> str:
    operation, partitions = document["operation"].lower(), f"{document['partitions']} partitions"
    if document["instant"] is None:
        if document["engine"] is None:
            return f"nothing to do: {escape(document['reason'])}"
        first = escape(document["reason"].removeprefix("a dry run"))
        return f"would {operation} {document['records']} rows in {partitions}{first}"
    before = "done before, as " if document["repeated"] else ""
    changed = f"{document['inserted']} rows inserted, {document['updated']} updated, {document['deleted']} deleted"
    written = f"{document['files_written']} files written"
    return f"{before}[bold]{document['instant']}[/]: {operation} in {partitions}: {changed}; {written}"


def _updated(document: Json) -> Iterator[str]:
    yield f"applied: {', '.join(document['applied']) or 'nothing was missing'}"
    yield from _list("rebuilt:", document["rebuilt"])
    yield from _list("ranges widened in partitions:", document["widened"])
    yield from _list("may lack rows:", document["incomplete"])
    yield f"rolled back: {', '.join(document['rolled_back']) or 'nothing had failed'}"
    compacted, cleaned = document["compacted"], document["cleaned"]
    yield (
        f"compacted into {compacted['files']} files, {cleaned['files']} files cleaned, {document['archived']} "
        "instants archived"
    )


def _changed(done: str, document: Json) -> Iterator[str]:
    if document["reason"] is not None:
        yield f"nothing to do: {document['reason']}"
        return
    for what, names in ((done, document[done]), (f"columns {done}", document["columns"])):
        if names:
            yield f"{what}: [bold]{escape(', '.join(names))}[/]"


def _partitions(document: Json) -> str:
    return f"the metadata table has: {escape(', '.join(document['partitions'])) or 'nothing; there is none'}"

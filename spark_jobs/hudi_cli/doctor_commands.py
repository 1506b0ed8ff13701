"""hudictl doctor and probe-store: they examine a table, its writers, and its storage."""

from __future__ import annotations

from collections.abc import Iterator

import click
from rich.markup import escape

from hudi_cli.options import AS_WRITERS, Target, common, hudi_option
from hudi_cli.output import Output
from hudi_cli.tables import counted, wrapped_rows
from hudi_core.engine.protocol import Json
from hudi_core.errors import EXIT_FAILED

_STYLE = {"error": "bold red", "warning": "yellow", "info": "cyan"}


@click.command()
@common
@hudi_option(AS_WRITERS)
@click.option(
    "--timeline-only",
    is_flag=True,
    help="Do not list the data files: no orphans are found, nor what the metadata table has wrong.",
)
@click.pass_obj
def doctor(
    output: Output,
    /,
    target: Target,
    option: tuple[str, ...],
    timeline_only: bool,
) -> None:
    """Report what is wrong with TABLE and what to do about it.

    Nothing is written. The exit code is 0 also when there are findings.
    """
    from hudi_health.table import doctor_report  # Help does not need this import.

    document = doctor_report(target.open(option), files=not timeline_only).to_dict()
    output.result(document, report_lines(document, output.width))


@click.command("probe-store")
@common
@click.option(
    "--writers", type=click.IntRange(2, 256), default=16, show_default=True, help="Writers that race for one object."
)
@click.option("--rounds", type=click.IntRange(1, 100_000), default=60, show_default=True, help="Races of each type.")
@click.pass_obj
def probe_store(
    output: Output,
    /,
    target: Target,
    writers: int,
    rounds: int,
) -> int | None:
    """Race writers on the storage at TABLE, a table or any folder.

    Reports whether it can carry a timeline and a storage lease. Writes in a folder of its own below TABLE, and removes
    it. A store that cannot carry a timeline ends with exit code 1.
    """
    from hudi_core.storage.registry import open_storage
    from hudi_health.probe import probe  # Help does not need this import.

    report = probe(open_storage(target.table, target.storage_options()), writers, rounds)
    document = report.to_json()
    output.result(document, _verdict(document))
    return None if report.can_carry_timeline else EXIT_FAILED


def report_lines(document: Json, width: int) -> Iterator[str]:
    """Yields the report for people, in markup. Wraps texts, but not options, at words to `width` columns."""
    findings = document["findings"]
    yield f"[bold]{escape(document['name'])}[/]: {counted(len(findings), 'finding')}"
    for finding in findings:
        yield f"[{_STYLE[finding['severity']]}]{finding['severity']}[/] [bold]{finding['rule']}[/]"
        lines = (
            ("what", finding["what"]),
            ("file", finding["path"] or ""),
            ("holds back", ", ".join(finding["blocks"])),
            ("fix", finding["fix"]),
        )
        yield from wrapped_rows([("", label, text) for label, text in lines if text], width)
    yield "[bold]options that every writer of the table should have[/]"
    for row in document["writer_options"]:
        # Each option has its own line and is not wrapped, so that people can copy it.
        yield f"  {escape(row['name'])}={escape(row['value'])}"
        yield from wrapped_rows([("", "", f"now {row['now'] or 'not known'}; {row['why']}")], width)
    holder, clock = document["lock"], document["clock"]
    by = "free" if holder["holder"] is None else f"held by {holder['holder']} for {holder['age']:.0f} s"
    rows = [
        ("lock", f"{holder['name']}: {'cannot be read' if holder['problem'] else by}"),
        ("zone", f"{clock['zone']} (LOCAL is {clock['here']} here)"),
    ]
    rows += [
        (wheel["side"], f"{wheel['name']} {wheel['version'] or 'is MISSING'}: {wheel['why']}")
        for wheel in document["wheels"]
    ]
    yield from wrapped_rows(rows, width)


def _verdict(document: Json) -> Iterator[str]:
    for name, key in (("a timeline", "can_carry_timeline"), ("a storage lease", "can_carry_lease")):
        verdict = "[green]yes[/], as far as a race can tell" if document[key] else "[bold red]no[/]"
        yield f"can carry {name}: {verdict}"
    for kind in ("creates", "replaces"):
        found = document[kind]
        if found is not None:
            yield (
                f"{kind}: {found['rounds']} races of {document['writers']} writers: {found['several_winners']} with "
                f"several winners, {found['no_winner']} with none, {found['wrong_content']} with wrong content, "
                f"{found['failures']} failed requests; slowest request {found['slowest_seconds']:.2f} s"
            )
    for problem in document["problems"]:
        yield f"  {escape(problem)}"
    if document["clock_ahead_seconds"]:
        yield f"the storage's clock is {document['clock_ahead_seconds']:+.1f} s beside this process's"

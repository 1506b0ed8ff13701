"""Runs a program: each step is done, the model follows, and the table is compared with it."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hudi_core.table import HudiTable
from tests.interop.changes import write_parquet
from tests.interop.real_hudi import RealHudi, RealHudiError
from tests.torture import hudi_steps, our_commands
from tests.torture.checks import Checks, Counts, Failure, Mismatch, pattern, root
from tests.torture.command_server import CommandServer, Ended
from tests.torture.known_defects import avoided, narrowed, spoils_filters
from tests.torture.model import Model
from tests.torture.our_commands import Situation
from tests.torture.program import Command, Program, Service, Step, Write

DEFECT: Final = "this is a defect of hudictl"
NOT_ALLOWED: Final = ("TimelineError",)
"""Errors with exit code 1 that say that the table's state does not allow the action."""


@dataclass(frozen=True)
class Readers:
    """After how many steps we read the table (0: never), and real Hudi does. Both read it at the end."""

    ours: int
    hudi: int


EVERY_STEP: Final = Readers(1, 5)


@dataclass
class Outcome:
    """What became of a program."""

    program: Program
    steps: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    avoided: Counter[str] = field(default_factory=Counter)
    idle: Counter[str] = field(default_factory=Counter)
    """Services and commands that changed no file of the table."""
    faults: int = 0
    commits: int = 0
    """Writes that completed."""
    counts: Counts = field(default_factory=Counts)
    failure: Failure | None = None


class Judges:
    """The processes of a run: real Hudi by version, started for the first program that needs it, and hudictl."""

    def __init__(self) -> None:
        self.commands = CommandServer()
        self._hudi: dict[str, RealHudi] = {}
        self._started: list[RealHudi] = []

    def lend(self, hudi: RealHudi) -> None:
        """Uses a real Hudi that others started and end."""
        self._hudi[hudi.version] = hudi

    def hudi(self, version: str) -> RealHudi:
        """Real Hudi of this version."""
        if version not in self._hudi:
            self._hudi[version] = RealHudi(version)
            self._started.append(self._hudi[version])
        return self._hudi[version]

    def close(self) -> None:
        """Ends them all."""
        self.commands.close()
        for hudi in self._started:
            hudi.close()


def run(
    judges: Judges,
    program: Program,
    may_go_on: Callable[[], bool] = lambda: True,
    keep: Path | None = None,
    *,
    readers: Readers = EVERY_STEP,
) -> Outcome:
    """Does the steps of a program on a fresh table until one fails, or `may_go_on` is false before one.

    The table is left in the folder `keep`, which must not exist, or removed.
    """
    with _folder() if keep is None else nullcontext(keep) as folder:
        folder.mkdir(parents=True, exist_ok=True)
        return _Run(judges, program, folder / "table", readers).outcome(may_go_on)


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="torture-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


class _Run:
    def __init__(self, judges: Judges, program: Program, base: Path, readers: Readers) -> None:
        self.judges, self.program, self.base, self.readers = judges, program, base, readers
        self.model = Model(program.table)
        self.result = Outcome(program)
        self.checks = Checks(program, self.result.counts)
        self.filters_by_hudi = True
        self.may_go: set[str] = set()
        """Writes whose rollback died: any later process may finish it."""

    @property
    def hudi(self) -> RealHudi:
        return self.judges.hudi(self.program.writer)

    def outcome(self, may_go_on: Callable[[], bool]) -> Outcome:
        number = 0
        try:
            for number, step in enumerate(self.program.steps):
                if number and not may_go_on():
                    return self.result
                self._step(step)
                now = Situation.of(self.base, self.model)
                self._compare_instants(now)
                dice = random.Random(f"{self.program.seed}-{step}")
                last = step is self.program.steps[-1]
                if self.readers.ours and (last or number % self.readers.ours == 0):
                    self.checks.ours(now, dice)
                if last or number % self.readers.hudi == 0:
                    filters = self.filters_by_hudi and not self.result.counts.known
                    self.checks.theirs(self.hudi, now, dice, filters=filters)
                if last and self.program.thorough:
                    self.checks.validated(self.hudi, now)
        except Mismatch as wrong:
            self.result.failure = Failure(wrong.kind, number, f"after {self.program.steps[number]}: {wrong.text}")
        return self.result

    def _step(self, step: Step) -> None:
        if self.base.exists():
            now = Situation.of(self.base, self.model)
            why = avoided(step, self.program, now)
            if why is not None:
                self.result.avoided[why] += 1
                return
            narrowed(self.checks.narrowed, step, self.program, now)
            spoiled = spoils_filters(step, self.program, now)
            if spoiled is not None:
                self.result.avoided[spoiled] += 1
                self.filters_by_hudi = False
        self.result.steps[step.name] += 1
        before = _tree(self.base) if self.base.exists() else frozenset()
        if isinstance(step, Write) and step.ours:
            self._our_write(step)
        elif isinstance(step, Write):
            self._write(step)
        elif isinstance(step, Service):
            self._service(step)
        else:
            self._command(step)
        self.result.idle[step.name] += _tree(self.base) == before

    # Real Hudi's steps.

    def _write(self, step: Write) -> None:
        effect_at = self._completed() if self.base.exists() else frozenset()
        error: RealHudiError | None = None
        try:
            hudi_steps.write(self.hudi, self.program, step, self.model, self.base)
        except RealHudiError as raised:
            error = raised
        actions = self._actions(step)
        new = sorted(time for time, action in self._completed() - effect_at if action in actions)
        if len(new) > 1:
            raise Mismatch("instants", f"{len(new)} instants of one write: {new}")
        for instant in new:
            self._wrote(step, instant)
        if error is not None and not step.fails:
            self._refusal(step, error)
        if error is None and not new:
            self.result.refused[f"{step.name}: no commit"] += 1

    def _actions(self, step: Write) -> tuple[str, ...]:
        if step.operation in ("insert_overwrite", "insert_overwrite_table", "delete_partition"):
            return ("replacecommit",)
        return ("deltacommit",) if self.program.table.on_read else ("commit",)

    def _service(self, step: Service) -> None:
        now = Situation.of(self.base, self.model)
        removable = hudi_steps.removable(step, now)
        error: RealHudiError | None = None
        try:
            if not hudi_steps.serve(self.hudi, self.program, step, now):
                return
        except RealHudiError as raised:
            error = raised
        self._removed(removable, all_of_them=error is None, step=step)
        if error is not None:
            self._refusal(step, error)

    def _refusal(self, step: Step, error: RealHudiError) -> None:
        text = root(error)
        if not any(words in str(error) for words in hudi_steps.LAWFUL):
            raise Mismatch(f"{step.name} fails: {pattern(text)[:120]}", text)
        self.result.refused[f"{step.name}: {pattern(text)[:120]}"] += 1

    # Our steps.

    def _our_write(self, step: Write) -> None:
        """A write of hudictl; one that died is done again with its token, and is there once."""
        now, before = Situation.of(self.base, self.model), self._completed()
        source = Path(write_parquet(self.model.rows_to_write(step), self.base.parent, "rows"))
        line = our_commands.write_line(now, step, source)
        ended = self._hudictl(line, step.fault, step.fault_at)
        self.result.faults += ended.fault
        if ended.fault:
            ended = self._hudictl(line)
        self._judge(step, ended)
        actions = self._actions(step)
        new = sorted(time for time, action in self._completed() - before if action in actions)
        if len(new) != (ended.code == 0):
            raise Mismatch("instants", f"{len(new)} instants of {step.name}, which ends in {ended.code}: {new}")
        for instant in new:
            self._wrote(step, instant)

    def _command(self, step: Command) -> None:
        now = Situation.of(self.base, self.model)
        line = our_commands.command_line(now, step)
        if line is None:
            return
        removable = our_commands.removable(line, step, now)
        ended = self._hudictl(line, step.fault, step.fault_at)
        self.result.faults += ended.fault
        if ended.fault:
            # What died may be done or not; what is gone must be what it was to roll back.
            self._removed(removable, all_of_them=False, step=step)
            self.may_go.update(removable)
            if step.again:
                self._again(step, line, removable)
            return
        self._judge(step, ended)
        self._removed(removable, all_of_them=ended.code == 0, step=step)

    def _again(self, step: Command, line: list[str], removable: tuple[str, ...]) -> None:
        self._checked_between(step)
        ended = self._hudictl(line)
        self._judge(step, ended)
        left = [instant for instant in removable if instant in self.model.instants()]
        self._removed(tuple(left), all_of_them=ended.code == 0, step=step)

    def _checked_between(self, step: Command) -> None:
        now = Situation.of(self.base, self.model)
        self.checks.ours(now, random.Random(f"{self.program.seed}-{step}-between"))

    def _hudictl(self, line: list[str], fault: str = "", fault_at: int = 0) -> Ended:
        before = _tree(self.base)
        ended = self.judges.commands.run(line, fault, fault_at)
        if ended.code == 2 and not ended.fault and (changed := _tree(self.base) ^ before):
            raise Mismatch(
                f"{' '.join(line[:2])} wrote at exit 2", f"{ended.error}: {sorted(path for path, *_ in changed)[:5]}"
            )
        return ended

    def _judge(self, step: Command | Write, ended: Ended) -> None:
        if ended.code == 0:
            return
        text = f"{ended.error.get('type')}: {ended.error.get('message')}"
        if ended.error.get("remedy", "") and DEFECT in str(ended.error["remedy"]):
            raise Mismatch(f"{step.name} defect: {pattern(text)[:120]}", text)
        if ended.code not in (2, 3) and ended.error.get("type") not in NOT_ALLOWED:
            text = text if ended.error else str(ended.document)
            raise Mismatch(f"{step.name} ends in {ended.code}: {pattern(text)[:120]}", text)
        self.result.refused[f"{step.name} ends in {ended.code}: {pattern(text)}"] += 1

    # The model and the timeline.

    def _wrote(self, step: Write, instant: str) -> None:
        self.model.effects.append(self.model.effect_of(step, instant))
        self.result.commits += 1

    def _removed(self, removable: tuple[str, ...], *, all_of_them: bool, step: Step) -> None:
        """Takes the writes out of the model that are no longer on the timeline, of those that may be."""
        present = {time for time, _ in self._completed()}
        gone = [instant for instant in removable if instant not in present]
        if all_of_them and len(gone) != len(removable):
            raise Mismatch(f"{step.name} leaves writes", f"{sorted(set(removable) - set(gone))}")
        self.model.remove(gone)

    def _compare_instants(self, now: Situation) -> None:
        present = {time for time, _ in self._completed()}
        lost = [instant for instant in now.model.instants() if instant not in present]
        if not self.may_go.issuperset(lost):
            raise Mismatch("writes are gone from the timeline", f"{lost}")
        self.model.remove(lost)

    def _completed(self) -> frozenset[tuple[str, str]]:
        timeline = HudiTable.open(str(self.base)).timeline(archived=True)
        return frozenset((item.requested_time, item.action) for item in timeline if item.is_completed)


def _tree(base: Path) -> frozenset[tuple[str, int, int]]:
    found = []
    for folder, _, names in os.walk(base):
        for name in names:
            status = os.stat(f"{folder}/{name}")
            found.append((os.path.relpath(f"{folder}/{name}", base), status.st_size, status.st_mtime_ns))
    return frozenset(found)

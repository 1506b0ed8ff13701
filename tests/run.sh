#!/usr/bin/env bash
# The tests of `make test`, in three lanes side by side: one waits for JVMs most of its time; one kills runs, mutates files, races writers on
# servers and reads the golden tables; one runs the unit tests of hudi_core under coverage, then the other unit tests without it. A skipped test
# is a failure: a part that is missing gets installed, not passed over.
# What is marked soak is left to `make soak` (docs/testing.md).
set -uo pipefail
cd "$(dirname "$0")/.."

# Tables of tests lie in memory where it has room for them: every file of a timeline is flushed, and on a disk the tests wait for that most of all.
memory=/dev/shm
room="$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)"
[ "$(df --output=avail "$memory" 2>/dev/null | tail -n 1)" -gt 4000000 ] && [ "$room" -gt 10000000 ] &&
    grep -q " $memory tmpfs " /proc/mounts && ! grep -q " $memory tmpfs [^ ]*noexec" /proc/mounts || memory="${TMPDIR:-/tmp}"
scratch="$(mktemp -d "$memory/airflow-hudi-tests-XXXXXX")"
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/tmp"
export TMPDIR="$scratch/tmp"

python -m tests.interop.bundle >/dev/null || exit 1

lane() { # name, options and paths
    local name="$1"
    shift
    pytest -q -m "not soak" --durations=12 --basetemp="$TMPDIR/$name" --junitxml="$scratch/$name.xml" "$@" 2>&1
}

lane outside tests/interop tests/airflow >"$scratch/outside.log" &
outside=$!
{
    lane faults tests/faults tests/fuzz tests/contract
    faults=$?
    lane golden tests/golden
    exit $((faults || $?))
} >"$scratch/faults.log" &
faults=$!
COVERAGE_FILE="$scratch/coverage.inside" lane inside --cov --cov-report= --cov-fail-under=0 tests/unit/hudi_core
inside=$?
lane beside tests/arch tests/memory tests/unit/airflow_hudi tests/unit/deployment tests/unit/hudi_cli tests/unit/hudi_spark
inside=$((inside || $?))
wait "$faults"
faults=$?
cat "$scratch/faults.log"
wait "$outside"
outside=$?
cat "$scratch/outside.log"

export COVERAGE_FILE="$scratch/coverage"
coverage combine --quiet "$scratch"/coverage.* && coverage report | tail -n 12
covered=$?
python -m tests.support.junit_report "$scratch"/{inside,beside,golden,faults,outside}.xml
counted=$?
exit $((inside || faults || outside || covered || counted))

#!/usr/bin/env bash
# What `make test` runs: lint and ten parts of the tests in a queue, four at a time, so that no core waits for one part.
# The longest go first, so that no core waits at the end, and all give way to the first two. The unit tests of hudi_core
# and hudi_health that are not slow run under coverage, all others without it. A skipped test is a failure: a missing
# part gets installed, not passed over. Markers name the other tiers (docs/internals/testing.md).
set -uo pipefail
cd "$(dirname "$0")/.."

. tests/scratch.sh
# Else each of some hundred processes compiles all modules that it imports.
unset PYTHONDONTWRITEBYTECODE
export COVERAGE_JSON="$scratch/coverage.json"

python -m tests.interop.bundle >/dev/null || exit 1

part() { # name, options and paths
    local name="$1" code niceness=5 chosen="not conformance and not soak" TIMEFORMAT="%R %U %S"
    shift
    case "$name" in
    torture) niceness=0 ;;
    inside) niceness=0 chosen="not slow and $chosen" ;;
    slow) chosen="slow and $chosen" ;;
    esac
    set -- pytest -q -m "$chosen" --durations=8 --basetemp="$TMPDIR/$name" --junitxml="$scratch/$name.xml" "$@"
    [ "$name" != lint ] || set -- make lint
    { time nice -n "$niceness" "$@" >"$scratch/$name.log" 2>&1; } 2>"$scratch/$name.time"
    code=$?
    awk -v name="$name" '{printf "== %s, %d s, %d s of CPU\n", name, $1, $2 + $3}' "$scratch/$name.time"
    cat "$scratch/$name.log"
    return "$code"
}
export -f part
others="interop torture unit/hudi_core unit/hudi_health faults golden airflow contract fuzz hostile"
elsewhere="$(printf -- ' --ignore=tests/%s' $others)"
export elsewhere

xargs -P 4 -I{} bash -c 'part {}' <<'PARTS'
inside -p tests.support.coverage_plugin tests/unit/hudi_core tests/unit/hudi_health
torture tests/torture
contract tests/contract
interop tests/interop
others tests $elsewhere
faults tests/faults
golden tests/golden
hostile tests/fuzz tests/hostile
slow tests/unit/hudi_core tests/unit/hudi_health
airflow tests/airflow
lint
PARTS
tested=$?
[ -z "${AIRFLOW_HUDI_TEST_REPORTS:-}" ] || cp "$scratch"/*.xml "$AIRFLOW_HUDI_TEST_REPORTS"

python -m tests.support.coverage_plugin "$COVERAGE_JSON" 97
covered=$?
python -m tests.support.junit_report \
    "$scratch"/{torture,inside,interop,contract,others,airflow,hostile,golden,faults,slow}.xml
counted=$?
exit $((tested || covered || counted))

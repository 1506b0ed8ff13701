#!/usr/bin/env bash
# All tests, in three processes side by side: one waits for JVMs, servers and sleeping processes most of its time, one kills runs at every
# storage operation and mutates files, one computes under coverage. A skipped test is a failure: a part that is missing gets installed, not passed over.
set -uo pipefail
cd "$(dirname "$0")/.."
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
export COVERAGE_FILE="$scratch/coverage"

python -m tests.interop.bundle >/dev/null || exit 1
pytest -q --durations=8 --junitxml="$scratch/outside.xml" tests/interop tests/airflow tests/contract >"$scratch/outside.log" 2>&1 &
outside=$!
pytest -q --durations=3 --junitxml="$scratch/faults.xml" tests/faults tests/fuzz >"$scratch/faults.log" 2>&1 &
faults=$!
pytest -q --durations=8 --junitxml="$scratch/inside.xml" --cov --cov-report= tests/unit tests/golden tests/arch
inside=$?
wait "$faults"
faults=$?
cat "$scratch/faults.log"
wait "$outside"
outside=$?
cat "$scratch/outside.log"

coverage report | tail -n 12
covered=$?
python -m tests.report "$scratch/inside.xml" "$scratch/faults.xml" "$scratch/outside.xml"
counted=$?
exit $((inside || faults || outside || covered || counted))

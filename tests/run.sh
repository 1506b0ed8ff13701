#!/usr/bin/env bash
# All tests in one run, with the coverage gate. A skipped test is a failure: a part that is missing gets installed, not passed over.
set -euo pipefail
cd "$(dirname "$0")/.."
report="$(mktemp)"
trap 'rm -f "$report"' EXIT
coverage erase
status=0
pytest -q --durations=15 --cov --cov-report= --junitxml="$report" tests || status=$?
python -m tests.report "$report"
coverage report --skip-covered | tail -n 25
exit "$status"

#!/usr/bin/env bash
# The tests of `make test-fast`: unit tests and tests of the architecture that take no second and need no JVM, in two
# processes.
set -uo pipefail
cd "$(dirname "$0")/.."
. tests/scratch.sh

part() { # name, paths
    local name="$1"
    shift
    pytest -q -m "not slow and not soak and not spark and not hudi and not airflow" --basetemp="$TMPDIR/$name" "$@"
}

half=(tests/unit/hudi_core/services tests/unit/airflow_hudi)
part services "${half[@]}" >"$scratch/services.log" 2>&1 &
services=$!
part rest "${half[@]/#/--ignore=}" tests/unit tests/arch
rest=$?
wait "$services"
services=$?
cat "$scratch/services.log"
exit $((rest || services))

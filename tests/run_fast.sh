#!/usr/bin/env bash
# The tests of `make test-fast`: unit tests and tests of the architecture that take no second and need no JVM, in four
# processes, since some of them wait.
set -uo pipefail
cd "$(dirname "$0")/.."
. tests/scratch.sh

part() { # name, paths and options
    local name="$1" code
    shift
    pytest -q -m "not (slow or conformance or soak or spark or hudi or airflow)" --basetemp="$TMPDIR/$name" "$@" \
        >"$scratch/$name.log" 2>&1
    code=$?
    sed "1i == $name" "$scratch/$name.log"
    return "$code"
}
export -f part

xargs -P 4 -I{} bash -c 'part {}' <<'PARTS'
services tests/unit/hudi_core/services
core tests/unit/hudi_core --ignore=tests/unit/hudi_core/services --ignore=tests/unit/hudi_core/transaction
others tests/unit tests/arch --ignore=tests/unit/hudi_core
transaction tests/unit/hudi_core/transaction
PARTS

# Sourced by tests/run.sh and tests/run_fast.sh: `scratch` is a new folder for tables of tests, removed at the end. It
# lies in memory where that has room: every file of a timeline is flushed, and on a disk the tests wait for that most of
# all.
memory=/dev/shm
room="$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)"
[ "$(df --output=avail "$memory" 2>/dev/null | tail -n 1)" -gt 4000000 ] && [ "$room" -gt 10000000 ] &&
    grep -q " $memory tmpfs " /proc/mounts && ! grep -q " $memory tmpfs [^ ]*noexec" /proc/mounts ||
    memory="${TMPDIR:-/tmp}"
scratch="$(mktemp -d "$memory/airflow-hudi-tests-XXXXXX")"
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/tmp"
export scratch TMPDIR="$scratch/tmp"

#!/usr/bin/env bash
# Runs, on a machine with a GPU and without cargo, what `cargo xtask gpu-bundle` built beside this script.
# Each step's output also goes to a file in ${OUT:-out}. Every step has a time limit: a seam that hangs must not take the
# others with it. Exit status 1 if a step failed or could not run.
set -u
out=${OUT:-$PWD/out}
cd "$(dirname "$0")" || exit 1
mkdir -p "$out"
# Each rank of a loopback group needs a hardware queue of its own.
export CUDA_DEVICE_MAX_CONNECTIONS=32
failed=0

step() { # seconds, name, command...
    local limit=$1 name=$2 status
    shift 2
    echo "== $name"
    timeout "$limit" "$@" 2>&1 | tee "$out/$name.log"
    status=${PIPESTATUS[0]}
    if [ "$status" -ne 0 ]; then
        echo "== $name FAILED with status $status (124: out of time)"
        failed=1
    fi
}

step 60 doctor ./seamline doctor
step 60 quickstart ./quickstart
step 120 demo ./seamline demo
step 120 check ./seamline check --pattern moe_finalize_ar_residual_rmsnorm --set hidden=7168 top_k=8 dtype=bf16 --executor cuda
for tests in gpu*; do
    step 600 "$tests" "./$tests" --test-threads=1
done
step 300 bench ./seamline bench
if command -v compute-sanitizer >/dev/null; then
    # All ranks in one grid: a sanitizer runs one kernel at a time.
    for tests in gpu*; do
        for tool in memcheck racecheck; do
            step 300 "$tool-$tests" compute-sanitizer --tool "$tool" --error-exitcode 9 "./$tests" one_grid --test-threads=1
        done
    done
else
    echo "== compute-sanitizer NOT RUN: it is not installed"
    failed=1
fi
exit $failed

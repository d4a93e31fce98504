#!/bin/sh
# What ten minutes on a machine with an NVIDIA GPU can give, the most useful first: from a clone,
#
#     sh tools/maintenance/new_gpu.sh runs/gpu
#
# Called again it goes on where it was stopped, or tries again what failed. What is found goes to
# tools/results/cuda.json.
set -eu
out=${1:?say where to write, such as runs/gpu}

costlib doctor --target cuda
status=0
python -m tools.maintenance.check_cuda "$out" || status=$?
if [ -f "$out/cuda.json" ]; then
    cp "$out/cuda.json" tools/results/cuda.json
    echo "tools/results/cuda.json is written: note the machine and the day in"
    echo "tools/results/provenance.json, then: make results"
fi
exit "$status"

#!/bin/sh
# What ten minutes on a machine with an NVIDIA GPU can give, the most useful first: from a clone,
#
#     sh tools/maintenance/new_gpu.sh runs/gpu
#
# Called again it goes on where it was stopped. What is found goes to tools/results/cuda.json.
set -eu
out=${1:?say where to write, such as runs/gpu}

costlib doctor --target cuda
python -m tools.maintenance.check_cuda "$out"
cp "$out/cuda.json" tools/results/cuda.json
echo "tools/results/cuda.json is written; note the machine and the day in tools/results/provenance.json,"
echo "then: make results"

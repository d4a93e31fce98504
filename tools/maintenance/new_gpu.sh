#!/bin/sh
# What ten minutes on a machine with an NVIDIA GPU can give, the most useful first: from a clone,
#
#     sh tools/maintenance/new_gpu.sh runs/gpu
#
# Called again it goes on where it was stopped, or tries again what failed. What each step finds is
# in runs/gpu/steps, and all of it in tools/results/cuda.json; runs/gpu/cuda-gbdt is a bundle.
#
#     REHEARSE=sm_90 sh tools/maintenance/new_gpu.sh runs/rehearsal
#
# needs no GPU: it runs every step on a simulated one, and writes nothing outside its folder.
set -eu
out=${1:?say where to write, such as runs/gpu}
rehearse=${REHEARSE:-}

costlib doctor --target "cuda${rehearse:+:$rehearse}"
status=0
python -m tools.maintenance.gpu "$out" ${rehearse:+--simulate "$rehearse"} || status=$?
if [ -z "$rehearse" ] && [ -f "$out/cuda.json" ]; then
    cp "$out/cuda.json" tools/results/cuda.json
    echo "tools/results/cuda.json is written: note the machine and the day in"
    echo "tools/results/provenance.json, then: make results"
    if [ -d "$out/cuda-gbdt" ]; then
        echo "to ship the bundle: cp -r $out/cuda-gbdt pretrained/"
    fi
fi
exit "$status"

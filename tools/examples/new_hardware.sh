#!/bin/sh
# A new hardware key, from collecting to publishing: run on the new machine, from a clone.
#
#     sh tools/examples/new_hardware.sh runs/mine 30 hf://me/my-bundle
#
# Where to write, for how many minutes to measure, where to publish. Called again, it measures more.
set -eu
out=$1
minutes=$2
where=$3
plan=${PLAN:-$(dirname "$0")/new_hardware.toml}

costlib hardware

# 1. Measure the plan's tasks, those of its held-out networks apart.
costlib collect --plan "$plan" --out "$out/data" --minutes "$minutes"
costlib dataset verify "$out/data"
costlib dataset info "$out/data"

# 2. Train, and judge on what was held out.
costlib train "$out/data" --out "$out/bundle"
costlib evaluate "$out/bundle" --on "$out/data"

# 3. Publish, and use it as anybody else would.
costlib publish "$out/bundle" --to "$where"
costlib tune "${NETWORK:-bert_tiny}" --pretrained "$where" --trials "${TRIALS:-64}" --out "$out/run"
costlib report "$out/run" --out "$out/run.html"

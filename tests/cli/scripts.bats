#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Scripts below tests/ do not depend on the environment, and the runner gives every test the same one.

load helpers

setup() { setup_folder; }

@test "every script with options prints its help in an empty environment" {
	mapfile -t scripts < <(grep -rl '^import argparse' "$srcdir/tests" --include='*.py' \
		--include=run --include='on-device' --exclude-dir=root | sort)
	[ "${#scripts[@]}" -gt 10 ]
	for script in "${scripts[@]}"; do
		run -0 env -i PATH=/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 "$PYTHON" "$script" --help
		[[ $output == usage:* ]] || { echo "$script: $output"; return 1; }
	done
}

@test "every script that needs arguments prints its usage without any, and no traceback" {
	for script in cuda/nvrtc.py cuda/ptx_server.py families.py faults/commands.py hostile_text.py inspect_stats.py \
		make-bad-checkpoint.py make-sparse-checkpoint.py make-tokenizer.py models/longrope.py models/measure.py \
		read_bundle.py seal.py svg_boxes.py; do
		name=${script##*/}
		run env -i PATH=/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 "$PYTHON" "$srcdir/tests/$script"
		[[ $status -ne 0 && $output == *"$name"* && $output != *Traceback* ]] || { echo "$script: $output"; return 1; }
	done
}

# Python looks first in the folder of the script that is started.
@test "no script hides a package that another one imports" {
	"$PYTHON" - "$srcdir/tests" <<-'EOF'
	import os, sys
	packages = {"gguf", "h5py", "numpy", "safetensors", "sentencepiece", "tokenizers", "torch", "transformers"}
	packages |= set(sys.stdlib_module_names)
	hidden = []
	for folder, folders, names in os.walk(sys.argv[1]):
	    if "__init__.py" not in names:
	        hidden += [os.path.join(folder, name) for name in names if name[:-3] in packages and name.endswith(".py")]
	assert not hidden, hidden
	EOF
}

@test "bench/generate.py writes its model with the package gguf" {
	mkdir packages
	cat >packages/gguf.py <<-'EOF'
	class GGUFWriter:
	    def __init__(self, *arguments):
	        raise SystemExit("the package")
	EOF
	make_model m --family llama
	run -1 env -i PATH=/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$PWD/packages" "$PYTHON" -c 'if True:
		import runpy, sys
		folder = sys.argv[1]
		sys.path.insert(0, folder)
		runpy.run_path(folder + "/generate.py")["write_gguf"]("m", "m.gguf")' "$srcdir/tests/bench"
	[[ $output == *"the package" ]] || { echo "$output"; return 1; }
}

@test "a test that is started with ignored signals resets them to their defaults" {
	cat >probe <<-'EOF'
	#!/bin/sh
	# The last seven digits are of the 28 signals that any system has.
	sed -n 's/^Sig\(Blk\|Ign\):.*\(.......\)$/# \1 \2/p' /proc/self/status
	echo 'ok 1 - probe'
	echo 1..1
	EOF
	chmod +x probe
	[ -r /proc/self/status ] || skip "there is no /proc"
	printf '# Blk 0000000\n# Ign 0000000\nok 1 - probe\n1..1\n' >expected
	(trap '' HUP INT QUIT PIPE TERM TSTP && "$srcdir/tests/run-tap" ./probe) >out
	diff expected out
	nohup "$srcdir/tests/run-tap" ./probe </dev/null >out 2>/dev/null
	diff expected out
	setsid --wait "$srcdir/tests/run-tap" ./probe </dev/null >out
	diff expected out
}

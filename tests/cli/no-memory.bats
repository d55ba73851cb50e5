#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Failing allocations, each in turn, in our code. `make faults` does the same for conversions.

load helpers

setup() {
	setup_folder
	unset XFP_WORK XFP_OUT
	[ -z "$XFP_TEST_SANITIZERS" ] || skip "sanitizers have an allocator of their own"
}

# At least this many allocations.
each_allocation() { # LEAST COMMAND...
	run -0 "$PYTHON" "$srcdir/tests/faults/commands.py" \
		"$XFP_TEST_TOOLS/faults/fail_allocation.so" "${@:2}"
	[ "${lines[-1]%% places*}" -ge "$1" ]
}

@test "xfp inspect, of GGUF with linear attention" {
	"$PYTHON" "$srcdir/tests/make-gguf.py" qwen3next m.gguf plain
	each_allocation 40 xfp inspect m.gguf
}

@test "xfp eval, of GGUF and of a bundle with its source" {
	make_text_model 1
	"$PYTHON" -c 'import numpy as np; np.save("t.npy", np.arange(40).reshape(2, 20) ** 2 % 96)'
	xfp convert m -o m.xfp -q
	each_allocation 40 xfp-eval --threads 1 --tokens t.npy --source m m.xfp
}

@test "xfp generate" {
	make_text_model 1
	each_allocation 40 xfp-generate --threads 1 -n 2 --prompt ab m
}

@test "xfp plan with a target size" {
	make_model m
	xfp convert m -o m.xfp -q
	each_allocation 40 xfp plan m --target-size 1MB
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The benchmarks of tests/bench on tiny inputs: they run, and print the expected lines. The measurements
# themselves are for `make bench`.

load helpers

setup() { setup_folder; }

bench() { "$PYTHON" "$srcdir/tests/bench/run" --quick --scratch "$BATS_TEST_TMPDIR" "$@"; }
member() { "$PYTHON" -c 'import json, sys; print(eval("r" + sys.argv[2], {"r": json.load(open(sys.argv[1]))}))' "$@"; }

@test "make-weights: the same bytes with any number of threads, in a form that xfp converts" {
	for threads in 1 3; do
		OMP_NUM_THREADS=$threads "$XFP_TEST_TOOLS/bench/make-weights" --dense 48x64:7 --stack 3x32x64:2 m$threads
	done
	cmp m1/model.safetensors m3/model.safetensors
	cmp m1/config.json m3/config.json
	xfp convert m1 -o m.xfp -q
	[ "$(xfp info --json m.xfp | "$PYTHON" -c 'import json, sys
units = json.load(sys.stdin)["units"]
print(len(units), sum(unit["weights"] for unit in units))')" = "13 $((7 * 48 * 64 + 2 * 3 * 3 * 32 * 64))" ]
	"$XFP_TEST_TOOLS/bench/make-weights" --split --stack 3x32x64:2 split
	xfp convert split -o split.xfp -q
	[ "$(xfp info --json split.xfp | grep -c '"class": *"routed_expert"')" -ge 6 ]
}

@test "int4: weights are rounded to multiples of a scale, an eighth of the largest weight" {
	"$XFP_TEST_TOOLS/bench/make-weights" --dense 40x96:3 m >&2
	[ "$("$XFP_TEST_TOOLS/bench/int4" m m.int4)" = $((3 * 40 * 96 + 8 * 96)) ]
	"$PYTHON" - "$srcdir/tests/models" <<-'END'
		import sys
		sys.path.insert(0, sys.argv[1])
		import numpy as np
		from safetensors_io import Checkpoint
		model = Checkpoint("m")
		weights = [model.read(name) for name in model.names()]
		w = np.concatenate([matrix.reshape(-1, 32) for matrix in weights if matrix.ndim == 2])
		data = np.fromfile("m.int4", np.uint8).reshape(-1, 18)
		assert len(data) == len(w)
		scale = data[:, :2].copy().view(np.float16).astype(np.float32)
		largest = np.take_along_axis(w, np.abs(w).argmax(1)[:, None], 1)
		assert np.allclose(scale, largest / -8, rtol=1e-3, atol=1e-7)
		code = np.concatenate([data[:, 2:] & 15, data[:, 2:] >> 4], 1).astype(np.float32) - 8
		exact = largest / -8
		error = np.abs(code * exact - w)
		assert (error <= np.abs(exact) * np.where(code == 7, 1.001, 0.501)).all()
	END
}

@test "run: speed, with shares that add up" {
	run -0 bench --json r.json speed
	echo "$output"
	[[ $output == *"int4, groups of 32"* ]]
	[ "$(member r.json "['speed']['weights']")" = 8192 ]
	[ "$(member r.json "['speed']['contenders']['xfp']['seconds'] > 0")" = True ]
	[ "$(member r.json "['speed']['stages']['lloyd-fit'] > 0")" = True ]
}

@test "run: overhead and memory" {
	run -0 bench --json r.json overhead memory
	echo "$output"
	[ "$(member r.json "['overhead']['rerun_made']")" = 0 ]
	[ "$(member r.json "['overhead']['rerun_unchanged']")" = True ]
	[ "$(member r.json "['memory'][1]['pss'] > 1000000")" = True ]
}

@test "run: plan compared with the prediction" {
	run -0 bench --json r.json plan
	echo "$output"
	for name in dense stacks "small units"; do
		[ "$(member r.json "['plan']['$name']['ratio'] > 0 and r['plan']['$name']['seconds'] > 0")" = True ]
	done
}

@test "run: packed sources, by copying and by 16 bits" {
	run -0 bench --json r.json packed
	echo "$output"
	for name in "FP8, blocks of 128" MXFP4 "AWQ gemm" "GPTQ, 4 bits, act-order"; do
		[ "$(member r.json "['packed']['decoding']['forms']['$name']['ratio'] > 0")" = True ]
	done
	[ "$(member r.json "['packed']['headers']['tensors']")" = $((2 * (2 * 3 * 128 + 13) + 3)) ]
	[ "$(member r.json "['packed']['converting']['NVFP4']['ratio']['cpu'] > 0")" = True ]
}

@test "run: error feedback, and llama.cpp's quantizers are skipped if its library is missing" {
	unset GGML_LIBRARY
	run -0 bench --json r.json feedback
	echo "$output"
	[[ $output == *"(GGML_LIBRARY names no libggml-base.so"* ]]
	[ "$(member r.json "['feedback']['kernels'][0]['name']")" = "moments 4096" ]
	[ "$(member r.json "['feedback']['kernels'][3]['weights']")" = $((256 * 64)) ]
	[ "$(member r.json "['feedback']['fit']['seconds']['v2c k = 2'] > 0")" = True ]
}

@test "run: opening a bundle reads no weights" {
	run -0 bench --json r.json open
	echo "$output"
	[ "$(member r.json "['open'][0]['pages_of_weights']")" = 0 ]
	[ "$(member r.json "['open'][0]['microseconds'] > 0")" = True ]
}

@test "run: scale writes a table and a picture" {
	run -0 bench --results . scale
	echo "$output"
	[ "$(wc -l <scale.csv)" -eq 5 ]
	"$PYTHON" -c 'import xml.dom.minidom; xml.dom.minidom.parse("scale.svg")'
}

@test "run: a conversion killed and resumed twice gives the same bytes" {
	run -0 bench --json r.json resume
	echo "$output"
	[ "$(member r.json "['resume']['same']")" = True ]
	[ "$(member r.json "['resume']['runs']['killed']['status']")" = 137 ]
}

@test "run: unknown arguments are refused" {
	run -2 bench speeed
	[[ $output == *speeed* ]]
}

@test "run: llama: products, and llama.cpp is skipped if its library is missing" {
	unset GGML_CPU_LIBRARY
	run -0 bench llama
	echo "$output"
	[ "$(grep -c '^llama.cpp is skipped: GGML_CPU_LIBRARY names no libggml-cpu.so$' <<<"$output")" -ge 5 ]
	[[ $output == *"v2c k=4 "*" G weights/s "* && $output == *"v2c k=4, "*" outliers a row "* ]]
	GGML_CPU_LIBRARY=missing.so run -0 bench llama
	[[ $output == *"llama.cpp is skipped: missing.so lacks what is needed of it"* ]]
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# A bundle's claims about itself, recomputed from the definitions by tests/oracle_cosine.py.

load helpers

setup() {
	setup_folder
}

oracle() { "$PYTHON" "$srcdir/tests/oracle_cosine.py" "$@"; }

@test "a mixture of experts: cosines, fit and k of every unit follow from the definitions" {
	make_model moe --layers 2
	xfp convert moe -o moe.xfp
	run -0 oracle --all moe.xfp moe
	for class in attention routed_expert lm_head; do
		grep -q "^$class: " <<<"$output"
	done
}

@test "fused and transposed experts decode to the same values" {
	make_model fused --experts fused
	make_model transposed --experts transposed
	for model in fused transposed; do
		xfp convert "$model" -o "$model.xfp" --cache cache
		oracle "$model.xfp" "$model"
	done
}

@test "an encoder in f32, with bits and floors that make k vary" {
	make_model bert --family bert --dtype f32
	xfp convert bert -o bert.xfp --floor attention=0.97 --floor dense_mlp=0.996
	run -0 oracle --all bert.xfp bert
	grep -q "^dense_mlp: " <<<"$output"
}

@test "a floor that k = 4 misses and k = 6 meets; lm_head quantized" {
	make_model dense --family qwen3 --dtype f16
	xfp convert dense -o dense.xfp --min-cos-strict 0.9988 --lm-head quant
	run -0 oracle dense.xfp dense
	grep -Eq "k = [56], median" <<<"$output"
}

@test "without balance or outliers, from the published starts" {
	make_model plain --family llama
	xfp convert plain -o plain.xfp --balance 0 --outlier-sigma none --start quantile --bits 2-4
	oracle plain.xfp plain
	xfp convert plain -o plain.xfp --balance 0.75 --outlier-sigma 3 --start minmax --lloyd-iters 5
	oracle plain.xfp plain
}

@test "the oracle can fail: another model's weights, another bundle's report" {
	make_model one --family llama --seed 1
	make_model two --family llama --seed 2
	xfp convert one -o one.xfp --cache cache
	run -4 oracle one.xfp two
	grep -q "WRONG: codebooks differ" <<<"$output"
	xfp convert one -o coarse.xfp --cache cache --bits 2 --min-cos-strict 0
	mkdir bin
	printf '#!/bin/sh\nexec xfp info --json coarse.xfp\n' >bin/other
	chmod +x bin/other
	run -4 oracle --xfp bin/other one.xfp one
	grep -q "WRONG: cos_median" <<<"$output"
}

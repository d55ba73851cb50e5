#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Digests of bundles of generated checkpoints, compared with recorded ones: the bytes must not depend on compiler,
# processor or machine. A change that alters them on purpose raises an algorithm's version and records new
# digests: XFP_RECORD=1 ./run-tests tests/cli/golden.bats prints the lines of tests/golden.sha256.

load helpers

setup() { setup_folder; }

golden() { # NAME GENERATOR-OPTIONS -- CONVERT-OPTIONS
	local name=$1 generate=() actual expected

	shift
	while [ "$1" != -- ]; do
		generate+=("$1")
		shift
	done
	shift
	make_model m "${generate[@]}"
	actual=$(converted m out.xfp "$@")
	expected=$(awk -v name="$name" '$2 == name { print $1 }' "$srcdir/tests/golden.sha256")
	[ -z "${XFP_RECORD-}" ] || { echo "$actual  $name" >&3 && return; }
	[ "$actual" = "$expected" ] || { echo "$name: $actual, expected $expected"; return 1; }
}

@test "a mixture of experts in bf16, as it comes" { golden moe-bf16 --; }
@test "the same, fused and transposed" { golden moe-transposed --experts transposed --; }
@test "a dense model in f16, quantized lm_head, k = 2 to 6" {
	golden qwen3-f16 --family qwen3 --dtype f16 -- --lm-head quant --min-cos-strict 0.997 --floor dense_mlp=0.9
}
@test "an encoder in f32, bits 5 and 6" { golden bert-f32 --family bert --dtype f32 -- --bits 5,6; }
@test "a dense model in f64, the published starts, no balance, 3 sigma" {
	golden llama-f64 --family llama --dtype f64 --tie -- --start quantile --balance 0 --outlier-sigma 3
}
@test "a floor that nothing meets: source precision" { golden moe-kept -- --min-cos-strict 0.999999; }
@test "libraries of small groups, k = 2 to 6" { golden moe-v2c -- --mode v2c --min-cos-strict 0.998; }
@test "libraries of groups with a midpoint" { golden qwen3-v2a --family qwen3 -- --mode v2a; }
@test "the same as published" {
	by_default
	golden qwen3-published --family qwen3 -- --profile paper-v2a
}
@test "the smallest mode, with a threshold of 4 sigma" {
	golden llama-auto-4 --family llama --dtype f32 -- --mode auto --min-cos-strict 0.985 --outlier-sigma 4
}
@test "the smallest mode, with the best threshold" {
	by_default
	golden llama-auto --family llama --dtype f32 -- --min-cos-strict 0.985
	golden moe-default --
	golden llama-strict --family llama -- --min-cos-strict 0.9975
}
@test "word embeddings and heads: a tied one, one that is best as fp8, one of an encoder" {
	by_default
	golden llama-tied --family llama --tie --
	golden moe-small --vocab 8 --
	golden bert-default --family bert --dtype f32 --
}

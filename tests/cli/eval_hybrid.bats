#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# xfp eval of models with linear attention. Their bundles store one tensor as several matrices.

load helpers

setup() {
	setup_folder
	unset XFP_FORMAT XFP_LM_HEAD
}

worth() { # MODEL
	xfp eval --json --tokens t.npy "$1" | "$PYTHON" -c 'import json, sys; print(repr(json.load(sys.stdin)["loss"]))'
}

# A bundle that keeps all tensors has the source's perplexity; a coarse bundle that of its unpacked weights.
is_evaluated() { # MODEL
	make_family "$1"
	keep=(--lm-head keep)
	for class in attention linear_attention dense_mlp routed_expert shared_expert mtp embedding; do
		keep+=(--format "$class=keep")
	done
	xfp convert m -o kept.xfp -q "${keep[@]}"
	xfp convert m -o coarse.xfp -q --bits 2 --on-miss best
	xfp unpack coarse.xfp -o u --dtype f32
	[ "$(worth kept.xfp)" = "$(worth m)" ]
	[ "$(worth coarse.xfp)" = "$(worth u)" ]
	[ "$(worth coarse.xfp)" != "$(worth m)" ]
}

@test "Qwen3-Next: experts one by one, projections by heads" { is_evaluated qwen3_next; }
@test "Qwen3.5" { is_evaluated qwen3_5; }
@test "Qwen3.5 with experts, in stacks" { is_evaluated qwen3_5_moe; }

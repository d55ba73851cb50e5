#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# xfp eval --fast --single: one token at a time with a KV cache.

load helpers

setup() {
	setup_folder
	unset XFP_FORMAT XFP_LM_HEAD
}

evaluate() { # OPTION... of the bundle b.xfp, made from m
	xfp eval --fast --json --tokens t.npy --source m "$@" b.xfp
}

# Losses of two results are nearly equal: products round differently. The source's are equal: it is not computed singly.
near() { # RESULT RESULT
	"$PYTHON" - "$@" <<-'EOF'
	import json, sys
	one, other = (json.load(open(name)) for name in sys.argv[1:])
	assert one["predicted"] == other["predicted"] and one["source"]["loss"] == other["source"]["loss"]
	last = len(one["layers"]) - 1
	for of, bound in ((lambda said: said["loss"], 1e-3), (lambda said: said["layers"][last]["stream"], .05),
	                  (lambda said: said["layers"][last]["alone"], .05)):
	    assert abs(of(one) - of(other)) <= bound * of(one), (of(one), of(other))
	EOF
}

# A cache that is wrong, such as one that is not emptied between sequences, makes losses differ by far more.
is_near() { # FAMILY
	make_family "$1"
	complete
	xfp convert m -o b.xfp -q --mode v2c --bits 3 --on-miss best
	evaluate >batched
	evaluate --single >single
	near batched single
	! cmp batched single
}

@test "the families with attention are evaluated as in batches" {
	for family in llama mistral mixtral qwen2 qwen3 qwen3_moe phi3 gemma2 gemma3_text; do
		rm -rf m b.xfp*
		is_near $family
	done
}

@test "so are those with linear attention" {
	for family in qwen3_next qwen3_5 qwen3_5_moe; do
		rm -rf m b.xfp*
		is_near $family
	done
}

# Keys that tests of conversion leave out.
complete() {
	"$PYTHON" - <<-'EOF'
	import json
	config = json.load(open("m/config.json"))
	text = config.get("text_config", config)
	text.update({"llama4_text": {"num_experts_per_tok": 1, "attention_chunk_size": 8, "floor_scale": 3},
	             "ernie4_5_moe": {"moe_k": 2},
	             "gpt_oss": {"sliding_window": 8, "rope_scaling": {"rope_type": "yarn", "factor": 2.0,
	                                                               "original_max_position_embeddings": 32}},
	            }.get(text["model_type"], {}))
	json.dump(config, open("m/config.json", "w"))
	EOF
}

@test "so are those with latent attention, other routers, sinks, and attention in chunks" {
	for family in deepseek_v3 glm4_moe_lite glm4_moe-air minimax_m2-fused ernie4_5 ernie4_5_moe gpt_oss llama4; do
		rm -rf m b.xfp*
		is_near $family
	done
}

@test "the result does not depend on threads, on memory, or on an interruption" {
	make_model m --layers 12
	"$PYTHON" -c 'import numpy as np; np.save("t.npy", np.arange(600).reshape(6, 100) ** 2 % 96)'
	xfp convert m -o b.xfp -q --bits 2 --on-miss best
	xfp eval --fast --single --json --tokens t.npy b.xfp >expected
	xfp eval --fast --single --json --tokens t.npy --threads 3 b.xfp >threads
	cmp expected threads
	[ "${XFP_TEST_SANITIZERS:-no}" != no ] || xfp eval --fast --single --json --tokens t.npy --memory 35MB b.xfp >spilled
	[ "${XFP_TEST_SANITIZERS:-no}" != no ] || cmp expected spilled
	for _ in {1..20}; do # until it was early enough
		xfp eval --fast --single --json --tokens t.npy --state here b.xfp >ended 2>/dev/null &
		while [ ! -e here ] && kill -0 $! 2>/dev/null; do
			sleep .01
		done
		kill $! || true
		wait $! || break
	done
	cp here kept
	xfp eval --fast --single --json --tokens t.npy --state here b.xfp >resumed 2>said
	[ ! -s said ]
	cmp expected resumed
	[ ! -e here ]
	# the state of a batched evaluation is another one
	cp kept here
	xfp eval --fast --json --tokens t.npy --state here b.xfp 2>said >/dev/null
	grep -q 'here is the state of another evaluation' said
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# xfp eval of models whose experts differ from Qwen's in layout or arithmetic.

load helpers

setup() {
	setup_folder
	unset XFP_FORMAT XFP_LM_HEAD
}

worth() { # MODEL OPTION...
	xfp eval --json --tokens t.npy "$@" | "$PYTHON" -c 'import json, sys; print(repr(json.load(sys.stdin)["loss"]))'
}

refused() { # MESSAGE MODEL
	run -3 --separate-stderr xfp eval --tokens t.npy "$2"
	[ -z "$output" ] || return 1
	# shellcheck disable=SC2154
	[[ $stderr == *"$1"* ]] || { echo "$stderr"; return 1; }
}

# packed/ as published, and the same weights in plain/
gpt_oss() {
	"$PYTHON" "$srcdir/tests/make-packed-checkpoint.py" gpt_oss packed plain
	"$PYTHON" - <<-'EOF'
	import json
	import numpy as np
	for folder in ("packed", "plain"):
	    config = json.load(open(folder + "/config.json"))
	    config.update(rms_norm_eps=1e-5, max_position_embeddings=128, sliding_window=8, rope_scaling={
	        "rope_type": "yarn", "factor": 32.0, "truncate": False, "original_max_position_embeddings": 4096})
	    json.dump(config, open(folder + "/config.json", "w"))
	np.save("t.npy", np.arange(60).reshape(2, 30) ** 2 % 96)
	EOF
}

@test "gpt-oss: MXFP4 as published, unpacked, and in bundles" {
	gpt_oss
	source=$(worth plain)
	[ "$(worth packed)" = "$source" ]
	xfp convert packed -o kept.xfp -q --format attention=keep --format routed_expert=keep \
		--format embedding=keep --lm-head keep
	[ "$(worth kept.xfp)" = "$source" ]
	xfp convert packed -o coarse.xfp -q --bits 2 --on-miss best
	xfp unpack coarse.xfp -o u --dtype f32
	[ "$(worth coarse.xfp)" = "$(worth u)" ]
	[ "$(worth coarse.xfp)" != "$source" ]
	for model in packed kept.xfp coarse.xfp; do
		"$PYTHON" -c 'import sys; assert abs(float(sys.argv[1]) / float(sys.argv[2]) - 1) < 1e-4, sys.argv' \
			"$(worth "$model" --fast)" "$(worth "$model")"
	done
}

@test "gpt-oss: configs that do not belong to the weights" {
	gpt_oss
	sed -i 's/"rope_scaling"/"rope"/' packed/config.json
	refused 'rope_scaling is missing' packed
	cp -r plain heads
	sed -i 's/"num_attention_heads": 4/"num_attention_heads": 2/; s/"num_key_value_heads": 2/"num_key_value_heads": 1/
		s/"head_dim": 16/"head_dim": 32/' heads/config.json
	refused 'self_attn.sinks is not [2], as its config requires' heads
	sed -i 's/"gpt_oss"/"llama"/; s/"intermediate_size"/"attention_bias": true, &/' plain/config.json
	refused 'has model.layers.0.self_attn.sinks, which its config does not describe' plain
}

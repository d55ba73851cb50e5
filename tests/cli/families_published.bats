#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Models in their published forms, tiny and in real sizes, made by tests/families_published.py.

load helpers

setup() {
	setup_folder
	unset XFP_FORMAT XFP_LM_HEAD
}

families() { "$PYTHON" "$srcdir/tests/families.py" "$@"; }

# Every tensor has its class, role and fate under its own name, however it is packed, and none is unclassified.
is_inspected() { # MODEL PACKED
	xfp-inspect --json "$1" >"$1.json" 2>"$1.errors"
	[ ! -s "$1.errors" ] || { cat "$1.errors"; return 1; }
	families inspected "$1" <"$1.json"
	"$PYTHON" -c 'import json, sys
said = json.load(open(sys.argv[1]))
assert (said["packed"] or "no") == sys.argv[2], said["packed"]' "$1.json" "$2"
}

# The same, and the bundle's weights are the unpacked ones, as are those of the 16-bit copy.
is_published() { # MODEL PACKED
	families make "$1" "$1" plain
	is_inspected "$1" "$2"
	xfp convert "$1" -o "$1.xfp" -q
	xfp verify "$1.xfp" --source "$1"
	xfp verify "$1.xfp" --source plain
	xfp unpack "$1.xfp" -o copy
	families converted "$1" plain "$1.xfp" copy
	cmp copy/config.json plain/config.json || diff <("$PYTHON" -m json.tool --sort-keys copy/config.json) \
		<("$PYTHON" -m json.tool --sort-keys plain/config.json)
}

# The same; and evaluated as published, without a copy in 16 bits, a model has the loss of its 16-bit form.
is_computed() { # MODEL PACKED
	is_published "$@"
	"$PYTHON" -c 'import numpy, sys; numpy.save("t.npy", (numpy.arange(80).reshape(2, 40) ** 2 * 7 % 64))'
	xfp eval --json --tokens t.npy "$1" >packed.json
	xfp eval --json --tokens t.npy plain >plain.json
	"$PYTHON" -c 'import json
losses = [json.load(open(name))["loss"] for name in ("packed.json", "plain.json")]
assert losses[0] == losses[1] > 1, losses'
}

@test "DeepSeek-V3 and R1: FP8 in blocks, multi-token prediction as one layer more" { is_computed deepseek_v3-fp8 fp8; }
@test "Kimi K2: FP8 in blocks" { is_computed kimi_k2-fp8 fp8; }
@test "Kimi K2 Thinking: routed experts in 4 bits" { is_computed kimi_k2-int4 compressed-tensors; }
@test "Kimi K2.5: the same, with vision" { is_computed kimi_k25-int4 compressed-tensors; }
@test "gpt-oss: MXFP4" { is_computed gpt_oss-mxfp4 mxfp4; }
@test "MiniMax-M2: FP8 in blocks, w1, w2 and w3" { is_computed minimax_m2-fp8 fp8; }
@test "MiniMax-M2 in 16 bits, experts fused" { is_published minimax_m2-fused no; }
@test "Qwen3: FP8 in blocks" { is_computed qwen3-fp8 fp8; }
@test "Qwen3-MoE: FP8 in blocks" { is_computed qwen3_moe-fp8 fp8; }
@test "Qwen3-Next: FP8 in blocks" { is_computed qwen3_next-fp8 fp8; }
@test "GLM-4.5 Air: 16 bits, without norms of q and k" { is_computed glm4_moe-air no; }
@test "GLM-4.5: FP8 with a scale for each row" { is_computed glm4_moe-fp8 compressed-tensors; }
@test "Llama 4: 16 bits, experts fused and transposed, with vision" { is_computed llama4 no; }
@test "Llama 4: routed experts in FP8, one by one" { is_computed llama4-fp8 compressed-tensors; }
@test "ERNIE 4.5 MoE: a tied head, multi-token prediction in a block of its own" { is_computed ernie4_5_moe no; }
@test "ERNIE 4.5, dense" { is_computed ernie4_5 no; }

@test "configs that contradict the tensors of DeepSeek-V3" {
	families make deepseek_v3-fp8 m plain
	"$PYTHON" -c 'import numpy; numpy.save("t.npy", numpy.arange(40).reshape(1, 40))'
	xfp convert m -o m.xfp -q
	xfp eval --json --tokens t.npy m.xfp >m.json # multi-token prediction is not computed
	sed -i.old 's/"num_hidden_layers": 2/"num_hidden_layers": 1/' plain/config.json
	run -3 --separate-stderr xfp eval --tokens t.npy plain
	[[ $stderr == *"has a layer 1, but its config has num_hidden_layers 1"* ]]
	for shared in 0 16777216; do
		sed 's/"n_shared_experts": 1/"n_shared_experts": '$shared/ plain/config.json.old >plain/config.json
		run -3 --separate-stderr xfp eval --tokens t.npy plain
		[[ $stderr == *"shared_experts.gate_proj.weight, which its config does not describe"* ]] ||
			[[ $stderr == *"n_shared_experts is too large"* ]]
	done
}

@test "real sizes, a layer of each kind: every tensor is known, and each stack of experts is one unit" {
	while read -r model packed tensors units experts; do
		families make "$model" "$model"
		[ "$(du -s --block-size=1M "$model" | cut -f1)" -lt 64 ]
		is_inspected "$model" "$packed" || { echo "$model"; return 1; }
		"$PYTHON" -c 'import json, sys
said, wanted = json.load(open(sys.argv[1])), [int(n) for n in sys.argv[2:]]
stacks = [unit["experts"] for unit in said["units"] if unit["experts"] > 1]
found = [len(said["tensors"]), len(said["units"]), max(stacks, default=1)]
assert found == wanted, found
assert not any(weights["weights"] > 1e7 for weights in said["names"]
               if weights["fate"] == "kept" and weights["class"] not in ("mtp", "vision")), "something large is kept"
' "$model.json" "$tensors" "$units" "$experts" || { echo "$model"; return 1; }
		rm -r "$model"
	done <<-'END'
		deepseek_v3-fp8-real fp8 1585 33 256
		kimi_k2-fp8-real fp8 1181 21 384
		kimi_k2-int4-real compressed-tensors 1181 21 384
		kimi_k25-int4-real compressed-tensors 1189 21 384
		gpt_oss-mxfp4-real mxfp4 37 16 32
		minimax_m2-fp8-real fp8 1559 16 256
		qwen3-fp8-real fp8 25 16 1
		qwen3_moe-fp8-real fp8 789 16 128
		qwen3_next-fp8-real fp8 4655 31 512
		glm4_moe-air-real no 817 30 128
		glm4_moe-fp8-real compressed-tensors 1015 30 160
		llama4-real no 38 19 128
		llama4-fp8-real compressed-tensors 420 19 128
		ernie4_5_moe-real no 226 25 64
	END
}

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

# Write a number into all elements of a tensor.
fill() { # MODEL TENSOR NUMBER
	"$PYTHON" - "$@" <<-'EOF'
	import json, struct, sys
	import numpy as np
	model, name, number = sys.argv[1:]
	with open(model + "/model.safetensors", "r+b") as file:
	    size = struct.unpack("<Q", file.read(8))[0]
	    tensor = json.loads(file.read(size))[name]
	    first, last = tensor["data_offsets"]
	    width = {"F32": 4, "BF16": 2}[tensor["dtype"]]
	    file.seek(8 + size + first)
	    file.write(np.float32(number).tobytes()[4 - width:] * ((last - first) // width))
	EOF
}

@test "scores of a router that are not finite, of which others would be selected" {
	"$PYTHON" "$srcdir/tests/make-gguf.py" glm4moe model.gguf plain
	"$PYTHON" -c 'import numpy as np; np.save("t.npy", np.arange(60).reshape(2, 30) ** 2 % 96)'
	fill plain model.layers.1.mlp.gate.e_score_correction_bias nan
	refused 'plain: router scores of layer 1 are not finite' plain
	make_family ernie4_5_moe
	fill m model.layers.1.mlp.moe_statics.e_score_correction_bias nan
	refused 'm: router scores of layer 1 are not finite' m
}

@test "configs that ask for what is not computed are refused by name" {
	"$PYTHON" "$srcdir/tests/make-gguf.py" llama model.gguf plain
	"$PYTHON" -c 'import numpy as np; np.save("t.npy", np.arange(60).reshape(2, 30) % 96)'
	few='"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8, "shared_expert_intermediate_size": 8'
	for case in 'smollm3 "use_sliding_window": true' "qwen2_moe \"use_sliding_window\": true, $few" \
		'ernie4_5_moe "use_bias": true, "moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": 8' \
		'ernie4_5_moe "moe_k": 5, "moe_num_experts": 4, "moe_intermediate_size": 8' \
		"llama4_text \"no_rope_layers\": [1, \"x\"], \"num_local_experts\": 4, \"intermediate_size_mlp\": 8, $few"; do
		rm -rf m
		cp -r plain m
		sed -i "s/\"llama\"/\"${case%% *}\"/" m/config.json
		tr -d '\n' <m/config.json | sed "s/^{/{${case#* },/" >changed
		mv changed m/config.json
		key=${case#*\"}
		refused "${key%%\"*} " m
	done
}

@test "MiniMax: experts in stacks, which have other names, and one by one" {
	make_family minimax_m2-fused
	"$PYTHON" - <<-'EOT'
	import json, struct
	with open("m/model.safetensors", "rb") as file:
	    size = struct.unpack("<Q", file.read(8))[0]
	    header = json.loads(file.read(size))
	    data = file.read()
	out, parts, at = {}, [], 0
	def put(name, tensor, shape, part):
	    global at
	    out[name] = {"dtype": tensor["dtype"], "shape": shape, "data_offsets": [at, at + len(part)]}
	    parts.append(part)
	    at += len(part)
	for name, tensor in header.items():
	    if name == "__metadata__":
	        continue
	    part, moe = data[slice(*tensor["data_offsets"])], name.replace(".mlp.", ".block_sparse_moe.")
	    if ".experts." not in name:
	        put(moe, tensor, tensor["shape"], part)
	        continue
	    experts, rows, cols = tensor["shape"]
	    each = ["w1", "w3"] if "gate_up" in name else ["w2"]
	    shape, size = [rows // len(each), cols], len(part) // experts // len(each)
	    for i in range(experts * len(each)):
	        put(f"{moe.rsplit('.', 1)[0]}.{i // len(each)}.{each[i % len(each)]}.weight", tensor, shape,
	            part[i * size:(i + 1) * size])
	text = json.dumps(out).encode()
	import os, shutil
	os.mkdir("single")
	shutil.copy("m/config.json", "single")
	with open("single/model.safetensors", "wb") as file:
	    file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))
	EOT
	[ "$(worth m)" = "$(worth single)" ]
	sed -i 's/"num_experts_per_tok": 2/"num_experts_per_tok": 4/' m/config.json
	[ "$(worth m)" != "$(worth single)" ]
}

skipped() { # NOTE MODEL
	xfp eval --tokens t.npy "$2" 2>said >/dev/null
	[ "$(grep -c 'computed without' said)" -eq 1 ] && grep -qx "xfp eval: $2: computed without $1" said || { cat said; return 1; }
}

@test "multi-token prediction and vision towers are skipped with one note" {
	make_family deepseek_v3
	skipped '32 tensors of multi-token prediction' m
	xfp convert m -o b.xfp -q --bits 4 --on-miss best
	skipped '32 tensors of multi-token prediction' b.xfp
	xfp eval --tokens t.npy --source m b.xfp 2>said >/dev/null
	[ "$(grep -c 'computed without' said)" -eq 1 ]
	xfp convert m -o c.xfp --mode v2c --bits 2 --on-miss best --calibrate-ids t.npy >said 2>&1 || { cat said; return 1; }
	[ "$(grep -c 'm: computed without 32 tensors of multi-token prediction' said)" -eq 1 ]
	"$PYTHON" "$srcdir/tests/make-tokenizer.py" m
	xfp generate -n 1 --prompt a m 2>said >/dev/null || true # its vocabulary is too small
	[ "$(grep -c 'm: computed without 32 tensors of multi-token prediction' said)" -eq 1 ]
	rm -rf m
	make_family qwen3_next
	skipped '29 tensors of multi-token prediction' m
	rm -rf m
	make_family kimi_k25-int4
	skipped '8 tensors of vision or audio' m
	rm -rf m
	make_family llama
	xfp eval --tokens t.npy m 2>said >/dev/null
	[ ! -s said ]
}

@test "deepseek_v3: configs that contradict the tensors" {
	make_family deepseek_v3
	cp m/config.json config
	for case in 'kv_lora_rank kv_a_proj_with_mqa.weight' 'q_lora_rank q_a_proj.weight' \
		'qk_nope_head_dim q_b_proj.weight' 'v_head_dim kv_b_proj.weight'; do
		sed "s/\"${case% *}\": \([0-9]*\)/\"${case% *}\": 1\1/" config >m/config.json
		refused "m: model.layers.0.self_attn.${case#* } is not [" m
	done
	sed 's/"q_lora_rank": [0-9]*/"q_lora_rank": null/' config >m/config.json
	refused 'm: has no tensor model.layers.0.self_attn.q_proj.weight, which its config requires' m
	# Each type is read with its own keys, and then does not fit.
	sed 's/deepseek_v3/deepseek_v2/' config >m/config.json
	refused 'm: scoring_func is not softmax, as this family requires' m
	sed 's/"scoring_func": "sigmoid", "topk_method": "noaux_tc",//; s/deepseek_v3/deepseek_v2/' config >m/config.json
	refused 'm: has model.layers.1.mlp.gate.e_score_correction_bias, which its config does not describe' m
	sed 's/deepseek_v3/glm4_moe/' config >m/config.json
	refused 'm: has no tensor model.layers.0.self_attn.q_proj.weight' m
	sed 's/deepseek_v3/qwen2_moe/' config >m/config.json
	refused 'm: num_experts is missing; use the config that belongs to the model' m
}

@test "a family that is converted, but not computed" {
	make_family qwen3_vl_moe
	refused 'are not supported (convert and verify may support them); supported types: llama, ' m
	xfp convert m -o b.xfp -q --bits 4 --on-miss best
	xfp info b.xfp >/dev/null
	xfp unpack b.xfp -o u --dtype f32
	refused 'are not supported (convert and verify may support them); supported types: llama, ' b.xfp
}

@test "deepseek_v3: biases and norms that its config does not describe" {
	make_family deepseek_v3
	cp m/model.safetensors plain
	for name in self_attn.q_b_proj.bias self_attn.kv_b_proj.bias self_attn.q_a_proj.bias self_attn.o_proj.bias \
		self_attn.kv_a_proj_with_mqa.bias self_attn.q_norm.weight self_attn.sinks mlp.gate.bias \
		mlp.shared_experts.down_proj.bias; do
		"$PYTHON" - "model.layers.1.$name" <<-'EOT'
		import json, struct, sys
		with open("plain", "rb") as file:
		    size = struct.unpack("<Q", file.read(8))[0]
		    header, data = json.loads(file.read(size)), file.read()
		header[sys.argv[1]] = {"dtype": "F32", "shape": [1], "data_offsets": [len(data), len(data) + 4]}
		text = json.dumps(header).encode()
		with open("m/model.safetensors", "wb") as file:
		    file.write(struct.pack("<Q", len(text)) + text + data + bytes(4))
		EOT
		refused "m: has model.layers.1.$name, which its config does not describe" m
	done
}

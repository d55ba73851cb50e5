#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The model families: tests/families.py makes a tiny checkpoint of each, with its expected classification.

load helpers

setup() {
	setup_folder
	unset XFP_FORMAT XFP_LM_HEAD
}

families() { "$PYTHON" "$srcdir/tests/families.py" "$@"; }

# Every tensor has its class, role and fate, every required rule matches, and no tensor is unclassified.
is_read() { # MODEL
	families make "$1" "$1"
	xfp-inspect --json "$1" >"$1.json" 2>"$1.errors"
	[ ! -s "$1.errors" ] || { cat "$1.errors"; return 1; }
	families inspected "$1" <"$1.json"
}

# The same, and gate, up, q, k and v of the bundle are those of the source.
is_converted() { # MODEL
	is_read "$1"
	xfp convert "$1" -o "$1.xfp" -q
	xfp verify "$1.xfp" --source "$1"
	xfp unpack "$1.xfp" -o copy
	families converted "$1" "$1" "$1.xfp" copy
}

@test "Llama" { is_read llama; }
@test "Llama with a tied head that is stored, and old buffers" { is_converted llama-tied; }
@test "Mistral" { is_read mistral; }
@test "Mistral 3, with vision" { is_read mistral3; }
@test "Mixtral: experts one by one, w1, w2 and w3" { is_converted mixtral; }
@test "Mixtral, experts fused" { is_read mixtral-fused; }
@test "Qwen2" { is_read qwen2; }
@test "Qwen3" { is_read qwen3; }
@test "Qwen3-MoE" { is_read qwen3_moe; }
@test "Qwen3-MoE, experts fused" { is_read qwen3_moe-fused; }
@test "Qwen3-VL-MoE: experts fused and transposed" { is_converted qwen3_vl_moe; }
@test "Qwen3-Next: linear attention, shared experts, multi-token prediction" { is_converted qwen3_next; }
@test "Qwen3.5" { is_read qwen3_5; }
@test "Qwen3.5 with experts: fused, q, k and v of linear attention fused" { is_converted qwen3_5_moe; }
@test "Gemma 2" { is_read gemma2; }
@test "Gemma 3" { is_read gemma3_text; }
@test "Gemma 3 with vision" { is_read gemma3; }
@test "Gemma 3 with vision, saved again with its tied head" { is_read gemma3-resaved; }
@test "Phi-3: q, k and v fused, gate and up fused" { is_converted phi3; }
@test "GLM-4.7-Flash: latent attention, multi-token prediction as one layer more" { is_converted glm4_moe_lite; }
@test "DeepSeek-V3" { is_read deepseek_v3; }
@test "gpt-oss: experts fused, interleaved, transposed; shapes that could be either" { is_converted gpt_oss; }
@test "BERT" { is_converted bert; }

@test "every model of the tables is tested here, and every family has one" {
	families list | while read -r model; do
		grep -Eq "is_(read|converted|published|computed) $model( |;)|^[[:space:]]+$model |make $model " \
			"$srcdir"/tests/cli/families{,_published}.bats || { echo "$model is not"; return 1; }
	done
	families list | grep -v -e '-real$' | while read -r model; do
		families make "$model" "made/$model"
		xfp-inspect "made/$model" 2>/dev/null | sed -n 's/^family  \([^,]*\),.*/\1/p'
	done | sort -u >read
	for file in "$srcdir"/pipelines/families/*.family; do
		grep -qx "$(basename "$file" .family)" read || { echo "$file: no model"; return 1; }
	done
}

@test "the tables can fail" {
	families make gpt_oss gpt_oss
	run -4 families inspected gpt_oss <<<"$(xfp-inspect --json --lm-head keep gpt_oss)"
	[[ $output == *"WRONG: lm_head.weight"* ]]
	# gate and up interleaved, but split as halves: the copy is right, the roles are not
	xfp convert gpt_oss -o wrong.xfp -q --family general
	xfp unpack wrong.xfp -o copy
	run -4 families converted gpt_oss gpt_oss wrong.xfp copy
	[[ $output == *"gate_up_proj gate: matrix 0 is another one"* ]]
	[[ $output == *"gate_up_proj up: matrix 3 is another one"* ]]
	[[ $output != *"comes back as something else"* ]]
}

@test "a checkpoint packed in an unsupported form is refused: method, tensor, remedy" {
	while read -r model method tensor; do
		families make "$model" "$model"
		run -3 --separate-stderr xfp convert "$model" -o out.xfp
		[[ $stderr == *"quant_method $method in config.json, tensor $tensor)"*"bf16"* ]] || { echo "$stderr"; return 1; }
		no_output out.xfp
	done <<-'END'
		qwen3-round auto-round model.layers.0.self_attn.o_proj.qweight
	END
}

# ---- models without a family

@test "for an unknown model, inspect and convert print the classes in one line, and with -v name by name" {
	families make unknown unknown
	run -0 --separate-stderr xfp-inspect unknown
	[[ $output == *"family  general, a guess"* ]]
	families inspected unknown <<<"$(xfp-inspect --json unknown 2>/dev/null)"
	line=$(grep '^xfp-inspect: guess: ' <<<"$stderr")
	[[ $line =~ ^xfp-inspect:\ guess:\ .*[0-9]+\ attention,\ .*routed_expert,.*embedding.*\ \(tensors\;\ xfp\ inspect\ -v\ names\ them\)$ ]]
	total=$(xfp-inspect --json unknown 2>/dev/null | "$PYTHON" -c 'import json, sys; print(len(json.load(sys.stdin)["tensors"]))')
	[ "$(grep -o '[0-9][0-9]* ' <<<"$line" | awk '{ n += $0 } END { print n }')" -eq "$total" ]
	run -0 --separate-stderr xfp convert unknown -o out.xfp
	[[ ${stderr_lines[0]} == *"no family claims model_type brand_new"* ]]
	[ "$(printf '%s\n' "${stderr_lines[@]}" | grep '^xfp convert: guess: ')" = "xfp convert${line#xfp-inspect}" ]
	run -0 --separate-stderr xfp-inspect -v unknown
	grep '^xfp-inspect: guess: ' <<<"$stderr" >guess
	while read -r line; do
		grep -q "^xfp-inspect: guess: $line (general.family:[0-9]*)\$" guess || { echo "$line"; cat guess; return 1; }
	done <<-'END'
		model.layers.\*.self_attn.qkv_proj.weight (2 tensors): attention q, k, v, quantized
		model.layers.\*.mlp.experts.gate_up_proj (2 tensors): routed_expert gate, up, quantized
		model.layers.\*.input_layernorm.weight (2 tensors): norm, kept
		model.embed_tokens.weight (1 tensor): embedding embedding, quantized
		model.visual.blocks.\*.attn.qkv.weight (1 tensor): vision, kept
	END
	[ "$(sed 's/.* (\([0-9]*\) tensors\{0,1\}): .*/\1/' guess | awk '{ n += $0 } END { print n }')" -eq "$total" ]
}

@test "an unknown family: the existing ones are listed, also the user's own" {
	make_model m
	mkdir mine
	printf 'family mine\n' >mine/mine.family
	cp mine/mine.family mine/llama.family
	run -2 xfp convert m -o out.xfp --family qwen
	[[ $output == *"no family 'qwen'; "*"amilies are bert, deepseek, ernie4_5, gemma, general, "*", qwen3_next, and files: a name with a \
slash or ending in .family"* ]]
	XFP_FAMILIES=$PWD/mine:/nowhere run -2 xfp-inspect --family qwen m
	[[ $output == *"amilies are llama, mine, bert, deepseek, "* ]]
	[ "$(grep -ow 'llama' <<<"$output" | wc -l)" = 1 ]
	run -2 xfp-inspect --family ./qwen.family m
	[[ $output == *"--family ./qwen.family: no such file"* ]]
	run -2 xfp compare m --family qwen
}

# ---- families of the user

own_family() { # FOLDER MODEL_TYPE
	mkdir -p "$1"
	cat >"$1/mine.family" <<-END
		about      A model of mine
		model_type $2
		quantize attention q:num_attention_heads*head_dim,k:num_key_value_heads*head_dim,v:num_key_value_heads*head_dim N,K \
			qkv_proj\\.weight\$
		keep other .
		keep norm  ^never\$
	END
}

@test "a family in a folder of XFP_FAMILIES is found without an option, by inspect and by convert" {
	families make unknown unknown
	own_family own/families brand_new
	mkdir empty
	export XFP_FAMILIES=$PWD/empty:$PWD/own/families
	run -0 --separate-stderr xfp-inspect unknown
	[[ $output == *"family  mine, by model_type brand_new"* ]]
	[[ $output == *"rules   $PWD/own/families/mine.family"* ]]
	[[ $stderr == *"mine.family:5: the rule matches no tensor: ^never"* ]]
	run -0 xfp-inspect --family mine unknown
	xfp convert unknown -o out.xfp -q
	[ "$(xfp info --json out.xfp | "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["family"])')" = mine ]
	# the user's family precedes xfp's, if both match a model
	families make llama llama
	own_family own/families llama
	[[ $(xfp-inspect llama 2>/dev/null) == *"family  mine, by model_type llama"* ]]
	[[ $(XFP_FAMILIES='' xfp-inspect llama 2>/dev/null) == *"family  llama, by model_type llama"* ]]
	# the folder of the option replaces all others
	run -0 xfp-inspect --families "$srcdir/pipelines/families" llama
	[[ $output == *"family  llama, by"* ]]
	XFP_FAMILIES=$PWD/nowhere run -1 --separate-stderr xfp-inspect llama
	[[ $stderr == *"$PWD/nowhere: not a folder of families"*XFP_FAMILIES* ]]
}

@test "a family by its file, for inspect and for convert" {
	families make unknown 'unknown model'
	own_family own something_else
	run -0 xfp-inspect --family own/mine.family 'unknown model'
	[[ $output == *"family  mine, as asked for"* ]]
	xfp convert --family own/mine.family 'unknown model' -o out.xfp
	[ "$(xfp info --json out.xfp | grep -c '"role": "k"')" -eq 2 ]
	printf 'quantize attention q\n' >own/mine.family
	run -3 --separate-stderr xfp convert --family own/mine.family 'unknown model' -o out.xfp
	[[ $stderr == *"own/mine.family:1: "* ]]
}

@test "the tensors of each rule are listed, for people and for programs" {
	families make mixtral mixtral
	COLUMNS=250 run -0 xfp-inspect -v mixtral
	[[ $output =~ [0-9]+\ +8\ \ optional\ quantize\ routed_expert\ gate\ \ \^ ]]
	[[ $output =~ [0-9]+\ +0\ \ optional\ quantize\ routed_expert\ gate,\ up\ \ \^ ]]
	[[ $output =~ \ 8\ quantized\ +[0-9]+\ \ model.layers.\*.block_sparse_moe.experts.\*.w1.weight:\ routed_expert\ gate ]]
	xfp-inspect --json mixtral | "$PYTHON" -c '
import json, sys
o = json.load(sys.stdin)
rule = next(r for r in o["rules"] if r["class"] == "routed_expert" and r["roles"] == ["gate"])
assert sorted(rule) == ["action", "class", "line", "optional", "pattern", "roles", "tensors"], rule
assert rule["action"] == "quantize" and rule["optional"] is True and rule["tensors"] == 8, rule
group = next(g for g in o["names"] if g["line"] == rule["line"])
assert sorted(group) == ["class", "fate", "line", "names", "roles", "tensors", "weights"], group
assert group["names"] == "model.layers.*.block_sparse_moe.experts.*.w1.weight", group
assert (group["tensors"], group["weights"], group["fate"]) == (8, 8 * 96 * 64, "quantized"), group
assert o["family_by"] == "by model_type mixtral" and o["family_file"].endswith("/mixtral.family"), o'
}

@test "large kept matrices without a class are reported, with or without a rule" {
	families make llama llama
	own_family own llama
	"$PYTHON" - <<-'EOF'
		import json, struct
		header, at = {}, 0
		for name in "model.layers.0.odd_proj.weight", "model.layers.1.odd_proj.weight":
		    header[name] = {"dtype": "BF16", "shape": [256, 256], "data_offsets": [at, at + 131072]}
		    at += 131072
		text = json.dumps(header).encode()
		with open("llama/model.safetensors", "wb") as file:
		    file.write(struct.pack("<Q", len(text)) + text + bytes(at))
	EOF
	run -0 --separate-stderr xfp-inspect llama
	[[ $stderr == *"warning: model.layers.*.odd_proj.weight (2 tensors, 131072 weights): no rule matches"* ]]
	run -0 --separate-stderr xfp-inspect --family own/mine.family llama
	[[ $stderr == *"note: model.layers.*.odd_proj.weight (2 tensors, 131072 weights): a rule keeps it unchanged, as other"* ]]
}

@test "experts that config.json has and the tensors lack are reported" {
	families make llama llama
	sed -i 's/"hidden_size"/"num_local_experts": 8, "hidden_size"/' llama/config.json
	run -0 --separate-stderr xfp-inspect llama
	[[ $stderr == *"warning: config.json says num_local_experts 8, but family llama finds no expert"* ]]
}

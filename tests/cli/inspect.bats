#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# xfp-inspect: files, output and refusals.

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	families=$srcdir/pipelines/families
}

# checkpoint FOLDER CONFIG NAME=SHAPE[:DTYPE]...   with SHAPE as in 4x8; CONFIG "-" for none. With
# shards=2 in the environment, the tensors go to two files with an index.
checkpoint() {
	"$PYTHON" - "$@" <<-'EOF'
		import json, os, struct, sys

		folder, config, tensors = sys.argv[1], sys.argv[2], sys.argv[3:]
		shards = int(os.environ.get("shards", "1"))
		os.makedirs(folder)
		if config != "-":
		    with open(f"{folder}/config.json", "w", encoding="utf-8") as file:
		        file.write(config)
		index = {}
		for shard in range(shards):
		    file_name = "model.safetensors" if shards == 1 else f"model-{shard + 1:05}-of-{shards:05}.safetensors"
		    header, data = {}, b""
		    for tensor in tensors[shard::shards]:
		        name, spec = tensor.rsplit("=", 1)
		        shape, _, dtype = spec.partition(":")
		        shape = [int(size) for size in shape.split("x")]
		        count = 1
		        for size in shape:
		            count *= size
		        piece = bytes(count * {"": 2, "F32": 4, "F64": 8, "I8": 1}[dtype])
		        header[name] = {"dtype": dtype or "BF16", "shape": shape,
		                        "data_offsets": [len(data), len(data) + len(piece)]}
		        data += piece
		        index[name] = file_name
		    text = json.dumps(header).encode()
		    with open(f"{folder}/{file_name}", "wb") as file:
		        file.write(struct.pack("<Q", len(text)) + text + data)
		if shards > 1:
		    with open(f"{folder}/model.safetensors.index.json", "w", encoding="utf-8") as file:
		        json.dump({"metadata": {}, "weight_map": index}, file)
	EOF
}

moe='{"model_type": "qwen3_moe", "hidden_size": 4, "num_experts": 2}'
rest=(model.layers.0.self_attn.{q,k,v,o}_proj.weight=4x4 model.layers.0.mlp.gate.weight=2x4
	model.layers.0.self_attn.{q,k}_norm.weight=4 model.layers.0.{input,post_attention}_layernorm.weight=4
	model.norm.weight=4 model.embed_tokens.weight=9x4 lm_head.weight=9x4)
split=(model.layers.0.mlp.experts.{0,1}.{gate,up}_proj.weight=3x4 model.layers.0.mlp.experts.{0,1}.down_proj.weight=4x3)
fused=(model.layers.0.mlp.experts.gate_up_proj=2x6x4 model.layers.0.mlp.experts.down_proj=2x4x3)
transposed=(model.layers.0.mlp.experts.gate_up_proj=2x4x6 model.layers.0.mlp.experts.down_proj=2x3x4)

# Evaluate a Python expression over `o`, the JSON of standard input.
json() { "$PYTHON" -c 'import json, sys; o = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"; }

@test "writes the ledger and the list of units, and a summary" {
	checkpoint model "$moe" "${rest[@]}" "${split[@]}"
	run -0 --separate-stderr xfp-inspect --work work/deep model
	[ -z "$stderr" ]
	[[ $output == *"qwen3_moe, by model_type qwen3_moe"* ]]
	[[ $output =~ routed_expert\ +gate\ +1\ +2\ +24 ]]
	[ "$(head -c 8 work/deep/ledger.h5 | od -An -c | tr -d ' \n')" = 'XFPART\r\n' ]
	printf 'include work/deep/units.mk\nall:; @echo $(UNITS)\n' >makefile
	[ "$(UNITS=u999999 make -s)" = "u000000 u000001 u000002 u000003 u000004 u000005 u000006 u000007 u000008" ]
	[ "$(find work -type f | wc -l)" -eq 2 ]
}

@test "units.mk keeps its time while the units are unchanged" {
	checkpoint model "$moe" "${rest[@]}" "${split[@]}"
	xfp-inspect --work work model
	touch -d '2001-01-01' work/units.mk
	xfp-inspect --work work model
	[ "$(stat -c %Y work/units.mk)" -eq "$(date -d 2001-01-01 +%s)" ]
	xfp-inspect --work work --lm-head keep model
	[ "$(stat -c %Y work/units.mk)" -ne "$(date -d 2001-01-01 +%s)" ]
	[ "$(grep -o 'u0' work/units.mk | wc -l)" -eq 8 ]
}

@test "without --work nothing is written" {
	checkpoint model "$moe" "${rest[@]}" "${split[@]}"
	before=$(find . | sort)
	xfp-inspect -v model
	[ "$(find . | sort)" = "$before" ]
}

@test "experts one by one, fused, transposed, sharded: the same units" {
	checkpoint one "$moe" "${rest[@]}" "${split[@]}"
	checkpoint two "$moe" "${rest[@]}" "${fused[@]}"
	checkpoint three "$moe" "${rest[@]}" "${transposed[@]}"
	shards=2 checkpoint four "$moe" "${rest[@]}" "${split[@]}"
	for model in one two three four; do
		xfp-inspect --json "$model" |
			json '[[u[k] for k in ("class", "role", "plan", "rows", "cols", "experts")] for u in o["units"]]' >$model.units
		cmp one.units $model.units
	done
	grep -F "['routed_expert', 'up', 'fit', 3, 4, 2]" one.units
}

@test "--json gives every tensor one fate, and every unit" {
	checkpoint model "$moe" "${rest[@]}" "${fused[@]}" model.layers.0.self_attn.rotary_emb.inv_freq=2:F32 odd=3:I8
	xfp-inspect --json model >out.json
	[ "$(json 'len(o["tensors"])' <out.json)" -eq 16 ]
	[ "$(json 'sorted(o)' <out.json)" = \
		"['family', 'family_by', 'family_file', 'format', 'model', 'names', 'notes', 'packed', 'refused', 'rules', 'tensors', \
'units']" ]
	[ "$(json '{t["name"]: t for t in o["tensors"]}["odd"]' <out.json)" = \
		"{'name': 'odd', 'fate': 'kept', 'reason': 'no rule matches', 'class': 'other', 'roles': [], 'dtype': 'I8', \
'shape': [3], 'weights': 3, 'stored_bytes': 3, 'bits': 8.0, 'codec': None, 'file': 'model.safetensors'}" ]
	[ "$(json '[t["name"] for t in o["tensors"] if t["fate"] == "dropped"]' <out.json)" = \
		"['model.layers.0.self_attn.rotary_emb.inv_freq']" ]
	[ "$(json 'o["units"][0]' <out.json)" = "{'name': 'lm_head.weight', 'class': 'lm_head', 'role': 'lm_head', \
'plan': 'fit', 'dtype': 'BF16', 'rows': 9, 'cols': 4, 'experts': 1, 'weights': 36}" ]
}

@test "the model's path and the tensors' names may contain any characters" {
	folder=$'mo del \u00e9 $(touch pwned) \'"'
	checkpoint "$folder" "$moe" "${rest[@]}" "${split[@]}" '$(shell touch pwned)=4x4' $'tab\there\e[2J=300x300'
	run -0 --separate-stderr xfp-inspect --work 'wo rk $(touch pwned)' "$folder"
	[ "$(json 'o["model"]' <<<"$(xfp-inspect --json "$folder" 2>/dev/null)")" = "$PWD/$folder" ]
	[[ $stderr == *'no rule matches'* ]]
	[[ $stderr != *$'\e'* ]]
	[ ! -e pwned ]
	! grep -q shell 'wo rk $(touch pwned)/units.mk'
}

@test "an lm_head that equals the embedding is tied if, and only if, config.json says so" {
	checkpoint tied '{"model_type": "llama", "tie_word_embeddings": true}' "${rest[@]}"
	[ "$(xfp-inspect --json tied | json '[t["reason"] for t in o["tensors"] if t["fate"] == "tied"]')" = \
		"['tied to model.embed_tokens.weight']" ]
	checkpoint free '{"model_type": "llama"}' "${rest[@]}"
	[ "$(xfp-inspect --json free | json 'o["units"][0]["name"]')" = lm_head.weight ]
}

@test "--lm-head determines how the output head is stored" {
	checkpoint model "$moe" "${rest[@]}" "${split[@]}"
	plan='[u["plan"] for u in o["units"] if u["class"] == "lm_head"]'
	[ "$(xfp-inspect --json model | json "$plan")" = "['fit']" ]
	[ "$(xfp-inspect --json --lm-head fp8 model | json "$plan")" = "['fp8']" ]
	[ "$(xfp-inspect --json --lm-head keep model | json "$plan")" = "[]" ]
}

@test "an unknown model is read by the general rules, with a warning" {
	checkpoint model '{"model_type": "brand_new", "hidden_size": 4}' "${rest[@]}" "${fused[@]}"
	run -0 --separate-stderr xfp-inspect model
	[[ $stderr == *"warning: no family claims model_type brand_new"* ]]
	[[ $output == *"routed_expert"* ]]
	checkpoint bare - "${rest[@]}" "${fused[@]}"
	run -0 --separate-stderr xfp-inspect bare
	[[ $stderr == *"warning: there is no config.json"* ]]
	[[ $stderr != *"is taken from the shape"* ]] # said already: there is no config.json
	checkpoint narrow '{"model_type": "brand_new"}' "${rest[@]}" "${fused[@]}"
	run -0 --separate-stderr xfp-inspect narrow
	[[ $stderr == *"4 is taken from the shape of model.embed_tokens.weight"* ]]
}

@test "a user's family, by file and by folder" {
	checkpoint model '{"model_type": "mine"}' blk.0.wq=4x4 blk.0.wk=4x4
	mkdir own
	printf 'model_type mine\nquantize attention q N,K ^blk\\.<layer>\\.wq$\nkeep norm ^never$\n' >own/mine.family
	run -0 --separate-stderr xfp-inspect -v --family own/mine.family model
	[[ $output == *"mine, as asked for"* ]]
	[[ $stderr == *"mine.family:3: the rule matches no tensor: ^never$"* ]]
	[[ $output =~ u000000\ +attention\ +q ]]
	run -0 xfp-inspect --families own model
	[[ $output == *"mine, by model_type mine"* ]]
	run -2 xfp-inspect --families own --family other model
	[[ $output == *"no family 'other'; families are mine, and files"* ]]
	printf 'keep norm x\nkeep norm a(b\n' >own/mine.family
	run -3 xfp-inspect --family own/mine.family model
	[[ $output == *"own/mine.family:2: "* ]]
}

@test "nothing to quantize is a warning, not a failure" {
	checkpoint model '{"model_type": "llama"}' model.norm.weight=4
	run -0 --separate-stderr xfp-inspect --work work model
	[[ $stderr == *"warning: nothing to quantize"* ]]
	[ -f work/units.mk ]
}

@test "a projection with no rows is kept, with the reason" {
	checkpoint model '{"model_type": "llama"}' model.layers.0.self_attn.q_proj.weight=0x4 \
		model.layers.0.self_attn.k_proj.weight=4x4
	[ "$(xfp-inspect --json model 2>/dev/null | json '[t["reason"] for t in o["tensors"] if "q_proj" in t["name"]]')" = \
		"['attention: no weights']" ]
}

@test "bad checkpoints: status 3, a message that helps, and no work folder" {
	checkpoint gap "$moe" "${rest[@]}" model.layers.0.mlp.experts.{0,2}.gate_proj.weight=3x4
	checkpoint gptq '{"model_type": "llama", "quantization_config": {"quant_method": "gptq"}}' "${rest[@]}"
	checkpoint vptq '{"model_type": "llama", "quantization_config": {"quant_method": "vptq"}}' "${rest[@]}"
	checkpoint awq '{"model_type": "llama"}' model.layers.0.self_attn.q_proj.qweight=4x4
	checkpoint json '{"model_type": ' "${rest[@]}"
	checkpoint short "$moe" "${rest[@]}" "${split[@]}"
	truncate -s -1 short/model.safetensors
	while read -r model text; do
		run -3 --separate-stderr xfp-inspect --work work "$model"
		[ -z "$output" ]
		[[ $stderr == "xfp-inspect: "*"$text"* ]] || { echo "$model: $stderr"; return 1; }
		[ ! -e work ]
	done <<-'END'
		gap model.layers.0.mlp.experts.*.gate_proj.weight: expert 1 is missing
		gptq config.json: says that the weights are gptq, but no tensor is
		vptq (quant_method vptq in config.json), in a form that this version does not read
		awq q_proj.qweight
		json config.json
		short model.safetensors
		nowhere nowhere
	END
}

@test "wrong command lines: status 2 and the usage" {
	run -2 --separate-stderr xfp-inspect --sort sized a
	[[ $stderr == *"--sort 'sized': expected "*"; did you mean size?" ]]
	run -2 --separate-stderr xfp-inspect --lm-head half a
	[ "$stderr" = "xfp-inspect: --lm-head 'half': expected fp8, keep or quant" ]
	for arguments in "" "--work" "--nonsense a" "--json --csv a" "--work w --tensors a" "--work w a b" \
		"--csv --header --stats a" "--sort sigma a" "--csv --header a b"; do
		# several words on purpose
		# shellcheck disable=SC2086
		run -2 --separate-stderr xfp-inspect $arguments
		[ -z "$output" ]
		[[ $stderr == "xfp-inspect: "*"usage: xfp inspect"* ]] || { echo "$arguments: $stderr"; return 1; }
	done
}

@test "a full disk on standard output, and a work folder that cannot be written" {
	checkpoint model "$moe" "${rest[@]}" "${split[@]}"
	[ ! -e /dev/full ] || { run -1 bash -c 'xfp-inspect --json model >/dev/full'; [[ $output == *"standard output"* ]]; }
	touch file
	run -1 xfp-inspect --work file/work model
	[[ $output == *"xfp-inspect: file: "* ]]
}

@test "a hundred thousand tensors take seconds" {
	"$PYTHON" - <<-'EOF'
		import json, os, struct

		header, at = {}, 0
		for layer in range(64):
		    for expert in range(512):
		        for role in "gate", "up", "down":
		            header[f"model.layers.{layer}.mlp.experts.{expert}.{role}_proj.weight"] = {
		                "dtype": "BF16", "shape": [1, 1], "data_offsets": [at, at + 2]}
		            at += 2
		text = json.dumps(header).encode()
		os.mkdir("model")
		with open("model/model.safetensors", "wb") as file:
		    file.write(struct.pack("<Q", len(text)) + text + bytes(at))
		with open("model/config.json", "w", encoding="utf-8") as file:
		    file.write('{"model_type": "qwen3_moe"}')
	EOF
	(ulimit -t 20 && xfp-inspect --work work model >out) # 0.5 s of processor time; more under a sanitizer
	grep -E 'routed_expert +down +64 +32768 ' out
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# xfp inspect: lists of files and tensors, for people and for programs, of models that convert accepts and of
# others.

load helpers
load packed

setup() {
	setup_folder
}

# Evaluate a Python expression over `o`, the JSON of standard input.
json() { "$PYTHON" -c 'import json, sys; o = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"; }

# Fill FOLDER with sparse safetensors files: PYTHON defines `tensors`, a list of (name, dtype, shape), and may
# define `metadata`, `config` and `shards`.
hollow() { # FOLDER PYTHON
	"$PYTHON" - "$@" <<-'EOF'
		import json, math, os, struct, sys
		given = {"metadata": {"format": "pt"}, "config": {"model_type": "llama"}, "shards": 1}
		exec(sys.argv[2], given)
		os.makedirs(sys.argv[1])
		with open(sys.argv[1] + "/config.json", "w") as file:
		    json.dump(given["config"], file)
		bits, index, shards = {"BF16": 16, "F32": 32, "I8": 8, "U8": 8}, {}, given["shards"]
		for shard in range(shards):
		    header, at = {"__metadata__": given["metadata"]}, 0
		    for name, dtype, shape in given["tensors"][shard::shards]:
		        size = math.prod(shape) * bits[dtype] // 8
		        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
		        index[name] = file_name = f"model-{shard + 1:05}-of-{shards:05}.safetensors" if shards > 1 else "model.safetensors"
		        at += size
		    text = json.dumps(header).encode()
		    with open(sys.argv[1] + "/" + file_name, "wb") as file:
		        file.write(struct.pack("<Q", len(text)) + text)
		        file.truncate(8 + len(text) + at)
		if shards > 1:
		    with open(sys.argv[1] + "/model.safetensors.index.json", "w") as file:
		        json.dump({"weight_map": index}, file)
	EOF
}

@test "xfp inspect is xfp-inspect" {
	make_model m
	for options in "" "--header" "--tensors --stats" "--json" "--csv" "-v"; do
		# shellcheck disable=SC2086
		diff <(xfp inspect $options m 2>&1) <(xfp-inspect $options m 2>&1 | sed 's/^xfp-inspect: /xfp inspect: /')
	done
	diff <(xfp inspect --help) <(xfp-inspect --help)
	run -2 xfp inspect
	[ "${lines[0]}" = "xfp inspect: MODEL is missing" ]
	run -2 xfp-inspect
	[ "${lines[0]}" = "xfp-inspect: MODEL is missing" ]
}

@test "--tensors: each with its figures, layers by number, experts on one line" {
	make_model m --layers 1
	xfp inspect --tensors m >out
	diff - <(sed -n '/^name/,$p' out) <<-'END'
		name
		  dtype  shape   bits  class          fate       tensors
		lm_head.weight
		  BF16   96x64  16.00  lm_head        quantized        1
		model.embed_tokens.weight
		  BF16   96x64  16.00  embedding      quantized        1
		model.layers.0.input_layernorm.weight
		  BF16      64  16.00  norm           kept             1
		model.layers.0.mlp.experts.*.down_proj.weight
		  BF16   64x48  16.00  routed_expert  quantized        3
		model.layers.0.mlp.experts.*.gate_proj.weight
		  BF16   48x64  16.00  routed_expert  quantized        3
		model.layers.0.mlp.experts.*.up_proj.weight
		  BF16   48x64  16.00  routed_expert  quantized        3
		model.layers.0.mlp.gate.weight
		  BF16    3x64  16.00  router         kept             1
		model.layers.0.post_attention_layernorm.weight
		  BF16      64  16.00  norm           kept             1
		model.layers.0.self_attn.k_norm.weight
		  BF16      16  16.00  norm           kept             1
		model.layers.0.self_attn.k_proj.weight
		  BF16   32x64  16.00  attention      quantized        1
		model.layers.0.self_attn.o_proj.weight
		  BF16   64x64  16.00  attention      quantized        1
		model.layers.0.self_attn.q_norm.weight
		  BF16      16  16.00  norm           kept             1
		model.layers.0.self_attn.q_proj.weight
		  BF16   64x64  16.00  attention      quantized        1
		model.layers.0.self_attn.v_proj.weight
		  BF16   32x64  16.00  attention      quantized        1
		model.norm.weight
		  BF16      64  16.00  norm           kept             1

		21 tensors, 52.6 k weights, 105 kB: 16.00 bits per weight
	END
	# one per line if the terminal is wide enough
	[ "$(COLUMNS=120 xfp inspect --tensors m | grep -c 'BF16 .*  model.layers.0.self_attn.q_proj.weight$')" -eq 1 ]
	[ "$(xfp inspect --tensors -v m | grep -c 'experts\.[012]\.up_proj.weight$')" -eq 3 ]
	make_model many --layers 11
	xfp inspect --tensors many class:router | grep -o 'model\.layers[^ ]*' >names
	diff <(seq -f 'model.layers.%.0f.mlp.gate.weight' 0 10) names
}

@test "TENSOR: names, globs, roles, classes; unknown ones get suggestions" {
	make_model m --layers 2
	names() { xfp inspect --csv m "$@" | tail -n +2 | cut -d'"' -f2 | tr '\n' ' '; }
	[ "$(names model.norm.weight)" = "model.norm.weight " ]
	[ "$(names '*.1.self_attn.[qk]_proj.*' 'lm_*')" = \
		"lm_head.weight model.layers.1.self_attn.k_proj.weight model.layers.1.self_attn.q_proj.weight " ]
	[ "$(names role:o class:router)" = "model.layers.0.mlp.gate.weight model.layers.0.self_attn.o_proj.weight \
model.layers.1.mlp.gate.weight model.layers.1.self_attn.o_proj.weight " ]
	# alone it lists tensors
	diff <(xfp inspect m role:q) <(xfp inspect --tensors m role:q)
	[ "$(xfp inspect --json m role:q | json 'len(o["tensors"]), len(o["units"]), {u["role"] for u in o["units"]}, len(o["rules"]) > 8')" = "(2, 2, {'q'}, True)" ]
	while IFS='|' read -r pattern said; do
		run -2 --separate-stderr xfp inspect m "$pattern"
		[ -z "$output" ]
		[[ $stderr == "xfp inspect: TENSOR '$pattern': $said"* ]] || { echo "$stderr"; return 1; }
	done <<-'END'
		model.norm.wieght|no tensor is named so; did you mean model.norm.weight
		role:quer|no tensor is of this role; those of the model are lm_head, embedding, down, gate,
		role:gat|no tensor is of this role; did you mean gate?
		class:rooter|no class 'rooter'; did you mean router?
		class:vision|no tensor is of this class; those of the model are attention, routed_expert,
		q_proj|no tensor is named so; '*q_proj*' would take 2
		gate|no tensor is named so; for the role write role:gate
		norm|no tensor is named so; for the class write class:norm
		zzz|no tensor is named so; without TENSOR, --tensors lists them all
	END
	run -2 xfp inspect m ''
	[ "${lines[0]}" = "xfp inspect: TENSOR is empty" ]
	hollow bare 'tensors = [("b", "BF16", [30])]'
	run -2 --separate-stderr xfp inspect bare role:q
	[ "${stderr%%$'\n'*}" = "xfp inspect: TENSOR 'role:q': no tensor is of this role" ]
}

@test "--sort and --reverse" {
	hollow m 'tensors = [("b", "BF16", [30, 4]), ("c", "F32", [20]), ("a10", "I8", [300]), ("a9", "BF16", [3]), ("z", "BF16", [])]'
	order() { xfp inspect --csv m "$@" 2>/dev/null | tail -n +2 | cut -d'"' -f2 | tr '\n' ' '; }
	[ "$(order)" = "a9 a10 b c z " ]
	[ "$(order --reverse)" = "z c b a10 a9 " ]
	[ "$(order --sort file)" = "b c a10 a9 z " ]
	[ "$(order --sort size)" = "a10 b c a9 z " ]
	[ "$(order --sort bits)" = "c a9 b z a10 " ]
	[ "$(order --sort bits --reverse)" = "a10 z b a9 c " ]
	[ "$(xfp inspect --json --sort size m 2>/dev/null | json '[t["name"] for t in o["tensors"]]')" = "['a10', 'b', 'c', 'a9', 'z']" ]
	xfp inspect --tensors m z 2>/dev/null | grep -E '^ *BF16 +scalar +16.00 +other +kept'
}

@test "--header: files and their metadata, as text, JSON and CSV" {
	hollow m 'metadata = {"format": "pt", "notes, \"mine\"": "line\nline \x1b[2J", "long": "x" * 5000, "none": ""}
shards = 2
tensors = [("a", "BF16", [3]), ("b", "F32", [70]), ("c", "BF16", [5, 5])]'
	run -0 --separate-stderr xfp inspect --header m
	[[ $output == *"
model-00001-of-00002.safetensors
  "*" kB, 2 tensors
  format         pt
  notes, \"mine\"  line\\x0aline \\x1b[2J
  long           xxxx"* ]] || { echo "$output"; return 1; }
	[[ $output == *"model-00002-of-00002.safetensors
  "*" kB, 1 tensor
"* ]]
	[ -z "$(awk 'length > 80' <<<"$output")" ]
	[ "${#lines[@]}" -lt 30 ] # what is long is cut
	xfp inspect --header --json m 2>/dev/null >out.json
	[ "$(json '[(f["name"], f["tensors"], f["bytes"]) for f in o["files"]]' <out.json)" = \
		"$("$PYTHON" -c 'import os
print([(n, t, os.stat("m/" + n).st_size) for n, t in (("model-00001-of-00002.safetensors", 2), ("model-00002-of-00002.safetensors", 1))])')" ]
	[ "$(json '[(e["key"], e["type"], len(e["value"])) for e in o["files"][1]["entries"]]' <out.json)" = \
		"[('format', 'string', 2), ('notes, \"mine\"', 'string', 14), ('long', 'string', 5000), ('none', 'string', 0)]" ]
	xfp inspect --header --csv m 2>/dev/null | "$PYTHON" -c 'import csv, sys
rows = list(csv.DictReader(sys.stdin))
assert len(rows) == 8 and list(rows[0]) == ["file", "key", "type", "value"], rows
assert rows[1] == {"file": "model-00001-of-00002.safetensors", "key": "notes, \"mine\"", "type": "string",
                   "value": "line\nline \x1b[2J"}, rows[1]'
	# a file without metadata, and one with null
	hollow bare 'metadata = None
tensors = [("a", "BF16", [3])]'
	[ "$(xfp inspect --header --json bare 2>/dev/null | json 'o["files"][0]["entries"]')" = "[]" ]
	# more than one list at a time
	xfp inspect --header --tensors m 2>/dev/null >out
	grep -q '^model-00002-of-00002.safetensors$' out
	grep -q '^3 tensors, 98 ' out
}

@test "JSON and CSV: names of any kind, and packed weights" {
	hollow odd 'tensors = [("a \"b\", c", "BF16", [2]), ("new\nline\té", "F32", [2, 3]), ("model.layers.0.self_attn.q_proj.weight", "BF16", [4, 4])]'
	xfp inspect --csv odd 2>/dev/null | "$PYTHON" -c 'import csv, sys
rows = list(csv.DictReader(sys.stdin))
assert sorted(r["name"] for r in rows) == ["a \"b\", c", "model.layers.0.self_attn.q_proj.weight", "new\nline\té"], rows
assert [(r["shape"], r["bits"], r["class"], r["roles"], r["fate"]) for r in rows if "q_proj" in r["name"]] == [
    ("4x4", "16", "attention", "q", "quantized")], rows'
	packed deepseek
	xfp inspect --json packed 2>/dev/null >out.json
	[ "$(json 'o["packed"], o["refused"]' <out.json)" = "('fp8', None)" ]
	# a byte per weight, and four bytes of scale per block
	"$PYTHON" - <<-'EOF'
		import json, math
		tensors = json.load(open("out.json"))["tensors"]
		some = [t for t in tensors if t["codec"] == "fp8"]
		assert len(some) > 20 and {t["codec"] for t in tensors} == {"fp8", None}
		for t in some:
		    assert t["dtype"] == "BF16" and t["weights"] == t["shape"][0] * t["shape"][1]
		    assert math.isclose(t["bits"], t["stored_bytes"] * 8 / t["weights"]) and t["stored_bytes"] > t["weights"]
	EOF
	COLUMNS=120 xfp inspect --tensors packed role:q_b 2>/dev/null | grep -E '^BF16 +fp8 +48x48 +8\.01 +attention +quantized  model'
	xfp inspect --json packed role:gate 2>/dev/null | json 'all(t["roles"] == ["gate"] for t in o["tensors"])'
}

# The lists of a model that convert refuses, and the reason.
shown() { # MODEL REASON
	run -3 --separate-stderr xfp inspect --tensors "$1"
	[[ $output == *"model.layers.0.self_attn.q_proj."* ]] || { echo "$1: $output"; return 1; }
	[[ $output != *" quantized"* ]]
	[[ $stderr == "xfp inspect: "*$2* ]] || { echo "$1: $stderr"; return 1; }
	[ "$(xfp inspect --json "$1" 2>/dev/null | json 'o["refused"]')" = "${stderr#xfp inspect: }" ]
	[ "$(xfp inspect --json "$1" 2>/dev/null | json 'len(o["tensors"]) > 0, {t["fate"] for t in o["tensors"]}, o["units"]')" = \
		"(True, {None}, [])" ]
	run -3 --separate-stderr xfp inspect "$1"
	[[ $output == *"format  safetensors, 1 file"*"dtype"*"BF16 "* ]] || { echo "$1: $output"; return 1; }
	run -3 --separate-stderr xfp inspect --stats --csv "$1"
	[ "$(wc -l <<<"$output")" -ge 3 ]
	run -3 --separate-stderr xfp inspect --work work "$1"
	[ -z "$output" ]
	[ ! -e work ]
}

@test "a model that would be refused is listed as far as possible, with the reason, and status 3" {
	weights='("model.embed_tokens.weight", "BF16", [9, 4]), ("model.layers.0.input_layernorm.weight", "BF16", [4])'
	q=model.layers.0.self_attn.q_proj.weight
	hollow vptq "config = {'model_type': 'llama', 'quantization_config': {'quant_method': 'vptq'}}
tensors = [$weights, ('$q', 'BF16', [4, 4])]"
	shown vptq "quant_method vptq in config.json"
	xfp inspect --tensors vptq 2>/dev/null | grep -E '^ *BF16 +4x4 +16.00 +attention  '$q'$'
	hollow bnb "tensors = [$weights, ('$q', 'U8', [8, 1]), ('$q.quant_map', 'F32', [16])]"
	shown bnb "by bitsandbytes"
	hollow damaged "tensors = [$weights, ('$q', 'BF16', [4, 4])]"
	echo '{"model_type": ' >damaged/config.json
	shown damaged "config.json"
	# classes are then unknown
	[ "$(xfp inspect --csv damaged 2>/dev/null | tail -n +2 | cut -d, -f 9-11 | sort -u)" = ',"",' ]
	run -2 xfp inspect damaged class:norm
	[[ $output == *"roles and classes of this model are unknown"* ]]
	# parts of packed weights that contradict each other
	packed deepseek --spoil missing
	run -3 --separate-stderr xfp inspect --tensors packed
	[[ $output == *"kv_b_proj.weight_scale_inv
  F32 "* ]]
	[[ $stderr == *"has no scales"* ]]
	# contradictory rules
	hollow gap "config = {'model_type': 'qwen3_moe'}
tensors = [$weights, ('$q', 'BF16', [4, 4])] + [('model.layers.0.mlp.experts.%d.up_proj.weight' % e, 'BF16', [4, 4]) for e in (0, 2)]"
	shown gap "expert 1 is missing"
}

@test "if a model cannot be opened, only the reason is printed" {
	make_model m
	truncate -s -1 m/model.safetensors
	run -3 --separate-stderr xfp inspect --tensors m
	[ -z "$output" ]
	[[ $stderr == "xfp inspect: "*"truncated"* ]]
	run -3 --separate-stderr xfp inspect nowhere
	[ -z "$output" ]
	make_model good
	xfp convert good -o out.xfp -q
	run -3 --separate-stderr xfp inspect out.xfp
	[[ $stderr == *"out.xfp: is an .xfp bundle; use xfp info to list it"* ]]
}

@test "only headers are read, for models of any size" {
	hollow large 'tensors = [("model.embed_tokens.weight", "BF16", [32000, 4096])] + [
    (f"model.layers.{l}.mlp.{r}_proj.weight", "BF16", [1 << 17, 4096]) for l in range(80) for r in ("gate", "up", "down")]'
	for options in "" "--header" "--tensors" "--json" "--csv"; do
		# shellcheck disable=SC2086
		(ulimit -t 5 && xfp inspect $options large >out 2>/dev/null) # 0.05 s of processor time
	done
	xfp inspect --tensors large 2>/dev/null | grep -qx '241 tensors, 129 G weights, 258 GB: 16.00 bits per weight'
}

@test "seventy thousand tensors: one page if there are stacks, seconds, 80 columns" {
	hollow many 'config = {"model_type": "qwen3_moe"}
tensors = [(f"model.layers.{l}.mlp.experts.{e}.{r}_proj.weight", "BF16", [2, 2])
    for l in range(92) for e in range(256) for r in ("gate", "up", "down")]'
	ulimit -t 60 # seconds of processor time for each; 1 s
	xfp inspect --tensors many >out 2>/dev/null
	[ "$(wc -l <out)" -lt 600 ]
	[ "$(grep -c 'experts\.\*\.up_proj' out)" -eq 92 ]
	grep -E '^ +BF16 +2x2 +16.00 +routed_expert +quantized +256$' out
	xfp inspect --tensors -v many >out 2>/dev/null
	[ "$(grep -c '^model.*experts\.[0-9]*\.up_proj' out)" -eq 23552 ]
	[ -z "$(awk 'length > 80' out)" ]
	xfp inspect --stats many >out 2>/dev/null
	[ "$(wc -l <out)" -lt 600 ]
	[ "$(xfp inspect --csv many 2>/dev/null | wc -l)" -eq 70657 ]
}

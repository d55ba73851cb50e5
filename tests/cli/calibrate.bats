#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# xfp-calibrate: the stored inputs of each layer compared with numpy, their independence of portions, threads and
# instruction sets, and refusals.

load helpers

setup() {
	setup_folder
	export XFP_WORK=$PWD/out.xfp.work XFP_CACHE=$PWD/xfp-cache
	export PYTHONPATH=$srcdir/tests:$srcdir/tests/models PYTHONDONTWRITEBYTECODE=1
}

tokens() { # FILE EXPRESSION
	"$PYTHON" -c 'import numpy as np, sys
np.save(sys.argv[1], eval(sys.argv[2]))' "$@"
}

begun() { # MODEL OPTION...
	xfp prepare "$1" -o out.xfp >/dev/null 2>&1
	xfp-calibrate --begin "${@:2}" "$1"
}

# Calibrate all layers and the head of a model whose last step has this number.
calibrated() { # LAST OPTION...
	local layer

	for ((layer = 0; layer <= $1; layer++)); do
		xfp-calibrate "${@:2}" "l$layer"
	done
}

# The digest of all artifacts, without the time that they took.
digest_of_all() { # LAST
	"$PYTHON" - "$1" <<-'EOF'
	import hashlib, sys
	from inputs_file import stamped
	sha = hashlib.sha256()
	for layer in range(int(sys.argv[1]) + 1):
	    inputs = stamped("out.xfp.work", layer)
	    sha.update(repr((inputs.tensors, inputs.sources, inputs.tokens)).encode())
	    for name, values in inputs.values.items():
	        sha.update(name.encode() + values.tobytes())
	    sha.update(inputs.experts.tobytes() + (b"" if inputs.stream is None else inputs.stream.tobytes()))
	print(sha.hexdigest())
	EOF
}

@test "the inputs of a mixture of experts are those of numpy" {
	make_model m --layers 2 --num-experts 5
	tokens t.npy 'np.arange(90).reshape(9, 10) ** 2 * 7 % 96'
	begun m --tokens t.npy
	calibrated 2
	"$PYTHON" - <<-'EOF'
	import numpy as np
	from inputs_file import NO_EXPERT, from_bf16, stamped
	from qwen3_moe import Qwen3Moe, silu, softmax
	model, ids = Qwen3Moe("m"), np.load("t.npy")
	x = model.embed(ids)

	def near(rows, expected):
	    expected = expected.reshape(rows.shape)
	    assert np.abs(from_bf16(rows) - expected).max() <= np.abs(expected).max() / 200, np.abs(rows - expected).max()

	for layer in range(2):
	    inputs, name = stamped("out.xfp.work", layer), f"model.layers.{layer}"
	    attention = model.norm(x, f"{name}.input_layernorm")
	    for part in "qkv":
	        tokens, rows = inputs.rows_of(f"{name}.self_attn.{part}_proj.weight")
	        assert (tokens == np.arange(90)).all()
	        near(rows, attention)
	    mixed = x + model.attention(attention, f"{name}.self_attn")
	    mlp = model.norm(mixed, f"{name}.post_attention_layernorm").reshape(90, -1)
	    near(inputs.rows_of(f"{name}.mlp.gate.weight")[1], mlp)
	    k = model.config["num_experts_per_tok"]
	    share = softmax(model.linear(mlp, f"{name}.mlp.gate"))
	    chosen = np.sort(np.argsort(-share, -1, kind="stable")[:, :k], -1)
	    assert (inputs.experts == chosen).all()
	    for expert in range(5):
	        path = f"{name}.mlp.experts.{expert}"
	        own = mlp[(chosen == expert).any(-1)]
	        for part in "gate", "up":
	            near(inputs.rows_of(f"{path}.{part}_proj.weight")[1], own)
	        inner = silu(model.linear(own, f"{path}.gate_proj")) * model.linear(own, f"{path}.up_proj")
	        near(inputs.rows_of(f"{path}.down_proj.weight")[1], inner)
	    assert len(inputs.tensors) == 4 + 1 + 15
	    assert sorted(inputs.sources) == sorted(
	        t for t in model.weights if t.startswith(name + ".") or (layer == 0 and t.startswith("model.embed")))
	    x = model.layer(x, layer)
	    assert np.abs(inputs.stream.reshape(x.shape) - x).max() < 1e-4 * np.abs(x).max()
	head = stamped("out.xfp.work", 2)
	near(head.values["head"], model.norm(x, "model.norm"))
	assert head.stream is None and list(head.sources) == ["model.norm.weight"]
	assert head.tensors == {"lm_head.weight": ("head", NO_EXPERT)}
	EOF
}

@test "a dense model, and one whose head is the word embedding" {
	make_model m --family qwen3 --layers 2 --tie
	tokens t.npy 'np.arange(60).reshape(4, 15) ** 2 % 96'
	begun m --tokens t.npy
	calibrated 2
	"$PYTHON" - <<-'EOF'
	import numpy as np
	from inputs_file import from_bf16, stamped, to_bf16
	from qwen3_moe import Qwen3Moe
	model, inputs = Qwen3Moe("m"), stamped("out.xfp.work", 0)
	first = model.norm(model.embed(np.load("t.npy")), "model.layers.0.input_layernorm").reshape(60, -1)
	off = from_bf16(inputs.values["attention"]) - first
	assert np.abs(off).max() <= np.abs(first).max() / 256
	assert (inputs.values["attention"] == to_bf16(first)).mean() > .99
	assert list(inputs.values) == ["attention", "attention-output", "mlp", "down"]
	assert inputs.tensors["model.layers.0.mlp.down_proj.weight"] == ("down", 2 ** 32 - 1)
	assert stamped("out.xfp.work", 2).tensors == {}
	EOF
}

@test "stacked experts have the inputs of separate ones" {
	make_model m --layers 1 --num-experts 5
	make_model stacked --layers 1 --num-experts 5 --experts fused
	tokens t.npy 'np.arange(90).reshape(9, 10) ** 2 * 7 % 96'
	begun m --tokens t.npy
	calibrated 0
	cp out.xfp.work/l000000-inputs one
	rm -r out.xfp.work
	begun stacked --tokens t.npy
	calibrated 0
	cp out.xfp.work/l000000-inputs out.xfp.work/l000001-inputs
	cp one out.xfp.work/l000000-inputs
	"$PYTHON" - <<-'EOF'
	from inputs_file import STACK, stamped
	one, stack = stamped("out.xfp.work", 0), stamped("out.xfp.work", 1)
	assert {name: values.tobytes() for name, values in one.values.items()} == {
	    name: values.tobytes() for name, values in stack.values.items()}
	assert one.stream.tobytes() == stack.stream.tobytes() and (one.experts == stack.experts).all()
	experts = [name for name, (_, expert) in stack.tensors.items() if expert == STACK]
	assert len(experts) == 2, stack.tensors
	for expert in range(5):
	    path = "model.layers.0.mlp.experts."
	    for stacked, part in zip(sorted(experts), ("down", "gate")):
	        a, b = one.rows_of(f"{path}{expert}.{part}_proj.weight"), stack.rows_of(stacked, expert)
	        assert (a[0] == b[0]).all() and (a[1] == b[1]).all()
	EOF
}

# A generated model of a family: which tensors multiply which input.
inputs_of_family() { # FAMILY LAYER
	make_family "$1"
	begun m --tokens t.npy >/dev/null
	calibrated "$2"
	"$PYTHON" - "$2" <<-'EOF'
	import sys
	from inputs_file import stamped
	for name, (given, _) in stamped("out.xfp.work", int(sys.argv[1])).tensors.items():
	    print(name.split(f"layers.{sys.argv[1]}.")[1].removesuffix(".weight"), given)
	EOF
}

@test "fused projections" {
	[ "$(inputs_of_family phi3 0)" = "mlp.down_proj down
mlp.gate_up_proj mlp
self_attn.o_proj attention-output
self_attn.qkv_proj attention" ]
}

@test "linear attention, and a shared expert" {
	run -0 inputs_of_family qwen3_5_moe 0
	[[ $output == *"linear_attn.in_proj_qkv attention"* ]]
	[[ $output == *"linear_attn.in_proj_a attention"* ]]
	[[ $output == *"linear_attn.out_proj attention-output"* ]]
	[[ $output == *"mlp.experts.down_proj expert-down"* ]]
	[[ $output == *"mlp.experts.gate_up_proj mlp"* ]]
	[[ $output == *"mlp.shared_expert.down_proj shared-down"* ]]
	[[ $output == *"mlp.shared_expert.gate_proj mlp"* ]]
	[[ $output == *"mlp.shared_expert_gate mlp"* ]]
}

@test "one digest for portions, threads and instruction sets" {
	make_model m --layers 2 --num-experts 5
	tokens t.npy 'np.arange(90).reshape(9, 10) ** 2 * 7 % 96'
	begun m --tokens t.npy
	calibrated 2 --threads 1
	expected=$(digest_of_all 2)
	[ -n "$expected" ]
	sums=$(sed 's/ .*//' out.xfp.work/l0*-inputs)
	for options in "--memory 1 --threads 3" "--memory 600kB --threads 2" "--memory 1GB --threads 4"; do
		rm -r xfp-cache out.xfp.work/l0*
		# shellcheck disable=SC2086
		calibrated 2 $options
		[ "$(digest_of_all 2)" = "$expected" ]
		[ "$(sed 's/ .*//' out.xfp.work/l0*-inputs)" = "$sums" ]
	done
	for set in $(encoder_sets); do
		rm -r xfp-cache out.xfp.work/l0*
		XFP_INSTRUCTIONS=$set calibrated 2
		[ "$(digest_of_all 2)" = "$expected" ]
	done
}

@test "a second run finds everything; events name layers" {
	make_model m --layers 1
	tokens t.npy 'np.arange(40).reshape(4, 10) % 96'
	begun m --tokens t.npy
	calibrated 1
	calibrated 1
	[ "$(cut -f 1-3 out.xfp.work/events | tr '\t\n' ' ;')" = \
		"l000000 calibrate started;l000000 calibrate made;l000001 calibrate started;l000001 calibrate made;l000000 calibrate started;l000000 calibrate hit;l000001 calibrate started;l000001 calibrate hit;" ]
	cp -r m copy
	rm -r out.xfp.work
	begun copy --tokens t.npy
	calibrated 1
	[ "$(cut -f 3 out.xfp.work/events | grep -c hit)" = 2 ]
}

@test "keys change with every tensor of the layer, and with those before" {
	make_model m --layers 2
	tokens t.npy 'np.arange(40).reshape(4, 10) % 96'
	begun m --tokens t.npy
	calibrated 2
	cat out.xfp.work/l0*-inputs >before
	poke m/model.safetensors model.layers.1.post_attention_layernorm.weight 3 0040
	rm -r out.xfp.work
	begun m --tokens t.npy
	calibrated 2
	cat out.xfp.work/l0*-inputs >after
	[ "$(diff before after | grep -c '^>')" = 2 ]
	[ "$(head -n 1 before)" = "$(head -n 1 after)" ]
	tokens t.npy 'np.arange(40).reshape(4, 10) % 30'
	begun m --tokens t.npy
	calibrated 0
	run -1 cmp -s <(head -n 1 after) out.xfp.work/l000000-inputs
}

@test "other tokens remove the stamps of layers" {
	make_model m --layers 1
	tokens t.npy 'np.arange(40).reshape(4, 10) % 96'
	begun m --tokens t.npy
	calibrated 1
	xfp-calibrate --begin --tokens t.npy m
	[ -e out.xfp.work/l000000-inputs ]
	tokens t.npy 'np.arange(40).reshape(8, 5) % 96'
	xfp-calibrate --begin --tokens t.npy m
	[ ! -e out.xfp.work/l000000-inputs ] && [ ! -e out.xfp.work/l000001-inputs ]
}

@test "keys change with the length of a window, and with the type of a tensor" {
	make_model m --layers 1
	tokens t.npy 'np.arange(160).reshape(4, 40) % 96'
	begun m --tokens t.npy
	calibrated 0
	cp out.xfp.work/l000000-inputs before
	tokens t.npy 'np.arange(160).reshape(16, 10) % 96'
	xfp-calibrate --begin --tokens t.npy m
	cp before out.xfp.work/l000000-inputs
	refused 75 "is not of the layer before" xfp-calibrate l1
	[ ! -e out.xfp.work/l000000-inputs ]
	calibrated 0
	run -1 cmp -s before out.xfp.work/l000000-inputs
	cp out.xfp.work/l000000-inputs before
	"$PYTHON" -c 'data = open("m/model.safetensors", "rb").read()
open("m/model.safetensors", "wb").write(data.replace(b"\"BF16\"", b"\"F16\" "))'
	rm -r out.xfp.work
	begun m --tokens t.npy
	calibrated 0
	run -1 cmp -s before out.xfp.work/l000000-inputs
}

@test "a tensor of the layer with elements of four bits" {
	make_model m --layers 1
	"$PYTHON" - <<-'EOF'
	import json, struct
	data = open("m/model.safetensors", "rb").read()
	size = struct.unpack("<Q", data[:8])[0]
	header, data = json.loads(data[8:8 + size]), data[8 + size:] + b"12"
	header["model.layers.0.extra"] = {"dtype": "F4", "shape": [4], "data_offsets": [len(data) - 2, len(data)]}
	header = json.dumps(header).encode()
	open("m/model.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + data)
	EOF
	tokens t.npy 'np.arange(40).reshape(4, 10)'
	begun m --tokens t.npy
	calibrated 0
}

refused() { # STATUS MESSAGE COMMAND...
	run "-$1" "${@:3}"
	[[ $output == *"$2"* ]] || { echo "$output"; return 1; }
}

@test "refused: tokens" {
	make_model m --layers 1
	begin=(xfp-calibrate --begin)
	xfp prepare m -o out.xfp >/dev/null 2>&1
	refused 3 "m: has no tokenizer.json" "${begin[@]}" m
	refused 3 "m: has no tokenizer.json" "${begin[@]}" --text /dev/null m
	tokens t.npy 'np.full((3, 10), 96)'
	refused 3 "t.npy: token 0 of window 0 is 96, and the model's vocabulary has 96" "${begin[@]}" --tokens t.npy m
	tokens t.npy 'np.zeros((1, 10), int)'
	refused 3 "t.npy: has fewer than two windows of 10 tokens" "${begin[@]}" --tokens t.npy m
	tokens t.npy 'np.zeros((4, 10), int)'
	refused 3 "5 tokens are fewer than two windows of 10, one of which is held out; use a larger token count" \
		"${begin[@]}" --tokens t.npy --token-count 5 m
	tokens t.npy 'np.zeros((2, 1025), int)'
	refused 3 "longer than the model's context of 1024" "${begin[@]}" --tokens t.npy m
	refused 3 "t.npz: no such file" "${begin[@]}" --tokens t.npz m
	[ ! -e out.xfp.work/calibration.h5 ]
	refused 2 "usage" xfp-calibrate 3
	refused 2 "usage" xfp-calibrate u000003
	refused 75 "run xfp-calibrate --begin first" xfp-calibrate l0
	tokens t.npy 'np.zeros((2, 10), int)'
	"${begin[@]}" --tokens t.npy m
	refused 2 "the model has 1 layers; the last step is l000001" xfp-calibrate l2
	refused 75 "no inputs of layer 0 yet" xfp-calibrate l1
	refused 2 "l2000000000: the model has at most" xfp-calibrate l2000000000
	[ -z "$(find out.xfp.work -size +1G)" ]
	[ -z "$(ls out.xfp.work | grep inputs)" ]
}

@test "refused: models" {
	make_model bert --family bert
	tokens t.npy 'np.zeros((2, 10), int)'
	mkdir out.xfp.work
	refused 3 "bert: is an encoder (bert), which does not generate text" xfp-calibrate --begin --self bert
	make_model m --layers 1
	xfp convert m -o m.xfp -q
	refused 3 "m.xfp: is a bundle" xfp-calibrate --begin --tokens t.npy m.xfp
	[ ! -e out.xfp.work/calibration.h5 ]
}

@test "activations that are not finite, or beyond the range of bf16: the layer is named, and nothing is stored" {
	make_model m --family qwen3 --layers 2 --dtype f32
	tokens t.npy 'np.arange(40).reshape(4, 10)'
	poke m/model.safetensors model.layers.1.mlp.up_proj.weight 3 0000c07f
	begun m --tokens t.npy
	calibrated 0
	refused 3 'layer 1: the input "down" is not finite; verify the weights' xfp-calibrate l1
	[ "$(artifacts | wc -l)" = 1 ]
	[ ! -e out.xfp.work/l000001-inputs ]
	[ "$(tail -n 1 out.xfp.work/events | cut -f 1-3)" = "l000001	calibrate	failed" ]
	rm -r m out.xfp.work
	make_model m --family qwen3 --layers 2 --dtype f32
	poke m/model.safetensors model.layers.0.input_layernorm.weight 3 ffff7f7f
	begun m --tokens t.npy
	run -3 xfp-calibrate l0
	[[ $output == *'layer 0: the input "attention" '*'bf16'* || $output == *'is not finite'* ]]
	[ "$(artifacts | wc -l)" = 1 ]
}

@test "weights that change between layers" {
	make_model m --layers 2
	tokens t.npy 'np.arange(40).reshape(4, 10)'
	begun m --tokens t.npy
	calibrated 0
	poke m/model.safetensors model.layers.1.self_attn.q_proj.weight 3 0040
	refused 1 "changed while it was being converted" xfp-calibrate l1
	[ ! -e out.xfp.work/l000001-inputs ]
	[ "$(artifacts | wc -l)" = 1 ]
}

@test "a damaged layer is made again, with the same bytes" {
	make_model m --layers 1
	tokens t.npy 'np.arange(40).reshape(4, 10)'
	begun m --tokens t.npy
	calibrated 1
	expected=$(digest_of_all 1)
	key=$(cut -d' ' -f1 out.xfp.work/l000000-inputs)
	file=xfp-cache/artifacts/${key:0:2}/$key.h5
	printf x | dd of="$file" bs=1 seek=5000 conv=notrunc status=none
	rm out.xfp.work/l000001-inputs
	rm "$(artifacts | grep -v "$key")"
	refused 75 "damaged" xfp-calibrate l1
	[ ! -e "$file" ]
	[ ! -e out.xfp.work/l000000-inputs ]
	calibrated 1
	[ "$(digest_of_all 1)" = "$expected" ]
}

@test "killed at any moment, it leaves nothing, and finishes later" {
	make_model m --layers 1 --num-experts 5
	tokens t.npy 'np.arange(1000).reshape(10, 100) % 96'
	begun m --tokens t.npy
	for wait in 0.005 0.01 0.02 0.03 0.04 0.06; do
		timeout -s KILL "$wait" xfp-calibrate --memory 1 --threads 1 l0 || true
		[ -z "$(find xfp-cache/artifacts -name '*.h5' ! -name '.*')" ] || [ -e out.xfp.work/l000000-inputs ] ||
			xfp cache check
	done
	calibrated 1
	rm -r xfp-cache out.xfp.work/l0*
	calibrated 1
}

@test "xfp's own text, and a text that is too short" {
	make_text_model 1
	begun m | tee said
	grep -qx 'calibration: 64 windows of 512 tokens (calibration-1)' said
	run -1 grep note said
	xfp-calibrate --begin --token-count 3000 m | grep -qx 'calibration: 6 windows of 512 tokens (calibration-1)'
	head -c 2000 "$XFP_DATADIR/pipelines/calibration/calibration-1.txt" >short.txt
	xfp-calibrate --begin --text short.txt m >said
	grep -q "^calibration: 3 windows of 512 tokens (text:$(sha short.txt))" said
	grep -q '^note: short.txt: has [0-9]* tokens, fewer than the 32768 wanted' said
	head -c 600 short.txt >shorter.txt
	refused 3 "shorter.txt: has fewer than two windows of 512 tokens" xfp-calibrate --begin --text shorter.txt m
}

@test "windows begin with the token of config.json if the tokenizer has none" {
	make_text_model 1
	"$PYTHON" -c 'import json
tokenizer = json.load(open("m/tokenizer.json"))
tokenizer["post_processor"] = None
json.dump(tokenizer, open("m/tokenizer.json", "w"))'
	begun m | tee said
	run -1 grep note said
	xfp-calibrate --begin --token-count 1024 m
	calibrated 0
	"$PYTHON" - <<-'EOF'
	from inputs_file import stamped
	rows = stamped("out.xfp.work", 0).values["attention"]
	assert len(rows) == 1024 and (rows[0] == rows[512]).all() and (rows[1] != rows[513]).any()
	EOF
	sed -i '/bos_token_id/d' m/config.json
	xfp-calibrate --begin m >said
	grep -q '^note: neither tokenizer.json nor config.json has a token that begins a text' said
}

@test "text of the model's own: one digest for threads and memory, reused while its files are the same" {
	make_model m --layers 1
	xfp prepare m -o out.xfp >/dev/null 2>&1
	own=(xfp-calibrate --begin --self --token-count 1500)
	"${own[@]}" --threads 1 m >said
	grep -qx 'generating 3 windows of 512 tokens with the model, 3 at a time: the weights are read 511 times' said
	grep -qx 'calibration: 3 windows of 512 tokens (self)' said
	expected=$(sha out.xfp.work/calibration.h5)
	"${own[@]}" m >said
	run -1 grep generating said
	[ "$(sha out.xfp.work/calibration.h5)" = "$expected" ]
	rm out.xfp.work/calibration.h5
	"${own[@]}" --threads 3 --memory 1 m | grep '3 windows of 512 tokens with the model, 1 at a time'
	[ "$(sha out.xfp.work/calibration.h5)" = "$expected" ]
	"$PYTHON" - <<-'EOF'
	from inputs_file import calibration_ids
	ids = calibration_ids("out.xfp.work")
	assert ids.shape == (3, 512) and (ids[:, 0] == 0).all() and (ids[0] != ids[1]).any()
	assert len(set(ids.flatten())) > 80
	EOF
	calibrated 0 --memory 1
	poke m/model.safetensors model.norm.weight 3 8040
	"${own[@]}" m | grep generating
	run -1 test "$(sha out.xfp.work/calibration.h5)" = "$expected"
	"${own[@]}" m >said
	run -1 grep generating said
	echo '{"eos_token_id": [1, 2, 3]}' >m/generation_config.json
	"${own[@]}" m | grep generating
	refused 2 "contradict one another" xfp-calibrate --begin --self --text m/config.json m
	refused 3 "512 tokens are fewer than two windows of 512, one of which is held out; use a larger" xfp-calibrate --begin --self --token-count 512 m
}

@test "text of the model's own: after the end of a text, the next one begins" {
	make_model m --layers 1
	rm m/generation_config.json
	edit_config() { # EXPRESSION
		"$PYTHON" -c 'import json, sys
config = json.load(open("m/config.json"))
exec(sys.argv[1])
json.dump(config, open("m/config.json", "w"))' "$1"
	}
	edit_config 'config["bos_token_id"], config["eos_token_id"] = 5, list(range(6, 96))'
	begun m --self --token-count 1024
	"$PYTHON" - <<-'EOF'
	from inputs_file import calibration_ids
	ids = calibration_ids("out.xfp.work")
	for window in ids:
	    assert window[0] == 5
	    assert all(after == 5 for token, after in zip(window, window[1:]) if token > 5)
	assert (ids == 5).mean() < .6
	EOF
	edit_config 'config["max_position_embeddings"] = 1'
	refused 3 "the context of 1 tokens is too short for calibration" \
		xfp-calibrate --begin --self --token-count 1024 m
	edit_config 'config["bos_token_id"], config["max_position_embeddings"] = None, 1024'
	rm out.xfp.work/calibration.h5
	xfp-calibrate --begin --self --token-count 1024 m >said
	grep -q '^note: neither tokenizer.json nor config.json has a token that begins a text' said
	"$PYTHON" -c 'from inputs_file import calibration_ids
ids = calibration_ids("out.xfp.work")
assert ids[0][0] != ids[1][0]'
}

@test "a GGUF file has the inputs of the same model" {
	"$PYTHON" "$srcdir/tests/make-gguf.py" qwen3moe model.gguf plain
	tokens t.npy 'np.arange(40).reshape(4, 10)'
	begun plain --tokens t.npy
	calibrated 0
	cp out.xfp.work/l000000-inputs one
	rm -r out.xfp.work
	begun model.gguf --tokens t.npy
	calibrated 0
	cp one out.xfp.work/l000001-inputs
	"$PYTHON" - <<-'EOF'
	from inputs_file import stamped
	gguf, plain = stamped("out.xfp.work", 0), stamped("out.xfp.work", 1)
	assert plain.stream.tobytes() == gguf.stream.tobytes() and (plain.experts == gguf.experts).all()
	assert all((plain.values[name] == values).all() for name, values in gguf.values.items())
	EOF
}

@test "packed weights have the keys of the same weights unpacked" {
	load packed
	packed qwen3-moe
	for model in plain packed; do
		sed -i 's/"vocab_size": 80,/"vocab_size": 80, "max_position_embeddings": 64, "rms_norm_eps": 1e-6,/' $model/config.json
	done
	tokens t.npy 'np.arange(40).reshape(4, 10)'
	begun plain --tokens t.npy
	calibrated 0
	cat out.xfp.work/l0*-inputs >expected
	rm -r out.xfp.work
	begun packed --tokens t.npy
	calibrated 0
	cat out.xfp.work/l0*-inputs | cmp - expected
}

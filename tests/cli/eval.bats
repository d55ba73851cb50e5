#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# xfp eval: perplexity of checkpoints and bundles, against numpy, and what is refused.

load helpers

setup() {
	setup_folder
	unset XFP_WORK XFP_OUT
}

tokens() { # FILE EXPRESSION
	"$PYTHON" -c 'import numpy as np, sys
np.save(sys.argv[1], eval(sys.argv[2]))' "$@"
}

keep=(--format attention=keep --format dense_mlp=keep --format routed_expert=keep --lm-head keep)

# What --json says of a member.
said() { # MEMBER ARGUMENT...
	xfp eval --json "${@:2}" | "$PYTHON" -c 'import json, sys
print(repr(json.load(sys.stdin)[sys.argv[1]]))' "$1"
}

@test "the perplexity of a mixture of experts is that of numpy, to a millionth" {
	make_model m --layers 2
	tokens t.npy 'np.arange(60).reshape(4, 15) ** 2 % 96'
	nats=$(said loss --tokens t.npy m)
	PYTHONPATH=$srcdir/tests/models PYTHONDONTWRITEBYTECODE=1 "$PYTHON" - "$nats" <<-'EOF'
	import sys
	import numpy as np
	from qwen3_moe import nats_per_token
	expected = nats_per_token("m", np.load("t.npy"))
	assert abs(float(sys.argv[1]) - expected) < 1e-6 * expected, (sys.argv[1], expected)
	EOF
	run -0 --separate-stderr xfp eval --tokens t.npy m
	[ "${lines[0]}" = "4 sequences of 15 tokens, of which 56 were to be foretold" ]
	[[ ${lines[1]} == "perplexity "*" ("*" nats a token)" ]]
	[ "$(said predicted --tokens t.npy m)" = 56 ]
	[ "$(said family --tokens t.npy m)" = "'qwen3_moe'" ]
}

@test "the same bits for any number of threads, and for ids of any size" {
	make_model m
	tokens t.npy '(np.arange(62).reshape(2, 31) * 7 % 96).astype("u1")'
	tokens wide.npy '(np.arange(62).reshape(2, 31) * 7 % 96).astype("i8")'
	expected=$(said loss --tokens t.npy --threads 1 m)
	[ -n "$expected" ]
	[ "$(said loss --tokens t.npy --threads 3 m)" = "$expected" ]
	[ "$(said loss --tokens wide.npy m)" = "$expected" ]
}

@test "a bundle that keeps everything is worth what its source is, and a coarse one less" {
	make_model m
	tokens t.npy 'np.arange(80).reshape(4, 20) ** 2 % 96'
	source=$(said loss --tokens t.npy m)
	xfp convert m -o kept.xfp -q "${keep[@]}"
	[ "$(said loss --tokens t.npy kept.xfp)" = "$source" ]
	xfp convert m -o coarse.xfp -q --bits 2 --on-miss best
	coarse=$(said loss --tokens t.npy coarse.xfp)
	[ "$coarse" != "$source" ]
	# and it is what its unpacked weights are worth
	xfp unpack coarse.xfp -o u --dtype f32
	[ "$(said loss --tokens t.npy u)" = "$coarse" ]
}

@test "a head that is the word embedding, of a dense model, in a bundle too" {
	make_model m --family llama --tie
	tokens t.npy 'np.arange(30) % 96'
	source=$(said loss --tokens t.npy m)
	xfp convert m -o kept.xfp -q "${keep[@]}"
	[ "$(said loss --tokens t.npy kept.xfp)" = "$source" ]
	[ "$(said sequences --tokens t.npy kept.xfp)" = 1 ]
}

@test "a head that the checkpoint has beside the word embedding that it equals" {
	make_model m
	"$PYTHON" - <<-'EOF'
	import json, struct
	config = json.load(open("m/config.json"))
	config["tie_word_embeddings"] = True
	json.dump(config, open("m/config.json", "w"))
	with open("m/model.safetensors", "r+b") as file:
	    size = struct.unpack("<Q", file.read(8))[0]
	    tensors = json.loads(file.read(size))
	    at, end = tensors["model.embed_tokens.weight"]["data_offsets"]
	    file.seek(8 + size + at)
	    data = file.read(end - at)
	    file.seek(8 + size + tensors["lm_head.weight"]["data_offsets"][0])
	    file.write(data)
	EOF
	tokens t.npy 'np.arange(30) % 96'
	xfp convert m -o kept.xfp -q "${keep[@]}"
	xfp info --json kept.xfp | grep -q '"fate": "tied"'
	[ "$(said loss --tokens t.npy kept.xfp)" = "$(said loss --tokens t.npy m)" ]
}

refused() { # STATUS MESSAGE ARGUMENT...
	run "-$1" --separate-stderr xfp eval "${@:3}"
	[ -z "$output" ] || return 1
	# shellcheck disable=SC2154
	[[ $stderr == *"$2"* ]] || { echo "$stderr"; return 1; }
}

@test "tokens that are none" {
	make_model m
	tokens t.npy 'np.arange(30)'
	tokens beyond.npy 'np.full((2, 5), 96)'
	tokens negative.npy 'np.array([[3, -1]])'
	tokens floats.npy 'np.zeros((2, 5))'
	tokens deep.npy 'np.zeros((2, 5, 5), "u2")'
	tokens turned.npy 'np.asfortranarray(np.zeros((2, 5), "u2"))'
	tokens single.npy 'np.zeros((2, 1), "u2")'
	tokens long.npy 'np.zeros(1025, "u2")'
	head -c 200 t.npy >cut.npy
	echo "1 2 3" >text.npy
	refused 3 "token 0 of sequence 0 is 96, and the model's vocabulary has 96" --tokens beyond.npy m
	refused 3 'negative.npy: has a number below 0' --tokens negative.npy m
	for kind in floats deep turned; do
		refused 3 "$kind.npy: does not hold integers of one or two dimensions" --tokens "$kind.npy" m
	done
	refused 3 'less than two tokens a sequence' --tokens single.npy m
	refused 3 "longer than the model's context of 1024" --tokens long.npy m
	refused 3 'cut.npy: is cut off' --tokens cut.npy m
	refused 3 'text.npy: is no .npy file' --tokens text.npy m
	refused 3 'nothere.npy' --tokens nothere.npy m
}

@test "models that cannot be computed, and command lines that are wrong" {
	make_model m
	make_model b --family bert
	tokens t.npy 'np.arange(30)'
	refused 3 'models of type bert cannot be computed here' --tokens t.npy b
	refused 2 'no bundle or model' --tokens t.npy
	refused 2 '--tokens is missing' m
	refused 2 'expected a number of threads' --tokens t.npy --threads 0 m
	refused 3 'nothere' --tokens t.npy nothere
	sed -i 's/"num_key_value_heads": 2/"num_key_value_heads": 4/' m/config.json
	refused 3 'k_proj.weight is not [' --tokens t.npy m
	rm m/config.json
	refused 3 'has no config.json' --tokens t.npy m
}

@test "the first layer whose numbers are not finite is named" {
	make_model m --layers 3
	tokens t.npy 'np.arange(30)'
	"$PYTHON" - <<-'EOF'
	import json, struct
	with open("m/model.safetensors", "r+b") as file:
	    size = struct.unpack("<Q", file.read(8))[0]
	    tensor = json.loads(file.read(size))["model.layers.1.self_attn.o_proj.weight"]
	    file.seek(8 + size + tensor["data_offsets"][0])
	    file.write(b"\xff" * 8)
	EOF
	refused 3 'layer 1 is the first that makes numbers that are not finite' --tokens t.npy m
}

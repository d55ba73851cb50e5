#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# xfp eval: perplexity of checkpoints and bundles compared with numpy, and refusals.

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

# Print a member of the --json output.
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
	[ "${lines[0]}" = "4 sequences of 15 tokens, 56 of them predicted" ]
	[[ ${lines[1]} == "perplexity "*" ("*" nats per token)" ]]
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

@test "a bundle that keeps everything has the perplexity of its source, and a coarse one a higher one" {
	make_model m
	tokens t.npy 'np.arange(80).reshape(4, 20) ** 2 % 96'
	source=$(said loss --tokens t.npy m)
	xfp convert m -o kept.xfp -q "${keep[@]}"
	[ "$(said loss --tokens t.npy kept.xfp)" = "$source" ]
	xfp convert m -o coarse.xfp -q --bits 2 --on-miss best
	coarse=$(said loss --tokens t.npy coarse.xfp)
	[ "$coarse" != "$source" ]
	# and equals the perplexity of the unpacked weights
	xfp unpack coarse.xfp -o u --dtype f32
	[ "$(said loss --tokens t.npy u)" = "$coarse" ]
}

# Run Python with the formulas of qwen3_moe.py, and the result of a file as `said`.
judged() { # RESULT
	PYTHONPATH=$srcdir/tests/models PYTHONDONTWRITEBYTECODE=1 "$PYTHON" - "$@"
}

@test "with its source: divergence, agreement and the errors of layers are those of numpy" {
	make_model m --layers 3
	tokens t.npy 'np.arange(60).reshape(4, 15) ** 2 % 96'
	xfp convert m -o coarse.xfp -q --bits 2 --on-miss best --format embedding=4
	xfp unpack coarse.xfp -o u --dtype f32
	xfp eval --json --tokens t.npy --source m coarse.xfp >said.json
	judged <<-'EOF'
	import json
	import numpy as np
	from qwen3_moe import Qwen3Moe, log_probabilities, nats_per_token
	said, ids = json.load(open("said.json")), np.load("t.npy")
	source, copy = Qwen3Moe("m"), Qwen3Moe("u")

	def same(what, mine, theirs, bound=1e-4):
	    assert abs(mine - theirs) <= bound * abs(theirs), (what, mine, theirs)

	def error(x, y):
	    x, y = x.astype(np.float64), y.astype(np.float64)
	    return (((x - y) ** 2).sum(-1) / (y ** 2).sum(-1)).mean()

	p, q = (log_probabilities(model, ids).astype(np.float64) for model in (source, copy))
	divergence = np.sort((np.exp(p) * (p - q)).sum(-1).ravel())
	assert divergence[0] > 1e-5 and len(divergence) == said["predicted"] == 56
	same("mean", said["kl"]["mean"], divergence.mean())
	same("p99", said["kl"]["p99"], divergence[55])
	same("largest", said["kl"]["largest"], divergence[-1])
	same("agreement", said["top1_agreement"], (p.argmax(-1) == q.argmax(-1)).mean(), 1e-9)
	assert 0 < said["top1_agreement"] < 1
	same("loss", said["loss"], nats_per_token("u", ids), 1e-6)
	same("source", said["source"]["loss"], nats_per_token("m", ids), 1e-6)
	x, y = source.embed(ids), copy.embed(ids)
	same("embedding", said["embedding"]["stream"], error(y, x))
	for number, layer in enumerate(said["layers"]):
	    alone = copy.layer(x, number)
	    x, y = source.layer(x, number), copy.layer(y, number)
	    assert layer["layer"] == number
	    same("stream", layer["stream"], error(y, x))
	    same("alone", layer["alone"], error(alone, x))
	assert len(said["layers"]) == 3 and layer["stream"] > 1.1 * layer["alone"] > 0
	EOF
	run -0 --separate-stderr xfp eval --tokens t.npy --source m coarse.xfp
	[[ ${lines[1]} == "perplexity "*" ("*" nats per token)" ]]
	[[ ${lines[2]} == "perplexity of the source "*" ("*" nats per token)" ]]
	[[ ${lines[3]} == "KL divergence from the source, in nats per token: mean "*", 99 % within "*", largest "* ]]
	[[ ${lines[4]} == "top-1 agreement with the source: "*" %" ]]
	[[ ${lines[5]} == "layer "*"error of the stream  of the layer alone" ]]
	[[ ${lines[6]} =~ ^embedding\ +[0-9.e-]+$ ]]
	[[ ${lines[9]} =~ ^2\ +[0-9.e-]+\ +[0-9.e-]+$ ]]
}

@test "compared with itself nothing differs; other models are refused with the difference" {
	make_model m
	make_model more --layers 2
	make_model wide --vocab 128
	make_model dense --family llama
	tokens t.npy 'np.arange(30).reshape(2, 15)'
	xfp eval --json --tokens t.npy --source m m >said.json
	judged <<-'EOF'
	import json
	said = json.load(open("said.json"))
	assert said["kl"] == {"mean": 0, "p99": 0, "largest": 0} and said["top1_agreement"] == 1
	assert said["loss"] == said["source"]["loss"]
	assert said["layers"] == [{"layer": 0, "stream": 0, "alone": 0}]
	EOF
	refused 3 'more cannot be the source of m: num_hidden_layers differs (2, 1)' --tokens t.npy --source more m
	refused 3 'wide cannot be the source of m: vocab_size differs (128, 96)' --tokens t.npy --source wide m
	refused 3 'dense cannot be the source of m: model types differ (llama, qwen3_moe)' --tokens t.npy --source dense m
	refused 3 'nothere' --tokens t.npy --source nothere m
}

# A model that takes a moment to evaluate, with its state in TMPDIR.
make_long() { # LAYERS SEQUENCES
	make_model m --layers "$1"
	tokens t.npy "np.arange($2 * 100).reshape($2, 100) ** 2 % 96"
	xfp convert m -o b.xfp -q --bits 2 --on-miss best --format embedding=4
}

# The memory that these models need; sanitizers take some 16 MB more.
little=40MB
[ "${XFP_TEST_SANITIZERS:-no}" = no ] || little=60MB

@test "with little memory: the same bytes, with activations in files" {
	needs_strace
	make_long 1 60
	xfp eval --json --tokens t.npy --source m b.xfp >expected
	mkdir tmp
	TMPDIR=$PWD/tmp strace -f -o trace -e trace=openat,pwrite64 \
		xfp eval --json --memory $little --tokens t.npy --source m b.xfp >spilled
	cmp expected spilled
	# two files, each written in several parts, once for the embedding and once for the layer
	[ "$(grep -c "$PWD/tmp/xfp-" trace)" = 2 ]
	[ "$(grep -c 'pwrite64' trace)" -gt 4 ]
	[ -z "$(ls tmp)" ]
	[ "${XFP_TEST_SANITIZERS:-no}" = no ] || skip "the sanitizers have memory of their own"
	"$PYTHON" "$srcdir/tests/measure-peak" -i 5 -o peak xfp eval --memory 40MB --tokens t.npy --source m b.xfp
	[ "$("$PYTHON" -c 'import json; print(json.load(open("peak"))["pss"] < 40e6)')" = True ]
}

@test "too little memory is reported before anything is read" {
	needs_strace
	make_long 1 2
	strace -f -o trace -e trace=pread64 -P m/model.safetensors xfp eval --memory 4MiB --tokens t.npy m 2>said || true
	"$PYTHON" - <<-'EOF'
	import re, struct
	with open("m/model.safetensors", "rb") as file:
	    begin = 8 + struct.unpack("<Q", file.read(8))[0]
	read = re.findall(r"pread64.*, (\d+), (\d+)\) *=", open("trace").read())
	assert read and all(int(size) + int(offset) <= begin for size, offset in read), (begin, read)
	EOF
	grep -Eq -- '--memory 4 MiB: one sequence of 100 tokens and some rows of each matrix need [0-9]+ MiB' said
	refused 1 '--memory 4 MiB' --memory 4MiB --tokens t.npy b.xfp
	refused 2 'expected a size such as 24GiB' --memory much --tokens t.npy b.xfp
	refused 2 'expected a size such as 24GiB' --memory 24 --tokens t.npy b.xfp
	# the reported memory suffices
	xfp eval --memory "$(sed -nE 's/.* need ([0-9]+) MiB.*/\1/p' said)MiB" --tokens t.npy m
}

# Kill an evaluation by a signal after it has saved its state.
ended_by() { # SIGNAL ARGUMENT...
	local status=0

	xfp eval --json --threads 1 --tokens t.npy --source m b.xfp "${@:2}" >ended 2>ended.err &
	until [ -e "$(kept_in "${@:2}")" ] || ! kill -0 $! 2>/dev/null; do
		sleep .01
	done
	kill "-$1" $! || true
	wait $! || status=$?
	return "$status"
}
kept_in() { # [--state FILE]
	echo "${2-b.xfp.eval}"
}

@test "killed, and resumed after the finished layers: the same bytes" {
	needs_strace
	make_long 12 15
	xfp eval --json --tokens t.npy --source m b.xfp >expected
	[ ! -e b.xfp.eval ]
	run -137 ended_by KILL
	[ ! -s ended ]
	head -c 16 b.xfp.eval | grep -q 'xfp eval state 1'
	cp b.xfp.eval kept
	# an unreadable state is not a damaged one: it is not removed
	run -1 --separate-stderr strace -f -o trace -P b.xfp.eval -e inject=pread64:error=EIO:when=4 \
		xfp eval --json --tokens t.npy --source m b.xfp
	[[ $stderr == *"xfp eval: b.xfp.eval: "*"Input/output error" ]]
	cmp b.xfp.eval kept
	xfp eval --json --tokens t.npy --source m b.xfp >resumed 2>said
	cmp expected resumed
	[ ! -s said ]
	[ ! -e b.xfp.eval ]
	# a foreign or damaged state is not used; a file that is not a state is not removed
	cp kept b.xfp.eval
	xfp eval --json --tokens t.npy b.xfp 2>said >/dev/null
	grep -q 'b.xfp.eval is the state of another evaluation' said
	# and it remains if the new one cannot be written: the file size limit is 0
	cp kept b.xfp.eval
	(trap '' XFSZ; ulimit -f 0; xfp eval --json --tokens t.npy b.xfp 2>&1) | grep -c 'the state of another evaluation'
	cmp b.xfp.eval kept
	printf X | dd of=kept bs=1 seek=5000 conv=notrunc status=none
	cp kept b.xfp.eval
	xfp eval --json --tokens t.npy --source m b.xfp 2>said >resumed
	cmp expected resumed
	grep -q 'b.xfp.eval is damaged' said
	echo mine >b.xfp.eval
	xfp eval --json --tokens t.npy --source m b.xfp 2>said >resumed
	cmp expected resumed
	grep -q 'b.xfp.eval is not the state of an evaluation' said
	[ "$(cat b.xfp.eval)" = mine ]
}

@test "interrupted: ends by the signal, and saves finished layers in the requested file" {
	make_long 12 15
	xfp eval --json --tokens t.npy --source m b.xfp >expected
	run -143 ended_by TERM --state here
	[ ! -s ended ]
	[ -z "$(find . -name '.*.tmp')" ]
	grep -Eq '^xfp eval: interrupted; [0-9]+ of 12 layers are saved in here. To resume:$' ended.err
	eval "$(tail -n 1 ended.err)" >resumed
	cmp expected resumed
	[ ! -e here ]
}

# Run an evaluation of a checkpoint; SIGNAL arrives at the N-th CALL on FILE.
signalled() { # SIGNAL CALL FILE N ARGUMENT...
	strace -f -qq -o trace -P "$3" -e trace="$2" -e inject="$2:signal=$1:when=$4" \
		sh -c 'exec "$@" 2>ended.err' sh env --default-signal="$1" \
		xfp eval --json --threads 1 --tokens t.npy "${@:5}" m >ended
}

@test "interrupted: reports what is saved and the command that resumes, or that nothing is saved" {
	needs_strace
	make_long 4 3
	xfp eval --json --tokens t.npy m >expected
	strace -f -qq -o trace -P "$PWD/m/model.safetensors" -e trace=pread64 \
		xfp eval --json --threads 1 --tokens t.npy m >again
	reads=$(wc -l <trace) # for rows of the embedding most of them, the last for layers
	for signal in INT TERM HUP; do
		status=$((128 + $(kill -l $signal)))
		run -$status signalled $signal openat t.npy 1 --state "it's here"
		[ "$(cat ended.err)" = $'\nxfp eval: interrupted before the evaluation began; nothing new was saved' ]
		run -$status signalled $signal pread64 m/model.safetensors $((reads / 2)) --state "it's here"
		[ "$(cat ended.err)" = $'\nxfp eval: interrupted; nothing was saved yet' ]
		run -$status signalled $signal pread64 m/model.safetensors $((reads - 10))
		[ "$(cat ended.err)" = $'\nxfp eval: interrupted; nothing was saved; --state FILE saves finished layers' ]
		[ ! -e "it's here" ]
		run -$status signalled $signal pread64 m/model.safetensors $((reads - 10)) --state "it's here"
		grep -qx "xfp eval: interrupted; [1-4] of 4 layers are saved in it's here. To resume:" ended.err
		[ ! -s ended ]
		# the state is not lost if the signal arrives while it is read
		cp "it's here" kept
		run -$status signalled $signal pread64 "it's here" 2 --state "it's here"
		grep -qx "xfp eval: interrupted; it's here stays unchanged. To resume:" ended.err
		cmp kept "it's here"
		[ "$(tail -n 1 ended.err)" = "  xfp eval --json --threads 1 --tokens t.npy --state 'it'\\''s here' m" ]
		eval "$(tail -n 1 ended.err)" >resumed
		cmp expected resumed
		[ ! -e "it's here" ]
	done
}

@test "--fast gives nearly the same result, with the same memory" {
	make_long 2 20
	xfp eval --json --tokens t.npy --source m b.xfp >exact
	"$PYTHON" "$srcdir/tests/measure-peak" -i 5 -o peak \
		xfp eval --fast --memory $little --json --tokens t.npy --source m b.xfp >fast
	judged <<-'EOF'
	import json
	exact, fast = (json.load(open(name)) for name in ("exact", "fast"))
	assert exact != fast
	for of in (lambda said: said["loss"], lambda said: said["source"]["loss"]):
	    assert abs(of(exact) - of(fast)) < 1e-4 * of(exact), (of(exact), of(fast))
	for of in (lambda said: said["kl"]["mean"], lambda said: said["layers"][1]["stream"],
	           lambda said: said["layers"][1]["alone"]):
	    assert abs(of(exact) - of(fast)) < 1e-2 * of(exact), (of(exact), of(fast))
	EOF
	[ "${XFP_TEST_SANITIZERS:-no}" = no ] || skip "the sanitizers have memory of their own"
	[ "$("$PYTHON" -c 'import json; print(json.load(open("peak"))["pss"] < 40e6)')" = True ]
}

# A byte tokenizer, letters first; token 256 precedes each text, and one follows it.
make_tokenizer() { # FOLDER
	"$PYTHON" - "$1" <<-'EOF'
	import json, sys
	plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
	spelt = {b: chr(b) for b in plain}
	spelt.update({b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in plain)})
	order = [*range(32, 122), 10]
	order += [b for b in range(256) if b not in order]
	vocabulary = {spelt[b]: i for i, b in enumerate(order)}
	added = [{"id": 256 + i, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
	          "normalized": False, "special": True} for i, text in enumerate(("<s>", "</s>"))]
	parts = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
	         {"SpecialToken": {"id": "</s>", "type_id": 0}}]
	json.dump({"version": "1.0", "added_tokens": added, "normalizer": None,
	           "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
	                             "use_regex": False},
	           "post_processor": {"type": "TemplateProcessing", "single": parts, "pair": parts,
	                              "special_tokens": {text: {"id": text, "ids": [256 + i], "tokens": [text]}
	                                                 for i, text in enumerate(("<s>", "</s>"))}},
	           "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
	           "model": {"type": "BPE", "vocab": vocabulary, "merges": []}},
	          open(sys.argv[1] + "/tokenizer.json", "w"))
	EOF
}

@test "a head that is the word embedding, of a dense model, also in a bundle" {
	make_model m --family llama --tie
	tokens t.npy 'np.arange(30) % 96'
	source=$(said loss --tokens t.npy m)
	xfp convert m -o kept.xfp -q "${keep[@]}"
	[ "$(said loss --tokens t.npy kept.xfp)" = "$source" ]
	[ "$(said sequences --tokens t.npy kept.xfp)" = 1 ]
}

@test "a head that is stored in addition to the equal word embedding" {
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

@test "each family: a GGUF equals the published form, and a bundle its source or its copy" {
	tokens t.npy 'np.arange(160).reshape(2, 80) ** 2 * 7 % 96'
	for architecture in llama mixtral qwen2 qwen3 qwen3moe qwen3next gemma2 gemma3 glm4moe gpt-oss phi3; do
		rm -rf model.gguf plain
		"$PYTHON" "$srcdir/tests/make-gguf.py" "$architecture" model.gguf plain
		source=$(said loss --tokens t.npy plain)
		[ -n "$source" ] || return 1
		[ "$(said loss --tokens t.npy model.gguf)" = "$source" ] || { echo "$architecture"; return 1; }
	done
	# Here queries, keys and values are parts of one tensor, as are gate and up.
	xfp convert plain -o kept.xfp -q "${keep[@]}"
	[ "$(said loss --tokens t.npy kept.xfp)" = "$source" ]
	xfp convert plain -o coarse.xfp -q --bits 2 --on-miss best
	xfp unpack coarse.xfp -o u --dtype f32
	[ "$(said loss --tokens t.npy coarse.xfp)" = "$(said loss --tokens t.npy u)" ]
}

refused() { # STATUS MESSAGE ARGUMENT...
	run "-$1" --separate-stderr xfp eval "${@:3}"
	[ -z "$output" ] || return 1
	# shellcheck disable=SC2154
	[[ $stderr == *"$2"* ]] || { echo "$stderr"; return 1; }
}

@test "invalid token files" {
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
	# A header that ends inside its type field, followed by bytes that would complete it.
	"$PYTHON" -c "
header = b\"{'fortran_order': False, 'shape': (1, 3), 'descr': '\"
open('ends.npy', 'wb').write(b'\x93NUMPY\x01\x00' + len(header).to_bytes(2, 'little') + header + b\".u1'123\")"
	refused 3 "beyond.npy: token 0 of sequence 0 is 96, and the model's vocabulary has 96" --tokens beyond.npy m
	refused 3 'negative.npy: has a negative number' --tokens negative.npy m
	for kind in floats deep turned ends; do
		refused 3 "$kind.npy: does not hold integers of one or two dimensions" --tokens "$kind.npy" m
	done
	refused 3 'fewer than two tokens per sequence' --tokens single.npy m
	refused 3 "longer than the model's context of 1024" --tokens long.npy m
	refused 3 'cut.npy: is truncated' --tokens cut.npy m
	refused 3 'text.npy: is not a .npy file' --tokens text.npy m
	refused 3 'nothere.npy' --tokens nothere.npy m
}

@test "a text: consecutive sequences, each with the tokens that the tokenizer adds before it" {
	make_model m --vocab 260
	make_tokenizer m
	printf 'How vexingly quick daft zebras jump! \xe2\x82 cut.' >text
	xfp eval --json --text text --length 9 m >said.json
	judged <<-'EOF'
	import json
	import numpy as np
	text = open("text", "rb").read().decode(errors="replace").encode()
	order = [*range(32, 122), 10]
	order += [b for b in range(256) if b not in order]
	ids = [order.index(b) for b in text]
	rows = [[256] + ids[i:i + 8] for i in range(0, len(ids) // 8 * 8, 8)]
	np.save("t.npy", np.array(rows))
	said = json.load(open("said.json"))
	assert (said["sequences"], said["length"], said["left_out"]) == (len(rows), 9, len(ids) % 8) and len(ids) == 45
	EOF
	[ "$(said loss --text text --length 9 m)" = "$(said loss --tokens t.npy m)" ]
	run -0 --separate-stderr xfp eval --text text --length 9 m
	[[ ${lines[0]} == *"40 of them predicted; the last 5 tokens of the text do not fill a sequence"* ]]
	# a text shorter than a sequence is one sequence
	[ "$(said length --text text m)" = 46 ]
	[ "$(said left_out --text text m)" = 0 ]
	# a bundle contains its tokenizer, and may use its source's
	xfp convert m -o with.xfp -q "${keep[@]}"
	mv m/tokenizer.json .
	xfp convert m -o without.xfp -q "${keep[@]}"
	[ "$(said loss --text text --length 9 with.xfp)" = "$(said loss --tokens t.npy m)" ]
	refused 3 'without.xfp: has no tokenizer.json' --text text without.xfp
	mv tokenizer.json m
	[ "$(said loss --text text --length 9 --source m without.xfp)" = "$(said loss --tokens t.npy m)" ]
}

@test "invalid texts" {
	make_model m --vocab 260
	make_tokenizer m
	printf '' >empty
	printf a >one
	echo text >text
	refused 3 'empty: is empty' --text empty m
	[ "$(said predicted --text one m)" = 1 ] # behind the token that begins it
	sed -i 's/"post_processor": {.*}, "decoder"/"post_processor": null, "decoder"/' m/tokenizer.json
	refused 3 'one: is a single token' --text one m
	refused 3 'nothere: no such file' --text nothere m
	refused 3 "longer than the model's context of 1024" --text text --length 1025 m
	refused 2 "expected a number of tokens" --text text --length 1 m
	refused 2 '--length applies to --text' --tokens t.npy --length 4 m
	refused 2 'both --tokens and --text' --tokens t.npy --text text m
	echo '{"model": {"type": "Unigram"}}' >m/tokenizer.json
	refused 3 'tokenizer.json' --text text m
}

@test "unsupported models, and wrong command lines" {
	make_model m
	make_model b
	sed -i 's/"model_type": *"[a-z0-9_]*"/"model_type": "mamba"/' b/config.json
	tokens t.npy 'np.arange(30)'
	refused 3 'models of type mamba are not supported' --tokens t.npy b
	# The manual lists the same families as the message.
	families=${stderr#*supported types: }
	tr '\n' ' ' <"$srcdir/man/xfp-eval.1" | grep -qF "families ${families% can}, with"
	refused 2 'no bundle or model' --tokens t.npy
	refused 2 '--tokens or --text is missing' m
	refused 2 'expected a number of threads' --tokens t.npy --threads 0 m
	refused 3 'nothere' --tokens t.npy nothere
	refused 2 '--single applies to --fast' --single --tokens t.npy m
	sed -i 's/"num_key_value_heads": 2/"num_key_value_heads": 4/' m/config.json
	refused 3 'k_proj.weight is not [' --tokens t.npy m
	rm m/config.json
	refused 3 'has no config.json' --tokens t.npy m
}

# Replace the first numbers of a bf16 tensor.
put() { # TENSOR COUNT BYTES
	"$PYTHON" - "$@" <<-'EOF'
	import json, struct, sys
	with open("m/model.safetensors", "r+b") as file:
	    size = struct.unpack("<Q", file.read(8))[0]
	    tensor = json.loads(file.read(size))[sys.argv[1]]
	    file.seek(8 + size + tensor["data_offsets"][0])
	    file.write(bytes.fromhex(sys.argv[3]) * int(sys.argv[2]))
	EOF
}

@test "the first layer with infinities or NaN is named" {
	make_model m --layers 3 --num-experts 9
	tokens t.npy 'np.arange(30)'
	put model.layers.1.self_attn.o_proj.weight 4 ffff
	refused 3 'activations after layer 1 are not finite' --tokens t.npy m
	# a router with finite weights whose logits are not: all expert weights are NaN
	put model.layers.0.mlp.gate.weight $((9 * 64)) 7f7f
	xfp convert m -o m.xfp -q --bits 4 --on-miss best --on-nonfinite keep
	refused 3 'activations after layer 0 are not finite' --fast --tokens t.npy m.xfp
}

# A copy of a model in f32, with another output head.
changed() { # MODEL WHAT IS DONE WITH head
	rm -rf changed
	cp -r "$1" changed
	"$PYTHON" - "$2" <<-'EOF'
	import json, struct, sys
	import numpy as np
	with open("changed/model.safetensors", "r+b") as file:
	    size = struct.unpack("<Q", file.read(8))[0]
	    tensor = json.loads(file.read(size))["lm_head.weight"]
	    at, end = tensor["data_offsets"]
	    file.seek(8 + size + at)
	    head = np.frombuffer(file.read(end - at), "f4").reshape(tensor["shape"]).copy()
	    exec(sys.argv[1])
	    file.seek(8 + size + at)
	    file.write(head.tobytes())
	EOF
}

@test "logits that are not finite are refused, and a perplexity beyond double precision is null" {
	make_model m --dtype f32
	tokens t.npy 'np.array([[1, 2]])'
	# A token with probability 0: of two signs one makes its logit -inf, the other inf.
	for change in 'head[9] = 3e38' 'head[9] = -3e38' 'head[9] = np.nan'; do
		changed m "$change"
		refused 3 'changed: logits are not finite' --json --tokens t.npy changed
		refused 3 'changed: logits are not finite' --tokens t.npy --source changed m
	done
	changed m 'head *= 1e6; head[2] = -head[1:].sum(0)'
	tokens t.npy 'np.arange(60).reshape(4, 15) ** 2 % 96'
	[ "$(said perplexity --tokens t.npy changed)" = None ]
	xfp eval --tokens t.npy changed | grep -q '^perplexity inf ('
}

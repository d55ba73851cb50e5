#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# xfp generate: tokens compared with numpy, ends of texts, sampling, and refusals.

load helpers

setup() {
	setup_folder
	unset XFP_WORK XFP_OUT
}

model() { # FOLDER OPTION...
	make_model "$1" --vocab 260 "${@:2}"
	"$PYTHON" "$srcdir/tests/make-tokenizer.py" "$1"
}

# Run Python on the --json output, r.
said() { # EXPRESSION ARGUMENT...
	xfp generate --json "${@:2}" 2>report | "$PYTHON" -c 'import json, sys
r = json.load(sys.stdin)
print(eval(sys.argv[1]))' "$1"
}

@test "a batch gives numpy's tokens in any combination, also for a bundle that keeps everything" {
	model m --layers 2
	printf '"Quick"\n{"prompt": "the daft\\nzebra jumps over the lazy dog"}\n"\\u2603"\n' >prompts.jsonl
	xfp generate --batch prompts.jsonl --parallel 2 -n 12 --json m >said.json
	PYTHONPATH=$srcdir/tests/models PYTHONDONTWRITEBYTECODE=1 "$PYTHON" - <<-'EOF'
	import json
	import numpy as np
	from qwen3_moe import Qwen3Moe
	model, compared = Qwen3Moe("m"), 0
	for text in json.load(open("said.json"))["texts"]:
	    ids = list(text["prompt_tokens"])
	    assert ids[0] == 256 and len(text["tokens"]) == 12, text
	    for token in text["tokens"]:
	        logits = model.logits(np.array([ids]))[0, -1]
	        best, next_best = np.sort(logits)[[-1, -2]]
	        if best - next_best < 1e-3 * logits.std():
	            break
	        assert token == logits.argmax(), (ids, token)
	        ids.append(token)
	        compared += 1
	assert compared > 20, compared
	EOF
	expected=$(said '[t["tokens"] for t in r["texts"]]' --batch prompts.jsonl --parallel 1 -n 12 --threads 1 m)
	[ "$("$PYTHON" -c 'import json; print([t["tokens"] for t in json.load(open("said.json"))["texts"]])')" = "$expected" ]
	xfp convert m -o m.xfp -q --format attention=keep --format routed_expert=keep --lm-head keep
	[ "$(said '[t["tokens"] for t in r["texts"]]' --batch prompts.jsonl -n 12 m.xfp)" = "$expected" ]
}

@test "experts of a bundle multiplied together, few or many, equal those of the unpacked model one by one" {
	printf 'Quick\nthe daft zebra jumps over the lazy dog\nx\n' >prompts
	for experts in split fused; do
		model "$experts" --num-experts 9 --experts "$experts" --dtype f32
		xfp convert "$experts" -o m.xfp -q --bits 4 --on-miss best
		xfp unpack m.xfp -o copy --dtype f32 >unpacked
		expected=$(said '[t["tokens"] for t in r["texts"]]' --batch prompts -n 12 copy)
		[ "$(said '[t["tokens"] for t in r["texts"]]' --batch prompts -n 12 m.xfp)" = "$expected" ]
		[ "$(said '[t["tokens"] for t in r["texts"]]' --batch prompts -n 12 --parallel 1 --threads 1 m.xfp)" = "$expected" ]
		rm -rf m.xfp m.xfp.work copy
	done
}

@test "a text is written exactly, and ends at stop texts and limits" {
	model m
	whole=$(said 'ascii(r["texts"][0]["text"])' --prompt 'ab' -n 24 m)
	xfp generate --prompt 'ab' -n 24 m >text 2>report
	[ "$("$PYTHON" -c 'print(ascii(open("text", encoding="utf-8").read()[:-1]))')" = "$whole" ]
	grep -q '^context: 27 tokens, 1 at a time, 6.91 kB of KV cache in [0-9.]* MB of memory$' report
	grep -q '^prompt: 3 tokens in .* per second$' report
	grep -q '^text: 23 tokens in .* per second$' report
	# JSON cannot represent bytes that are not UTF-8.
	[ "$(said 'r["texts"][0]["prompt"]' --prompt $'a\xe9b' -n 2 m)" = 'a\xe9b' ]
	[ "$(said 'r["texts"][0]["end"]' --prompt ab -n 24 m)" = length ]
	[ "$(said 'r["texts"][0]["end"], len(r["texts"][0]["tokens"])' --prompt ab --context 9 -n 24 m)" = "('context', 7)" ]
	grep -qx 'the text ends where the context of 9 tokens is full; --context makes room for more' report
	# Statistics follow the text on a line of their own; one token is singular.
	xfp generate --prompt ab --context 4 -n 24 m >both 2>&1
	[[ $(tail -n 4 both) == "the text ends where"*$'\n'"context: 4 tokens, "*$'\ntext: 1 token in '* ]]
	# an end token of generation_config.json ends the text, and is not part of it
	third=$(said 'r["texts"][0]["tokens"][2]' --prompt ab -n 3 m)
	echo "{\"eos_token_id\": [300, $third]}" >m/generation_config.json
	[ "$(said 'r["texts"][0]["end"], len(r["texts"][0]["tokens"]) <= 3' --prompt ab -n 24 m)" = "('token', True)" ]
	echo '{"eos_token_id": "none"}' >m/generation_config.json
	run -3 xfp generate --prompt ab m
	[[ $output == *"generation_config.json: eos_token_id is neither"* ]]
	rm m/generation_config.json
	# so does a --stop string, wherever its tokens end
	"$PYTHON" - "$whole" <<-'EOF'
	import ast, subprocess, sys
	whole = ast.literal_eval(sys.argv[1])
	for first, last in ((4, 6), (7, 8), (9, 13)):
	    stop = whole[first:last]
	    out = subprocess.run(["xfp", "generate", "--prompt", "ab", "-n", "24", "--stop", "no such text", "--stop", stop, "m"],
	                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.decode()
	    assert out.rstrip("\n") == whole[:whole.index(stop)].rstrip("\n"), (stop, out, whole)
	EOF
}

@test "longrope: tokens before, at and after the original context equal those of transformers" {
	"$PYTHON" "$srcdir/tests/models/longrope.py" m
	"$PYTHON" "$srcdir/tests/make-tokenizer.py" m
	# Prompts of 12, 20, 24, 25 and 45 tokens; the original context is 24. The tokens are those of
	# transformers 5.23 (longrope.py --transformers), one prompt at a time.
	cat >expected <<-'EOF'
	[57, 163, 240, 37, 58, 237, 144, 255, 191, 47, 140, 234, 109, 219, 242, 60]
	[71, 196, 239, 147, 148, 8, 115, 202, 196, 239, 162, 236, 213, 194, 236, 191]
	[169, 57, 35, 151, 234, 67, 18, 8, 8, 8, 8, 42, 8, 42, 8, 35]
	[228, 14, 240, 103, 169, 92, 230, 188, 190, 156, 87, 159, 258, 163, 162, 230]
	[11, 40, 10, 234, 253, 74, 40, 173, 94, 180, 76, 239, 213, 11, 40, 10]
	EOF
	printf '%s\n' 'quick brown' 'the lazy dogs sleep' 'a cat sits on the mat by' 'a cat sits on the mat by.' \
		'what comes after the original context is long' >prompts
	made='"\n".join(str(t["tokens"][:16]) for t in r["texts"])'
	[ "$(said "$made" --batch prompts -n 16 m)" = "$(cat expected)" ]
	[ "$(said "$made" --batch prompts -n 40 --parallel 1 --threads 1 m)" = "$(cat expected)" ]
	[ "$(said "$made" --batch prompts -n 16 --parallel 2 --context 90 m)" = "$(cat expected)" ]
	# Neither -n nor the context changes the first token.
	[ "$(said 'r["texts"][0]["tokens"]' --prompt 'quick brown' -n 1 m)" = '[57]' ]
	# More tokens must be recomputed at once than one block holds.
	for i in $(seq 30); do sed -n 2p prompts; done >same
	[ "$(said "$made" --batch same -n 16 --parallel 30 m | sort -u)" = "$(sed -n 2p expected)" ]
}

@test "sampled tokens follow from the seed, independent of other prompts" {
	model m
	printf 'one\n\ntwo\nthree\n' >prompts
	draw=(--batch prompts -n 8 --temperature 1.5)
	first=$(said '[t["tokens"] for t in r["texts"]]' "${draw[@]}" --seed 7 m)
	[ "$(said '[t["tokens"] for t in r["texts"]]' "${draw[@]}" --seed 7 --parallel 1 --threads 2 m)" = "$first" ]
	[ "$(said '[t["tokens"] for t in r["texts"]]' "${draw[@]}" --seed 8 m)" != "$first" ]
	greedy=$(said '[t["tokens"] for t in r["texts"]]' --batch prompts -n 8 m)
	[ "$greedy" != "$first" ]
	[ "$(said '[t["tokens"] for t in r["texts"]]' "${draw[@]}" --top-k 1 m)" = "$greedy" ]
	[ "$(said '[t["tokens"] for t in r["texts"]]' "${draw[@]}" --top-p 1e-9 m)" = "$greedy" ]
	run -0 --separate-stderr xfp generate "${draw[@]}" --seed 7 m
	[ "$(grep -c '^--- [123]$' <<<"$output")" = 3 ]
}

refused() { # STATUS MESSAGE ARGUMENT...
	run "-$1" --separate-stderr xfp generate "${@:3}"
	[ -z "$output" ] || return 1
	# shellcheck disable=SC2154
	[[ $stderr == *"$2"* ]] || { echo "$stderr"; return 1; }
}

@test "limits and missing arguments" {
	model m
	make_model without --vocab 260
	make_model b --family bert
	refused 2 'no bundle or model' --prompt a
	refused 2 '--prompt or --batch is missing; give a prompt with --prompt TEXT' 'some text' m
	refused 2 "give a prompt with --prompt 'TEXT', in quotes" --prompt some text m
	refused 2 'exclude each other' --prompt a --batch prompts m
	refused 2 'need a --temperature above 0' --prompt a --top-k 3 m
	refused 2 "--top-p '0': expected a number above 0" --prompt a --top-p 0 m
	refused 2 "--seed '-1': expected a whole number" --prompt a --seed -1 m
	refused 2 '--stop: is empty' --prompt a --stop '' m
	refused 2 '--stop: is not UTF-8' --prompt a --stop $'a\xff' m
	refused 2 "--memory '100': expected a size" --prompt a --memory 100 m
	refused 3 'without: has no tokenizer.json' --prompt a without
	refused 3 'b: is an encoder (bert), which does not generate text; xfp eval compares its embeddings' --prompt a b
	refused 3 "--context 1025: the model's context is 1024" --prompt a --context 1025 m
	refused 3 'prompt 1 has 7 tokens, and the context is 6' --prompt abcdef --context 6 m
	refused 3 "prompt 1 has 1201 tokens, and the model's context is 1024" --prompt "$(printf '%01200d' 0)" m
	refused 1 'MB of memory besides the weights, 66.0 kB of it for the KV cache; --memory allows 10.0 kB' \
		--prompt a --memory 10kB m
	# Each thread has the scores of four queries, and 16 more of each.
	one=$(said 'r["memory"]' --prompt a -n 2 --context 1000 --threads 1 m)
	[ "$(said 'r["memory"]' --prompt a -n 2 --context 1000 --threads 5 m)" = $((one + 4 * 4 * (1000 + 16) * 4)) ]
	# A config that contradicts the tensors is refused before memory of its sizes is allocated.
	cp -r m large
	sed -i -E 's/"num_(attention|key_value)_heads": [0-9]+/"num_\1_heads": 16777216/' large/config.json
	refused 3 'q_proj.weight is not [' --prompt a large
	echo ' ' >blank
	refused 3 'blank: has no prompts' --batch blank m
	refused 3 'nothere' --batch nothere m
	echo '{"promt": "a"}' >wrong.jsonl
	refused 3 'wrong.jsonl: line 1 is neither' --batch wrong.jsonl m
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
	model m --layers 3 --num-experts 9
	put model.layers.1.self_attn.o_proj.weight 4 ffff
	refused 3 'activations after layer 1 are not finite' --prompt a m
	# a router with finite weights whose logits are not: all expert weights are NaN
	put model.layers.0.mlp.gate.weight $((9 * 64)) 7f7f
	xfp convert m -o m.xfp -q --bits 4 --on-miss best --on-nonfinite keep
	refused 3 'activations after layer 0 are not finite' --prompt a m.xfp
}

# Run COMMAND with a terminal as standard output that changes no bytes.
on_terminal() { # COMMAND...
	"$PYTHON" - "$@" <<-'EOF'
	import os, pty, subprocess, sys, termios
	main, terminal = pty.openpty()
	modes = termios.tcgetattr(terminal)
	modes[1] &= ~termios.OPOST
	termios.tcsetattr(terminal, termios.TCSANOW, modes)
	child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=terminal, stderr=subprocess.DEVNULL)
	os.close(terminal)
	while True:
	    try:
	        data = os.read(main, 4096)
	    except OSError:  # Linux: the other end is closed
	        break
	    if not data:
	        break
	    os.write(1, data)
	sys.exit(child.wait())
	EOF
}

@test "on a terminal control characters of a tokenizer are escaped, unless --raw; a pipe gets the bytes" {
	model m
	# Sample tokens, then map them to the bytes of a hostile text, each byte of its UTF-8 sequences a token.
	"$PYTHON" - >seed <<-'EOF'
	import json, subprocess
	text = b"\x1b]0;x\x07\xc2\x9b\r\x7f\t\xc3\xa9\\\n!\0"
	open("text", "wb").write(text + b"\n")
	open("escaped", "wb").write(rb"\x1b]0;x\x07\xc2\x9b\x0d\x7f" + "\té\\\n!\\x00\n".encode())
	for seed in range(100):
	    command = ["xfp", "generate", "--json", "--prompt", "ab", "--temperature", "100", "--seed", str(seed),
	               "-n", str(len(text)), "m"]
	    said = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
	    ids = said["texts"][0]["tokens"]
	    if len(set(ids) - set(said["texts"][0]["prompt_tokens"]) - set(range(256, 260))) == len(text):
	        break
	print(seed)
	file = json.load(open("m/tokenizer.json"))
	plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
	rest = [b for b in range(256) if b not in plain]
	spelt = {i: piece for piece, i in file["model"]["vocab"].items()}
	for byte, i in zip(text, ids):
	    piece = chr(byte if byte in plain else 256 + rest.index(byte))
	    j = next(j for j in spelt if spelt[j] == piece)
	    spelt[i], spelt[j] = spelt[j], spelt[i]
	file["model"]["vocab"] = {piece: i for i, piece in spelt.items()}
	json.dump(file, open("m/tokenizer.json", "w"))
	EOF
	draw=(xfp generate --temperature 100 --seed "$(cat seed)" -n 17 m)
	"${draw[@]}" --prompt ab >piped
	cmp text piped
	on_terminal "${draw[@]}" --prompt ab >shown
	cmp escaped shown
	on_terminal "${draw[@]}" --prompt ab --raw >shown
	cmp text shown
	echo ab >prompts
	on_terminal "${draw[@]}" --batch prompts >shown
	cmp <(echo '--- 1' && cat escaped) shown
	on_terminal "${draw[@]}" --batch prompts --raw >shown
	cmp <(echo '--- 1' && cat text) shown
}

@test "an interrupted text is written up to the last token" {
	model m
	"$PYTHON" - <<-'EOF'
	import signal, subprocess
	signal.signal(signal.SIGINT, signal.SIG_DFL)
	child = subprocess.Popen(["xfp", "generate", "--prompt", "a", "-n", "100000", "--threads", "1", "m"],
	                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
	begun = child.stdout.read(20)
	child.send_signal(signal.SIGINT)
	rest, said = child.communicate()
	assert child.returncode == -signal.SIGINT, child.returncode
	assert (begun + rest).decode().endswith("\n") and b"text: " in said, said
	EOF
}

@test "signals and a full disk take effect without waiting for the model" {
	needs_strace
	model m --layers 4
	# A step reads more than a hundred times; the matrix being read may still be completed.
	run -130 strace -f -qq -o trace -P "$PWD/m/model.safetensors" -e trace=pread64 -e inject=pread64:signal=INT:when=40 \
		xfp generate --prompt ab m
	[[ $output == *"context: "* ]]
	reads=$(grep -c pread64 trace)
	[ "$reads" -ge 40 ]
	[ "$reads" -le 42 ]
	[ -e /dev/full ] || return 0
	status=0
	strace -f -qq -o trace -e trace=write -P /dev/full xfp generate --prompt ab -n 50 m >/dev/full 2>said || status=$?
	[ "$status" = 1 ]
	[ "$(cat said)" = 'xfp: standard output: cannot write: No space left on device' ]
	[ "$(grep -c 'write(' trace)" -le 3 ]
}

# A regular expression whose number of steps grows exponentially with the length of the text.
slow_tokenizer() { # FOLDER
	"$PYTHON" - "$1/tokenizer.json" <<-'EOF'
	import json, sys
	file = json.load(open(sys.argv[1]))
	split = {"type": "Split", "behavior": "Isolated", "pattern": {"Regex": "(a|aa)+$"}}
	file["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, file["pre_tokenizer"]]}
	json.dump(file, open(sys.argv[1], "w"))
	EOF
}

@test "a regular expression that needs too many steps: status 3, with its file" {
	model m
	slow_tokenizer m
	text=$(printf 'a%.0s' {1..59})b
	refused 3 'm: tokenizer.json: pre_tokenizer[0]: the regular expression needs too many steps' --prompt "$text" m
	[[ $stderr == *'; use a tokenizer.json without nested repetitions'* ]]
	echo "$text" >text
	run -3 xfp eval --text text m
	[[ $output == *'m: tokenizer.json: pre_tokenizer[0]: the regular expression needs too many steps'* ]]
	xfp generate --prompt aaaa -n 1 m
}

# The signal arrives while tokenizer.json is opened; encoding ends before the step limit is reached.
@test "a signal ends the encoding of a prompt" {
	needs_strace
	model m
	slow_tokenizer m
	run -130 strace -qq -o trace -P "$PWD/m/tokenizer.json" -e trace=openat -e inject=openat:signal=INT:when=1 \
		xfp generate --prompt "$(printf 'a%.0s' {1..59})b" m
	[[ $output != *'too many steps'* ]]
	[ -s trace ]
}

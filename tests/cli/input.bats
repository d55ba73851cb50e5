#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Inputs of xfp eval and xfp generate: texts, token ids and prompts from files, standard input and pipes, and the
# warnings about them.

load helpers

setup() {
	setup_folder
	unset XFP_WORK XFP_OUT
	make_text_model 2
	printf 'How vexingly quick daft zebras jump over it all.\n' >text
}

evaluate() { # ARGUMENT...
	run -0 --separate-stderr xfp eval --json "$@"
}

@test "eval reads a text and token ids from standard input and from pipes" {
	evaluate --text text m
	expected=$output
	"$PYTHON" -c 'import numpy as np; np.save("t.npy", np.arange(40).reshape(2, 20) % 96)'
	[ "$(xfp eval --json --text - m <text)" = "$expected" ]
	[ "$(sed '' text | xfp eval --json --text - m)" = "$expected" ]
	[ "$(xfp eval --json --text <(sed '' text) m)" = "$expected" ]
	[ "$(sed '' text | xfp eval --json --text /dev/stdin m)" = "$expected" ]
	evaluate --tokens t.npy m
	[ "$(xfp eval --json --tokens - m <t.npy)" = "$output" ]
	[ "$(xfp eval --json --tokens <(cat t.npy) m)" = "$output" ]
	# a file named "-"
	cp text ./-
	[ "$(xfp eval --json --text ./- m </dev/null)" = "$expected" ]
	run -3 --separate-stderr xfp eval --text - m </dev/null
	[[ $stderr == *"xfp eval: standard input: is empty"* ]]
	run -3 --separate-stderr xfp eval --text m m
	[[ $stderr == *"m: is a folder; name a file"* ]]
	run -3 --separate-stderr xfp eval --tokens nothere m
	[[ $stderr == *"nothere: no such file"* ]]
	printf 'x%.0s' {1..300} >large.txt
	run -0 xfp eval --text - --length 100 m <large.txt
}

@test "eval resumes a text from a pipe by its content" {
	make_model long --vocab 260 --layers 12
	"$PYTHON" "$srcdir/tests/make-tokenizer.py" long
	seq 4000 >numbers
	arguments=(--json --threads 1 --length 100 --state state long)
	xfp eval --text numbers "${arguments[@]}" >expected
	cat numbers >piped
	xfp eval --text <(cat numbers) "${arguments[@]}" >ended 2>ended.err &
	until [ -e state ] || ! kill -0 $! 2>/dev/null; do
		sleep .01
	done
	kill -KILL $!
	wait $! || true
	[ ! -s ended ] && [ -e state ]
	cp state kept
	# another text through the same pipe does not resume
	sed 's/^77$/78/' numbers | xfp eval --text - "${arguments[@]}" >other 2>said
	grep -q 'state is the state of another evaluation' said
	run ! cmp -s expected other
	# the same text does, from whatever input
	cp kept state
	xfp eval --text - "${arguments[@]}" <numbers >resumed 2>said
	cmp expected resumed
	run ! grep -v 'this takes about' said # which a busy machine may say
	[ ! -e state ]
}

@test "a text with NUL bytes or much invalid UTF-8 is reported before weights are read" {
	for good in text <(printf '%01500d \xff' 0 | cat); do
		evaluate --text "$good" m
		[ -z "$stderr" ] || { echo "$stderr"; return 1; }
	done
	printf 'ab\0cd\0\0' >nul
	evaluate --text nul m
	[ "$stderr" = "xfp eval: nul: 3 NUL bytes, the first at offset 2; check that it is a text in UTF-8" ]
	# a truncated character and an invalid first byte; one of 1000 bytes may be invalid
	{ printf '%0500d\xe2\x82' 0; printf '%0497d\xff' 0; } >latin
	evaluate --text - m <latin
	[[ $stderr == "xfp eval: standard input: 3 bytes of invalid UTF-8 (0.3 %), the first at offset 500; check"* ]]
	"$PYTHON" -c 'open("wide", "wb").write(b"\xff\xfe" + "text".encode("utf-16-le"))'
	evaluate --text wide m
	[[ $stderr == *"wide: 4 NUL bytes, the first at offset 3, 2 bytes of invalid UTF-8 (20 %), the first at offset 0; "* ]]
	cat nul nul >prompts
	run -0 --separate-stderr xfp generate -n 1 --batch prompts m
	[[ $stderr == "xfp generate: prompts: 6 NUL bytes, the first at offset 2; "* ]]
}

@test "an evaluation that takes over a minute prints a forecast after its first layer" {
	[ "${XFP_TEST_SANITIZERS:-no}" = no ] || skip "sanitizers must be the first library"
	# a clock that advances by that many seconds at each reading
	cat >clock.c <<-'EOF'
	#include <stdlib.h>
	#include <time.h>
	int clock_gettime(clockid_t id, struct timespec *now)
	{
		static long calls;
		(void)id;
		*now = (struct timespec){ .tv_sec = 1000 + ++calls * atol(getenv("STEP")) };
		return 0;
	}
	EOF
	$CC -shared -fPIC -o clock.so clock.c
	STEP=0 LD_PRELOAD=$PWD/clock.so xfp eval --threads 1 --text text m 2>quick >/dev/null
	[ ! -s quick ]
	STEP=600 LD_PRELOAD=$PWD/clock.so xfp eval --threads 1 --text text m 2>slow >/dev/null
	grep -Exq 'xfp eval: this takes about [0-9.]+ (min|h), at the rate of layer 0' slow
	[ "$(wc -l <slow)" = 1 ]
}

@test "eval suggests the probable intention: a text without its option, source and bundle swapped" {
	xfp convert m -o b.xfp -q --bits 4 --on-miss best
	printf x >ids.npy
	run -2 --separate-stderr xfp eval b.xfp text
	[[ ${stderr_lines[0]} == "xfp eval: more than one bundle or model; a text is given with --text text" ]]
	run -2 --separate-stderr xfp eval text b.xfp
	[[ ${stderr_lines[0]} == *"; a text is given with --text text" ]]
	run -2 --separate-stderr xfp eval m ids.npy
	[[ ${stderr_lines[0]} == *"; token ids are given with --tokens ids.npy" ]]
	run -2 --separate-stderr xfp eval b.xfp nothere.txt
	[[ ${stderr_lines[0]} == *"; a text is given with --text nothere.txt" ]]
	run -2 --separate-stderr xfp eval b.xfp - <text
	[[ ${stderr_lines[0]} == *"; a text is given with --text -" ]]
	run -2 --separate-stderr xfp eval --text text m b.xfp
	[[ ${stderr_lines[0]} == "xfp eval: more than one bundle or model" ]]
	run -2 --separate-stderr xfp eval m
	[[ ${stderr_lines[0]} == *"name a text with --text FILE" ]]
	evaluate --text text m --source b.xfp
	[ "$stderr" = "xfp eval: --source b.xfp: is a bundle and m a checkpoint, so they look swapped; to evaluate the bundle: xfp eval --source m b.xfp" ]
	for right in "m b.xfp" "b.xfp b.xfp" "m m"; do
		# shellcheck disable=SC2086
		evaluate --text text --source $right
		[ -z "$stderr" ]
	done
}

# The texts in the --json output for these prompts.
texts() { # ARGUMENT...
	xfp generate --json -n 2 "$@" m 2>/dev/null | "$PYTHON" -c 'import json, sys
print([(t["prompt"], t["tokens"]) for t in json.load(sys.stdin)["texts"]])'
}

@test "generate reads prompts from standard input and from pipes" {
	printf 'one\n\ntwo\n' >prompts
	expected=$(texts --batch prompts)
	[[ $expected == "[('one', "*"('two', "* ]]
	[ "$(texts --batch - <prompts)" = "$expected" ]
	[ "$(texts --batch <(cat prompts))" = "$expected" ]
	# JSON lines are recognized by the file's name, or else by the first value
	printf '\n{"prompt": "one"}\n"two"\n' >prompts.jsonl
	[ "$(texts --batch prompts.jsonl)" = "$expected" ]
	[ "$(texts --batch - <prompts.jsonl)" = "$expected" ]
	[ "$(texts --batch <(cat prompts.jsonl))" = "$expected" ]
	[[ $(echo '"a' | texts --batch -) == "[('\"a', "* ]]
	run -3 --separate-stderr xfp generate --batch - m </dev/null
	[[ $stderr == *"standard input: has no prompts"* ]]
	# a signal ends a command that waits for a pipe
	mkfifo pipe
	xfp generate --batch pipe m 2>said &
	pid=$!
	exec 9>pipe
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	exec 9>&-
	[ $status = 143 ]
}

@test "generate warns of a seed without sampling" {
	run -0 --separate-stderr xfp generate --prompt a -n 1 --seed 3 m
	[[ ${stderr_lines[0]} == "xfp generate: --seed has no effect without a --temperature above 0; "* ]]
	run -0 --separate-stderr xfp generate --prompt a -n 1 --seed 3 --temperature 1 m
	[[ $stderr != *--seed* ]]
	run -0 --separate-stderr xfp generate --prompt a -n 1 m
	[[ $stderr != *--seed* ]]
}

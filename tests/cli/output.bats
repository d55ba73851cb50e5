#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Standard output that fails: a command whose output is lost fails.

load helpers

setup_file() {
	[ -e /dev/full ] || skip "there is no /dev/full"
	cd "$BATS_FILE_TMPDIR" || return 1
	make_model m
	xfp convert m -o m.xfp -q
	cp -r xfp-cache kept-cache
	make_model g --vocab 260
	"$PYTHON" "$srcdir/tests/make-tokenizer.py" g
	printf 'a\nb\n' >prompts
	"$PYTHON" -c 'import numpy as np
np.save("t.npy", np.arange(24).reshape(2, 12))'
}

setup() {
	cd "$BATS_FILE_TMPDIR" || return 1
	key=$(basename "$(artifacts kept-cache | head -1)" .h5)
}

# Status 1 if standard output is full or closed, with one message about it, the last line. If stderr is closed
# too, the status is still 1.
is_lost() { # COMMAND...
	local stderr=$BATS_TEST_TMPDIR/stderr status=0

	"$@" >/dev/full 2>"$stderr" || status=$?
	lost "No space left on device" "$@"
	status=0
	"$@" >&- 2>"$stderr" || status=$?
	lost "Bad file descriptor" "$@"
	status=0
	"$@" >&- 2>&- || status=$?
	[ "$status" = 1 ] || { echo "$*, stderr closed too: status $status"; return 1; }
}

lost() { # REASON COMMAND...
	if [ "$status" != 1 ] || [ "$(grep -c "standard output: cannot write" "$stderr")" != 1 ] ||
		[[ $(tail -1 "$stderr") != *": standard output: cannot write: $1" ]]; then
		echo "${*:2}: $1: status $status"
		cat "$stderr"
		return 1
	fi
}

# What each command prints besides its help, one command line per row.
printing() {
	cat <<-EOT
		convert m -o m.xfp
		convert m -o m.xfp --json
		convert m -o m.xfp --dry-run
		inspect m
		inspect --header --tensors --stats m
		inspect --json --stats m
		inspect --csv --stats m
		plan m
		plan --json m
		walk m
		walk --json m
		compare m --rows 4 --bits 3 --outlier-sigma none
		compare m --rows 4 --bits 3 --outlier-sigma none --json
		compare m --rows 4 --bits 3 --outlier-sigma none --csv
		status m.xfp
		status --json m.xfp
		status --watch m.xfp
		status --watch --json m.xfp
		info m.xfp
		info --json m.xfp
		info --units m.xfp
		report --json m.xfp
		verify m.xfp
		verify --json m.xfp
		eval --tokens t.npy m.xfp
		eval --tokens t.npy --json m
		eval --tokens t.npy --source m m.xfp
		eval --tokens t.npy --source m --json m.xfp
		generate --prompt a -n 2 g
		generate --prompt a -n 2 --json g
		generate --batch prompts -n 2 g
		unpack -o unpacked m.xfp
		unpack --json -o unpacked m.xfp
		cache ls --cache kept-cache
		cache ls --cache kept-cache --json
		cache ls --cache kept-cache $key
		cache ls --cache kept-cache $key --json
		cache stats --cache kept-cache
		cache stats --cache kept-cache --json
		cache check --cache kept-cache
		cache check --cache kept-cache --json
		cache rebuild --cache kept-cache
		cache rebuild --cache kept-cache --json
		cache gc --cache kept-cache --dry-run
		cache gc --cache kept-cache --json
		prepare m -o m.xfp
	EOT
}

@test "every command, whatever it prints" {
	while read -r -a words; do
		is_lost xfp "${words[@]}"
	done < <(printing)
	# no command is missing
	xfp --help | sed -n 's/^  xfp \([a-z]*\) .*/\1/p' >commands
	[ "$(wc -l <commands)" -ge 8 ]
	while read -r command; do
		printing | grep -q "^$command " || { echo "$command is not tried"; return 1; }
	done <commands
}

@test "help, versions, and the folder of the pipelines" {
	for words in --help --version --pipelines help "help convert"; do
		# shellcheck disable=SC2086
		is_lost xfp $words
	done
	for command in $(xfp --help | sed -n 's/^  xfp \([a-z]*\) .*/\1/p'); do
		is_lost xfp "$command" --help
		is_lost xfp "$command" --version
	done
	for command in $(xfp cache --help | sed -n 's/^  xfp cache \([a-z]*\) .*/\1/p'); do
		is_lost xfp cache "$command" --help
	done
	for program in "$XFP_TEST_BIN"/*; do
		is_lost "$program" --help
		is_lost "$program" --version
	done
}

@test "a limit on the size of files is an error, not a signal" {
	for command in xfp\ eval xfp-eval xfp-generate xfp-inspect xfp-launch xfp-verify; do
		(ulimit -f 0; run -1 bash -c "exec $command --help >full"; [[ $output == *'cannot write: File too large' ]]) ||
			{ echo "$command"; return 1; }
	done
}

@test "xfp finds xfp-eval without /proc" {
	unshare -rm true 2>/dev/null || skip "no user namespaces here"
	unshare -rm sh -c 'mount -t tmpfs none /proc && exec xfp eval --help' | grep -q '^usage: xfp eval'
}

@test "output of the other tools" {
	is_lost xfp-inspect m
	is_lost xfp-inspect --json m
	is_lost xfp-verify m.xfp
	is_lost xfp-verify --json m.xfp
	is_lost xfp-kernel-verify --list
	is_lost xfp-kernel-verify --seed 1 --filter 'encode norm'
	is_lost xfp-kernel-verify --seed 1 --filter 'encode norm' --json
	is_lost xfp-bundle --work m.xfp.work --cache xfp-cache "$BATS_TEST_TMPDIR/again.xfp"
	cmp m.xfp "$BATS_TEST_TMPDIR/again.xfp"
}

@test "a closed standard output is not an error for a command that prints nothing" {
	xfp convert m -o m.xfp -q >&-
	xfp verify -q m.xfp >&-
	XFP_WORK=m.xfp.work XFP_CACHE=xfp-cache xfp-pack u000001 >&-
	xfp verify -q m.xfp >&- 2>&-
}

@test "the bundle of a conversion is still written, and status reports finished" {
	cd "$BATS_TEST_TMPDIR"
	make_model m --seed 1
	is_lost xfp convert m -o m.xfp
	xfp verify -q m.xfp
	[[ $(xfp status m.xfp) == "state    finished "* ]]
}

@test "unpack leaves nothing, as its page says" {
	is_lost xfp unpack -o "$BATS_TEST_TMPDIR/new" m.xfp
	[ ! -e "$BATS_TEST_TMPDIR/new" ]
	mkdir "$BATS_TEST_TMPDIR/empty"
	is_lost xfp unpack --json -o "$BATS_TEST_TMPDIR/empty" m.xfp
	[ -z "$(ls -A "$BATS_TEST_TMPDIR/empty")" ]
}

@test "a failure keeps its own status" {
	run -4 bash -c 'xfp verify --min-cos-strict 0.9999 m.xfp 2>&1 >/dev/full'
	[[ $output == *"floors are not met"* ]]
	[[ ${lines[-1]} == "xfp: standard output: cannot write: No space left on device" ]]
}

@test "unpack syncs each file before it is renamed, and the folders after" {
	needs_strace
	cd "$BATS_TEST_TMPDIR"
	strace -f -y -e trace=fsync,rename,mkdir -o trace xfp unpack --max-shard-size 100KB -o new "$BATS_FILE_TMPDIR/m.xfp" >out
	"$PYTHON" - "$PWD" <<-'EOT'
	import re, sys
	here, synced, renamed, folders = sys.argv[1], set(), [], set()
	for line in open("trace"):
	    if m := re.search(r'fsync\(\d+<(.*?)>\) += 0', line):
	        synced.add(m[1])
	        folders.add(m[1])
	    elif m := re.search(r'rename\("(.*?)", "(.*?)"\) += 0', line):
	        assert f"{here}/{m[1]}" in synced, f"{m[2]} was not synced"
	        renamed.append(m[2])
	        folders = set()
	    elif "mkdir(" in line:
	        folders = set()
	assert len(renamed) >= 5 and "new/model.safetensors.index.json" in renamed, renamed
	assert {here, here + "/new"} <= folders, folders
	EOT
}

@test "--json: bytes of a path that are no UTF-8 are escaped" {
	cd "$BATS_TEST_TMPDIR"
	folder=$'f\xff\xc3\xbc'
	mkdir "$folder" 2>/dev/null || skip "this file system takes UTF-8 only"
	make_model m
	mv m "$folder/m"
	cat >expect.py <<-'EOT'
	import json, sys
	value = json.load(sys.stdin)
	for step in sys.argv[1].split("/"):
	    value = value[int(step) if step.isdigit() else step]
	assert "/f\\xff\u00fc/" in value or value.startswith("f\\xff\u00fc/"), value
	EOT
	has() { # MEMBER COMMAND...: what it says under MEMBER names the folder
		"${@:2}" >json
		"$PYTHON" expect.py "$1" <json || { echo "${*:2}"; return 1; }
	}
	has model xfp plan --json "$folder/m"
	has bundle xfp convert "$folder/m" -o "$folder/m.xfp" --json
	has work xfp convert "$folder/m" -o "$folder/m.xfp" --json
	has cache/folder xfp plan --json "$folder/m" -o "$folder/m.xfp"
	for member in work model output cache log; do
		has "runs/0/$member" xfp status --json "$folder/m.xfp"
	done
	has model xfp compare "$folder/m" --rows 4 --bits 3 --outlier-sigma none --json
	has model xfp-inspect --json "$folder/m"
	for command in ls stats check rebuild "gc --dry-run"; do
		# shellcheck disable=SC2086
		has cache xfp cache $command --cache "$folder/xfp-cache" --json
	done
	printf x | dd of="$folder/m.xfp" bs=1 seek=70000 conv=notrunc status=none
	run -3 xfp verify --json "$folder/m.xfp"
	"$PYTHON" expect.py faults/0 <<<"$(xfp verify --json "$folder/m.xfp" 2>/dev/null)"
}

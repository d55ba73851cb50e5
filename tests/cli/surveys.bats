#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Surveys as a file: another machine makes the same bundle without measuring them, and bad files are refused.

load helpers

setup() {
	setup_folder
	unset XFP_MODE
	mkdir here there
}

# Number of surveys with this outcome, "made" or "hit", in the last run of a work folder.
surveys() { # OUTCOME WORK
	cut -f 2,3 "$2/events" | grep -c "^survey	$1$" || true
}

json() { # EXPRESSION on o
	"$PYTHON" -c 'import json, sys; o = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"
}

# A converted model, and its surveys in the file s.
exported() { # OPTION...
	make_model here/m "$@"
	expected=$(converted here/m here/out.xfp)
	xfp cache export --surveys here/out.xfp -o s >said
	count=$(find here/xfp-cache -name '*.h5' -exec grep -l 'kind survey' {} + | wc -l)
	grep -q "^s: $count surveys, .*B$" said
}

# Change bytes of a file with a Python expression on `data`, and write its digest again.
forged() { # FROM TO STATEMENT
	"$PYTHON" - "$@" <<-'EOF'
	import hashlib, struct, sys
	source, target, statement = sys.argv[1:]
	data = bytearray(open(source, "rb").read()[:-32])
	exec(statement)
	open(target, "wb").write(data + hashlib.sha256(data).digest())
	EOF
}

@test "imported surveys are used in another place for any floor and size, and the bundle is the same" {
	exported
	mv here/m there/model
	mv s there
	cd there
	run -0 xfp cache import s
	[ "$output" = "s: $count surveys, $count imported into xfp-cache, 0 there already" ]
	run -0 xfp cache check --read-data
	[[ $output == *"no damage found" ]]
	[ "$(converted model out.xfp)" = "$expected" ]
	[ "$(surveys made out.xfp.work)" = 0 ]
	[ "$(surveys hit out.xfp.work)" -ge "$count" ]
	for option in --min-cos-lazy=0.95 --target-bpw=28; do
		mkdir new
		xfp cache import s --cache new/cache >/dev/null
		other=$(converted model new/out.xfp $option --cache new/cache)
		[ "$(surveys made new/out.xfp.work)" = 0 ] || { echo "$option"; return 1; }
		rm -r new
		[ "$(converted model plain.xfp $option --cache plain)" = "$other" ] || { echo "$option"; return 1; }
		[ "$other" != "$expected" ]
		rm -r plain plain.xfp*
	done
}

@test "the same artifacts give the same file, of the bundle or its work folder, in a cache that moved, and imported" {
	exported
	xfp cache export --surveys here/out.xfp.work/ --output again --json >json
	cmp s again
	[ "$(json 'o["surveys"]' <json)" = "$count" ]
	[ "$(json 'o["bytes"]' <json)" = "$(stat -c %s s)" ]
	xfp cache import s --cache there/cache --json >json
	[ "$(json '[o["surveys"], o["imported"], o["known"], o["differing"]]' <json)" = "[$count, $count, 0, []]" ]
	xfp cache import s --cache there/cache --json >json
	[ "$(json '[o["surveys"], o["imported"], o["known"], o["differing"]]' <json)" = "[$count, 0, $count, []]" ]
	rm -r here/xfp-cache
	run -1 xfp cache export --surveys here/out.xfp -o again
	[[ $output == *"here/xfp-cache: no such cache"* ]]
	xfp cache export --surveys here/out.xfp -o again --cache there/cache >/dev/null # replaces a file of surveys
	cmp s again
	[ "$(head -c 7 s)" = XFPSURV ]
	run -1 grep -qa "$PWD" s
}

@test "bad calls of export: status, message, and no file" {
	make_model here/m
	xfp convert here/m -o here/out.xfp -q
	run -2 xfp cache export here/out.xfp -o s
	run -2 xfp cache export --surveys here/out.xfp
	run -2 xfp cache export --surveys -o s
	run -2 xfp cache export --surveys here/out.xfp -o here/out.xfp
	[[ $output == *"here/out.xfp: exists and is not a file of surveys"* ]]
	run -3 xfp cache export --surveys nothing.xfp -o s
	[[ $output == *"nothing.xfp: no conversion found"* ]]
	run -3 xfp cache export --surveys here/out.xfp -o here
	run -1 xfp cache export --surveys here/out.xfp -o missing/s
	run -1 xfp cache export --surveys here/out.xfp -o s --cache there
	[[ $output == *"there: is not an xfp cache"* ]]
	no_output s
	# a damaged survey, and one that is gone
	key=$(query "SELECT min(key) FROM artifacts WHERE kind = 'survey'" here/xfp-cache)
	printf X | dd of="here/xfp-cache/artifacts/${key:0:2}/$key.h5" bs=1 seek=900 conv=notrunc status=none
	run -3 xfp cache export --surveys here/out.xfp -o s
	[[ $output == *"/$key.h5: damaged artifact"* ]]
	rm "here/xfp-cache/artifacts/${key:0:2}/$key.h5"
	run -1 xfp cache export --surveys here/out.xfp -o s
	[[ $output == *"here/xfp-cache: the survey of unit model.layers.0."*" is missing"* ]]
	no_output s
	# thresholds that were given
	xfp convert here/m -o here/fixed.xfp -q --outlier-sigma 4
	run -3 xfp cache export --surveys here/fixed.xfp -o s
	[[ $output == *"fixed.xfp.work: has no surveys"* ]]
	no_output s
}

@test "bad files: refused with status 3, and no cache is created" {
	exported
	refuse() { # FILE MESSAGE
		run -3 xfp cache import "$1" --cache new
		[[ $output == *"$1: $2"* ]] || { echo "$output, not $2"; return 1; }
		[ ! -e new ]
	}
	run -2 xfp cache import
	run -2 xfp cache import s s
	run -3 xfp cache import missing --cache new
	refuse here "is a folder"
	refuse here/out.xfp "not a file of surveys"
	: >empty
	refuse empty "not a file of surveys"
	size=$(stat -c %s s)
	for length in 7 8 11 23 24 55 56 1000 $((size / 2)) $((size - 32)) $((size - 1)); do
		head -c $length s >short
		refuse short $([ $length -ge 8 ] && echo truncated || echo not)
	done
	cat s /dev/zero | head -c $((size + 1)) >long
	refuse long "truncated or damaged"
	for at in 16 21 30 $((size / 3)) $((size - 40)) $((size - 3)); do
		"$PYTHON" -c 'import sys
data = bytearray(open("s", "rb").read()); data[int(sys.argv[1])] ^= 4; open("flipped", "wb").write(data)' $at
		refuse flipped "truncated or damaged"
	done
	forged s forged 'data[8] = 2'
	refuse forged "format version 2; this xfp reads version 1"
	forged s forged 'data[12] += 1'
	refuse forged "surveys of another version of xfp (algorithm 3, layout 1)"
	forged s forged 'data[16] += 1'
	refuse forged "surveys of another version of xfp (algorithm 2, layout 2)"
}

@test "hostile records with a right digest: refused, or imported and never used" {
	exported
	cat >statements <<-'EOF'
	data[20:24] = struct.pack("<I", 1)
	data[20:24] = struct.pack("<I", 1000000)
	data[24:28] = struct.pack("<I", 2**32 - 1)
	data[24:28] = struct.pack("<I", 3)
	data[28:32] = struct.pack("<I", 2**32 - 1)
	data[28:32] = struct.pack("<I", 16385)
	data[33] = 0
	data[data.index(b"algorithm 2") + 10] = ord("1")
	data[data.index(b"kind survey"):][:4] = b"KIND"; data[32:36] = b"KIND"
	data[data.index(b"dtype")] = ord("D")
	data[data.index(b"source ") + 8] ^= 1
	data[data.index(b"\nrows ") + 6] ^= 1
	at = data.index(b".weight") + 7; data[at:at + 8] = struct.pack("<d", float("nan"))
	at = data.index(b".weight") + 7; data[at:at + 8] = struct.pack("<d", float("inf"))
	at = data.index(b".weight") + 15; data[at:at + 4] = struct.pack("<I", 0)
	at = data.index(b".weight") + 15; data[at:at + 4] = struct.pack("<I", 2**32 - 1)
	at = data.index(b".weight") + 19; data[at:at + 8] = struct.pack("<Q", 2**64 - 1)
	at = data.index(b".weight") + 27; data[at:at + 8] = struct.pack("<Q", 2**64 - 1)
	at = data.index(b".weight") + 27; data[at:at + 8] = struct.pack("<Q", 2**62)
	at = data.index(b".weight") + 39; data[at:at + 4] = struct.pack("<I", 257)
	data[-56:-52] = struct.pack("<I", 77)
	data[-52:-48] = struct.pack("<I", 0)
	data[-24:-16] = struct.pack("<d", float("nan"))
	data[-8:] = struct.pack("<d", -1)
	data += bytes(4)
	del data[-1]
	EOF
	while read -r statement; do
		forged s forged "$statement"
		run -3 xfp cache import forged --cache new
		[[ $output == *"forged: impossible "*"do not trust this file"* ]] || { echo "$statement: $output"; return 1; }
		[ -z "$(find new -name '.*.tmp')" ]
		rm -r new
	done <statements
	# numbers that only measuring finds wrong: floors are still met
	forged s forged 'data[-24:-16] = struct.pack("<d", 1); data[-16:-8] = data[-24:-16]; data[-8:] = bytes(8)'
	xfp cache import forged --cache there/cache >/dev/null
	xfp convert here/m -o there/out.xfp --cache there/cache -q
	xfp verify there/out.xfp --source here/m -q
}

@test "a survey that the cache has stays: other numbers are reported with status 4, a damaged one is replaced" {
	exported
	forged s forged 'data[-8:] = struct.pack("<d", .5)'
	key=$(query "SELECT max(key) FROM artifacts WHERE kind = 'survey'" here/xfp-cache)
	artifact=here/xfp-cache/artifacts/${key:0:2}/$key.h5
	before=$(sha "$artifact")
	run -4 xfp cache import forged --cache here/xfp-cache
	[[ $output == *"unit model.layers.0."*": the cache keeps its own survey $key, which has other numbers"* ]]
	[[ $output == *"$count surveys, 0 imported into here/xfp-cache, $((count - 1)) there already"* ]]
	[[ $output == *"forged: 1 surveys differ from those in here/xfp-cache"* ]]
	run -4 --separate-stderr xfp cache import forged --cache here/xfp-cache --json
	[ "$(json '[d["key"] for d in o["differing"]]' <<<"$output")" = "['$key']" ]
	[ "$(sha "$artifact")" = "$before" ]
	truncate -s -1 "$artifact"
	run -0 xfp cache import s --cache here/xfp-cache
	[[ $output == *" 1 imported "* ]]
	run -0 xfp cache check --read-data --cache here/xfp-cache
	[[ $output == *"no damage found" ]]
}

@test "--check-survey measures units again: right ones pass, a wrong one is named with status 4" {
	exported
	xfp cache import s --cache there/cache >/dev/null
	run -0 xfp convert here/m -o there/out.xfp --cache there/cache --check-survey 2
	[ "$(grep -c '^xfp-survey: unit .*: the survey is right$' <<<"$output")" = 2 ]
	[ "$(sha there/out.xfp)" = "$expected" ]
	[ "$(surveys made there/out.xfp.work)" = 0 ]
	# again, with a complete bundle, and more than there are
	run -0 xfp convert here/m -o there/out.xfp --cache there/cache --check-survey 999
	[ "$(grep -c '^xfp-survey: unit .*: the survey is right$' <<<"$output")" = "$(cat here/out.xfp.work/u*-survey | wc -l)" ]
	[ "$(sha there/out.xfp)" = "$expected" ]
	# a last bit that only measuring finds
	for option in --min-cos-lazy=0.98 --target-bpw=28; do
		forged s forged 'data[-40] ^= 1'
		xfp cache import forged --cache forged.cache >/dev/null
		run -4 xfp convert here/m -o forged.xfp --cache forged.cache $option -q --check-survey 999
		key=$(query "SELECT max(key) FROM artifacts WHERE kind = 'survey'" forged.cache)
		[[ $output == *"unit model.layers.0."*": its survey $key in the cache has other numbers than a new one"* ]]
		[ ! -e forged.xfp ]
		rm -r forged.cache forged.xfp.work
	done
	# without surveys, there is nothing to check
	run -0 xfp convert here/m -o new.xfp --cache new.cache --check-survey 1
	[[ $output == *"xfp-survey: unit "*": not checked, since the cache has no survey of it"* ]]
	[ "$(sha new.xfp)" = "$expected" ]
	xfp convert here/m -o new.xfp --cache new.cache -q --drop-cache
	run -0 xfp convert here/m -o new.xfp --cache new.cache --check-survey 1
	[[ $output == *"note: no survey was checked, since the bundle is complete without the cache"* ]]
	run -2 xfp convert here/m -o new.xfp --check-survey 0
	[[ $output == *"--check-survey"* ]]
}

@test "surveys of other weights or options are imported, and measured again" {
	exported
	make_model there/m --seed 7
	xfp cache import s --cache there/xfp-cache >/dev/null
	expected=$(converted there/m plain.xfp --cache plain)
	[ "$(converted there/m there/out.xfp)" = "$expected" ]
	[ "$(surveys made there/out.xfp.work)" = "$count" ]
	xfp cache import s --cache other >/dev/null
	xfp convert here/m -o other.xfp -q --bits 3,4 --cache other
	[ "$(surveys hit other.xfp.work)" = 0 ]
}

@test "a note says that no imported survey is of the weights and options; none is printed otherwise" {
	exported
	note='note: .*/cache: none of '$count' unused surveys is of these weights and options; '
	xfp cache import s --cache there/cache >/dev/null
	make_model there/other --hidden 256
	xfp convert there/other -o there/other.xfp --cache there/cache 2>&1 | grep "$note"
	xfp convert here/m -o there/bits.xfp --cache there/cache --bits 3,4 --target-bpw 28 2>&1 | grep "$note"
	# The surveys apply; then the cache has none that is unused.
	run -0 xfp convert here/m -o there/out.xfp --cache there/cache
	[[ $output != *"unused survey"* ]]
	run -0 xfp convert here/m -o there/again.xfp --cache there/cache --bits 3,5
	[[ $output != *"unused survey"* ]]
	run -0 xfp convert there/other -o there/quiet.xfp --cache there/cache --bits 3,5 -q
	[ -z "$output" ]
}

@test "a full disk: status 1, nothing partial, and the import continues" {
	exported
	export ASAN_OPTIONS=verify_asan_link_order=0
	mkdir full
	FULL_DISK=$PWD/full LD_PRELOAD=$XFP_TEST_TOOLS/full_disk.so run -1 xfp cache export --surveys here/out.xfp -o full/s
	[[ $output == *"full/"*"No space left"* ]]
	no_output full/s
	FULL_DISK=$PWD/full LD_PRELOAD=$XFP_TEST_TOOLS/full_disk.so run -1 xfp cache import s --cache full/cache
	[ -z "$(find full -name '.*.tmp')" ]
	run -0 xfp cache import s --cache full/cache
	run -0 xfp cache check --read-data --cache full/cache
}

@test "a read-only cache exports, and refuses an import" {
	needs_mounts
	exported
	read_only here xfp cache export --surveys here/out.xfp -o again
	cmp s again
	run -1 read_only here xfp cache import s --cache here/xfp-cache
	[[ $output == *"here/xfp-cache: the cache is read-only; choose another with --cache"* ]]
}

@test "every failing system call and allocation: status 1 with a message, or the right result" {
	needs_strace
	exported
	xfp cache import s --cache there/cache >/dev/null
	for call in openat read write pwrite64 fsync close rename; do
		for number in 1 2 3 5 9 17; do
			for command in "export --surveys here/out.xfp -o new/s" "import s --cache new/cache"; do
				mkdir new
				status=0
				# the loader's own calls come first
				strace -q -o trace -P "$PWD/new" -P "$PWD/s" -P "$PWD/new/cache/manifest.sqlite" \
					-e trace=$call -e inject=$call:error=EIO:when=$number \
					xfp cache $command >said 2>&1 || status=$?
				[ "$status" = 0 ] || { [ "$status" = 1 ] && [ -s said ]; } ||
					{ echo "$call $number $command: status $status: $(cat said)"; return 1; }
				[ ! -e new/s ] || cmp s new/s
				if [ -d new/cache ]; then
					xfp cache import s --cache new/cache >/dev/null
					xfp cache check --read-data --cache new/cache | grep -q "no damage found"
				fi
				rm -r new
			done
		done
	done
}

@test "failing allocations" {
	[ -z "$XFP_TEST_SANITIZERS" ] || skip "sanitizers have an allocator of their own"
	exported
	for command in "export --surveys here/out.xfp -o s" "import s --cache here/xfp-cache"; do
		"$PYTHON" "$srcdir/tests/faults/commands.py" "$XFP_TEST_TOOLS/faults/fail_allocation.so" xfp cache $command >places
		[ "$(cut -d" " -f1 places)" -ge 10 ]
	done
}

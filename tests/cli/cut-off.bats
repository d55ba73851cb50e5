#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# A bundle that is truncated, or whose disk fails, while a command reads it: a message and a status, no SIGBUS,
# and no files left over.

load helpers

setup_file() {
	cd "$BATS_FILE_TMPDIR" || return 1
	make_model m
	xfp convert m -o m.xfp -q
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	cp "$BATS_FILE_TMPDIR/m.xfp" .
	ln -s "$BATS_FILE_TMPDIR/m" .
	traced=
}

# A failed test may have left it stopped.
teardown() {
	[ -z "$traced" ] || kill -KILL "$traced" 2>/dev/null || true
}

# Run a command that stops at a system call; truncate the bundle to half, or to $keep bytes; continue the command.
# Its status is in $status, its output in the file "said".
cut_off_at() { # WHAT OF STRACE... -- COMMAND...
	local what=()

	while [ "$1" != -- ]; do
		what+=("$1")
		shift
	done
	shift
	rm -f trace
	strace -f -o trace "${what[@]}" "$@" >/dev/null 2>said &
	until grep -q "stopped by SIGSTOP" trace 2>/dev/null; do
		kill -0 $! || { cat trace said; return 1; }
		sleep 0.02
	done
	traced=$(sed -n 's/^\([0-9]*\) .*stopped by SIGSTOP.*/\1/p' trace | head -1)
	truncate -s "${keep:-$(($(stat -c %s m.xfp) / 2))}" m.xfp
	kill -CONT "$traced"
	status=0
	wait $! || status=$?
	traced=
	sed -i '/^strace: /d' said
}

@test "verify, bundle truncated before its members are read: status 3" {
	needs_strace
	cut_off_at -P m/config.json -e inject=openat:signal=STOP:when=1 -- \
		xfp verify --source m m.xfp
	[ "$status" = 3 ]
	[ "$(cat said)" = "xfp verify: m.xfp: truncated while being read; copy or convert it again" ]
	cp "$BATS_FILE_TMPDIR/m.xfp" .
	cut_off_at -P m/config.json -e inject=openat:signal=STOP:when=1 -- \
		xfp-verify --json --source m m.xfp
	[ "$status" = 3 ]
	[ "$(cat said)" = "xfp-verify: m.xfp: truncated while being read; copy or convert it again" ]
}

@test "unpack, bundle truncated while weights are written: status 3, and no folder" {
	needs_strace
	cut_off_at -e inject=ftruncate:signal=STOP:when=1 -- xfp unpack -o new m.xfp
	[ "$status" = 3 ]
	[ "$(cat said)" = "xfp unpack: m.xfp: truncated while being read; copy or convert it again" ]
	[ ! -e new ]
}

@test "unpack, bundle truncated to its first page before small files are written" {
	needs_strace
	keep=4096 cut_off_at -e inject=mkdir:signal=STOP:when=1 -- xfp unpack --no-check -o new m.xfp
	[ "$status" = 3 ]
	[ "$(cat said)" = "xfp unpack: m.xfp: truncated while being read; copy or convert it again" ]
	[ ! -e new ]
}

@test "unpack, bundle truncated after some files were written into an existing folder: it stays, empty" {
	needs_strace
	mkdir new
	cut_off_at -e inject=rename:signal=STOP:when=1 -- xfp unpack --no-check --max-shard-size 20KB -o new m.xfp
	[ "$status" = 3 ]
	[ "$(cat said)" = "xfp unpack: m.xfp: truncated while being read; copy or convert it again" ]
	[ -d new ] && [ -z "$(ls -A new)" ]
}

# Its index is read right after it is mapped: for settings, to compare the checkpoint with it, to report
# differences.
@test "convert --like, bundle truncated each time that it is read: status 3" {
	needs_strace
	make_model other --seed 2
	for when in 1 2 3; do
		cp "$BATS_FILE_TMPDIR/m.xfp" .
		cut_off_at -P m.xfp -e inject=mmap:signal=STOP:when=$when -- \
			xfp convert other --like m.xfp -o new.xfp -q
		[ "$status" = 3 ]
		[ "$(cat said)" = "xfp convert: $PWD/m.xfp: truncated while being read; copy or convert it again" ]
	done
}

@test "convert, its bundle truncated each time that it is read: status 3" {
	needs_strace
	for when in 1 2; do
		xfp convert m -o m.xfp -q
		cut_off_at -P m.xfp -e inject=mmap:signal=STOP:when=$when -- xfp convert m -o m.xfp
		[ "$status" = 3 ]
		said=$(grep -v "has no tokenizer.json" said)
		[ "$said" = "xfp convert: $PWD/m.xfp: truncated while being read; copy or convert it again" ]
		# the record of the run says the same
		[ "$(xfp status m.xfp --json | "$PYTHON" -c 'import json, sys
run = json.load(sys.stdin)["runs"][0]
print(run["state"], run["status"], run["message"])')" = "failed 3 ${said#xfp convert: }" ]
	done
}

@test "kernel-verify --bundle, bundle truncated while it is read: status 3" {
	needs_strace
	cut_off_at -P m.xfp -e inject=mmap:signal=STOP:when=1 -- xfp-kernel-verify --bundle m.xfp
	[ "$status" = 3 ]
	[ "$(cat said)" = "xfp-kernel-verify: m.xfp: truncated while being read; copy or convert it again" ]
}

# A page of a hole on a full tmpfs cannot be allocated, which acts like a bad sector.
@test "a failing disk: status 1, and the bundle is not reported as damaged" {
	needs_mounts
	mkdir disk
	cat >fail.sh <<-'EOT'
	cp m.xfp disk
	size=$(stat -c %s disk/m.xfp)
	fallocate -p -o $((size / 2)) -l 16384 disk/m.xfp || exit 99
	cat /dev/zero >disk/fill 2>/dev/null
	exec "$@"
	EOT
	for command in "xfp verify" "xfp unpack -o new" "xfp unpack --no-check -o new"; do
		# shellcheck disable=SC2086
		run on_small_disk 1M disk sh fail.sh $command disk/m.xfp
		[ "$status" != 99 ] || skip "this machine makes no holes in files"
		[ "$status" = 1 ]
		[[ $output == "xfp "*": disk/m.xfp: cannot read: disk error, "* ]]
		[ "${#lines[@]}" = 1 ]
		[ ! -e new ]
	done
}

@test "a bus error sent by another process is not handled" {
	needs_strace
	run strace -f -o trace -e inject=ftruncate:signal=BUS:when=1 xfp unpack -o new m.xfp
	[ "$status" = $((128 + 7)) ]
	[[ $output != *m.xfp* ]]
}

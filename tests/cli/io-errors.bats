#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Errors of open and read are not damage: the run fails with the system's reason, and all sound files remain.

load helpers

setup() {
	setup_folder
	export XFP_WORK=$PWD/out.xfp.work XFP_CACHE=$PWD/xfp-cache
}

# A unit with all artifacts, made by $stages.
finished_unit() { # UNIT
	make_model m
	xfp prepare m -o out.xfp --min-cos-strict 0.9 >/dev/null 2>&1
	stages=(outlier-extract lloyd-fit autoselect pack)
	for stage in "${stages[@]}"; do
		"xfp-$stage" "$1"
	done
	artifacts | xargs sha256sum >before
}

path_of() { # STAMP
	key=$(cut -d" " -f1 "$XFP_WORK/u000001-$1")
	echo "$XFP_CACHE/artifacts/${key:0:2}/$key.h5"
}

nothing_lost() {
	sha256sum --quiet -c before
}

# Run COMMAND with the N-th CALL on PATH failing; it must succeed, or end with status 1 and ERROR's text. Returns
# whether the call occurred.
with_fault() { # CALL ERROR TEXT N PATH COMMAND...
	local status=0

	strace -f -q -o trace -P "$5" -e trace="$1" -e inject="$1:error=$2:when=$4" "${@:6}" >said 2>&1 || status=$?
	if [ "$status" != 0 ] && { [ "$status" != 1 ] || ! grep -q "$3" said; }; then
		echo "$1 $2 $4 ${*:6}: status $status: $(cat said)"
		return 2
	fi
	grep -q INJECTED trace
}

# Fail each such call of a command in turn.
each_fault() { # CALL ERROR TEXT PATH COMMAND...
	local n=0 met=0

	while [ "$met" = 0 ]; do
		n=$((n + 1))
		with_fault "$1" "$2" "$3" "$n" "${@:4}" || met=$?
		[ "$met" -lt 2 ]
		nothing_lost
	done
	[ "$n" -gt 1 ] || { echo "no $1 of $4 was met"; return 1; }
}

@test "a hit that cannot be opened, examined or read stays, and is not recomputed: EIO at every call of every stage" {
	needs_strace
	finished_unit u000001
	stamps=(outliers fit choice packed)
	for i in 0 1 2 3; do
		for call in openat pread64 %%stat; do
			each_fault $call EIO "Input/output error" "$(path_of "${stamps[i]}")" \
				"xfp-${stages[i]}" u000001
		done
	done
	# Of another stage's artifact, too.
	each_fault openat EACCES "Permission denied" "$(path_of outliers)" xfp-lloyd-fit u000001
	each_fault pread64 EIO "Input/output error" "$(path_of fit)" xfp-autoselect u000001
}

# Over NFS, reading a file that another host replaced fails, though it is open.
@test "an artifact that another host replaces while a stage reads it is read again, and nothing is removed" {
	needs_strace
	finished_unit u000001
	expected=$(converted m here.xfp --cache here)
	rm -r out.xfp.work xfp-cache
	replace_stage xfp-pack 'mkdir "$top/stale" 2>/dev/null || exec "$real" "$@"
		exec strace -f -q -o "$top/trace" $(printf -- "-P %s " "$XFP_CACHE"/artifacts/*/*.h5) \
			-e trace=pread64 -e inject=pread64:error=ESTALE:when=$n "$real" "$@"'
	unset XFP_WORK XFP_CACHE
	# If it was opened already, another round of make reads it again.
	for n in 1 2 4 7 9 12 24; do
		export n
		bin/xfp convert m -o out.xfp -j1 >said 2>&1
		grep -q "INJECTED" trace
		case $n in
		9 | 24) grep "making the missing artifacts again" said ;;
		*) ! grep "again" said || return 1 ;;
		esac
		! grep "making it again" out.xfp.work/log || return 1
		[ "$(sha out.xfp)" = "$expected" ]
		rm -r out.xfp* xfp-cache stale
	done
}

@test "a stamp that another host replaces while a stage reads it is treated as missing" {
	needs_strace
	unset XFP_WORK XFP_CACHE
	make_model m
	expected=$(converted m here.xfp --cache here)
	replace_stage xfp-pack 'mkdir "$top/stale" 2>/dev/null || exec "$real" "$@"
		exec strace -f -q -o "$top/trace" -P "$XFP_WORK/$1-fit" \
			-e trace=$call -e inject=$call:error=ESTALE:when=1 "$real" "$@"'
	for call in openat read; do
		export call
		bin/xfp convert m -o out.xfp -j1 >said 2>&1
		grep -q "INJECTED" trace
		[ "$(sha out.xfp)" = "$expected" ]
		rm -r out.xfp* xfp-cache stale
	done
}

@test "a folder of artifacts that cannot be searched is not treated as empty" {
	needs_strace
	finished_unit u000001
	for call in access faccessat faccessat2; do
		rm -f trace
		strace -q -o trace -P "$(path_of choice)" -e trace=$call -e inject=$call:error=EACCES \
			xfp-autoselect u000001 || [ "$?" = 1 ]
		nothing_lost
	done
}

@test "a ledger that cannot be opened or read is not damaged: status 1, and the reason" {
	needs_strace
	finished_unit u000001
	for stage in xfp-outlier-extract xfp-pack; do
		for call in openat pread64 %%stat; do
			each_fault $call EIO "Input/output error" "$XFP_WORK/ledger.h5" $stage u000001
		done
	done
	run -1 strace -q -o /dev/null -P "$XFP_WORK/ledger.h5" -e inject=openat:error=EMFILE xfp-pack u000001
	[[ $output == *"ledger.h5: cannot open: Too many open files"* ]]
	[[ $output != *"xfp-inspect"* ]]
}

@test "no descriptors left: nothing is removed, and no message reports damage" {
	finished_unit u000001
	for stage in "${stages[@]}"; do
		for limit in 3 4 5 6 7; do
			status=0
			(ulimit -n $limit && exec "xfp-$stage" u000001) >said 2>&1 || status=$?
			[ "$status" = 0 ] || [ "$status" = 1 ] || [ "$status" = 127 ] || { cat said; return 1; }
			if grep -q damaged said; then
				cat said
				return 1
			fi
			nothing_lost
		done
	done
}

@test "another user who cannot read the artifacts removes none" {
	[ "$(id -u)" = 0 ] || skip "only root can be somebody else"
	setpriv --reuid 65534 --regid 65534 --clear-groups true || skip "no other user can be had"
	finished_unit u000001
	# The other user may write everything, which makes the case dangerous.
	chmod -R a+rwX . "$BATS_TEST_TMPDIR"
	for above in "$BATS_TEST_TMPDIR" "$BATS_FILE_TMPDIR" "$BATS_SUITE_TMPDIR" "$BATS_RUN_TMPDIR"; do
		chmod a+x "$above"
	done
	as_other() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
	as_other test -r m/config.json || skip "another user cannot come to this folder"
	as_other xfp-pack u000001 || skip "another user cannot run the tools"
	find xfp-cache -name '*.h5' -exec chmod 600 {} +
	for stage in "${stages[@]}"; do
		run -1 as_other "xfp-$stage" u000001
		[[ $output == *".h5: cannot open: Permission denied"* ]]
		nothing_lost
	done
	# Not where the folders cannot be searched, either.
	chmod 700 xfp-cache/artifacts/*
	for stage in "${stages[@]}"; do
		run -1 as_other "xfp-$stage" u000001
		[[ $output == *"Permission denied"* ]]
		nothing_lost
	done
	run -1 as_other xfp convert m -o out.xfp --min-cos-strict 0.9
	[[ $output == *"Permission denied"* ]]
	nothing_lost
}

@test "a file of the checkpoint that cannot be examined is neither damaged nor omitted" {
	needs_strace
	make_model m
	mkdir m/1_Pooling
	echo '{}' >m/1_Pooling/config.json
	echo '{}' >m/tokenizer.json
	xfp-inspect --work reference m >/dev/null 2>&1
	for file in m m/config.json m/tokenizer.json m/1_Pooling m/1_Pooling/config.json m/model.safetensors; do
		for call in %%stat openat pread64 read getdents64; do
			n=0 more=1
			while [ "$more" = 1 ]; do
				n=$((n + 1)) status=0
				rm -rf work
				strace -q -o trace -P "$PWD/$file" -P "$file" -e trace="$call" \
					-e inject="$call:error=EIO:when=$n" \
					xfp-inspect --work work m >said 2>&1 || status=$?
				grep -q INJECTED trace || more=0
				echo "$file $call $n: status $status: $(cat said)"
				if [ "$status" = 0 ]; then
					cmp work/ledger.h5 reference/ledger.h5
				else
					[ "$status" = 1 ]
					grep -q "Input/output error" said
					[ ! -e work/ledger.h5 ]
				fi
			done
		done
	done
}

@test "an unreadable revision or snapshot of the hub's cache is not skipped" {
	needs_strace
	export HF_HUB_CACHE=$PWD/hub
	commit=0123456789abcdef0123456789abcdef01234567
	mkdir -p hub/models--org--tiny/{refs,snapshots}
	echo $commit >hub/models--org--tiny/refs/main
	make_model hub/models--org--tiny/snapshots/$commit
	xfp-inspect org/tiny >/dev/null 2>&1
	refused() { # CALL PATH
		run -1 strace -q -o trace -P "$PWD/hub/models--org--tiny/$2" -e trace="$1" -e inject="$1:error=EIO:when=1" \
			xfp-inspect org/tiny
		[[ $output == *"Input/output error"* ]]
		grep -q INJECTED trace
	}
	for path in refs/main snapshots snapshots/$commit/model.safetensors; do
		refused %%stat "$path"
	done
	refused openat refs/main
	refused read refs/main
	# A missing folder is different.
	rm hub/models--org--tiny/refs/main
	xfp-inspect org/tiny >/dev/null 2>&1
}

@test "standard input, output and error closed, one by one and all: the same bundle, and no other file is written to" {
	make_model m
	reference=$(converted m out.xfp)
	closed() { # NUMBER...
		rm -rf out.xfp out.xfp.work xfp-cache
		for number in "$@"; do
			eval "exec $number>&-"
		done
		exec xfp convert m -o out.xfp -q
	}
	for which in 0 1 2 "0 1" "0 2" "1 2" "0 1 2"; do
		status=0
		(closed $which) >said 2>&1 3>&- || status=$?
		[ "$status" = 0 ] || { echo "$which closed: $status"; cat said; return 1; }
		[ "$(sha out.xfp)" = "$reference" ]
		# Output written to one of our files instead of the closed one would show there.
		xfp cache check --read-data >/dev/null
		run ! grep -l "units" out.xfp.work/lock xfp-cache/lock
	done
	for command in "xfp-inspect --work work m" "xfp-kernel-verify --list" "xfp-verify out.xfp"; do
		status=0
		# shellcheck disable=SC2086
		(exec <&- >&- 2>&- && exec $command) || status=$?
		[ "$status" = 1 ] || { echo "$command: $status, though its output is lost"; return 1; }
	done
	[ -e work/ledger.h5 ]
}

@test "a cache of another user: the message names the required mode, and with it the cache works" {
	[ "$(id -u)" = 0 ] || skip "only root can be somebody else"
	setpriv --reuid 65534 --regid 65534 --clear-groups true || skip "no other user can be had"
	# Two users of one group.
	as_user() { setpriv --reuid "$1" --regid 65534 --clear-groups "${@:2}"; }
	for above in "$BATS_TEST_TMPDIR" "$BATS_FILE_TMPDIR" "$BATS_SUITE_TMPDIR" "$BATS_RUN_TMPDIR"; do
		chmod a+x "$above"
	done
	make_model m
	chmod -R a+rX m
	mkdir one two shared
	chown 65533:65534 one shared
	chown 65534:65534 two
	chmod 2775 shared
	unset XFP_WORK XFP_CACHE
	as_user 65533 test -r m/config.json || skip "another user cannot come to this folder"
	as_user 65533 xfp plan m >/dev/null 2>&1 || skip "another user cannot run the tools"
	(umask 022 && as_user 65533 xfp convert m -o one/out.xfp --cache shared/cache -q)
	chmod g+w shared/cache shared/cache/artifacts
	run -1 as_user 65534 xfp convert m -o two/out.xfp --cache shared/cache -q
	[[ $output == *"chmod -R g+rwXs "*"shared/cache"* ]] || { echo "$output"; return 1; }
	chmod g+w shared/cache/lock
	run -1 as_user 65534 xfp convert m -o two/out.xfp --cache shared/cache -q --min-cos-strict 0.9 --bits 2
	[[ $output == *"chmod -R g+rwXs "*"shared/cache"* ]] || { echo "$output"; return 1; }
	chmod -R g+rwXs shared/cache
	(umask 002 && as_user 65534 xfp convert m -o two/out.xfp --cache shared/cache -q)
	cmp one/out.xfp two/out.xfp
}

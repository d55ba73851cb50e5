#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Processors other than this machine's, if their emulators are installed: see tests/emulated.

load helpers

setup() {
	setup_folder
	[ "${XFP_TEST_SANITIZERS:-no}" = no ] || skip "a sanitizer's memory is too much for the emulator"
	export XFP_EMULATED=$BATS_FILE_TMPDIR # what is built is built once
}

emulated() {
	status=0
	"$srcdir/tests/emulated" "$@" >report || status=$?
	[ "$status" -ne 77 ] || skip "$(tail -n 1 report)"
	[ "$status" -eq 0 ] || cat report
	return "$status"
}

@test "a processor without AVX: no AVX code runs, the rest passes, and the report lists the sets" {
	emulated conroe
	head -n 1 report | grep -q ', sets plain$'
	tail -n 1 report | grep -q 'all ok$'
	emulated conroe --filter 'encode norm'
	grep -qx 'not run: no AVX2 here: 1 groups' report
	grep -qx 'not run: no AVX-512 here: 1 groups' report
}

@test "AArch64: NEON passes, and exact kernels give the recorded results" {
	emulated aarch64
	head -n 1 report | grep -q ', sets plain neon dotprod$'
	tail -n 1 report | grep -q 'all ok$'
}

@test "AArch64: bundles of every mode, written here" {
	make_model m
	for mode in v2 v2a v2c; do
		xfp convert m -o $mode.xfp -q --mode $mode --lm-head fp8 --floor attention=0.9995
		emulated aarch64 --bundle $mode.xfp
		grep -Eq "^bundle $mode k=[3-6] neon: [0-9]* ok$" report
		grep -Eq "^bundle $mode k=[3-6] dotprod: [0-9]* ok$" report
		grep -Eq '^bundle fp8 neon: 2 ok$' report
		tail -n 1 report | grep -q 'all ok$'
	done
}

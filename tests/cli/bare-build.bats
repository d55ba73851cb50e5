#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# tests/on-device builds the host code from the lists of sources alone. A stand-in for nvcc writes empty device code, so
# this runs on machines without a toolkit, too.

load helpers

setup() {
	setup_folder
}

@test "libxfp, libxfp-cuda and the verifier link without make" {
	cat >nvcc <<-'END'
		#!/bin/sh
		case "$*" in
		--version) echo 'Cuda compilation tools, release 13.0, V13.0.1' ;;
		--list-gpu-code) echo sm_90 ;;
		*) while [ "$1" != -o ]; do shift; done; echo >"$2" ;;
		esac
	END
	chmod +x nvcc
	CFLAGS=-O0 "$srcdir/tests/on-device" --only build --folder f --arch 90 --nvcc "$PWD/nvcc" >out 2>&1 || {
		cat out
		return 1
	}
	run -0 f/xfp-kernel-verify --list
	# the linker allows undefined symbols in a library
	run ! grep ' U xfp_' <(nm -D f/libxfp.so.0)
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Compact groups. To change the constants: tests/make-compact-seeds >kernels/encode/compact_seed.h

load helpers

setup() { setup_folder; }

@test "the constants of compact groups equal the output of their generator" {
	"$XFP_TEST_TOOLS/make-compact-seeds" >compact_seed.h
	cmp compact_seed.h "$srcdir/kernels/encode/compact_seed.h"
}

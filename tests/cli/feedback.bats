#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Error feedback: the kernels next to numpy, with every instruction set of this machine.

load helpers

setup() { setup_folder; }

@test "H, R, bytes, indices and residuals are numpy's" {
	"$PYTHON" "$srcdir/tests/feedback_reference.py" "$XFP_TEST_TOOLS/feedback" >cases
	[ "$(grep -c ': identical; ' cases)" -ge 12 ]
}

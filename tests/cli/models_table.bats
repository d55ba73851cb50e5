#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# docs/models.md: the table says what works, by running it.

load helpers

setup() {
	setup_folder
	unset XFP_FORMAT XFP_LM_HEAD XFP_CONFIG
}

@test "the table of docs/models.md is what tiny models of each family give" {
	by_default
	"$PYTHON" "$srcdir/tests/models/families_table.py" --check "$srcdir/docs/models.md"
}

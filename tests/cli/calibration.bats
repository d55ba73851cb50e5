#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The texts for calibration that xfp ships. A text never changes; a new one gets a new number, a row in
# pipelines/calibration/README.md, and a line here.

load helpers

setup() { cd "$XFP_DATADIR/pipelines/calibration" || return 1; }

@test "texts are the recorded ones, and no others" {
	cat >"$BATS_TEST_TMPDIR/expected" <<-'END'
		2ef3ad458d0365daf84c7e7f24c134c5c07ff1ec77afd8593b1ad4ccb7155f7c  calibration-1.txt
	END
	sha256sum -- *.txt >"$BATS_TEST_TMPDIR/installed"
	diff "$BATS_TEST_TMPDIR/expected" "$BATS_TEST_TMPDIR/installed"
}

@test "README.md has the digest and the size of each text" {
	for text in *.txt; do
		digest=$(sha256sum <"$text")
		printf "| \`%s\` | %d | \`%s\` |\n" "$text" "$(stat -c %s "$text")" "${digest%% *}"
	done >"$BATS_TEST_TMPDIR/expected"
	grep '^| `.*\.txt` |' README.md >"$BATS_TEST_TMPDIR/rows"
	diff "$BATS_TEST_TMPDIR/expected" "$BATS_TEST_TMPDIR/rows"
}

@test "texts are UTF-8, without control characters other than newline and tab, and without long lines" {
	"$PYTHON" - *.txt <<-'END'
		import sys, unicodedata
		for path in sys.argv[1:]:
		    text = open(path, "rb").read().decode("utf-8")
		    for number, line in enumerate(text.split("\n"), 1):
		        if len(line) > 1000 or any(unicodedata.category(c) in ("Cc", "Cf") and c != "\t" for c in line):
		            sys.exit(f"{path}:{number}: {line[:60]!r}")
	END
}

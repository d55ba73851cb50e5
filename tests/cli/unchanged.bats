#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# An existing bundle that would not change is not written again, and its recorded digests are true.

load helpers

setup() { setup_folder; }

# Flip one bit of a byte of a file.
flip() { # FILE BYTE
	"$PYTHON" - "$@" <<-'EOF'
	import sys
	with open(sys.argv[1], "r+b") as f:
	    f.seek(int(sys.argv[2]))
	    byte = f.read(1)[0]
	    f.seek(int(sys.argv[2]))
	    f.write(bytes([byte ^ 1]))
	EOF
}

# Check the summary of a run against out.xfp; the summary is left in $output.
converts_truly() { # OPTION...
	run -0 --separate-stderr xfp convert m -o out.xfp --json "$@"
	[[ $output == *"\"sha256\": \"$expected\""* ]] && [ "$(sha out.xfp)" = "$expected" ]
}

# tests/unit/test_bundle_stamp covers each bit of it.
@test "a changed byte in the bundle's stamp: no run prints another SHA-256 than the file's" {
	make_model m
	expected=$(converted m out.xfp)
	for ((byte = 0; byte < $(stat -c %s out.xfp.work/bundle); byte += 9)); do
		flip out.xfp.work/bundle "$byte"
		converts_truly || { echo "byte $byte: $output"; return 1; }
		[[ $output == *'"unchanged": false'* ]] || { echo "byte $byte is believed"; return 1; }
	done
	converts_truly
	[[ $output == *'"unchanged": true'* ]]
}

@test "--rehash: an unchanged bundle is not written again" {
	make_model m
	expected=$(converted m out.xfp)
	before=$(stat -c '%i %y' out.xfp)
	converts_truly --rehash
	[[ $output == *'"unchanged": true'* ]]
	[ "$(stat -c '%i %y' out.xfp)" = "$before" ]
	run -0 xfp convert m -o out.xfp --rehash
	[[ $output == *"out.xfp is up to date"* ]]
}

@test "stamps or parameters that change before the bundle is written: they are not used, and the run continues" {
	make_model m
	expected=$(converted m whole.xfp --cache whole)
	# a stamp of the same unit, valid and current in its own work folder
	xfp convert m -o other.xfp -q --bits 2 --on-miss best
	replace_stage xfp-bundle 'printf "%s\n" "$@" >>"$top/words"
[ -e "$top/done" ] || { touch "$top/done"; cp "$top/other.xfp.work/u000005-packed" "$top/out.xfp.work"; }
exec "$real" "$@"'
	bin/xfp convert m -o out.xfp -q 2>errors
	[ "$(sha out.xfp)" = "$expected" ]
	grep -q "a unit's stamp, or a small file of the checkpoint was modified" errors
	grep -q "making the missing artifacts again" errors
	[ "$(grep -c "^--expect$" words)" = 2 ]
	# and by hand
	hex=$(sed -n '/^--expect$/{n;p;q}' words)
	export XFP_WORK=$PWD/out.xfp.work XFP_CACHE=$PWD/xfp-cache
	[ "$(xfp-bundle --expect "$hex" again.xfp)" = "$expected  again.xfp" ]
	rm again.xfp
	run -75 xfp-bundle --expect "$(tr 0-9a-f 1-9a-f0 <<<"$hex")" again.xfp
	cp out.xfp.work/parameters.json .
	sed -i 's/"routed_expert": "0.98"/"routed_expert": "0.97"/' out.xfp.work/parameters.json
	if cmp -s parameters.json out.xfp.work/parameters.json; then
		echo "no parameter was changed"
		return 1
	fi
	run -75 xfp-bundle --expect "$hex" again.xfp
	[[ $output == *" was modified; "* ]]
	truncate -s 20 out.xfp.work/parameters.json
	run -75 xfp-bundle --expect "$hex" again.xfp
	no_output again.xfp
	run -2 xfp-pack --expect "$hex" u000001
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Paths and sizes in output: normalized paths, sizes in the units of the command line.

load helpers

setup() {
	setup_folder
	unset XFP_WORK XFP_OUT
	make_model m --vocab 260
	"$PYTHON" "$srcdir/tests/make-tokenizer.py" m
	printf 'How vexingly quick daft zebras jump over it all.\n' >text
}

@test "paths are printed and recorded in short form, and name the same files" {
	mkdir -p x/deep
	ln -s x/deep link
	xfp convert .//m/ -o ./x/../b.xfp --cache .//c///d/ --work ./x/./work/ >printed 2>&1
	[ -e b.xfp ] && [ -d c/d/artifacts ] && [ -d x/work ]
	run ! grep -E '//|/\./|\./|/( |$)' printed
	grep -qF "$PWD/b.xfp" printed
	# the command is printed as it was typed
	tr '\0' '\n' <x/work/run | grep -aE '^(model|out|cache|folder)=' >recorded
	[ "$(wc -l <recorded)" = 4 ]
	run ! grep -E '//|/\.{1,2}/|/$' recorded
	# after a link, .. is the parent of its target
	xfp convert m -o link/../c.xfp -q
	[ -e x/c.xfp ] && [ ! -e c.xfp ]
	xfp eval --json --text text --source ./m/ .//b.xfp | "$PYTHON" -c 'import json, sys
r = json.load(sys.stdin)
assert (r["model"], r["source"]["model"]) == ("b.xfp", "m"), r'
	run -3 xfp info x//../text
	[[ $output == *"xfp info: text: "* ]]
	xfp unpack ./b.xfp -o x//deep/../u >printed
	[ -e x/u/config.json ]
	run ! grep -E '//|\./' printed
	# the same bytes, however paths are printed
	xfp convert m -o d.xfp --cache e -q
	cmp b.xfp d.xfp
}

@test "sizes have the units of the command line, or units of 1000" {
	"$PYTHON" -c 'import numpy as np; np.save("t.npy", np.arange(400).reshape(2, 200) % 96)'
	for unit in MB MiB; do
		run -1 xfp eval --memory 4$unit --tokens t.npy m
		pattern="--memory 4(.00)? $unit: one sequence of 200 tokens and some rows of each matrix need ([0-9]+ $unit);"
		[[ $output =~ $pattern ]] || { echo "$output"; return 1; }
		# the reported size suffices
		xfp eval --memory "${BASH_REMATCH[2]/ /}" --tokens t.npy m >/dev/null
	done
	run -1 xfp generate --prompt a --memory 10KiB m
	[[ $output =~ needs\ [0-9.]+\ MiB\ of\ memory.*,\ [0-9.]+\ KiB\ of\ it.*allows\ 10\ KiB ]]
	run -1 xfp generate --prompt a --memory 10kB m
	[[ $output =~ needs\ [0-9.]+\ MB\ of\ memory.*,\ [0-9.]+\ kB\ of\ it.*allows\ 10.0\ kB ]]
	by_default
	run -4 xfp convert m -o o.xfp --target-size 4KiB
	[[ $output =~ \ bytes\ \([0-9.]+\ KiB\) ]] || { echo "$output"; return 1; }
	run -4 xfp convert m -o o.xfp --target-size 4kB
	[[ $output =~ \ bytes\ \([0-9.]+\ kB\) ]] || { echo "$output"; return 1; }
}

@test "stored_bytes is null for a bundle, as the manual says" {
	xfp convert m -o b.xfp -q
	xfp info --json b.xfp | "$PYTHON" -c 'import json, sys
assert json.load(sys.stdin)["whole"]["stored_bytes"] is None'
	tr '\n' ' ' <"$srcdir/man/xfp-info.1" | grep -q '"stored_bytes": null is always printed'
}

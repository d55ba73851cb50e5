#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Stages run by hand, with changes of files and settings between them: an artifact must contain what its
# key says, in whatever order stages ran.

load helpers

setup() {
	setup_folder
	export XFP_WORK=$PWD/out.xfp.work XFP_CACHE=$PWD/xfp-cache
}

prepared() { # MODEL OPTION...
	xfp prepare "$1" -o out.xfp "${@:2}" >/dev/null 2>&1
}

# The key in a stamp.
stamped() { # STAMP
	cut -d' ' -f1 "out.xfp.work/$1"
}

chain() { # UNIT
	xfp-outlier-extract "$1" && xfp-lloyd-fit "$1" && xfp-autoselect "$1" && xfp-pack "$1"
}

@test "a unit's chain by hand: four artifacts, four stamps, four events; again, four hits" {
	make_model m
	prepared m --min-cos-strict 0.9
	chain u000001
	for stamp in outliers fit choice packed; do
		key=$(stamped u000001-$stamp)
		[ -e "$XFP_CACHE/artifacts/${key:0:2}/$key.h5" ]
	done
	events() { tail -n 8 out.xfp.work/events | cut -f 2-3 | tr '\t\n' ' ;'; }
	all="outlier-extract started;outlier-extract made;lloyd-fit started;lloyd-fit made;"
	all+="autoselect started;autoselect made;pack started;pack made;"
	[ "$(wc -l <out.xfp.work/events)" = 8 ]
	[ "$(events)" = "$all" ]
	chain 1
	[ "$(wc -l <out.xfp.work/events)" = 16 ] && [ "$(events)" = "${all//made/hit}" ]
}

@test "stages out of order request the earlier ones: status 75" {
	make_model m
	prepared m
	for stage in lloyd-fit autoselect pack; do
		run -75 "xfp-$stage" u000001
		[[ $output == *"earlier stages first"* ]]
	done
	run -75 xfp-bundle x.xfp
	[[ $output == *"not finished"* ]]
	[ ! -e x.xfp ]
}

@test "an extended set with one missing fit decides nothing" {
	make_model m
	prepared m --mode auto --outlier-sigma 3 --min-cos-strict 0.9999 --on-miss best
	xfp-outlier-extract u000001
	xfp-lloyd-fit u000001
	xfp-libfit u000001
	run -76 xfp-autoselect u000001
	xfp-lloyd-fit --extended u000001
	run -76 xfp-autoselect u000001
	[ ! -e out.xfp.work/u000001-choice ]
	xfp-libfit --extended u000001
	xfp-autoselect u000001
	[ -e out.xfp.work/u000001-choice ]
}

@test "a stamp of another unit, and damaged parameters, are rejected" {
	make_model m
	prepared m
	xfp-outlier-extract u000001
	xfp-outlier-extract u000002
	cp out.xfp.work/u000002-outliers out.xfp.work/u000001-outliers
	run -75 xfp-lloyd-fit u000001
	[[ $output == *"earlier stages first"* ]]
	[ ! -e out.xfp.work/u000001-outliers ]
	sed 's/"0.99"/"0.91"/' <out.xfp.work/parameters.json >changed
	run -1 cmp -s changed out.xfp.work/parameters.json
	cp changed out.xfp.work/parameters.json
	run -75 xfp-lloyd-fit u000002
	[[ $output == *"parameters.json: damaged"*"run xfp convert again"* ]]
	[ "$(artifacts | wc -l)" -eq 2 ]
	prepared m
	xfp-lloyd-fit u000002
}

@test "a unit that does not exist, or is stored as fp8" {
	make_model m
	prepared m
	run -2 xfp-lloyd-fit u000999
	run -2 xfp-lloyd-fit u12x
	run -2 xfp-outlier-extract u000000
	[[ $output == *"only xfp-pack applies to it"* ]]
}

@test "a checkpoint that changes between stages: nothing is published under the old key" {
	make_model m
	prepared m
	xfp-outlier-extract u000001
	cp -p m/model.safetensors before
	poke m/model.safetensors model.layers.0.self_attn.q_proj.weight 5 0040
	run -1 xfp-lloyd-fit u000001
	[[ $output == *"changed while it was being converted; run again"* ]]
	[ "$(find xfp-cache/artifacts -name '*.h5' | wc -l)" -eq 1 ]
	[ -z "$(find xfp-cache -name '*.tmp')" ]
	cat before >m/model.safetensors
	xfp convert m -o out.xfp -q
	xfp verify out.xfp --source m -q
}

@test "pack uses the fit and the outliers that the choice was made from, whatever ran since" {
	make_model m
	prepared m --min-cos-strict 0.9
	chain u000001
	packed=$(stamped u000001-packed)
	cp "xfp-cache/artifacts/${packed:0:2}/$packed.h5" first.h5
	rm "xfp-cache/artifacts/${packed:0:2}/$packed.h5"
	"$PYTHON" "$srcdir/tests/seal.py" out.xfp.work/parameters.json outlier_sigma 2.0
	xfp-outlier-extract u000001
	xfp-pack u000001
	[ "$(stamped u000001-packed)" = "$packed" ]
	rm -r out.xfp.work
	xfp convert m -o out.xfp --min-cos-strict 0.9 -q
	xfp verify out.xfp --source m -q
	[ "$(stamped u000001-packed)" = "$packed" ]
}

@test "an lm_head with an infinity: refused, or kept on request" {
	make_model m
	poke m/model.safetensors lm_head.weight 77 807f
	run -3 xfp convert m -o out.xfp -q
	[[ $output == *lm_head.weight*"NaN or infinite"*--on-nonfinite* ]]
	no_output out.xfp
	xfp convert m -o out.xfp -q --on-nonfinite keep
	xfp info --json out.xfp | "$PYTHON" -c '
import json, sys
unit, = (u for u in json.load(sys.stdin)["units"] if u["class"] == "lm_head")
assert unit["mode"] == "keep" and unit["true_bits"] == 16, unit'
	run -3 xfp convert m -o out.xfp -q
}

@test "an lm_head that fp8 cannot represent is kept" {
	make_model m --dtype f32
	for element in $(seq 0 63); do
		poke m/model.safetensors lm_head.weight "$element" 01000000 # 2^-149
	done
	xfp convert m -o out.xfp -q
	xfp verify out.xfp --source m -q
	xfp info --units out.xfp | grep lm_head | grep -q src
}

@test "weights near the end of the range do not become infinite" {
	make_model m
	for element in $(seq 0 63); do
		poke m/model.safetensors model.layers.0.self_attn.q_proj.weight "$element" 7f7f
	done
	xfp convert m -o out.xfp -q --bits 2 --min-cos-strict 0
	xfp verify out.xfp --source m -q
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Error feedback next to numpy: the kernels, with every instruction set of this machine; fits of a unit with the inputs
# of its layer.

load helpers

setup() {
	setup_folder
	export XFP_OUTLIER_SIGMA=3 XFP_MIN_COS_STRICT=0 XFP_MIN_COS_LAZY=0
}

reference() {
	"$PYTHON" "$srcdir/tests/calibrated_fit.py" "$@"
}

# Prepare a conversion; with CASE, one that is calibrated with these inputs of layer 0.
prepared() { # MODEL CASE OUT OPTION...
	export XFP_WORK=$PWD/$3.work XFP_CACHE=$PWD/$3.cache
	xfp prepare "$1" -o "$3" --mode v2c "${@:4}" >/dev/null 2>&1
	[ -z "$2" ] || "$XFP_TEST_TOOLS/inputs" write "$XFP_WORK" "$XFP_CACHE" "$2"
}

# Run the stages of a prepared conversion.
finished() { # OUT
	for unit in $(grep -o 'u[0-9]\+' "$XFP_WORK/units.mk"); do
		if xfp-outlier-extract "$unit" 2>/dev/null; then
			xfp-libfit "$unit"
			xfp-autoselect "$unit"
			"$XFP_TEST_TOOLS/inputs" outputs "$XFP_WORK" "$XFP_CACHE" "$unit" >"$1.$unit"
		else
			touch "$1.$unit"
		fi
		xfp-pack "$unit"
	done
	xfp-bundle "$1" >/dev/null
}

# A calibrated conversion next to numpy, and to one that is not calibrated.
checked() { # MODEL OPTION...
	reference write "$1" case
	prepared "$1" '' plain.xfp "${@:2}"
	finished plain.xfp
	prepared "$1" case out.xfp "${@:2}"
	finished out.xfp
	reference check "$1" out.xfp plain.xfp out.xfp.u* >units
	cat units
	[ "$(grep -c ': identical; ' units)" -eq 7 ]
	xfp verify out.xfp --source "$1" -q
}

@test "H, R, bytes, indices and residuals are numpy's" {
	"$PYTHON" "$srcdir/tests/feedback_reference.py" "$XFP_TEST_TOOLS/feedback" >cases
	[ "$(grep -c ': identical; ' cases)" -ge 12 ]
}

@test "a fit with inputs: codes, residuals and outputs are numpy's" {
	make_model m --num-experts 4
	checked m --bits 2
	grep -q 'unreached 1' units
}

@test "groups with a tail, stacks of experts, three bits" {
	make_model m --num-experts 4 --experts transposed
	checked m --bits 3 --group-size 64
}

@test "a dense model in f32, four bits, groups of 16" {
	make_model m --family llama --dtype f32 --intermediate 80
	checked m --bits 4 --group-size 16
}

@test "a fit with inputs depends on no thread and no instruction set" {
	make_model m --num-experts 4
	reference write m case
	for threads in 1 3; do
		for set in $(encoder_sets); do
			prepared m case "$threads-$set.xfp" --bits 2
			OMP_NUM_THREADS=$threads XFP_INSTRUCTIONS=$set finished "$threads-$set.xfp"
			cat "$threads-$set.xfp".u* "$threads-$set.xfp" | sha256sum >>sums
		done
	done
	[ "$(sort -u sums | wc -l)" -eq 1 ]
}

@test "an input changes the units that read it, and no others" {
	make_model m --num-experts 4
	for input in '' attention attention-output mlp expert-down; do
		reference write m case $input
		prepared m case "out$input.xfp" --bits 2 --group-size 32
		finished "out$input.xfp"
	done
	[ "$(reference changed out.xfp outattention.xfp | xargs)" = 'q k v' ]
	[ "$(reference changed out.xfp outattention-output.xfp | xargs)" = o ]
	[ "$(reference changed out.xfp outmlp.xfp | xargs)" = 'gate up' ]
	[ "$(reference changed out.xfp outexpert-down.xfp | xargs)" = down ]
}

@test "missing inputs, damaged inputs, another calibration, a mode without feedback" {
	make_model m --num-experts 4
	reference write m case
	prepared m case out.xfp --bits 2
	xfp-outlier-extract u000001
	mv out.xfp.work/l000000-inputs stamp
	run -75 xfp-libfit u000001
	[[ $output == *"no inputs of layer 0 yet"* ]]
	cp stamp out.xfp.work/l000000-inputs
	key=$(cut -d' ' -f1 stamp)
	file=out.xfp.cache/artifacts/${key:0:2}/$key.h5
	cp "$file" inputs.h5
	printf x | dd of="$file" bs=1 seek=9000 conv=notrunc 2>/dev/null
	run -75 xfp-libfit u000001
	[ ! -e "$file" ] && [ ! -e out.xfp.work/l000000-inputs ]
	cp inputs.h5 "$file"
	cp stamp out.xfp.work/l000000-inputs
	mv out.xfp.work/calibration.h5 .
	run -75 xfp-libfit u000001
	[[ $output == *"calibration.h5 is missing"*"run xfp convert again"* ]]
	cp calibration.h5 out.xfp.work
	xfp-libfit u000001
	rm out.xfp.work/l000000-inputs
	run -75 xfp-libfit u000001
	prepared m case auto.xfp --mode v2a --bits 2
	xfp-outlier-extract u000001
	run -2 xfp-libfit u000001
	[[ $output == *"v2a cannot be calibrated"* ]]
}

@test "inputs whose squares are beyond the range of float32" {
	make_model m --num-experts 4
	reference write m case expert-down 1e25
	prepared m case out.xfp --bits 2
	for unit in $(grep -o 'u[0-9]\+' out.xfp.work/units.mk); do
		xfp-outlier-extract "$unit" 2>/dev/null || continue
		status=0
		xfp-libfit "$unit" 2>said || status=$?
		[ "$status" = 0 ] || break
	done
	cat said
	[ "$status" = 3 ]
	grep -q 'experts\.0\.down_proj\.weight, column 5: the activations are too large for calibration' said
}

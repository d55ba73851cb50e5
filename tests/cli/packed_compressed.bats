#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Checkpoints of compressed-tensors and modelopt: bundles have the bytes of those of the unpacked model, whose
# weights numpy computes by the formulas of the formats.

load helpers
load packed

# Unpacking does not depend on modes: most tests use the simplest, and some of each kind the default.
setup() {
	setup_folder
}

each_form() { # FORM...
	for form in "$@"; do
		packed "$form"
		xfp convert packed -o packed.xfp -q --cache packed-cache
		xfp convert plain -o plain.xfp -q --cache plain-cache
		alike packed.xfp plain.xfp || { echo "$form"; return 1; }
		xfp verify packed.xfp --source packed
		xfp verify packed.xfp --source plain
		rm -r packed plain ./*.xfp ./*.work ./*-cache
	done
}

@test "compressed-tensors in bytes: by tensor, row, group and block; zero points" {
	each_form ct-float-channel ct-float-tensor ct-float-block ct-mxfp8 ct-int-channel ct-naive-tensor
}

@test "compressed-tensors in words: every number of bits, zero points, orders, in the old and the new packing" {
	each_form ct-pack4 ct-pack4-zeros ct-pack4-order ct-pack8-channel ct-pack4-tensor ct-pack3-words ct-pack-widths
}

@test "compressed-tensors: 4-bit floats; groups with different forms; Kimi-K2 Thinking" {
	by_default
	each_form ct-nvfp4 ct-mxfp4 ct-mixed kimi-k2-thinking
}

@test "modelopt: NVFP4, FP8, INT8, mixed; by config.json or hf_quant_config.json" {
	each_form modelopt-nvfp4 modelopt-nvfp4-beside modelopt-fp8 modelopt-fp8-blocks modelopt-fp8-stacks \
		modelopt-int8 modelopt-mixed
}

@test "kept weights equal the unpacked ones bit for bit" {
	printf 'about nothing\nmodel_type qwen3\ntied no\nkeep other .\n' >none.family
	for form in ct-pack4-order ct-pack-widths ct-float-tensor ct-nvfp4 modelopt-mixed; do
		packed "$form" --shards 3
		xfp convert packed -o packed.xfp -q --family ./none.family --allow-empty --cache packed-cache
		xfp convert plain -o plain.xfp -q --family ./none.family --allow-empty --cache plain-cache
		diff <(members packed.xfp) <(members plain.xfp) || { echo "$form"; return 1; }
		diff <(index packed.xfp) <(index plain.xfp) || { echo "$form"; return 1; }
		rm -r packed plain ./*.xfp ./*-cache
	done
}

@test "invalid checkpoints: file, tensor and remedy are named; nothing is written" {
	while read -r form kind words; do
		packed "$form" --spoil "$kind"
		run -3 --separate-stderr xfp convert packed -o out.xfp
		# shellcheck disable=SC2053
		[[ $stderr == *"$PWD/packed/"*$words* ]] || { echo "$form $kind: $stderr"; return 1; }
		no_output out.xfp
		rm -r packed plain
	done <<-'END'
		ct-pack4 missing tensor*down_proj.weight_packed: has no scales*with _scale is missing; download the checkpoint again
		ct-pack4 shape tensor*weight_packed: is I32*which match no group*download both again
		ct-pack4 left-over tensor model.stray.weight_scale: scales weights that are missing
		ct-pack4 unpacked config.json: says that the weights are compressed-tensors, but no tensor is*remove quantization_config
		ct-pack4 both tensor*_proj.weight: is stored both packed and unpacked*remove one
		ct-pack4 no-shape tensor*weight_packed: has no shape*with _shape
		ct-pack4 other-shape tensor*weight_shape: says \[7, 144\], but the packed weights are \[96, 18\]; download both again
		ct-pack4 scale-u16 tensor*weight_scale: is U16; scales are
		ct-pack4 asymmetric tensor*weight_packed: is I32*no zero points, which match no group
		ct-pack4-zeros symmetric tensor*weight_packed: is I32*and zero points \[12, 6\], which match no group
		ct-pack4-zeros no-zero-points tensor*weight_packed: is I32*no zero points, which match no group
		ct-pack4 set-group-size tensor*weight_packed: is I32*which match no group
		ct-pack4 no-group-size config.json: config_groups.group_0.weights.group_size is not a number
		ct-pack4 num-bits tensor*weight_packed: is I32*which match no group
		ct-pack4 bad-num-bits config.json: config_groups.group_0.weights.num_bits is not a number
		ct-pack4 strategy config.json: config_groups.group_0.weights.strategy must be tensor
		ct-pack4 type config.json: config_groups.group_0.weights.type must be int or float
		ct-pack4 no-groups config.json: has no config_groups
		ct-pack4 other-format tensor*weight_packed: is I32*which match no group
		ct-pack4 wide-codes tensor*weight_packed: is U32; packed weights are I32 or U8
		ct-pack4 sparse config.json: weights are compressed as sparse-24-bitmask*convert the unquantized
		ct-pack4 marlin config.json: weights are compressed as marlin-24*convert the unquantized
		ct-pack4-order order-range tensor*weight_g_idx: puts 23 columns into group*of 6, each of which has 24
		ct-pack4-order order-counts tensor*weight_g_idx: puts*columns into group*each of which has 24
		ct-pack4-order order-unset tensor*weight_g_idx: puts 23 columns into group
		ct-float-block structure config.json: config_groups.group_0.weights.block_structure is not two numbers
		ct-float-block two-groups tensor*weight: matches several groups of config.json that contradict each other
		ct-float-block other-name tensor*kernel: is F8_E4M3, and*kernel_scale scales it in a form that is not read*unquantized
		ct-float-block missing tensor*weight: has no scales
		ct-int-channel no-zero-points tensor*weight: is I8*no zero points
		ct-nvfp4 global-zero tensor*weight_global_scale: is 0, and scales are divided by it
		ct-nvfp4 no-global tensor*weight_packed: is U8*which match no group
		ct-nvfp4 shape tensor*weight_scale: has the shape \[96, 18\], but the weights that it scales have \[96, 72\] bytes
		modelopt-nvfp4 no-second tensor*weight: has no scale of its scales*with _scale_2
		modelopt-nvfp4 missing tensor*weight: has no scales
		modelopt-nvfp4 pre-quant tensor*pre_quant_scale: activations are multiplied by a pre_quant_scale*unquantized
		modelopt-nvfp4-bare pre-quant tensor*pre_quant_scale: activations are multiplied by a pre_quant_scale*unquantized
		modelopt-nvfp4 algorithm config.json: quant_algo is W4A16_AWQ, a form that this version does not read
		modelopt-nvfp4 other-algorithm tensor*weight: is NVFP4 by its dtype*quant_algo in config.json says otherwise
		modelopt-nvfp4 nvfp4-group-size config.json: group_size does not match its quant_algo
		modelopt-nvfp4-beside unpacked hf_quant_config.json: says that the weights are modelopt*remove this file
		modelopt-fp8-stacks stack-shape tensor*down_proj_weight_scale: is F32 \[1, 3\]*one scale for all or for each of them
		modelopt-fp8-stacks stack-bytes tensor*experts.down_proj: is I8*supported as 8-bit floats only*unquantized
		modelopt-fp8-stacks stack-missing tensor*experts.down_proj: has no scales*with _weight_scale
		modelopt-fp8-blocks shape tensor*weight_scale: has the shape*have one for all, for each row, or for each 32 x 32
	END
}

@test "a scale of 0 makes zeros if it multiplies; tensors for activations are left out, with a note" {
	packed modelopt-nvfp4-beside
	run -0 --separate-stderr xfp-inspect packed
	[[ $output == *"packed  as modelopt: "* ]]
	[[ $stderr == *"9 tensors that only serve to quantize activations are left out (first: "*".input_scale)"* ]]
	run -0 --separate-stderr xfp-inspect --json packed
	"$PYTHON" -c 'import json, sys
codecs = {t["codec"] for t in json.load(sys.stdin)["tensors"] if "proj" in t["name"]}
assert codecs == {"nvfp4"}, codecs' <<<"$output"
	# without a config, the two sets of scales identify it as well
	rm packed/hf_quant_config.json
	xfp convert packed -o bare.xfp -q
	xfp verify bare.xfp --source plain
	"$PYTHON" "$srcdir/tests/make-packed-checkpoint.py" modelopt-nvfp4 zeros unpacked --spoil second-zero
	xfp convert zeros -o out.xfp -q
	xfp verify out.xfp --source zeros
}

@test "a changed byte of a scale of scales, of a zero point, of hf_quant_config.json: detected, refitted, no stale digest" {
	packed modelopt-nvfp4-beside
	first=$(converted packed out.xfp)
	edit packed/model.safetensors model.layers.0.mlp.up_proj.weight_scale_2
	second=$(converted packed out.xfp)
	[ "$second" != "$first" ]
	[ "$second" = "$(converted packed cold.xfp --cache cold)" ]
	run -4 xfp verify out.xfp --source plain
	[[ $output == *"up_proj"* ]]
	remembered=$(query 'SELECT count(*) FROM sources')
	printf '\n' >>packed/hf_quant_config.json
	[ "$(converted packed out.xfp)" = "$second" ]
	[ "$(query 'SELECT count(*) FROM sources')" -gt "$remembered" ]
	sed -i 's/"NVFP4"/"FP8"/' packed/hf_quant_config.json
	run -3 xfp convert packed -o out.xfp
	[[ $output == *"quant_algo in hf_quant_config.json says otherwise"* ]]
	rm -r packed plain ./*.xfp
	packed ct-pack4-zeros --shards 2
	first=$(converted packed out.xfp)
	zeros=model.layers.0.mlp.up_proj.weight_zero_point
	file=packed/$("$PYTHON" -c 'import json, sys
print(json.load(open("packed/model.safetensors.index.json"))["weight_map"][sys.argv[1]])' "$zeros")
	edit "$file" "$zeros"
	second=$(converted packed out.xfp)
	[ "$second" != "$first" ]
	[ "$second" = "$(converted packed cold.xfp --cache colder)" ]
	edit "$file" "$zeros"
	[ "$(converted packed out.xfp)" = "$first" ]
}

@test "kill -9 and resume; --like; unpack leaves no trace of the packing" {
	packed kimi-k2-thinking --shards 2
	expected=$(converted packed whole.xfp --cache whole)
	for after in 0.15 0.4; do
		xfp convert packed -o out.xfp -q -j1 2>>errors &
		pid=$!
		sleep $after
		kill -9 $pid 2>/dev/null || true
		wait $pid || true
	done
	[ "$(converted packed out.xfp)" = "$expected" ]
	run -0 --separate-stderr xfp convert packed --like out.xfp -o again.xfp --cache like
	[ "$output" = "$expected  $PWD/again.xfp" ]
	xfp unpack out.xfp -o copy 2>errors
	cmp copy/config.json plain/config.json
	rm -r packed plain
	packed modelopt-nvfp4-beside
	xfp convert packed -o beside.xfp -q
	xfp unpack beside.xfp -o unpacked
	[ ! -e unpacked/hf_quant_config.json ]
	cmp unpacked/config.json plain/config.json
	xfp convert unpacked -o once-more.xfp -q
}

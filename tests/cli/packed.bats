#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Packed checkpoints in published formats: bundles have the bytes of those of the unpacked model, whose weights
# numpy computes by the formulas of the formats.

load helpers
load packed

# Unpacking does not depend on modes: most tests use the simplest, and some of each kind the default.
setup() {
	setup_folder
}

@test "each form: units, kept tensors, floors and the index are those of the unpacked model; both verify" {
	for form in deepseek deepseek-e8m0 qwen3-blocks qwen3-tensor qwen3-moe qwen3-channel gpt_oss; do
		[ "$form" != qwen3-channel ] || by_default
		packed "$form"
		xfp convert packed -o packed.xfp -q --cache packed-cache
		xfp convert plain -o plain.xfp -q --cache plain-cache
		alike packed.xfp plain.xfp || { echo "$form"; return 1; }
		xfp verify packed.xfp --source packed
		xfp verify packed.xfp --source plain
		xfp verify plain.xfp --source packed
		rm -r packed plain ./*.xfp ./*.work ./*-cache
	done
}

@test "every mode, kept units and kept tensors that are packed" {
	by_default
	packed gpt_oss --shards 3
	for how in "--mode v2a" "--mode v2c" "--mode v2 --fit optimal" "--format routed_expert=keep --format attention=fp8" \
		"--min-cos-lazy 0.99999" "--format routed_expert=fp8 --outlier-sigma 3"; do
		# shellcheck disable=SC2086
		xfp convert packed -o packed.xfp -q $how
		# shellcheck disable=SC2086
		xfp convert plain -o plain.xfp -q $how --cache plain-cache
		alike packed.xfp plain.xfp || { echo "$how"; return 1; }
		xfp verify packed.xfp --source packed
		rm packed.xfp plain.xfp
	done
	# a family without units keeps whole tensors: packed ones are unpacked while they are copied
	printf 'about nothing\nmodel_type gpt_oss\ntied no\nkeep other .\n' >none.family
	xfp convert packed -o packed.xfp -q --family ./none.family --allow-empty
	xfp convert plain -o plain.xfp -q --family ./none.family --allow-empty
	xfp verify packed.xfp --source packed
	xfp verify packed.xfp --source plain
	diff <(members packed.xfp) <(members plain.xfp)
	diff <(index packed.xfp) <(index plain.xfp)
	run -0 xfp convert packed -o packed.xfp --family ./none.family --allow-empty --rehash
	[[ $output == *"is up to date"* ]]
}

@test "unpack: the weights, and a config.json that is that of the unpacked model" {
	packed deepseek --shards 2
	touch packed/hf_quant_config.json packed/quantize_config.json
	run -0 --separate-stderr xfp convert packed -o out.xfp --format attention=keep
	[[ $stderr != *"not copied"* ]] # they are about how weights were packed, which they are no more
	run -0 --separate-stderr xfp unpack out.xfp -o copy
	[[ $stderr == *"config.json has no quantization_config"* ]]
	cmp copy/config.json plain/config.json
	[ ! -e copy/hf_quant_config.json ]
	"$PYTHON" - <<-'EOF'
	import json, struct
	def read(path):
	    data = open(path, "rb").read()
	    size = struct.unpack("<Q", data[:8])[0]
	    return {name: (t["dtype"], t["shape"], data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]])
	            for name, t in json.loads(data[8:8 + size]).items() if name != "__metadata__"}
	copy, plain = read("copy/model.safetensors"), read("plain/model.safetensors")
	assert copy.keys() == plain.keys(), copy.keys() ^ plain.keys()
	for name, t in copy.items():
	    assert t[:2] == plain[name][:2], name
	    assert "attn" not in name or t == plain[name], name
	EOF
	# the result is an ordinary checkpoint
	xfp convert copy -o again.xfp -q
}

@test "invalid packed checkpoints: file, tensor and remedy are named; nothing is written" {
	while read -r form kind words; do
		packed "$form" --spoil "$kind"
		run -3 --separate-stderr xfp convert packed -o out.xfp
		# shellcheck disable=SC2053
		[[ $stderr == *"$PWD/packed/"*$words* ]] || { echo "$form $kind: $stderr"; return 1; }
		no_output out.xfp
		rm -r packed plain
	done <<-'END'
		deepseek missing tensor*down_proj.weight: has no scales*download the checkpoint again
		deepseek shape tensor*_scale_inv: has the shape \[2, 4\]*128 x 128*have scales \[2, 2\]; download both again
		deepseek left-over tensor model.stray.weight_scale_inv: scales weights that are missing
		deepseek unpacked config.json: says that the weights are fp8, but no tensor is*remove quantization_config
		deepseek block-size tensor*_scale_inv: has the shape*64 x 128*have scales \[3, 2\]
		deepseek no-block-size tensor*_scale_inv: has the shape*ambiguous*weight_block_size
		deepseek bad-block-size config.json: weight_block_size is not two numbers
		qwen3-channel also-blocks tensor*_scale: has the shape*32 x 32, as config.json says*download both again
		deepseek fmt tensor*down_proj.weight: is F8_E4M3, but config.json says fmt e5m2
		deepseek fnuz tensor*down_proj.weight: is F8_E4M3, but config.json says fmt float8_e4m3fnuz
		deepseek scale-dtype tensor*_scale_inv: is I32; scales are
		gpt_oss missing tensor*_proj_blocks: has no scales
		gpt_oss shape tensor*_proj_scales: is U8 \[3, 64, 6\], but the blocks
		gpt_oss left-over tensor model.stray.down_proj_scales: scales weights that are missing
		gpt_oss unpacked config.json: says that the weights are mxfp4, but no tensor is
		gpt_oss both tensor*down_proj: is stored both packed and unpacked*remove one
	END
	# components in two shards, one of which is missing, according to the index
	packed deepseek --shards 2
	rm packed/model-00002-of-00002.safetensors
	run -3 xfp convert packed -o out.xfp
	[[ $output == *"model-00002-of-00002.safetensors: missing"* ]]
}

@test "a NaN scale: its weights are not finite; a scale of 0: they are zeros" {
	packed deepseek --spoil nan
	run -3 xfp convert packed -o out.xfp
	[[ $output == *"tensor model.layers.0.mlp.down_proj.weight: 30720 weights are NaN or infinite"*"--on-nonfinite keep"* ]]
	xfp convert packed -o out.xfp -q --on-nonfinite keep
	run -0 --separate-stderr xfp info --json out.xfp
	"$PYTHON" -c 'import json, sys
assert "keep" in {u["mode"] for u in json.load(sys.stdin)["units"] if u["role"] == "down"}' <<<"$output"
	rm -r packed plain ./*.xfp ./*.work
	packed deepseek --spoil zero
	xfp convert packed -o packed.xfp -q
	xfp convert plain -o plain.xfp -q --cache plain-cache
	alike packed.xfp plain.xfp
}

@test "a changed byte of a scale, a shard of scales, config.json: detected, refitted, no stale digest" {
	local scale=model.layers.1.mlp.experts.1.up_proj.weight_scale_inv
	packed deepseek --shards 2
	file=packed/$("$PYTHON" -c 'import json, sys
print(json.load(open("packed/model.safetensors.index.json"))["weight_map"][sys.argv[1]])' "$scale")
	first=$(converted packed out.xfp)
	run -0 xfp convert packed -o out.xfp
	[[ $output == *"is up to date"* ]]
	edit "$file" "$scale"
	second=$(converted packed out.xfp)
	[ "$second" != "$first" ]
	[ "$second" = "$(converted packed cold.xfp --cache cold)" ]
	run -4 xfp verify out.xfp --source plain
	[[ $output == *"up_proj"* ]]
	# the whole shard replaced: other scales under the same names
	packed_before=$(sha "$file")
	edit "$file" "$scale"
	[ "$(sha "$file")" != "$packed_before" ]
	[ "$(converted packed out.xfp)" = "$first" ]
	# other parameters in config.json that fit the shapes as well: other weights
	xfp convert packed -o out.xfp -q
	sed -i 's/128,/96,/; s/^\( *\)128$/\1128/' packed/config.json
	if xfp convert packed -o out.xfp -q 2>errors; then
		[ "$(sha out.xfp)" = "$(converted packed cold.xfp --cache colder)" ]
		[ "$(sha out.xfp)" != "$first" ]
	else
		grep 96 errors
	fi
	# only its text differs: the same weights, read again, and remembered under that text as well
	packed_config=$(sed 's/96,/128,/' packed/config.json)
	remembered=$(query 'SELECT count(*) FROM sources')
	printf '%s\n\n' "$packed_config" >packed/config.json
	third=$(converted packed out.xfp)
	[ "$(query 'SELECT count(*) FROM sources')" -gt "$remembered" ]
	[ "$third" != "$first" ] # it is carried
	[ "$third" = "$(converted packed cold.xfp --cache coldest)" ]
}

@test "the form and size of the source are printed, and a warning if the bundle has more bits" {
	by_default
	packed gpt_oss
	run -0 --separate-stderr xfp-inspect packed
	[[ $output == *"format  safetensors, 1 file"* ]]
	[[ $output == *"packed  as mxfp4: "* ]]
	run -0 --separate-stderr xfp-inspect --json packed
	"$PYTHON" -c 'import json, os, struct, sys
said = json.load(sys.stdin)
data = os.path.getsize("packed/model.safetensors")
head = struct.unpack("<Q", open("packed/model.safetensors", "rb").read(8))[0]
assert said["packed"] == "mxfp4", said["packed"]
assert sum(t["stored_bytes"] for t in said["tensors"]) == data - 8 - head
codecs = {t["name"].split(".")[-1]: t["codec"] for t in said["tensors"]}
assert codecs["gate_up_proj"] == codecs["down_proj"] == "mxfp4" and codecs["sinks"] is None' <<<"$output"
	run -0 --separate-stderr xfp convert packed -o out.xfp --format routed_expert=fp8
	[[ $output == *"warning: the bundle has more bits than the source, which is packed and takes"* ]]
	run -0 --separate-stderr xfp plan packed -o out.xfp --format routed_expert=fp8
	[[ $output == *"warning: the bundle has more bits than the source"* ]]
	run -0 --separate-stderr xfp convert packed -o small.xfp --bits 2 --on-miss best --format embedding=2 --lm-head quant
	[[ $output == *"the packed source has"* ]] || [[ $output == *"warning: the bundle has more bits"* ]]
	run -0 --separate-stderr xfp convert plain -o plain.xfp
	[[ $output != *"packed source has"* ]]
	[[ $output != *"more bits than the source"* ]]
	packed=$(rm -r packed plain; "$PYTHON" "$srcdir/tests/make-packed-checkpoint.py" qwen3-tensor packed plain)
	run -0 --separate-stderr xfp-inspect packed
	[[ $stderr == *"9 tensors that only serve to quantize activations are left out (first: model.layers.0.mlp.down_proj.input_scale)"* ]]
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# AWQ and GPTQ checkpoints: bundles have the bytes of those of the unpacked model, in f16.

load helpers
load packed

# Unpacking does not depend on modes: most tests use the simplest, and some of each kind the default.
setup() {
	setup_folder
}

@test "each form: units, floors and the index are those of the unpacked model; both verify" {
	for form in awq-gemv awq-gemv-fast awq-old gptq gptq-v2 gptq-2bit gptq-old awq-gemm gptq-act; do
		[ "$form" != awq-gemm ] || by_default
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

@test "components in several files, kept and fp8 units, other modes" {
	by_default
	packed gptq-act --shards 4
	for how in "--mode v2a" "--mode v2c" "--format attention=keep --format dense_mlp=fp8" "--format attention=keep -j3"; do
		# shellcheck disable=SC2086
		xfp convert packed -o packed.xfp -q $how
		# shellcheck disable=SC2086
		xfp convert plain -o plain.xfp -q $how --cache plain-cache
		alike packed.xfp plain.xfp || { echo "$how"; return 1; }
		xfp verify packed.xfp --source packed
	done
}

@test "unpack: f16 weights and a config.json without quantization_config; older config files are not carried along" {
	for form in gptq-act gptq-old awq-old; do
		packed "$form"
		xfp convert packed -o out.xfp -q --format attention=keep
		xfp unpack out.xfp -o copy
		cmp copy/config.json plain/config.json
		[ ! -e copy/quantize_config.json ]
		[ ! -e copy/quant_config.json ]
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
		    assert "proj" not in name or t[0] == "F16", name
		EOF
		rm -r packed plain copy out.xfp ./*.work
	done
}

@test "invalid checkpoints: file, tensor and remedy are named; nothing is written" {
	while read -r form kind words; do
		packed "$form" --spoil "$kind"
		run -3 --separate-stderr xfp convert packed -o out.xfp
		# shellcheck disable=SC2053
		[[ $stderr == *"$PWD/packed/"*$words* ]] || { echo "$form $kind: $stderr"; return 1; }
		no_output out.xfp
		rm -rf packed plain ./*.work
	done <<-'END'
		awq-gemm missing tensor*down_proj.qweight: has no scales*download the checkpoint again
		awq-gemm no-zeros tensor*down_proj.qweight: has no qzeros
		awq-gemm shape tensor*down_proj.qweight: is I32 \[192, 16\] with*scales F16 \[3, 256\], but AWQ's gemm as config.json says it has*download both again
		awq-gemm left-over tensor model.stray.scales: scales weights that are missing
		awq-gemm unpacked config.json: says that the weights are awq, but no tensor is
		awq-gemm both is stored both packed and unpacked*remove one
		awq-gemm bits config.json: says 8 bits; AWQ has 4
		awq-gemm bad-bits config.json: bits is not a number
		awq-gemm group-size tensor*down_proj.qweight: is*groups of 48 inputs, which they divide
		awq-gemm bad-group-size config.json: group_size is neither
		awq-gemm version config.json: says version marlin, whose order of codes*unquantized
		awq-gemm exllama config.json: says version exllama, whose order of codes
		awq-gemm activation tensor model.layers.0.mlp.act_fn.scales: divides the output of an activation*unquantized
		awq-gemm silent tensor*down_proj.qweight: contains packed codes without parameters*download
		awq-gemm scales-of-integers tensor*down_proj.scales: is I16; scales are
		awq-gemv shape AWQ's gemv as
		awq-gemv-fast group-size AWQ's gemv_fast as
		awq-old group-size quant_config.json says
		gptq missing tensor*down_proj.qweight: has no scales
		gptq no-zeros tensor*down_proj.qweight: has no qzeros
		gptq shape GPTQ as config.json says it has I32 \[in \* 4 / 32, out\]
		gptq bits tensor*down_proj.qweight: is I32 \[24, 128\]*GPTQ as config.json says it has I32 \[in \* 8 / 32, out\]
		gptq odd-bits config.json: says 5 bits; only 2, 3, 4 and 8 are supported
		gptq group-size groups are in / 48, rounded up; download both
		gptq checkpoint-format config.json: says checkpoint_format marlin, whose order of codes*gptq and gptq_v2
		gptq left-over tensor model.stray.scales: scales weights that are missing
		gptq silent contains packed codes without parameters
		gptq index-dtype tensor*down_proj.g_idx: is F32 \[192\], but*has a group for each of its 192 inputs
		gptq-act no-index tensor*down_proj.qweight: has no g_idx, but config.json says desc_act
		gptq-act index-range tensor*down_proj.weight: its g_idx contains a group without a scale; download
		gptq-act index-uneven tensor*down_proj.weight: its g_idx has more inputs in a group than group_size; download
		gptq-old group-size quantize_config.json says it has
	END
}

@test "a NaN scale gives NaN weights" {
	packed gptq --spoil nan
	run -3 xfp convert packed -o out.xfp
	[[ $output == *"down_proj.weight: "*"weights are NaN or infinite"* ]]
}

@test "an older tool's config next to weights that are not packed is ignored" {
	packed gptq-old --spoil forgotten
	xfp convert packed -o packed.xfp -q
	xfp convert plain -o plain.xfp -q
	alike packed.xfp plain.xfp
}

# Flip the lowest bit of a byte in the middle.
turn() { # FILE TENSOR
	"$PYTHON" - "$@" <<-'EOF'
	import json, struct, sys
	with open(sys.argv[1], "r+b") as f:
	    size = struct.unpack("<Q", f.read(8))[0]
	    begin, end = json.loads(f.read(size))[sys.argv[2]]["data_offsets"]
	    f.seek(8 + size + begin + (end - begin) // 2)
	    byte = f.read(1)[0]
	    f.seek(-1, 1)
	    f.write(bytes([byte ^ 1]))
	EOF
}

@test "a changed byte of scales, zeros or any config: detected, refitted, no stale digest" {
	local p=model.layers.0.mlp.up_proj. last
	packed gptq-old --shards 3
	last=$(converted packed out.xfp)
	for tensor in scales qzeros qweight; do
		file=packed/$("$PYTHON" -c 'import json, sys
print(json.load(open("packed/model.safetensors.index.json"))["weight_map"][sys.argv[1]])' "$p$tensor")
		turn "$file" "$p$tensor"
		now=$(converted packed out.xfp)
		[ "$now" != "$last" ]
		[ "$now" = "$(converted packed cold.xfp --cache "cold-$tensor")" ]
		last=$now
	done
	run -0 xfp convert packed -o out.xfp
	[[ $output == *"is up to date"* ]]
	# other parameters that fit the shapes as well: other weights
	sed -i 's/}$/, "checkpoint_format": "gptq_v2"}/' packed/quantize_config.json
	now=$(converted packed out.xfp)
	[ "$now" != "$last" ]
	[ "$now" = "$(converted packed cold.xfp --cache coldest)" ]
	# the same parameters in another text, which is not copied: read again
	remembered=$(query 'SELECT count(*) FROM sources')
	printf '\n' >>packed/quantize_config.json
	[ "$(converted packed out.xfp)" = "$now" ]
	[ "$(query 'SELECT count(*) FROM sources')" -gt "$remembered" ]
	# config.json matters only if it contains the quantization parameters
	sed -i 's/^{/{"quantization_config": {"quant_method": "gptq", "bits": 8, "group_size": 64},/' packed/config.json
	xfp convert packed -o out.xfp -q
	run -4 xfp verify out.xfp --source plain
	[[ $output == *"up_proj"* ]]
}

@test "inspect: the form, stored sizes, and the files that contain tensors" {
	packed gptq-old --shards 2
	run -0 --separate-stderr xfp-inspect packed
	[[ $output == *"format  safetensors, 2 files"* ]]
	[[ $output == *"packed  as gptq: "* ]]
	run -0 --separate-stderr xfp-inspect --json packed
	"$PYTHON" -c 'import json, sys
said = json.load(sys.stdin)
codecs = {t["name"].split(".")[-2]: (t["codec"], t["dtype"]) for t in said["tensors"]}
assert said["packed"] == "gptq"
assert codecs["down_proj"] == ("gptq", "F16"), codecs
assert codecs["embed_tokens"][0] is None' <<<"$output"
}

@test "bitsandbytes and EXL3 are refused with advice" {
	packed gptq --spoil unpacked
	sed -i 's/"quant_method": "gptq"/"quant_method": "bitsandbytes"/' packed/config.json
	run -3 xfp convert packed -o out.xfp
	[[ $output == *"already quantized (quant_method bitsandbytes in config.json), by bitsandbytes, which rounds a published model as it is loaded: convert that one"* ]]
	sed -i 's/"quant_method": "bitsandbytes"/"quant_method": "exl3"/' packed/config.json
	run -3 xfp convert packed -o out.xfp
	[[ $output == *"(quant_method exl3 in config.json), as EXL3, which only its kernels decode: convert the model that it was made from"* ]]
}

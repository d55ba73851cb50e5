#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Defects of packed checkpoints, of each form: scales that are NaN, infinite or 0, and missing files.

load helpers
load packed

setup() {
	setup_folder
	by_default
}

@test "a NaN scale or code: the number of weights is reported, and --on-nonfinite keep keeps them" {
	while read -r form kind tensor count; do
		packed "$form" --spoil "$kind"
		run -3 --separate-stderr xfp convert packed -o out.xfp
		[[ $stderr == *"tensor $tensor.weight: $count "*"NaN or infinite"*"--on-nonfinite keep"* ]] ||
			{ echo "$form $kind: $stderr"; return 1; }
		no_output out.xfp
		xfp convert packed -o out.xfp -q --on-nonfinite keep
		run -0 --separate-stderr xfp info --json out.xfp
		"$PYTHON" -c 'import json, sys
kept = [u["role"] for u in json.load(sys.stdin)["units"] if u["mode"] == "keep"]
assert kept == ["down"], kept' <<<"$output"
		xfp verify out.xfp --source packed >verified
		rm -r packed plain ./*.xfp ./*.work ./*cache
	done <<-'END'
		deepseek one-nan model.layers.0.mlp.down_proj 16384
		deepseek-e8m0 one-nan model.layers.0.mlp.down_proj 16384
		qwen3-blocks one-infinite model.layers.0.mlp.down_proj 12288
		qwen3-channel one-nan model.layers.0.mlp.down_proj 144
		qwen3-tensor code-nan model.layers.0.mlp.down_proj 1
		awq-gemm one-nan model.layers.0.mlp.down_proj 64
		awq-gemm one-infinite model.layers.0.mlp.down_proj 64
		awq-gemv one-nan model.layers.0.mlp.down_proj 64
		awq-gemv-fast one-infinite model.layers.0.mlp.down_proj 64
		gptq one-infinite model.layers.0.mlp.down_proj 64
		gptq-act one-nan model.layers.0.mlp.down_proj 80
		ct-float-channel one-nan model.layers.0.mlp.down_proj 144
		ct-int-channel one-infinite model.layers.0.mlp.down_proj 144
		ct-pack4-order one-nan model.layers.0.mlp.down_proj 24
		ct-nvfp4 one-nan model.layers.0.mlp.down_proj 16
		ct-nvfp4 global-nan model.layers.0.mlp.down_proj 13824
		ct-mxfp4 one-nan model.layers.0.mlp.down_proj 32
		modelopt-nvfp4 one-nan model.layers.0.mlp.down_proj 16
		modelopt-nvfp4 global-nan model.layers.0.mlp.down_proj 15360
		modelopt-fp8 nan model.layers.0.mlp.down_proj 15360
		modelopt-int8 one-nan model.layers.0.mlp.down_proj 160
	END
}

# Whether the first weights of a tensor, or all, are 0.
zeros() { # BUNDLE TENSOR
	rm -rf copy
	xfp unpack "$1" -o copy >unpacked 2>&1
	"$PYTHON" - "$2" <<-'EOF'
	import json, struct, sys
	data = open("copy/model.safetensors", "rb").read()
	size = struct.unpack("<Q", data[:8])[0]
	begin, end = json.loads(data[8:8 + size])[sys.argv[1]]["data_offsets"]
	halves = struct.unpack(f"<{(end - begin) // 2}H", data[8 + size + begin:8 + size + end])
	print("first:", all(not h & 0x7fff for h in halves[:16]), "all:", all(not h & 0x7fff for h in halves))
	EOF
}

@test "a scale of 0 makes its block zero, and nothing else" {
	for form in deepseek qwen3-channel awq-gemm gptq ct-pack4 ct-nvfp4 modelopt-nvfp4; do
		packed "$form" --spoil one-zero
		xfp convert packed -o out.xfp -q --override role:down=keep
		[ "$(zeros out.xfp model.layers.0.mlp.down_proj.weight)" = "first: True all: False" ] ||
			{ echo "$form: $(zeros out.xfp model.layers.0.mlp.down_proj.weight)"; return 1; }
		xfp convert packed -o fitted.xfp -q
		xfp verify fitted.xfp --source packed >verified
		rm -r packed plain copy ./*.xfp ./*.work ./*cache
	done
}

@test "missing scales, or scales of another shape: file, tensor and remedy are named" {
	while read -r form kind words; do
		packed "$form" --spoil "$kind"
		run -3 --separate-stderr xfp convert packed -o out.xfp
		# shellcheck disable=SC2053
		[[ $stderr == *"$PWD/packed/"*"tensor "*$words* ]] || { echo "$form $kind: $stderr"; return 1; }
		no_output out.xfp
		rm -r packed plain
	done <<-'END'
		qwen3-channel missing down_proj.weight: has no scales*download
		qwen3-channel shape weight_scale: has the shape \[96, 2\]*ambiguous*download
		qwen3-tensor missing down_proj.weight: has no scales*download
		qwen3-moe missing down_proj: has no scales*download
		awq-gemv missing down_proj.qweight: has no scales*download
		awq-gemv-fast missing down_proj.qweight: has no scales*download
		awq-gemv-fast shape AWQ's gemv_fast as config.json says*download
		ct-float-channel missing down_proj.weight: has no scales*download
		ct-float-channel shape down_proj.weight: is F8_E4M3*which match no group*download
		ct-float-block shape down_proj.weight: is F8_E4M3*which match no group*download
		ct-int-channel missing down_proj.weight: has no scales*download
		ct-int-channel shape down_proj.weight: is I8*which match no group*download
		ct-nvfp4 missing down_proj.weight_packed: has no scales*download
		ct-mxfp4 missing down_proj.weight_packed: has no scales*download
		ct-mxfp4 shape weight_scale: has the shape \[96, 10\]*download
		modelopt-nvfp4 shape weight_scale: has the shape*download
		modelopt-fp8 missing down_proj.weight: has no scales*download
		modelopt-int8 shape weight_scale: has the shape*download
		modelopt-nvfp4-beside missing down_proj.weight: has no scales*download
	END
}

@test "a missing file of components, with an index and without" {
	for form in deepseek gpt_oss awq-gemm gptq-act ct-pack4-order ct-nvfp4 modelopt-nvfp4; do
		packed "$form" --shards 2
		mv packed/model-00002-of-00002.safetensors .
		run -3 --separate-stderr xfp convert packed -o out.xfp
		[[ $stderr == *"packed/model-00002-of-00002.safetensors: missing"* ]] || { echo "$form: $stderr"; return 1; }
		# without an index no file is known to be missing, but its components are
		mv packed/model.safetensors.index.json .
		run -3 --separate-stderr xfp convert packed -o out.xfp
		[[ $stderr == *"packed/model-00001-of-00002.safetensors"*"download"* ]] || { echo "$form: $stderr"; return 1; }
		# and one file of several, by its name
		mv model-00002-of-00002.safetensors model.safetensors.index.json packed
		run -3 --separate-stderr xfp convert packed/model-00001-of-00002.safetensors -o out.xfp
		[[ $stderr == *"model-00001-of-00002.safetensors"*"download"* ]] || { echo "$form: $stderr"; return 1; }
		no_output out.xfp
		rm -r packed plain
	done
}

# One row of that many columns, in a sparse file: scales, a shape and groups exist, and are zeros.
wide() { # COLUMNS
	mkdir wide
	"$PYTHON" - "$1" <<-'EOF'
	import json, os, struct, sys
	cols, at, header = int(sys.argv[1]), 0, {}
	for ending, dtype, shape, size in (("packed", "I32", [1, cols // 8], cols // 2), ("g_idx", "I32", [cols], cols * 4),
	                                   ("scale", "BF16", [1, cols // 32], cols // 16), ("shape", "I64", [2], 16)):
	    name = "model.layers.0.mlp.down_proj.weight_" + ending
	    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
	    at += size
	text = json.dumps(header).encode()
	with open("wide/model.safetensors", "wb") as file:
	    file.write(struct.pack("<Q", len(text)) + text)
	    file.truncate(8 + len(text) + at - 16)
	    file.seek(0, 2)
	    file.write(struct.pack("<2q", 1, cols))
	weights = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": 32}
	json.dump({"model_type": "qwen3", "quantization_config": {
	    "quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"g": {"weights": weights}}}},
	    open("wide/config.json", "w"))
	EOF
}

@test "a header with absurd sizes: no memory is allocated for it" {
	while read -r columns words; do
		wide "$columns"
		run -3 bash -c "${XFP_TEST_SANITIZERS:+:} ulimit -v 300000; exec xfp-inspect wide"
		[[ $output == *"wide/model.safetensors: tensor "*"weight_g_idx: $words"* ]] || { echo "$columns: $output"; return 1; }
		rm -r wide
	done <<-'END'
		8589934592 has 8589934592 columns; a matrix with reordered columns has at most 4194304
		4194304 puts 4194304 columns into group 0 of 131072
	END
}

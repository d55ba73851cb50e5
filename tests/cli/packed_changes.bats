#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Packed checkpoints that change, and conversions of them that are killed: no stale digest, no other bytes.

load helpers
load packed

# Unpacking does not depend on modes: most tests use the simplest, and some of each kind the default.
setup() {
	setup_folder
}

# Flip a significant bit of the element in the middle of a tensor, in whichever file it is; restore the times that
# stat shows.
turn() { # TENSOR
	"$PYTHON" - "$1" <<-'EOF'
	import json, os, struct, sys
	index = "packed/model.safetensors.index.json"
	path = "packed/" + json.load(open(index))["weight_map"][sys.argv[1]]
	st = os.stat(path)
	with open(path, "r+b") as f:
	    size = struct.unpack("<Q", f.read(8))[0]
	    tensor = json.loads(f.read(size))[sys.argv[1]]
	    begin, end = tensor["data_offsets"]
	    width = {"F32": 4, "I32": 4, "F16": 2, "BF16": 2}.get(tensor["dtype"], 1)
	    at, bit = {"F32": (2, 2), "F16": (0, 64), "BF16": (0, 16)}.get(tensor["dtype"], (0, 1))
	    at += 8 + size + begin + (end - begin) // width // 2 * width
	    f.seek(at)
	    byte = f.read(1)[0]
	    f.seek(at)
	    f.write(bytes([byte ^ bit]))
	os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))
	EOF
}

# Edit a file with sed, in place, and restore its times.
reword() { # FILE SCRIPT
	touch -r "$1" times
	sed "$2" "$1" >reworded
	if cmp -s "$1" reworded; then
		echo "$2 changes nothing in $1"
		return 1
	fi
	cat reworded >"$1"
	touch -r times "$1"
}

# A conversion with the cache gives the same bytes as one without, and others than before.
noticed() { # WHAT
	local now

	now=$(converted packed out.xfp)
	[ "$now" != "$last" ] || { echo "$1: not noticed"; return 1; }
	[ "$now" = "$(converted packed cold.xfp --cache "cold-$((++colds))")" ] || { echo "$1: something stale"; return 1; }
	xfp verify out.xfp --source packed >verified
	last=$now
}

@test "a changed element of scales, zeros, groups or codes, in any file: detected, even if times are restored" {
	local form first last colds=0

	while read -r form tensors; do
		[ "$form" != modelopt-nvfp4 ] || by_default
		packed "$form" --shards 3
		first=$(converted packed out.xfp)
		last=$first
		for tensor in $tensors; do
			turn "model.layers.$tensor"
			noticed "$form $tensor"
		done
		# back to the original: its artifacts still exist
		for tensor in $tensors; do
			turn "model.layers.$tensor"
		done
		run -0 --separate-stderr xfp convert packed -o out.xfp --json
		[ "$(sha out.xfp)" = "$first" ] || { echo "$form: not as it was"; return 1; }
		"$PYTHON" -c 'import json, sys; said = json.load(sys.stdin); assert said["fitted"] == 0, said' <<<"$output"
		rm -r packed plain ./*.xfp ./*.work ./*cache cold-*
	done <<-'END'
		deepseek 1.mlp.experts.1.up_proj.weight_scale_inv
		qwen3-channel 0.mlp.up_proj.weight_scale
		gpt_oss 0.mlp.experts.gate_up_proj_scales 0.mlp.experts.down_proj_blocks
		gptq-act 0.mlp.up_proj.scales 0.mlp.gate_proj.qzeros
		awq-gemm 0.mlp.up_proj.scales 0.self_attn.v_proj.qzeros
		ct-pack4-order 0.mlp.up_proj.weight_zero_point
		modelopt-nvfp4 0.mlp.up_proj.weight_scale 0.mlp.gate_proj.weight_scale_2
	END
}

@test "two inputs that change groups: detected" {
	local last colds=0

	for form in gptq-act ct-pack4-order; do
		packed "$form" --shards 3
		last=$(converted packed out.xfp)
		"$PYTHON" - <<-'EOF'
		import json, os, struct
		where = json.load(open("packed/model.safetensors.index.json"))["weight_map"]
		name = next(n for n in sorted(where) if n.endswith("up_proj.g_idx") or n.endswith("up_proj.weight_g_idx"))
		path = "packed/" + where[name]
		st = os.stat(path)
		with open(path, "r+b") as f:
		    size = struct.unpack("<Q", f.read(8))[0]
		    begin, end = json.loads(f.read(size))[name]["data_offsets"]
		    f.seek(8 + size + begin)
		    groups = list(struct.unpack(f"<{(end - begin) // 4}i", f.read(end - begin)))
		    other = next(i for i, g in enumerate(groups) if g != groups[0])
		    groups[0], groups[other] = groups[other], groups[0]
		    f.seek(8 + size + begin)
		    f.write(struct.pack(f"<{len(groups)}i", *groups))
		os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))
		EOF
		noticed "$form"
		rm -r packed plain ./*.xfp ./*.work ./*cache cold-*
	done
}

@test "a quantization_config with other parameters: detected, in any file" {
	local last colds=0

	# in config.json
	packed gptq-act --shards 2
	last=$(converted packed out.xfp)
	reword packed/config.json 's/"checkpoint_format": "gptq"/"checkpoint_format": "gptq_v2"/'
	noticed gptq-act
	rm -r packed plain ./*.xfp ./*.work ./*cache cold-*

	packed ct-float-block
	last=$(converted packed out.xfp)
	# blocks of 64 and of 70 rows: the same number of blocks, but other ones
	reword packed/config.json '/"block_structure"/{n;s/64/70/}'
	noticed ct-float-block
	rm -r packed plain ./*.xfp ./*.work ./*cache cold-*

	# in quantize_config.json
	packed gptq-old --shards 2
	last=$(converted packed out.xfp)
	reword packed/quantize_config.json 's/^{/{"checkpoint_format": "gptq_v2",/'
	noticed gptq-old
	rm -r packed plain ./*.xfp ./*.work ./*cache cold-*

	packed modelopt-fp8-blocks
	"$PYTHON" - <<-'EOF'
	import json
	config = json.load(open("packed/config.json"))
	json.dump({"quantization": config.pop("quantization_config")}, open("packed/hf_quant_config.json", "w"))
	json.dump(config, open("packed/config.json", "w"))
	EOF
	last=$(converted packed out.xfp)
	xfp verify out.xfp --source plain >verified
	reword packed/hf_quant_config.json 's/"FP8_PB_WO"/"MXFP8"/'
	run -3 xfp convert packed -o out.xfp
	[[ $output == *"quant_algo in hf_quant_config.json says otherwise"* ]]
	[ "$(sha out.xfp)" = "$last" ]
}

# Block at the third packed unit; then kill everything.
@test "killed in the middle, each form resumes to the same bytes; --like makes them from other files" {
	local found sha

	# shellcheck disable=SC2016
	replace_stage xfp-pack 'echo >>"$top/calls"
		[ "$(wc -l <"$top/calls")" -lt 3 ] && exec "$real" "$@"
		echo $$ >"$top/stopping"; mv "$top/stopping" "$top/stopped"; exec sleep 100'
	for form in gptq-act qwen3-channel deepseek gpt_oss ct-nvfp4 modelopt-nvfp4 awq-gemm kimi-k2-thinking; do
		[ "$form" != kimi-k2-thinking ] || by_default
		packed "$form" --shards 2
		rm -f calls stopped
		bin/xfp convert packed -o out.xfp -q -j1 2>>errors &
		pid=$!
		until [ -e stopped ]; do sleep 0.02; done
		kill -9 $pid "$(cat stopped)"
		wait $pid || true
		[ ! -e out.xfp ]
		found=$(find xfp-cache/artifacts -name '*.h5' | wc -l)
		[ "$found" -ge 2 ] || { echo "$form: $found artifacts"; return 1; }
		run -0 --separate-stderr xfp convert packed -o out.xfp --json
		"$PYTHON" -c 'import json, sys; said = json.load(sys.stdin); assert said["cached"] >= 2, said' <<<"$output"
		xfp verify out.xfp --source packed >verified
		sha=$(sha out.xfp)
		rm -r packed plain
		packed "$form" --shards 3
		# without the cache: the same bytes as without the kill
		run -0 --separate-stderr xfp convert packed --like out.xfp -o again.xfp --cache like
		[ "$output" = "$sha  $PWD/again.xfp" ] || { echo "$form: other bytes: $output"; return 1; }
		rm -r packed plain ./*.xfp ./*.work xfp-cache like
	done
}

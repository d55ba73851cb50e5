#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Checkpoints of torch.save, and archives: bundles have the bytes of those of the same weights as safetensors.

load helpers
load packed

# Unpacking does not depend on modes: most tests use the simplest, and some of each kind the default.
setup() {
	setup_folder
}

checkpoint() { # FORM OPTION...; makes ./torch, or torch.zip, and ./plain
	"$PYTHON" "$srcdir/tests/make-pytorch-checkpoint.py" "$1" torch plain "${@:2}"
}

# As in packed.bash, but without small files: those of Meta's shards are generated, with a note of their source,
# and archives contain some.
members() { # BUNDLE
	local folder

	folder=$(mktemp -d "$PWD/members-XXXXXX")
	tar -C "$folder" -xf "$1"
	(cd "$folder" && find . -type f ! -name xfp.idx ! -name xfp.sum ! -name xfp.json ! -path './files/*' \
		-exec sha256sum {} + | sort)
	rm -r "$folder"
}
index() { # BUNDLE
	xfp info --json "$1" | "$PYTHON" -c 'import json, sys
info = json.load(sys.stdin)
info["method"]["algorithms"].pop("pytorch", None)
print(json.dumps({key: info[key] for key in ("units", "tensors", "family", "weights", "method")}, indent=1))'
}

@test "each form: units, kept tensors and the index are those of safetensors; all verify" {
	checkpoint single
	xfp convert plain -o plain.xfp -q --cache plain-cache
	for form in single views parameters sharded meta-1 meta-2 meta-2-rows meta-4; do
		rm -rf torch plain
		checkpoint "$form"
		xfp convert torch -o torch.xfp -q --cache torch-cache
		alike torch.xfp plain.xfp || { echo "$form"; return 1; }
		xfp verify torch.xfp --source torch
		xfp verify torch.xfp --source plain
		xfp verify plain.xfp --source torch
		rm -r torch.xfp* torch-cache
	done
}

@test "each dtype, and every mode of transposed weights and slices" {
	by_default
	for dtype in F16 F32 F64; do
		checkpoint views --dtype $dtype
		xfp convert plain -o plain.xfp -q
		xfp convert torch -o torch.xfp -q --cache torch-cache
		alike torch.xfp plain.xfp || { echo "$dtype"; return 1; }
		rm -r torch plain ./*.xfp*
	done
	checkpoint views
	for how in "--mode v2a" "--mode v2c" "--format attention=keep --format embedding=fp8" "--outlier-sigma 3"; do
		# shellcheck disable=SC2086
		xfp convert torch -o torch.xfp -q --cache torch-cache $how
		# shellcheck disable=SC2086
		xfp convert plain -o plain.xfp -q $how
		alike torch.xfp plain.xfp || { echo "$how"; return 1; }
		rm torch.xfp plain.xfp
	done
}

@test "in an archive: as unpacked, with other files next to it" {
	checkpoint single
	xfp convert plain -o plain.xfp -q --cache plain-cache
	echo '{"model_type": "other"}' >config.json
	touch tokenizer.json LICENSE
	for form in zip-safetensors zip-single zip-sharded zip-views zip-meta; do
		rm -rf torch plain
		checkpoint "$form"
		xfp convert torch.zip -o torch.xfp -q --cache torch-cache
		alike torch.xfp plain.xfp || { echo "$form"; return 1; }
		xfp verify torch.xfp --source torch.zip
		xfp verify torch.xfp --source plain
		rm -r torch.zip torch.xfp* torch-cache
	done
	rm -r plain
	checkpoint zip-compressed
	run -3 xfp convert torch.zip -o out.xfp
	[[ $output == *"$PWD/torch.zip/"*": is compressed"*"zip -0"* ]]
	rm torch.zip
	# a file of torch.save is a zip as well, under any name
	rm -rf plain torch
	checkpoint single
	mv torch/pytorch_model.bin torch/all.zip
	run -0 xfp-inspect torch/all.zip
	[[ $output == *"format  pytorch, 1 file"* ]]
	cd torch
	checkpoint single --spoil old-layout
	"$PYTHON" -c 'import zipfile; zipfile.ZipFile("old.zip", "w").write("torch/pytorch_model.bin")'
	run -3 xfp-inspect old.zip
	[[ $output == *"old.zip/torch/pytorch_model.bin: has the layout of PyTorch before 1.6"* ]]
	"$PYTHON" -c 'import zipfile; zipfile.ZipFile("nothing.zip", "w").writestr("a/README.md", "text")'
	run -3 xfp-inspect nothing.zip
	[[ $output == *"nothing.zip: contains no supported weights"* ]]
	# files that macOS adds beside the folder are not read
	(cd plain && "$PYTHON" -c 'import os, zipfile
with zipfile.ZipFile("../mac.zip", "w") as archive:
    archive.writestr("__MACOSX/model.safetensors", "damaged")
    for name in os.listdir():
        archive.write(name, "m/" + name)')
	run -0 xfp-inspect mac.zip
	# a data.pkl of up to 100 MB is read
	for bytes in 100000000 100000001; do
		"$PYTHON" -c 'import sys, zipfile
zipfile.ZipFile("large.bin", "w").writestr("a/data.pkl", bytes(int(sys.argv[1])))' $bytes
		run -3 xfp-inspect large.bin
		[[ $output == *"data.pkl takes more than 100 MB"* ]] && [ $bytes = 100000001 ] ||
			[[ $output != *"100 MB"* ]]
		rm large.bin
	done
}

@test "packed weights in an archive: a file next to config.json has the parameters" {
	for form in gptq-old awq-old; do
		rm -rf packed plain
		packed "$form"
		(cd packed && "$PYTHON" -c 'import os, zipfile
with zipfile.ZipFile("../packed.zip", "w") as archive:
    for name in sorted(os.listdir(".")):
        archive.write(name)')
		run -0 xfp inspect packed.zip
		[[ $output == *"packed  as ${form%-old}: "* && $output != *"not copied"* ]]
		xfp convert packed.zip -o zip.xfp -q --cache zip-cache
		xfp convert plain -o plain.xfp -q
		alike zip.xfp plain.xfp || { echo "$form"; return 1; }
		rm -r zip-cache ./*.xfp*
	done
}

@test "invalid files: file, tensor and remedy are named; nothing is written, and nothing in a pickle is executed" {
	checkpoint single --spoil each
	while read -r kind words; do
		run -3 --separate-stderr xfp convert "torch/$kind" -o out.xfp
		# shellcheck disable=SC2053
		[[ $stderr == *"$PWD/torch/$kind"*$words* ]] || { echo "$kind: $stderr"; return 1; }
		no_output out.xfp
		[ ! -e harmed ]
	done <<-'END'
		truncated pytorch_model.bin: it does not end like a zip archive*download it again
		cut-in-data pytorch_model.bin: it does not end like a zip archive
		empty pytorch_model.bin: is not a torch.save file
		text pytorch_model.bin: is a Git LFS pointer*git lfs pull
		old-layout layout of PyTorch before 1.6*torch.load(..., weights_only=True)
		before pytorch_model.bin: *download it again
		encrypted pytorch_model.bin: archive/data/3: is encrypted
		compressed tensor model.layers.0.self_attn.v_proj.weight: its storage is compressed*torch.load
		absolute pytorch_model.bin: /etc/data/3: is not a path inside the archive*do not trust
		escape archive/../../data/3: is not a path inside
		backslash data*3: is not a path inside
		nul is not a path inside
		twice archive/data/3: is in the archive twice
		shared-header archive/data/99: its header is not what the directory says
		overlap archive/data/3 and archive/data/98 overlap
		other-name archive/data/3: its header is not what the directory says
		other-size tensor *v_proj.weight: its storage should have 4096 bytes, but has 4094
		unlike archive/data/3: is stored, but its two sizes differ
		no-zip64 archive/data/3: lacks the zip64 field
		short-zip64 archive/data/3: lacks the zip64 field
		huge-zip64 archive/data/3: reaches past the archive's end
		count its directory has more entries than it says
		huge-count its directory is not where its end says
		huge-directory its directory is not where its end says
		contradiction the two records at its end contradict each other
		disks one of several disks
		locator the zip64 record at its end is invalid
		no-pickle it has no data.pkl
		torchscript TorchScript*state_dict
		big-endian big-endian
		no-storage tensor *v_proj.weight: its storage, archive/data/3, is not in the file
		global refers to posix.system at its byte
		rebuilder refers to torch._utils._rebuild_sparse_tensor at its byte
		quantized refers to torch.QInt8Storage at its byte
		protocol has protocol 4
		opcode opcode 0x49 (INT) at its byte 10*safetensors.torch.save_file
		cut ends within an opcode
		goes-on bytes follow its end
		no-mark mark is missing
		memo GET of an empty memo slot
		far-memo PUT of an invalid memo slot
		long-text ends within an opcode
		utf8 is not UTF-8
		flood ends before it is finished
		dicts need more memory than its size allows
		marks ends before it is finished
		wide-number more than 64 bits
		itself may contain itself
		round may contain itself
		attributes BUILD of a value that is not a dict
		call REDUCE of a value that is not a known function
		one one tensor without a name*state_dict
		list not contain a dict of tensors
		nothing no tensor has a name
		past tensor model.layers.0.self_attn.q_proj.weight: reaches past the end of its storage*download it again
		huge-offset reaches past the end
		negative tensor *q_proj.weight: its storage offset is invalid
		negative-size tensor *q_proj.weight: its sizes or strides are invalid
		huge-shape more than 2^58 elements
		stride reaches past the end
		ranks sizes or strides are invalid
		rank more than 8 dimensions
		expanded tensor *q_proj.weight: repeats elements of its storage*.clone()
		windows tensor *q_proj.weight: has rows that overlap*.contiguous()
		every-other tensor *q_proj.weight: selects single elements*.contiguous()
		storage-size its storage should have 8190 bytes, but has 8192
		storage-huge its storage should have 9223372036854775808 bytes
		negated a tensor at its byte *is a view of others' negatives*.resolve_neg()
		conjugated negatives or conjugates*.resolve_conj()
		meta-device tensor *q_proj.weight: has no data
		key its storage has an invalid name
		classes tensor z.weight: reads its storage as HalfStorage, but another tensor as BFloat16Storage
		long-name its name has 2000 bytes
		missing-shard pytorch_model-00002-of-00002.bin: missing*download them
		no-index no pytorch_model.bin.index.json
		index-escape not a plain file name*do not trust
		index-other x.safetensors, which is not a PyTorch file
		index-more tensor zz: listed by pytorch_model.bin.index.json, but missing
		in-two pytorch_model-00002-of-00002.bin: tensor *listed by *, but missing
		missing-part consolidated.00.pth: missing*download it
		no-params params.json: missing*download it
		heads params.json: tensor *k_proj.weight: all parts together have 32 rows
		copies consolidated.01.pth: tensor layers.0.attention.wk.weight: differs from the previous part, but params.json has fewer heads
		odd-width params.json: 3 heads do not divide a width of 64
		no-dim params.json: dim, n_layers and n_heads
		other-model consolidated.00.pth: tensor layers.0.feed_forward.experts.w1: is not from Llama 1 to 3
		unlike-parts consolidated.01.pth: tensor layers.0.attention.wk.weight: is not in this part
	END
}

@test "files of other writers and older versions are read; ignored values are named" {
	for kind in good-zip64 comment old-archive deep; do
		checkpoint single --spoil "$kind"
		xfp convert torch -o torch.xfp -q --cache torch-cache
		xfp convert plain -o plain.xfp -q
		alike torch.xfp plain.xfp || { echo "$kind"; return 1; }
		rm -r torch plain ./*.xfp*
	done
	checkpoint parameters
	touch torch/{training_args.bin,optimizer.pt,rng_state_0.pth}
	run -0 xfp-inspect torch
	[[ $output == *"last.pth: contains 4 other values besides the model's tensors (first: epoch); ignored"* ]]
	rm -r torch plain
	checkpoint single
	touch torch/other.pth
	run -0 xfp-inspect torch
	[[ $output == *"other.pth: is next to pytorch_model.bin; ignored"* ]]
	# safetensors in the same folder take precedence
	cp plain/model.safetensors torch
	run -0 xfp-inspect torch
	[[ $output == *"format  safetensors, 1 file"* ]]
	rm torch/model.safetensors torch/pytorch_model.bin torch/other.pth
	touch torch/optimizer.pt
	run -3 xfp-inspect torch
	[[ $output == *"torch: contains no checkpoint, but optimizer.pt: training state"* ]]
}

@test "a single file, one of Meta's parts, an index" {
	checkpoint single
	run -0 xfp-inspect torch/pytorch_model.bin
	mv torch/pytorch_model.bin torch/blob
	run -0 xfp-inspect torch/blob
	[[ $output == *"format  pytorch, 1 file"* ]]
	rm -r torch plain
	checkpoint meta-2
	run -0 xfp-inspect torch/consolidated.01.pth
	[[ $output == *"format  pytorch, 2 files"* ]]
	[[ $output == *"params.json contains no context length: config.json says 4096"* ]]
	rm -r torch plain
	checkpoint sharded
	run -0 xfp-inspect torch/pytorch_model.bin.index.json
	[[ $output == *"format  pytorch, 2 files"* ]]
	run -0 xfp-inspect torch/pytorch_model-00001-of-00002.bin
	[[ $output == *"is one of several files; the others are not read"* ]]
}

@test "changed weights are detected: of a joined part, of a view, of an archive" {
	touch_weights() { # FILE: turn a bit in the middle of it, and give the members it is in their new CRC-32
		"$PYTHON" - "$1" <<-'EOF'
		import io, struct, sys, zipfile, zlib
		def around(data, at, base):  # from the innermost member
		    for m in zipfile.ZipFile(io.BytesIO(data)).infolist():
		        name, extra = struct.unpack("<HH", data[m.header_offset + 26:m.header_offset + 30])
		        begin = m.header_offset + 30 + name + extra
		        if begin <= at < begin + m.file_size:
		            inner = data[begin:begin + m.file_size]
		            if inner[:4] == b"PK\3\4":
		                yield from around(inner, at - begin, base + begin)
		            yield base + begin, base + begin + m.file_size, m.CRC
		data = bytearray(open(sys.argv[1], "rb").read())
		at = data.index(b"data/4") + 2000 | 1
		members = list(around(bytes(data), at, 0))
		data[at] ^= 4
		for begin, end, crc in members:
		    data = data.replace(struct.pack("<I", crc), struct.pack("<I", zlib.crc32(data[begin:end])))
		open(sys.argv[1], "r+b").write(data)
		EOF
	}
	for case in "meta-2 torch/consolidated.01.pth" "views torch/pytorch_model.bin" "zip-single torch.zip"; do
		read -r form file <<<"$case"
		checkpoint "$form"
		first=$(converted "${file%%/*}" out.xfp)
		run -0 xfp convert "${file%%/*}" -o out.xfp
		[[ $output == *"is up to date"* ]]
		touch_weights "$file"
		second=$(converted "${file%%/*}" out.xfp)
		[ "$second" != "$first" ] || { echo "$form"; return 1; }
		[ "$second" = "$(converted "${file%%/*}" cold.xfp --cache cold)" ]
		run -4 xfp verify out.xfp --source plain
		rm -r torch* plain ./*.xfp* cold xfp-cache
	done
}

@test "memory of opening is a small multiple of the pickle, for any pickle" {
	peak() {
		"$PYTHON" "$srcdir/tests/measure-peak" -i 2 xfp-inspect torch 2>/dev/null | "$PYTHON" -c '
import json, sys
print(json.load(sys.stdin)["pss"] >> 20)'
	}
	[ -e "/proc/$$/smaps_rollup" ] || skip "no /proc/PID/smaps_rollup"
	[ "${XFP_TEST_SANITIZERS:-no}" = no ] || skip "the sanitizers have memory of their own"
	for kind in flood dicts marks; do # 3 MB each
		checkpoint single --spoil "$kind"
		[ "$(peak)" -lt 120 ] || { echo "$kind: $(peak)"; return 1; }
		rm -r torch plain
	done
}

@test "small files that are synthesized, or in an archive, are in the bundle; --like makes them again" {
	for form in meta-2 zip-meta; do
		checkpoint "$form"
		model=torch
		[ -d torch ] || model=torch.zip
		[ ! -e torch/config.json ]
		xfp convert "$model" -o out.xfp -q
		xfp unpack out.xfp -o copy
		"$PYTHON" -c 'import json, sys
made, plain = json.load(open("copy/config.json")), json.load(open("plain/config.json"))
for key in ("model_type", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
            "num_key_value_heads", "vocab_size", "architectures"):
    assert made[key] == plain[key], (key, made[key], plain.get(key))'
		run -0 --separate-stderr xfp info --json out.xfp
		"$PYTHON" -c 'import json, sys
assert json.load(sys.stdin)["method"]["algorithms"]["pytorch"] == 1' <<<"$output"
		xfp convert "$model" --like out.xfp -o again.xfp -q --cache again
		cmp out.xfp again.xfp
		rm -r "$model" plain copy again ./*.xfp ./*.work
	done
	# other files beside shards, and in an archive, are carried along
	checkpoint meta-2
	echo '{"version": "1.0"}' >torch/tokenizer.json
	"$PYTHON" -c 'import zipfile, os
with zipfile.ZipFile("torch.zip", "w") as archive:
    for name in sorted(os.listdir("torch")):
        archive.write("torch/" + name)'
	for model in torch torch/consolidated.00.pth torch.zip; do
		xfp convert "$model" -o out.xfp -q
		rm -rf copy
		xfp unpack out.xfp -o copy
		cmp copy/tokenizer.json torch/tokenizer.json
		[ -s copy/config.json ]
	done
}

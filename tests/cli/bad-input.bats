#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Damaged or unusual checkpoints: a correct result, or status 3, a message that names the defect, and no output.

load helpers

setup() { setup_folder; }

refused() { # KIND WORD...: every word is in the message
	make_bad "$1" bad
	run -3 xfp convert bad -o out.xfp
	for word in "${@:2}"; do
		[[ $output == *"$word"* ]] || { echo "no '$word' in: $output"; return 1; }
	done
	no_output out.xfp
}

accepted() { # KIND
	make_bad "$1" strange
	xfp convert strange -o out.xfp -q
	xfp verify out.xfp --source strange
}

@test "good: nothing wrong" { accepted good; }

@test "missing shard" { refused missing-shard .safetensors; }
@test "truncated shard" { refused truncated-shard .safetensors; }
@test "header longer than the file" { refused header-too-long .safetensors header; }
@test "header that is not JSON" { refused header-not-json .safetensors header; }
@test "overlapping byte ranges" { refused overlap .safetensors; }
@test "a hole between byte ranges" { refused hole .safetensors; }
@test "bytes that are not dtype times shape" { refused wrong-size .safetensors; }
@test "a name twice in a file" { refused duplicate-name .safetensors; }
@test "a name in two shards" { refused duplicate-across-shards .safetensors; }
@test "an index that leaves its folder" { refused index-escape index; }
@test "an index that names a missing tensor" { refused index-missing-tensor index; }
@test "NaN in a projection" { refused nan NaN _proj --on-nonfinite; }
@test "infinity in a projection" { refused inf _proj --on-nonfinite; }

@test "a matrix of zeros" { accepted all-zero; }
@test "a matrix of one value" { accepted constant; }
@test "tiny weights" { accepted tiny; }
@test "huge weights" { accepted huge; }
@test "K = 1" { accepted k1; }
@test "K not a multiple of anything" { accepted k-odd; }

@test "a projection with zero rows" {
	make_bad zero-rows strange
	status=0
	xfp convert strange -o out.xfp -q 2>errors || status=$?
	if [ $status = 0 ]; then
		xfp verify out.xfp --source strange
	else
		[ $status = 3 ]
		grep -q "_proj" errors
		no_output out.xfp
	fi
}

@test "NaN, kept on request" {
	make_bad nan strange
	xfp convert strange -o out.xfp -q --on-nonfinite keep
	[ "$(query "SELECT count(*) FROM run_units WHERE mode = 'keep'")" -ge 1 ]
	# and refused again without it, whatever the cache contains by now
	rm out.xfp
	run -3 xfp convert strange -o out.xfp
	[[ $output == *NaN* ]]
	no_output out.xfp
}

@test "tensor names with shell and make syntax" {
	accepted shell-names
	[ -z "$(find . -name 'pwned*')" ]
}

@test "a bad tensor among good ones: --keep-going finishes the others; once repaired, only it is converted" {
	make_bad nan bad
	run -3 xfp convert bad -o out.xfp -j1 -k
	no_output out.xfp
	done_before=$(find out.xfp.work -name 'u*-packed' | wc -l)
	make_bad good good
	xfp convert good -o out.xfp >stdout
	[ "$done_before" -ge 5 ]
	grep -q " 1 packed now, " stdout
}

@test "no such model, an empty folder, a file that is something else" {
	run ! xfp convert missing -o out.xfp
	[[ $status =~ ^[13]$ && $output == *missing* ]]
	mkdir empty
	run -3 xfp convert empty -o out.xfp
	[[ $output == *empty* ]]
	run -1 xfp convert empty -o empty
	[[ $output == *"/empty: is a folder; name the bundle, as in "*"/empty/model.xfp" ]]
	# a first run that fails leaves no files
	[ "$(ls -A)" = empty ]
	echo hello >model.safetensors
	run -3 xfp convert model.safetensors -o out.xfp
	[[ $output == *model.safetensors* ]]
	no_output out.xfp
}

@test "a model with nothing to quantize is refused without --allow-empty" {
	"$PYTHON" - <<-'EOF'
	import json, os, struct
	os.mkdir("norms")
	text = json.dumps({"model.norm.weight": {"dtype": "F32", "shape": [64], "data_offsets": [0, 256]}}).encode()
	open("norms/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + bytes(256))
	EOF
	run -3 xfp convert norms -o out.xfp
	[[ $output == *"norms: nothing to quantize: by the rules of family general, "*"convert it unchanged with --allow-empty"* ]]
	no_output out.xfp
	run -3 xfp prepare norms -o out.xfp
	run -3 xfp convert norms -o out.xfp -n
	run -3 xfp plan norms -o out.xfp
	[[ $output == *"norms: nothing to quantize: "* ]]
	run -0 xfp plan norms -o out.xfp --allow-empty
	[[ $output == *"There is nothing to quantize: all tensors are kept unchanged."* ]]
	# rules without matches are then not reported
	echo '{"model_type": "qwen3_moe"}' >norms/config.json
	run -3 xfp convert norms -o out.xfp
	[[ $output != *"matches no tensor"* ]]
	[ "${#lines[@]}" -eq 2 ]
	xfp-inspect -v norms 2>&1 | grep -q 'the rule matches no tensor'
	rm norms/config.json
	xfp convert norms -o out.xfp -q --allow-empty
	xfp verify out.xfp --source norms -q
	# a bundle without units can be regenerated
	xfp convert norms -o again.xfp --like out.xfp -q
	cmp out.xfp again.xfp
}

@test "other kinds of weights are refused by name" {
	told() { # MODEL WORDS
		run -3 xfp convert "$1" -o out.xfp
		[[ $output == *"$1"*$2* ]] || { echo "$1: $output"; return 1; }
	}
	printf 'GGUF\3\0\0\0' >a.gguf
	told a.gguf "truncated or damaged"
	mkdir torch gguf
	touch torch/pytorch_model.bin gguf/model-Q4_K_M.gguf
	told torch "pytorch_model.bin: is not a torch.save file"
	printf '\200\2}q\0.' >net.pth
	told net.pth "is a pickle, but not a file of tensors"
	told gguf "model-Q4_K_M.gguf: truncated or damaged"
	make_bad good good
	told good/config.json "name its folder"
	xfp convert good -o q.xfp -q
	told q.xfp "xfp unpack"
	# and vice versa: a file that is not a bundle, and a bundle with a damaged header
	named() { # BUNDLE WORDS
		for command in info "verify -q" "unpack -o new"; do
			run -3 xfp $command "$1"
			[[ $output == *"$1: $2"* ]] || { echo "$command $1: $output"; return 1; }
		done
	}
	head -c 9000 /dev/zero | tr '\0' GGUF >b.gguf
	printf 'GGUF\3\0\0\0' | dd of=b.gguf conv=notrunc status=none
	named b.gguf "is GGUF, not a .xfp bundle; for a checkpoint, use xfp inspect or xfp convert"
	named good/model.safetensors "is safetensors, not a .xfp bundle; for a checkpoint, use xfp inspect"
	named good "not a regular file; for a checkpoint, use xfp inspect"
	head -c 9000 /dev/zero >zeros
	named zeros "not a .xfp bundle; for a checkpoint, use xfp inspect"
	for at in 0 100; do
		cp q.xfp "flipped$at"
		printf '\377' | dd of="flipped$at" bs=1 seek=$at conv=notrunc status=none
		named "flipped$at" "a bundle whose first bytes are damaged; copy or convert it again"
	done
}

@test "files that are not carried along are named" {
	make_bad good good
	touch good/data_config.json good/notes.npy good/.gitattributes good/LICENSE good/other.bin
	run -0 xfp convert good -o out.xfp
	[ "$(grep "not copied" <<<"$output")" = "xfp convert: note: not copied into the bundle: data_config.json, notes.npy" ]
	[ "$(xfp inspect --json good 2>/dev/null | grep -c '"not copied into the bundle: ')" -eq 2 ]
	run -0 --separate-stderr xfp plan good # where it is of no concern
	[ -z "$stderr" ]
	# unrelated files beside a single-file model
	run -0 xfp convert good/*.safetensors -o out.xfp
	[[ $output != *"not copied"* ]]
}

# A command that waited for the other end of a pipe would hang.
refused_at_once() { # MODEL WHAT IT SAYS
	for command in "xfp convert $1 -o out.xfp -q" "xfp plan $1" "xfp-inspect $1"; do
		# shellcheck disable=SC2086
		run -3 timeout 20 $command
		[[ $output == *"$2"* ]] || { echo "$command: $output"; return 1; }
	done
	no_output out.xfp
}

@test "a pipe or a symbolic link loop as MODEL" {
	cd "$BATS_TEST_TMPDIR"
	mkfifo pipe pipe.safetensors pipe.safetensors.index.json
	ln -s circle circle
	refused_at_once pipe "pipe: is a pipe or a device; name a file of weights, or the folder of a checkpoint"
	refused_at_once pipe.safetensors "is a pipe or a device; name a"
	refused_at_once pipe.safetensors.index.json "is a pipe or a device; name a"
	refused_at_once circle "circle: is a link to itself; name the checkpoint that it should point to"
}

@test "a pipe, a folder or a symbolic link loop in place of a checkpoint's file" {
	cd "$BATS_TEST_TMPDIR"
	make_model single
	make_model sharded --shards 2
	for file in single/config.json single/model.safetensors sharded/model.safetensors.index.json \
		sharded/model-00001-of-00002.safetensors; do
		mv "$file" "$BATS_TEST_TMPDIR/aside"
		mkfifo "$file"
		refused_at_once "${file%%/*}" "$file: is a pipe or a device, not a regular file"
		rm "$file"
		mkdir "$file"
		refused_at_once "${file%%/*}" "$file: is a folder, not a regular file"
		rmdir "$file"
		ln -s "$(basename "$file")" "$file"
		refused_at_once "${file%%/*}" "$file: is a symbolic link loop, not a regular file"
		rm "$file"
		mv "$BATS_TEST_TMPDIR/aside" "$file"
	done
}

@test "a small file of the checkpoint that is a pipe or a folder" {
	make_model m
	for name in tokenizer.json generation_config.json; do
		rm -f "m/$name"
		mkfifo "m/$name"
		run -3 timeout 20 xfp convert m -o out.xfp -q
		[[ $output == *"$name: is not a regular file, but belongs in the bundle"* ]]
		rm "m/$name"
		no_output out.xfp
		mkdir "m/$name"
		xfp convert m -o out.xfp >told 2>&1
		grep -q "$name: is a folder and is not carried along" told
		rmdir "m/$name"
		rm out.xfp
	done
}

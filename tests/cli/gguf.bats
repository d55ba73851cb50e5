#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Models in GGUF files: bundles have the bytes of those of the same model in Hugging Face format, and the config
# that follows from the metadata.

load helpers

setup() {
	setup_folder
	by_default
}

gguf() { # ARCHITECTURE OPTION...; makes ./model.gguf and ./plain
	rm -rf plain
	"$PYTHON" "$srcdir/tests/make-gguf.py" "$1" model.gguf plain "${@:2}"
}

# Digests of units and kept tensors, and their entries in the index.
content() { # BUNDLE
	local folder

	folder=$(mktemp -d "$PWD/members-XXXXXX")
	tar -C "$folder" -xf "$1"
	(cd "$folder" && find . -type f ! -path './files/*' ! -name 'xfp.*' -exec sha256sum {} + | sort)
	rm -r "$folder"
	xfp info --json "$1" | "$PYTHON" -c 'import json, sys
info = json.load(sys.stdin)
print(json.dumps({key: info[key] for key in ("units", "tensors", "family", "weights")}, indent=1))'
}

# Each field of the expected config, with its value.
config_says() { # BUNDLE PLAIN
	rm -rf unpacked
	xfp unpack "$1" -o unpacked
	"$PYTHON" - unpacked/config.json "$2/config.json" <<-'EOF'
	import json, sys
	made, expected = (json.load(open(path)) for path in sys.argv[1:])
	for key, value in expected.items():
	    assert key in made and made[key] == value and type(made[key]) is type(value), (key, made.get(key), value)
	assert ("rope_scaling" in made) == ("rope_scaling" in expected), made
	EOF
}

@test "each architecture: units, kept tensors and the index are those of the published form; the config is" {
	for architecture in llama mixtral qwen2 qwen3 qwen3moe gemma2 gemma3 phi3 gpt-oss qwen3next glm4moe; do
		gguf "$architecture" --type BF16
		xfp convert model.gguf -o gguf.xfp -q
		xfp convert plain -o plain.xfp -q --cache plain-cache
		[ "$(content gguf.xfp | grep -c /u/)" -gt 20 ]
		diff <(content gguf.xfp) <(content plain.xfp) || { echo "$architecture"; return 1; }
		xfp verify gguf.xfp --source model.gguf
		xfp verify gguf.xfp --source plain
		xfp verify plain.xfp --source model.gguf
		config_says gguf.xfp plain || { echo "$architecture"; return 1; }
		rm -r ./*.xfp ./*.work plain-cache
	done
}

@test "F16 and F32: kept, as fp8 and in every mode" {
	for type in F16 F32; do
		for how in "--mode v2a" "--mode v2c" "--format attention=keep --format dense_mlp=fp8"; do
			gguf llama --type "$type"
			# shellcheck disable=SC2086
			xfp convert model.gguf -o gguf.xfp -q $how
			# shellcheck disable=SC2086
			xfp convert plain -o plain.xfp -q $how --cache plain-cache
			diff <(content gguf.xfp) <(content plain.xfp) || { echo "$type $how"; return 1; }
			config_says gguf.xfp plain
			rm ./*.xfp
		done
	done
}

@test "NVFP4: scales of matrices and experts apply, also for two tensors of one stack; input scales do not" {
	for how in "" --joined; do
		# shellcheck disable=SC2086
		gguf qwen3moe --type BF16 --nvfp4 $how
		xfp convert model.gguf -o gguf.xfp -q
		xfp convert plain -o plain.xfp -q --cache plain-cache
		diff <(content gguf.xfp) <(content plain.xfp)
		xfp verify gguf.xfp --source plain
		run ! grep -q scale <<<"$(xfp inspect --tensors model.gguf)"
		rm ./*.xfp
	done
}

@test "several files: named by any of them, or as a folder, they are one model; a missing one is named" {
	gguf qwen3next --parts 3
	mkdir parts
	mv model-0000?-of-00003.gguf parts
	gguf qwen3next
	xfp convert model.gguf -o one.xfp -q
	for model in parts parts/model-00001-of-00003.gguf parts/model-00003-of-00003.gguf; do
		xfp convert "$model" -o several.xfp -q --cache parts-cache
		cmp one.xfp several.xfp
		rm -r several.xfp several.xfp.work
	done
	mv parts/model-00002-of-00003.gguf there
	run -3 xfp convert parts/model-00003-of-00003.gguf -o x.xfp
	[[ "$output" == *"parts/model-00002-of-00003.gguf: missing"*"1 of them"* ]]
	cp parts/model-00001-of-00003.gguf parts/model-00002-of-00003.gguf
	run -3 xfp convert parts -o x.xfp
	[[ "$output" == *"model-00002-of-00003.gguf: is not part 2 of 3"* ]]
	mv there parts/model-00002-of-00003.gguf
	# a name of the first file in the third
	"$PYTHON" -c 'import re
parts = [open(f"parts/model-0000{n}-of-00003.gguf", "rb").read() for n in (1, 3)]
first, third = (sorted(set(re.findall(rb"blk\.[0-9a-z_.]+\.weight", part))) for part in parts)
ours, theirs = next((a, b) for a in third for b in first if len(a) == len(b))
open("parts/model-00003-of-00003.gguf", "wb").write(parts[1].replace(ours, theirs))'
	run -3 xfp convert parts -o x.xfp
	[[ "$output" == *"model-00003-of-00003.gguf: tensor blk."*": is also in model-00001-of-00003.gguf"* ]]
	cp parts/model-00001-of-00003.gguf other.gguf
	run -3 xfp convert other.gguf -o x.xfp
	[[ "$output" == *"other.gguf: is one of 3 files"*"restore the original name"* ]]
	cp model.gguf parts
	run -3 xfp convert parts -o x.xfp
	[[ "$output" == *"contains several GGUF models"*"name the file of one"* ]]
	rm parts/*
	mv model.gguf parts
	printf x >parts/mmproj-model.gguf
	printf '{"model_type": "llama"}' >parts/config.json
	printf words >parts/tokenizer.json
	run -0 xfp convert parts -o folder.xfp --cache parts-cache
	[[ "$output" == *"mmproj-model.gguf"*"ignored"* ]]
	[[ "$output" == *"config.json: exists, but a new one"* ]]
	xfp unpack folder.xfp -o out
	[ "$(cat out/tokenizer.json)" = words ]
	grep -q qwen3_next out/config.json
}

archive() { # FILE...; makes ./model.zip of these, in a folder
	"$PYTHON" -c 'import sys, zipfile
with zipfile.ZipFile("model.zip", "w", getattr(zipfile, sys.argv[1])) as archive:
    for name in sys.argv[2:]:
        archive.write(name, "a folder/" + name)' "${how:-ZIP_STORED}" "$@"
}

@test "in an archive: as unpacked, in one file or several, with other files next to it" {
	printf words >tokenizer.json
	printf '{"model_type": "qwen2"}' >config.json
	for form in llama "qwen3moe --type BF16 --nvfp4 --parts 3"; do
		# shellcheck disable=SC2086
		gguf $form
		archive ./*.gguf tokenizer.json config.json
		rm ./*.gguf
		xfp convert plain -o plain.xfp -q --cache plain-cache
		run -0 --separate-stderr xfp convert model.zip -o zip.xfp
		[[ "$stderr" == *"config.json: exists, but a new one"* ]]
		diff <(content zip.xfp) <(content plain.xfp) || { echo "$form"; return 1; }
		xfp verify plain.xfp --source model.zip
		config_says zip.xfp plain
		[ "$(cat unpacked/tokenizer.json)" = words ]
		mv zip.xfp last
		rm -r ./*.xfp ./*.work
	done
	xfp convert model.zip --like last -o again.xfp -q
	cmp last again.xfp
	run -0 xfp inspect model.zip
	[[ "$output" == *"format  gguf in a zip, 1 file"* ]]
	gguf llama --parts 2
	archive model-00002-of-00002.gguf
	run -3 xfp inspect model.zip
	[[ "$output" == *"model.zip/a folder/model-00001-of-00002.gguf: missing"* ]]
	gguf llama
	archive model.gguf model-00001-of-00002.gguf
	run -3 xfp inspect model.zip
	[[ "$output" == *"model.zip/a folder: contains several GGUF models"*"unpack it, and name the file of one"* ]]
	how=ZIP_DEFLATED archive model.gguf
	run -3 xfp inspect model.zip
	[[ "$output" == *"model.zip/a folder/model.gguf: is compressed"*"zip -0"* ]]
	# parts of two models with the same name
	mkdir both
	mv model-00001-of-00002.gguf both
	gguf llama --parts 3
	mv model-0000?-of-00003.gguf both
	run -3 xfp inspect both
	[[ "$output" == *"both: contains several GGUF models (model-00001-of-00002.gguf, model-00003-of-00003.gguf"* ]]
}

@test "all metadata is included as one GGUF without tensors, and synthesized files are made again" {
	gguf llama --parts 2
	xfp convert model-00002-of-00002.gguf -o out.xfp -q
	xfp unpack out.xfp -o out
	"$PYTHON" - out/metadata.gguf <<-'EOF'
	import struct, sys
	data = open(sys.argv[1], "rb").read()
	magic, version, tensors, keys = struct.unpack_from("<4sIQQ", data)
	assert (magic, version, tensors) == (b"GGUF", 3, 0), data[:24]
	assert b"split." not in data and "token 95 ä".encode() in data and keys > 10
	EOF
	run -3 xfp inspect out/metadata.gguf
	[[ "$output" == *"out/metadata.gguf: contains no weights; name a file"* ]]
	run -0 xfp info --json out.xfp
	grep -q '"gguf": 1' <<<"$output"
	xfp convert model-00001-of-00002.gguf --like out.xfp -o again.xfp -q --cache another-cache
	cmp out.xfp again.xfp
	# no work is left, and a dry run, which converts elsewhere, knows it
	run -0 xfp convert model-00002-of-00002.gguf -o out.xfp
	[[ "$output" == *"up to date"* ]]
	run -0 xfp convert model-00002-of-00002.gguf -o out.xfp --dry-run
	[[ "$output" == *"up to date"* ]]
	# a bundle of safetensors does not mention it
	xfp convert plain -o plain.xfp -q --cache another-cache
	run -0 xfp info --json plain.xfp
	run ! grep -q '"gguf"' <<<"$output"
}

# Block at the third packed unit; then kill everything.
@test "killed in the middle it resumes to the same bytes; files made by another version are not used" {
	local expected

	# shellcheck disable=SC2016
	replace_stage xfp-pack 'echo >>"$top/calls"
		[ "$(wc -l <"$top/calls")" -lt 3 ] && exec "$real" "$@"
		echo $$ >"$top/stopping"; mv "$top/stopping" "$top/stopped"; exec sleep 100'
	gguf llama --parts 2
	expected=$(converted model-00001-of-00002.gguf whole.xfp --cache whole)
	bin/xfp convert model-00001-of-00002.gguf -o out.xfp -q -j1 2>>errors &
	pid=$!
	until [ -e stopped ]; do sleep 0.02; done
	kill -9 $pid "$(cat stopped)"
	wait $pid || true
	[ ! -e out.xfp ]
	run -0 --separate-stderr xfp convert model-00002-of-00002.gguf -o out.xfp --json
	[ "$(sha out.xfp)" = "$expected" ]
	"$PYTHON" -c 'import json, sys; said = json.load(sys.stdin); assert said["cached"] >= 2, said' <<<"$output"
	edited out.xfp newer.xfp '"gguf": 1' '"gguf": 9'
	run -4 xfp convert model-00001-of-00002.gguf --like newer.xfp -o again.xfp -q --cache none
	[[ "$output" == *"made by version 9 of algorithm gguf, but this xfp has version 1"*'say "gguf": 9'* ]]
	[ ! -e none ]
	[ ! -e again.xfp ]
}

@test "frequency factors that no known parameters give are kept, with a note" {
	gguf llama --spoil factors
	run -0 xfp convert model.gguf -o out.xfp
	[[ "$output" == *"rope_freqs.weight: its frequency factors match no known parameters"* ]]
	xfp unpack out.xfp -o out
	run ! grep -q rope_scaling out/config.json
	xfp info --json out.xfp | grep -q rope_freqs.weight
}

@test "invalid files are reported with a remedy, and status 3" {
	"$PYTHON" "$srcdir/tests/make-gguf.py" llama spoilt none --spoil each
	while IFS='|' read -r kind says; do
		run -3 xfp convert "spoilt/$kind/model.gguf" -o x.xfp
		[[ "$output" == *"spoilt/$kind/model.gguf"*"$says"* ]] || { echo "$kind: $output"; return 1; }
		[ ! -e x.xfp ]
	done <<-'EOF'
	v1|GGUF version 1
	v9|version 9 of GGUF
	big-endian|gguf_convert_endian.py
	keys|claims 4611686018427387904 keys
	tensors|claims
	key|key at byte 32 claims 9223372036854775808 bytes
	array|metadata tokenizer.ggml.tokens: claims 1000000000000000000 values
	utf-8|is not UTF-8
	cut|truncated: tensor
	cut-header|truncated or damaged
	rank|output_norm.weight: has 5 dimensions
	size|token_embd.weight: its shape has 2^63 elements
	bytes|output_norm.weight: its shape makes 2^63 bytes or more
	type|token_embd.weight: is of type 137
	gone|token_embd.weight: is of type Q4_2, which llama.cpp removed
	block|output_norm.weight: its rows of 64 elements are not whole blocks of 256 (Q4_K)
	offset|output_norm.weight: begins at byte 32 of the data
	alignment|general.alignment: is not a 32-bit power of two
	alignment-kind|general.alignment: is not a 32-bit power of two
	twice|token_embd.weight: its name occurs twice
	key-twice|metadata general.name: is given twice
	nested|metadata x.nested: is an array of arrays
	heads|pairs for 5 heads
	layers|llama.block_count: is missing
	adapter|is an adapter, not a model
	unknown|is a GGUF of an unsupported architecture; supported are llama
	listed|blk.0.extra.weight: IQ2_XXS, which can be listed but not read
	EOF
	gguf gemma2 --spoil norm-type
	run -3 xfp convert model.gguf -o x.xfp
	[[ "$output" == *"tensor output_norm.weight: is F16"*"must be F32"* ]]
	gguf gpt-oss --spoil companion
	run -3 xfp convert model.gguf -o x.xfp
	[[ "$output" == *"needs blk.1.ffn_up_exps.weight, which is missing"* ]]
	printf 'version https://git-lfs.github.com/spec/v1\n' >model.gguf
	run -3 xfp convert model.gguf -o x.xfp
	[[ "$output" == *"Git LFS pointer"* ]]
	gguf llama
	mv model.gguf model.gguf.part1of2
	run -3 xfp convert model.gguf.part1of2 -o x.xfp
	[[ "$output" == *"piece of a split GGUF"*"with cat"* ]]
}

@test "another alignment" {
	gguf llama --alignment 256
	mv model.gguf wide.gguf
	gguf llama
	xfp convert wide.gguf -o wide.xfp -q
	xfp convert model.gguf -o out.xfp -q
	diff <(content wide.xfp) <(content out.xfp)
}

@test "changed weights are detected, and so are changed headers" {
	gguf llama
	xfp convert model.gguf -o out.xfp -q
	before=$(sha out.xfp)
	"$PYTHON" - <<-'EOF'
	data = bytearray(open("model.gguf", "rb").read())
	data[-100] ^= 2
	open("model.gguf", "wb").write(data)
	EOF
	xfp convert model.gguf -o out.xfp -q
	changed=$(sha out.xfp)
	[ "$before" != "$changed" ]
	"$PYTHON" - <<-'EOF'
	data = bytearray(open("model.gguf", "rb").read())
	at = data.index(b"head_count_kv") + len("head_count_kv") + 4
	data[at] = 4
	open("model.gguf", "wb").write(data)
	EOF
	xfp convert model.gguf -o out.xfp -q
	xfp convert model.gguf -o fresh.xfp -q --cache fresh-cache
	cmp out.xfp fresh.xfp
	[ "$changed" != "$(sha out.xfp)" ]
}

@test "inspect lists the contents, also of models that cannot be converted" {
	gguf llama
	xfp inspect --header model.gguf >shown 2>/dev/null
	grep -q '^  general.file_type  *1 (F16)$' shown
	[ "$(grep -c '^ *.*(96)$' shown)" -eq 2 ]
	run ! grep -q 'token 8' shown
	xfp inspect --header --json model.gguf >out.json 2>/dev/null
	xfp inspect --header --csv model.gguf >out.csv 2>/dev/null
	"$PYTHON" - <<-'EOF'
	import csv, json
	said = {e["key"]: e for e in json.load(open("out.json"))["files"][0]["entries"]}
	assert said["llama.block_count"]["value"] == "2" and said["llama.block_count"]["meaning"] is None, said
	assert said["general.file_type"]["meaning"] == "F16", said
	assert said["llama.rope.freq_base"]["type"] == "float32", said
	tokens, scores = (said["tokenizer.ggml." + key] for key in ("tokens", "scores"))
	assert tokens["type"] == "string[]" and tokens["value"] == [f"token {i} \u00e4" for i in range(96)], tokens
	assert [float(s) for s in scores["value"]] == [-i for i in range(96)], scores
	rows = {row["key"]: row["value"] for row in csv.DictReader(open("out.csv"))}
	assert rows["tokenizer.ggml.tokens"] == ", ".join(tokens["value"]) and rows["general.file_type"] == "1", rows
	EOF
	# the file is named, as others may be in the folder; block types, by their shares and per tensor
	gguf llama --spoil mixed
	run -0 xfp inspect model.gguf
	[[ "$output" == *"model   $PWD/model.gguf"*"packed  as Q8_0 (79 %), Q4_0 (21 %): "* ]]
	run -0 xfp inspect --csv model.gguf
	[[ "$output" == *"layers.0.mlp.up_proj.weight\",F16,Q4_0,48x64,1,3072,1728,4.5,"* ]]
	[[ "$output" == *"q_proj.weight\",F16,,64x64,"* ]]
	for kind in listed unknown; do
		gguf llama --spoil "$kind"
		run -3 xfp inspect --tensors --stats model.gguf
		[[ "$output" == *"output_norm.weight"* || "$output" == *"model.norm.weight"* ]]
	done
	gguf llama --spoil listed
	run -3 xfp inspect --tensors model.gguf
	[[ "$output" == *blk.0.extra.weight*IQ2_XXS*16x256*2.06* ]]
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Regenerating a published bundle: --like, regenerate.mk, and the recipe of xfp-pipelines(7).

load helpers

setup() {
	setup_folder
	unset XFP_FORMAT XFP_LM_HEAD XFP_MIN_COS_STRICT XFP_MIN_COS_LAZY
}

# A bundle that uses every setting.
publish() { # MODEL OUT
	xfp convert "$1" -o "$2" -q --cache published-cache --floor attention=0.995,lm_head=0.999 --format embedding=fp8 \
		--override 'role:o=5' --moe-sample 2 --bits 2-5 --balance 0.25 --start minmax --lloyd-iters 7 --moe-lloyd-iters 3 \
		--outlier-sigma 3.5 --lm-head quant --on-miss best
}

flip() { # FILE OFFSET-FROM-END
	local at=$(($(stat -c %s "$1") - $2)) byte

	byte=$(od -An -tu1 -j "$at" -N 1 "$1")
	# shellcheck disable=SC2059
	printf "\\$(printf %o $((byte ^ 1)))" | dd of="$1" bs=1 seek="$at" conv=notrunc status=none
}

@test "the same bytes: status 0 and one line, from a moved and re-sharded checkpoint, cold" {
	make_model m
	publish m published.xfp
	expected=$(sha published.xfp)
	run -0 --separate-stderr xfp convert m --like published.xfp -o again.xfp
	[ "$output" = "$expected  $PWD/again.xfp" ]
	[ "$(sha again.xfp)" = "$expected" ]
	run -0 --separate-stderr xfp convert m --like published.xfp -o again.xfp # up to date
	[ "$output" = "$expected  $PWD/again.xfp" ]
	mkdir elsewhere
	make_model elsewhere/sharded --shards 3
	cp published.xfp elsewhere/renamed.bundle
	run -0 --separate-stderr xfp convert elsewhere/sharded --like elsewhere/renamed.bundle -o other.xfp --cache cold
	[ "$output" = "$expected  $PWD/other.xfp" ]
	run -0 --separate-stderr xfp convert m --like published.xfp -o again.xfp --json
	[[ $output == *"\"sha256\": \"$expected\""* ]]
	[ -z "$(xfp convert m --like published.xfp -o again.xfp -q)" ]
	# the parameters of a bundle with default settings, too
	xfp convert m -o plain.xfp -q
	xfp convert m --like plain.xfp -o plain-again.xfp -q --cache plain-cache
}

@test "regenerate.mk in a copy of the installed tree: other path, locale, umask, -j; the same SHA-256" {
	make_model m
	publish m published.xfp
	expected=$(sha published.xfp)
	mkdir -p another-place/usr/share
	cp -r "$(dirname "$XFP_TEST_BIN")/bin" another-place/usr/bin
	cp -r "$XFP_DATADIR" another-place/usr/share/xfp
	cp -r m 'another-place/the model'
	cp published.xfp another-place/
	rm -rf published-cache published.xfp.work
	(
		unset XFP_DATADIR
		cd another-place
		export PATH="$PWD/usr/bin:/usr/local/bin:/usr/bin:/bin" TZ=Asia/Tokyo LANG=tr_TR.UTF-8 LC_ALL=de_DE.UTF-8
		umask 077
		make -f "$(xfp --pipelines)/regenerate.mk" MODEL='the model' LIKE=published.xfp OUT=again.xfp -j3 2>errors >said
		[ "$(cat said)" = "$expected  $PWD/again.xfp" ]
		make -f "$(xfp --pipelines)/regenerate.mk" MODEL='the model' LIKE=published.xfp OUT=again.xfp CACHE=cold -j1 >said
		[ "$(cat said)" = "$expected  $PWD/again.xfp" ]
	)
	run -2 make -f "$(xfp --pipelines)/regenerate.mk" MODEL=m LIKE=published.xfp
	[[ $output == *"set OUT, as in"* ]]
}

@test "the recipe of the manual works" {
	make_model Qwen3-30B-A3B
	xfp convert Qwen3-30B-A3B -o Qwen3-30B-A3B.xfp -q
	(cd "$BATS_TEST_TMPDIR" && sha256sum Qwen3-30B-A3B.xfp >Qwen3-30B-A3B.sha256)
	mandoc -T ascii "$XFP_TEST_MAN/man7/xfp-pipelines.7" 2>/dev/null | sed 's/.\x08//g' >page ||
		skip 'mandoc is not installed'
	# the shell block between its first and its last line
	sed -n '/set -eu/,/sha256sum -c/p' page | sed 's/^ *//' | head -n 20 >recipe
	grep -q -- --like recipe
	sh recipe
	flip Qwen3-30B-A3B/model.safetensors 2
	run -4 sh recipe
	[[ $output == *"u/000000.idx differs: tensor lm_head.weight"* ]]
}

@test "a flipped source byte: status 4, and the member that differs" {
	make_model m
	publish m published.xfp
	cp -r m flipped
	flip flipped/model.safetensors 2 # the last tensor of the file
	run -4 xfp convert flipped --like published.xfp -o again.xfp -q
	[[ $output == *"published.xfp: u/000000.idx differs: tensor lm_head.weight has other weights"* ]]
	# the regenerated bundle remains for inspection
	xfp verify again.xfp --source flipped
	# a norm, which is kept as a tensor of its own
	cp -r m normed
	"$PYTHON" - <<-'EOF'
	import json, struct
	path = "normed/model.safetensors"
	data = bytearray(open(path, "rb").read())
	size = struct.unpack("<Q", data[:8])[0]
	at = json.loads(data[8:8 + size])["model.norm.weight"]["data_offsets"][0]
	data[8 + size + at] ^= 1
	open(path, "wb").write(data)
	EOF
	run -4 xfp convert normed --like published.xfp -o again.xfp -q
	[[ $output =~ published.xfp:\ t/[0-9]{6}.raw\ differs:\ tensor\ model.norm.weight\ has\ other\ weights ]]
}

@test "differences that are known before any work: files, tensors, algorithms" {
	make_model m
	publish m published.xfp
	cp -r m other
	echo >>other/config.json
	run -4 xfp convert other --like published.xfp -o again.xfp -q --cache none
	[[ $output == *"published.xfp: files/config.json differs: file config.json has different content"* ]]
	[ -z "$(artifacts none)" ]
	cp m/config.json other/config.json
	echo '{}' >other/tokenizer_config.json
	run -4 xfp convert other --like published.xfp -o again.xfp -q --cache none
	[[ $output == *"differs: file tokenizer_config.json is not in the bundle"* ]]
	make_model wider --intermediate 64
	cp m/config.json wider/config.json
	run -4 xfp convert wider --like published.xfp -o again.xfp -n
	[[ $output == *"tensor model.layers.0.mlp.experts.0.down_proj.weight has another shape"* ]]
	make_model deeper --layers 2
	cp m/config.json deeper/config.json
	run -4 xfp convert deeper --like published.xfp -o again.xfp -q --cache none
	[[ $output == *"tensor model.layers.1."*" is not in the bundle"* ]]
	[ -z "$(artifacts none)" ]
	[ ! -e again.xfp ]
}

@test "algorithms of another version: status 4 before any work, with the required version" {
	make_model m
	publish m published.xfp
	version=$(tar xOf published.xfp xfp.json | sed -n 's/.*"fit": \([0-9]\).*/\1/p')
	edited published.xfp newer.xfp "\"fit\": $version" '"fit": 9'
	xfp info newer.xfp >/dev/null
	run -4 xfp convert m --like newer.xfp -o again.xfp -q --cache none
	[[ $output == *"newer.xfp: xfp.json differs: it was made by version 9 of algorithm fit, but this xfp has version $version"* ]]
	[[ $output == *"use an xfp whose bundles say \"fit\": 9"* ]]
	edited published.xfp other.xfp '"choice"' '"choose"'
	run -4 xfp convert m --like other.xfp -o again.xfp -q --cache none
	[[ $output == *"it was made with algorithm choose, which this xfp does not have"* ]]
	edited published.xfp unknown.xfp '"balance"' '"ballast"'
	run -3 xfp convert m --like unknown.xfp -o again.xfp -q --cache none
	[[ $output == *"unknown.xfp: xfp.json: \"balance\" is missing"* ]]
	edited published.xfp endless.xfp '"lloyd_iterations": 7' '"lloyd_iterations": 0'
	run -3 xfp convert m --like endless.xfp -o again.xfp -q --cache none
	[[ $output == *"endless.xfp: xfp.json: \"lloyd_iterations\" has an impossible value; download the bundle or convert the model again" ]]
	[ ! -e none ]
	# a bundle with false parameters is detected
	edited published.xfp liar.xfp '"lloyd_iterations": 7' '"lloyd_iterations": 8'
	run -4 xfp convert m --like liar.xfp -o again.xfp -q
	[[ $output == *"liar.xfp: u/00000"*" differs: unit "*", though its source, the settings and the algorithms are the same"* ]]
}

@test "a damaged or missing --like bundle" {
	make_model m
	xfp convert m -o published.xfp -q
	cp published.xfp damaged.xfp
	# in the weights, which only a comparison reads
	offset=$("$PYTHON" -c 'import tarfile; print(tarfile.open("published.xfp").getmember("u/000003.cb").offset_data)')
	flip damaged.xfp $(($(stat -c %s damaged.xfp) - offset))
	run -4 xfp convert m --like damaged.xfp -o again.xfp -q
	[[ $output == *"damaged.xfp: u/000003.cb differs: unit "*"xfp verify checks whether one of the two bundles is damaged"* ]]
	run -3 xfp convert m --like nothing.xfp -o again.xfp -q
	[[ $output == *"nothing.xfp"* ]]
	run -3 xfp convert m --like m/config.json -o again.xfp -q
	[[ $output == *"m/config.json"* ]]
}

@test "contradicting settings are refused, from any source; others are accepted" {
	make_model m
	publish m published.xfp
	while read -r -a words; do
		run -2 xfp convert m --like published.xfp -o again.xfp -q "${words[@]}"
		[[ $output == *"${words[0]}"*"contradicts --like $PWD/published.xfp"* ]] || { echo "${words[*]}: $output"; return 1; }
	done <<-'EOF'
	--bits 3
	--balance 0
	--min-cos-strict 0.9
	--min-cos-lazy 0.97
	--floor attention=0.9
	--format attention=4
	--override role:o=4
	--moe-sample 0
	--lm-head fp8
	--on-miss keep
	--start companded
	--moe-lloyd-iters 5
	--family llama
	EOF
	XFP_BITS=3 run -2 xfp convert m --like published.xfp -o again.xfp -q
	[[ $output == *"XFP_BITS '3': contradicts"* ]]
	run -2 xfp convert m --like published.xfp -o again.xfp -q --profile small
	[[ $output == *"leave out --profile small"* ]]
	run -2 xfp convert m --like published.xfp -o published.xfp -q
	[[ $output == *"is also the output"* ]]
	ln published.xfp linked.xfp
	run -2 xfp convert m --like published.xfp -o linked.xfp -q
	[ ! -e again.xfp ]
	xfp convert m --like published.xfp -o again.xfp -q --bits 2-5 --min-cos-lazy 0.995 --floor attention=0.995 \
		--lm-head quant --family qwen3_moe -j2
	run -2 make -f "$(xfp --pipelines)/regenerate.mk" MODEL=m LIKE=published.xfp OUT=again.xfp BITS=3
	[[ $output == *"XFP_BITS '3': contradicts"* ]]
}

@test "an override of the bundle's own may be given again" {
	make_model m
	xfp convert m -o published.xfp -q --override role:o=5 --override role:q=4
	xfp convert m --like published.xfp -o again.xfp -q --override role:o=5
	cmp published.xfp again.xfp
	run -2 xfp convert m --like published.xfp -o no.xfp -q --override role:o=4
	[[ $output == *contradicts* ]]
}

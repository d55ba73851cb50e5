#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# What xfp convert reports and refuses before any work, what a refusal leaves behind, and commands under other
# programs' names.

load helpers

setup() {
	setup_folder
	unset XFP_WORK XFP_OUT
	make_model m --vocab 260
}

# Notes of convert about tokenizers.
notes() { # ARGUMENT...
	xfp convert "$@" 2>&1 >printed | grep -i 'token' || true
}

@test "convert notes a tokenizer that is missing or not supported" {
	[ "$(notes m -o b.xfp)" = "xfp convert: note: $PWD/m: has no tokenizer.json, so xfp generate and xfp eval --text will not work with the bundle" ]
	[ -z "$(notes m -o b.xfp -q)" ]
	"$PYTHON" "$srcdir/tests/make-tokenizer.py" m
	[ -z "$(notes m -o b.xfp)" ]
	[ -z "$(notes m -n -o c.xfp)" ]
	echo '{"model": {"type": "Unigram", "vocab": []}}' >m/tokenizer.json
	[[ $(notes m -n -o c.xfp) == "xfp convert: note: $PWD/m: tokenizer.json: "*Unigram*"; xfp generate and xfp eval --text will not work with the bundle" ]]
	echo '{' >m/tokenizer.json
	[[ $(notes m -n -o c.xfp) == "xfp convert: note: $PWD/m: tokenizer.json: "* ]]
	# the bundle is still written
	notes m -o b.xfp
	xfp verify b.xfp
}

@test "--like with another model reports that before other differences" {
	xfp convert m -o like.xfp -q
	make_model wider --vocab 260 --intermediate 64
	make_model deeper --vocab 260 --layers 2
	make_model flatter --vocab 260 --num-experts 2
	make_model words --vocab 270
	for other in wider deeper flatter words; do
		run -4 xfp convert $other --like like.xfp -o again.xfp -q --cache none
		[[ $output =~ ^"xfp convert: $PWD/like.xfp: another model: "[^\ ]+" differs: tensor " ]] || { echo "$output"; return 1; }
		[ ! -e none ] && [ ! -e again.xfp.work ]
	done
	# the message names the other model, not settings of its bundle
	xfp convert deeper -o override.xfp -q --override 'model.layers.1.*=floor:0.9'
	for how in "-q --cache none" -n; do
		# shellcheck disable=SC2086
		run -4 xfp convert m --like override.xfp -o again.xfp $how
		[[ $output == *"xfp convert: $PWD/override.xfp: another model: "* ]] || { echo "$output"; return 1; }
	done
	# an edited file is not another model
	cp -r m edited
	echo >>edited/config.json
	run -4 xfp convert edited --like like.xfp -o again.xfp -q --cache none
	[[ $output == *"like.xfp: files/config.json differs"* ]]
}

@test "a refused conversion removes the folders that it created, and no others" {
	mkdir kept shared
	xfp convert m -o shared/first.xfp --cache shared/cache -q
	make_bad truncated-shard bad
	before=$(find . | sort)
	for wrong in "bad" "m --override nothing=3" "m --target-size 100" "nowhere"; do
		# shellcheck disable=SC2086
		run ! xfp convert $wrong -o out.xfp -q --work new/folder/work --cache new/cache
		# shellcheck disable=SC2086
		run ! xfp convert $wrong -o out.xfp -q --work kept/new/work --cache shared/cache
		# shellcheck disable=SC2086
		run ! xfp convert $wrong -o kept/out.xfp -q
		[ "$(find . | sort)" = "$(sort <<<"$before")" ] || { echo "$wrong"; find . | sort | diff - <(sort <<<"$before"); return 1; }
	done
	# a folder that another program wrote to, or that existed before, remains
	replace_stage xfp-inspect '
		touch "$top/new/folder/theirs"
		exit 3'
	run ! bin/xfp convert m -o out.xfp -q --work new/folder/work --cache new/cache
	[ "$(find new | sort)" = $'new\nnew/folder\nnew/folder/theirs' ]
	rm new/folder/theirs
	run ! xfp convert bad -o out.xfp -q --work new/folder/work --cache new/cache
	[ "$(find new | sort)" = $'new\nnew/folder' ]
}

@test "too little disk space, or a wrong CRC-32: folders created by this run are removed, a shared cache stays" {
	needs_mounts
	cat >refused.sh <<-'EOT'
	wrong() { # ARGUMENT...
		xfp convert "$@" -q && echo "was not refused"
		find disk new 2>/dev/null
	}
	wrong m -o disk/out.xfp # the manifest cannot be created
	mount -o remount,size=220k disk
	wrong m -o disk/out.xfp
	wrong m -o disk/out.xfp --work new/folder/work --cache new/other/cache
	# a cache that another run made, or uses, remains
	xfp prepare m -o out.xfp -q --cache shared
	wrong m -o disk/out.xfp --work new/work --cache shared
	[ -e shared/manifest.sqlite ] || echo "the shared cache is gone"
	EOT
	mkdir disk
	run -0 on_small_disk 160k disk sh refused.sh
	[ "$(grep -c ' needed, ' <<<"$output")" -eq 3 ]
	[[ $output == *"manifest.sqlite: disk full"* ]]
	[ "$(grep -v '^xfp convert: ' <<<"$output")" = $'disk\ndisk\ndisk\ndisk' ] || { echo "$output"; return 1; }
	# CRC results of members of an archive are saved, if there are any
	"$PYTHON" "$srcdir/tests/make-pytorch-checkpoint.py" single torch plain
	"$PYTHON" - <<-'EOF'
	import zipfile
	path = "torch/pytorch_model.bin"
	member = max(zipfile.ZipFile(path).infolist(), key=lambda m: m.file_size)
	with open(path, "r+b") as file:
	    file.seek(member.header_offset + 200 + member.file_size // 2)
	    byte = file.read(1)[0]
	    file.seek(-1, 1)
	    file.write(bytes([byte ^ 1]))
	EOF
	run -3 xfp convert torch -o torch.xfp -q --cache none/cache
	[[ $output == *CRC-32* ]]
	[ ! -e none ] && [ ! -e torch.xfp.work ]
}

@test "commands of other programs lead to ours" {
	for word in quantize:convert quantise:convert run:generate chat:generate perplexity:eval; do
		run -2 xfp "${word%:*}" model
		[[ $output == "xfp: no command '${word%:*}'; did you mean ${word#*:}? xfp --help lists them" ]] || { echo "$output"; return 1; }
	done
}

@test "the manuals list the tokenizers and the types of GGUF that are not supported" {
	for page in "$srcdir/man/xfp.1" "$srcdir/README.md"; do
		tr '\n' ' ' <"$page" >text
		grep -q 'byte-level BPE' text
		for types in IQ1 IQ2 IQ3; do
			grep -q "$types" text
		done
	done
	grep -q 'byte-level BPE' "$srcdir/man/xfp-convert.1"
	grep -q 'byte-level BPE' "$srcdir/man/xfp-eval.1"
	grep -q 'byte-level BPE' "$srcdir/man/xfp-generate.1"
}

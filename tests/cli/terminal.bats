#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Control characters in files, wherever a reader quotes them: no command writes one to stdout or stderr.

load helpers

setup_file() {
	cd "$BATS_FILE_TMPDIR" || return 1
	make_model m --vocab 260
	"$PYTHON" "$srcdir/tests/make-tokenizer.py" m
	xfp convert m -o m.xfp -q --bits 3 --on-miss best
	echo 'a text of more than a few words' >text
	"$PYTHON" -c 'import numpy as np; np.save("t.npy", np.arange(24).reshape(2, 12))'
}

setup() {
	setup_folder
	cp -r "$BATS_FILE_TMPDIR"/{m,m.xfp,m.xfp.work,xfp-cache,text,t.npy} .
}

hostile() { # PART QUOTED: the fewest outputs that must show an escaped control character
	"$PYTHON" "$srcdir/tests/hostile_text.py" "$@"
}

@test "JSON that a library rejects, with the quoted part" {
	hostile syntax 15
}

@test "keys and strings of a checkpoint's JSON" {
	hostile values 10
}

@test "names, types and metadata of safetensors" {
	hostile tensors 12
}

@test "GGUF, PyTorch, archives" {
	hostile sources 20
}

@test "bundles" {
	hostile bundle 8
}

@test "families, profiles, command lines" {
	hostile rules 50
}

@test "work folders and caches" {
	hostile work 12
}

@test "names of files and folders" {
	hostile names 30
}

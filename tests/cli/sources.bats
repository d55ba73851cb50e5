#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Weights that change between two reads: no artifact is made of them under the key of the first, whether or not
# the file's times change.

load helpers

# In memory if possible: writes to a mapping there are never written back, which would let the next write change
# the file's times.
setup() {
	place=$BATS_TEST_TMPDIR
	[ ! -w /dev/shm ] || place=$(mktemp -d /dev/shm/xfp-test-XXXXXX)
	cd "$place" || return 1
	export XFP_WORK=$PWD/out.xfp.work XFP_CACHE=$PWD/xfp-cache
}

teardown() {
	[ ! -e mapper ] || kill "$(cat mapper)" 2>/dev/null || true
	cd / && rm -rf "$place"
}

prepared() { # MODEL OPTION...
	xfp prepare "$1" -o out.xfp "${@:2}" >/dev/null 2>&1
}

# Map a model's weights, make the page in the middle of a tensor dirty, and wait. Later writes to it do not change
# the file's times. turn flips a bit there and, the next time, flips it back.
map() { # FILE TENSOR
	"$PYTHON" - "$@" 3>&- <<-'EOF' &
	import json, mmap, os, struct, sys, time
	path, tensor = sys.argv[1:]
	with open(path, "r+b") as f:
	    size = struct.unpack("<Q", f.read(8))[0]
	    begin, end = json.loads(f.read(size))[tensor]["data_offsets"]
	    view = mmap.mmap(f.fileno(), 0)
	at = 8 + size + begin + (end - begin) // 4 * 2
	view[at] = view[at]
	open("mapped", "w").close()
	while True:
	    if os.path.exists("turn"):
	        view[at] ^= 1
	        os.rename("turn", "turned")
	    time.sleep(0.01)
	EOF
	echo $! >mapper
	until [ -e mapped ]; do sleep 0.01; done
	file=$1 tensor=$2
}

turn() {
	local before
	before=$(stat -c '%d %i %s %y %z' "$file")
	rm -f turned
	: >turn
	until [ -e turned ]; do sleep 0.01; done
	[ "$(stat -c '%d %i %s %y %z' "$file")" = "$before" ] ||
		skip "this file system moves a file's times at a write to a mapping of it, or has written it back meanwhile"
}

# STAGE detects that the weights have changed: it writes no artifact, and leaves no stamp of the unit.
notices() { # STAGE UNIT
	local before
	before=$(artifacts)
	run -77 "$@"
	[[ $output == *"$file: tensor $tensor: weights changed during the conversion"* ]]
	[ "$(artifacts)" = "$before" ]
	[ -z "$(find xfp-cache -name '*.tmp')" ]
	[ -z "$(find out.xfp.work -name "$2-*" ! -name '*-fits.mk')" ]
	tail -n 1 out.xfp.work/events | grep -q "^$2	${1#xfp-}	failed.*	77	"
}

@test "weights that change between stages with unchanged times: outliers, codebooks, and parts of v2" {
	make_model m
	map "$PWD/m/model.safetensors" model.layers.0.self_attn.q_proj.weight
	prepared m --min-cos-strict 0.9
	xfp-outlier-extract u000001
	turn
	notices xfp-lloyd-fit u000001
	# the changed weights have a key of their own
	xfp-outlier-extract u000001
	[ "$(artifacts | wc -l)" = 2 ]
	turn
	notices xfp-lloyd-fit u000001
	xfp-outlier-extract u000001
	xfp-lloyd-fit u000001
	xfp-autoselect u000001
	turn
	notices xfp-pack u000001
	turn
	for stage in outlier-extract lloyd-fit autoselect pack; do
		xfp-$stage u000001
	done
}

@test "weights that change between stages with unchanged times: after a survey, libraries, and parts of v2c" {
	unset XFP_MODE
	make_model m --hidden 256 --intermediate 192
	tensor=model.layers.0.mlp.experts.1.up_proj.weight
	map "$PWD/m/model.safetensors" "$tensor"
	prepared m --mode v2c --outlier-sigma auto
	unit=u000006
	xfp-survey $unit
	turn
	notices xfp-outlier-extract $unit
	turn
	xfp-survey $unit
	xfp-outlier-extract $unit
	turn
	notices xfp-libfit $unit
	turn
	xfp-survey $unit
	xfp-outlier-extract $unit
	xfp-libfit $unit
	xfp-autoselect $unit
	turn
	notices xfp-pack $unit
}

@test "weights that change between stages with unchanged times: a kept unit" {
	make_model m
	map "$PWD/m/model.safetensors" model.layers.0.self_attn.q_proj.weight
	prepared m --bits 2 --min-cos-strict 0.9999
	xfp-outlier-extract u000001
	xfp-lloyd-fit u000001
	xfp-autoselect u000001
	turn
	notices xfp-pack u000001
}

@test "a bit that changes while xfp-outlier-extract, or xfp-pack alone, reads the weights twice" {
	needs_strace
	make_model m
	for what in "model.layers.0.self_attn.q_proj.weight xfp-outlier-extract u000001" \
		"lm_head.weight xfp-pack u000000"; do
		read -r name stage unit <<<"$what"
		rm -rf mapped trace out.xfp.work xfp-cache
		map "$PWD/m/model.safetensors" "$name"
		prepared m
		mkdir -p xfp-cache/artifacts
		# the second pass begins to read only after a while
		strace -qq -o trace -P "$file" -e trace=pread64,close -e inject=pread64:delay_enter=3000000:when=2 \
			"$stage" $unit 2>stderr &
		pid=$!
		until grep -q close trace; do sleep 0.01; done
		turn
		status=0
		wait $pid || status=$?
		[ $status = 77 ] || { echo "$stage: $status"; cat trace stderr; return 1; }
		grep -q "$name: weights changed during the conversion" stderr
		[ -z "$(artifacts)" ]
		kill "$(cat mapper)"
	done
}

@test "a bit that changes while xfp-calibrate reads the weights twice" {
	needs_strace
	make_model m
	map "$PWD/m/model.safetensors" model.layers.0.self_attn.q_proj.weight
	prepared m
	"$PYTHON" -c 'import numpy as np
np.save("t.npy", np.arange(40).reshape(4, 10))'
	xfp-calibrate --begin --tokens t.npy m
	xfp-calibrate l0
	rm -r xfp-cache out.xfp.work/l000000-inputs
	# tensors are read once for the digests; then the layer is computed after a while
	strace -f -qq -o trace -e trace=clone,clone3 -e inject=clone,clone3:delay_enter=3000000:when=1 \
		xfp-calibrate --threads 2 l0 2>stderr &
	pid=$!
	until grep -q clone trace 2>/dev/null; do sleep 0.01; done
	turn
	status=0
	wait $pid || status=$?
	[ $status = 77 ] || { echo "$status"; cat trace stderr; return 1; }
	grep -q "$tensor: weights changed during the conversion" stderr
	[ -z "$(artifacts)" ]
	[ ! -e out.xfp.work/l000000-inputs ]
	tail -n 1 out.xfp.work/events | grep -q "^l000000	calibrate	failed.*	77	"
	xfp-calibrate l0
}

@test "a link that leads to another checkpoint: its weights are not calibrated with" {
	make_model a
	make_model b --seed 5
	mkdir m
	cp a/*.json m
	ln -s ../a/model.safetensors m
	prepared m
	"$PYTHON" -c 'import numpy as np
np.save("t.npy", np.arange(40).reshape(4, 10))'
	xfp-calibrate --begin --tokens t.npy m
	ln -sfn ../b/model.safetensors m/model.safetensors
	run -1 xfp-calibrate l0
	[[ $output == *"changed while it was being converted; run again"* ]]
	[ -z "$(artifacts)" ]
}

@test "a file replaced while its weights are read: no stamp, although artifacts of the old weights exist" {
	needs_strace
	make_model m
	for what in "xfp-outlier-extract u000001 outliers --outlier-sigma 4" \
		"xfp-survey u000001 survey --outlier-sigma auto" "xfp-pack u000000 packed --outlier-sigma 4"; do
		read -r stage unit stamp option value <<<"$what"
		rm -rf out.xfp.work xfp-cache
		prepared m "$option" "$value"
		$stage $unit
		rm out.xfp.work/$unit-*
		cp m/model.safetensors other
		strace -qq -o trace -P "$PWD/m/model.safetensors" -e trace=pread64,close \
			-e inject=close:delay_enter=3000000:when=1 "$stage" $unit 2>stderr &
		pid=$!
		until grep -q pread64 trace; do sleep 0.01; done
		mv other m/model.safetensors
		status=0
		wait $pid || status=$?
		[ $status = 1 ] || { echo "$stage: $status"; cat trace stderr; return 1; }
		grep -q "model.safetensors: changed while it was being converted; run again" stderr
		[ ! -e out.xfp.work/$unit-$stamp ]
		[ "$(artifacts | wc -l)" = 1 ]
	done
}

@test "a link that leads to another checkpoint for a while: the other's artifacts are not used" {
	make_model a
	make_model b --seed 5
	mkdir m
	cp a/*.json m
	ln -s ../b/model.safetensors m
	prepared m
	xfp-outlier-extract u000001
	xfp-pack u000000
	rm -r out.xfp.work
	ln -sf ../a/model.safetensors m
	prepared m
	ln -sf ../b/model.safetensors m
	for stage in "xfp-outlier-extract u000001" "xfp-pack u000000"; do
		run -1 $stage
		[[ $output == *"model.safetensors: changed while it was being converted; run again"* ]]
	done
	[ -z "$(find out.xfp.work -name 'u0*-*')" ]
	ln -sf ../a/model.safetensors m
	unset XFP_WORK XFP_CACHE
	expected=$(converted a whole.xfp --cache whole)
	[ "$(converted m out.xfp)" = "$expected" ]
}

# xfp-STAGE flips the mapped weight before it processes this unit: the first time, or at every call.
turning() { # STAGE UNIT once|always
	replace_stage "xfp-$1" '[ "$1" != '"$2"' ] || { [ '"$3"' = once ] && [ -e "$top/did" ]; } || {
		: >"$top/did"
		rm -f "$top/turned"
		: >"$top/turn"
		until [ -e "$top/turned" ]; do sleep 0.01; done
	}
	exec "$real" "$@"'
	PATH=$PWD/bin:$PATH
}

@test "a conversion whose weights change once: they are read again, and the bundle has the current ones" {
	make_model m
	unset XFP_WORK XFP_CACHE
	map "$PWD/m/model.safetensors" model.layers.0.self_attn.q_proj.weight
	turn
	want=$(converted m fresh.xfp --cache fresh-cache)
	turn
	data=$XFP_DATADIR
	for stage in lloyd-fit pack; do
		export XFP_DATADIR=$data
		rm -rf did bin share out.xfp out.xfp.work xfp-cache
		turning $stage u000001 once
		[ "$(converted m out.xfp 2>stderr)" = "$want" ]
		grep -q "q_proj.weight: weights changed during the conversion" stderr
		grep -q "weights changed while they were being converted; reading them again" stderr
		run ! grep -q damaged stderr
		turn
	done
	# Remembered digests of them are discarded, by another run too.
	rm -r did bin out.xfp out.xfp.work xfp-cache
	export XFP_DATADIR=$data
	xfp convert m -o out.xfp -q
	turn
	[ "$(converted m out.xfp --bits 2,3 --on-miss best 2>stderr)" = "$(converted m other.xfp --bits 2,3 \
		--on-miss best --cache fresh-cache --rehash)" ]
	grep -q "reading them again" stderr
}

@test "a conversion whose weights keep changing fails, and leaves nothing wrong behind" {
	make_model m
	unset XFP_WORK XFP_CACHE
	map "$PWD/m/model.safetensors" model.layers.0.self_attn.q_proj.weight
	turning lloyd-fit u000001 always
	run -1 xfp convert m -o out.xfp -q
	[[ $output == *"its weights keep changing"*"when nothing writes to it"* ]]
	no_output out.xfp
	PATH=${PATH#"$PWD"/bin:}
	[ "$(converted m out.xfp)" = "$(converted m fresh.xfp --cache fresh-cache)" ]
}

@test "--rehash also reads kept tensors and small files, regardless of their times" {
	make_model m
	unset XFP_WORK XFP_CACHE
	map "$PWD/m/model.safetensors" model.norm.weight
	first=$(converted m out.xfp)
	turn
	[ "$(converted m out.xfp)" = "$first" ] # which nothing could tell
	then=$(converted m out.xfp --rehash)
	[ "$then" != "$first" ]
	[ "$then" = "$(converted m fresh.xfp --cache fresh-cache)" ]
	xfp convert m -o out.xfp --rehash --json | grep -q '"unchanged": true'
}

# All units then differ from the expected ones, because of the file.
@test "a file that changes after all units are packed: no bundle, and the file is named" {
	make_model m
	unset XFP_WORK XFP_CACHE
	mkdir bin
	cat >bin/make <<-END
		#!/bin/sh
		status=0
		$(command -v make) "\$@" || status=\$?
		touch "$PWD/m/model.safetensors"
		exit \$status
	END
	chmod +x bin/make
	PATH=$PWD/bin:$PATH run -1 xfp convert m -o out.xfp -q
	[ "$output" = "xfp convert: $PWD/m/model.safetensors: changed while it was being converted; run again" ]
	[ ! -e out.xfp ]
	[ "$(converted m out.xfp)" = "$(converted m fresh.xfp --cache fresh-cache)" ]
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# EXL2 checkpoints: bundles have the bytes of those of the unpacked model, in f16.

load helpers
load packed

# Unpacking does not depend on modes: most tests use the simplest, and some of each kind the default.
setup() {
	setup_folder
}

@test "units, floors and the index are those of the unpacked model; both verify; it resumes after kill -9" {
	for form in exl2 exl2-old; do
		[ "$form" != exl2-old ] || by_default
		packed "$form" --shards 2
		xfp convert plain -o plain.xfp -q --cache plain-cache
		for after in 0.1 0.4; do
			xfp convert packed -o packed.xfp -q -j1 --cache packed-cache 2>>errors &
			pid=$!
			sleep $after
			kill -9 $pid 2>/dev/null || true
			wait $pid || true
		done
		xfp convert packed -o packed.xfp -q --cache packed-cache
		alike packed.xfp plain.xfp || { echo "$form"; return 1; }
		xfp verify packed.xfp --source packed
		xfp verify packed.xfp --source plain
		xfp verify plain.xfp --source packed
		rm -r packed plain ./*.xfp ./*.work ./*-cache
	done
}

@test "other modes, kept units; --like; unpack" {
	by_default
	packed exl2
	for how in "--mode v2a" "--format attention=keep --format lm_head=keep -j3"; do
		# shellcheck disable=SC2086
		xfp convert packed -o packed.xfp -q $how
		# shellcheck disable=SC2086
		xfp convert plain -o plain.xfp -q $how --cache plain-cache
		alike packed.xfp plain.xfp || { echo "$how"; return 1; }
		xfp verify packed.xfp --source packed
	done
	expected=$(sha packed.xfp)
	run -0 --separate-stderr xfp convert packed --like packed.xfp -o again.xfp --cache like
	[ "$output" = "$expected  $PWD/again.xfp" ]
	xfp unpack packed.xfp -o copy
	cmp copy/config.json plain/config.json
}

@test "files with the converter's names, next to the index of the original model" {
	packed exl2 --shards 3
	expected=$(converted packed whole.xfp --cache whole)
	for n in 1 2 3; do
		mv "packed/model-0000$n-of-00003.safetensors" "packed/output-0000$n-of-00003.safetensors"
	done
	sed -i 's/-of-00003/-of-00009/' packed/model.safetensors.index.json
	run -0 --separate-stderr xfp convert packed -o out.xfp
	[[ $stderr == *"model.safetensors.index.json: lists no existing file; ignored"* ]]
	[ "$(sha out.xfp)" = "$expected" ]
	rm packed/model.safetensors.index.json
	[ "$(converted packed out.xfp)" = "$expected" ]
	mv packed/output-00002-of-00003.safetensors aside
	run -3 xfp convert packed -o out.xfp
	[[ $output == *"$PWD/packed: must contain 3 files named output-00001-of-00003.safetensors and so on"*"download"* ]]
	mv aside packed/output-00002-of-00003.safetensors
	mv packed/output-00003-of-00003.safetensors aside
	run -3 xfp convert packed -o out.xfp
	[[ $output == *"must contain 3 files"* ]]
	rm -r packed plain
	packed exl2
	mv packed/model.safetensors packed/output.safetensors
	[ "$(converted packed out.xfp)" = "$expected" ]
}

@test "an edited scale, order or group is detected" {
	packed exl2
	xfp convert packed -o out.xfp -q
	for kind in place-swap scale-more; do
		mv packed/model.safetensors before
		rm -r packed plain
		packed exl2 --spoil "$kind"
		run cmp -s packed/model.safetensors before
		[ "$status" -eq 1 ]
		xfp convert packed -o other.xfp -q
		run -4 xfp verify out.xfp --source packed
		xfp verify other.xfp --source packed
		xfp convert packed -o fresh.xfp -q --cache fresh
		cmp other.xfp fresh.xfp
		rm -r fresh
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
		exl2 no-order tensor lm_head.q_weight: has no q_invperm*download the checkpoint again
		exl2 no-most tensor lm_head.q_weight: has no q_scale_max
		exl2 fewer-groups tensor lm_head.q_weight: is I32*q_groups \[8\], but EXL2 has I32 \[words, out\]
		exl2 fewer-scales tensor lm_head.q_weight: is I32*with q_scale \[4, 12\]
		exl2 few-words tensor lm_head.q_weight: has*rows of words, but its q_invperm has 128 inputs
		exl2 fewer-words tensor lm_head.weight: its q_groups are not groups that make up its inputs; download
		exl2 fewer-inputs tensor lm_head.weight: its q_groups are not groups
		exl2 group-bits tensor lm_head.weight: its q_groups are not groups
		exl2 group-start tensor lm_head.weight: its q_groups are not groups
		exl2 group-order tensor lm_head.weight: its q_groups are not groups
		exl2 first-group tensor lm_head.weight: its q_groups are not groups
		exl2 place-range tensor lm_head.weight: its q_invperm is not a permutation of its inputs; download
		exl2 place-twice tensor lm_head.weight: its q_invperm is not a permutation
		exl2 unpacked config.json: says that the weights are exl2, but no tensor is
	END
}

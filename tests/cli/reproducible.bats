#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The same weights and options give the same bytes, in any storage format and on any machine.

load helpers

setup() { setup_folder; }

# A unit's name, without the part that depends on the storage of experts, and the key of its packed artifact.
packed_keys() { # CACHE
	query "SELECT class, role, experts, packed_key FROM run_units ORDER BY number" "$1"
}

@test "one job or four, one thread or several" {
	make_model m
	expected=$(converted m a.xfp --cache c1 -j1)
	[ "$(converted m b.xfp --cache c4 -j4)" = "$expected" ]
	for threads in 1 2 7; do
		[ "$(OMP_NUM_THREADS=$threads converted m "t$threads.xfp" --cache "t$threads")" = "$expected" ]
	done
}

@test "matrices of many blocks, and stacks, by several threads, with a survey and without" {
	make_model big --family llama --hidden 512 --intermediate 2816 --heads 8
	make_model stack --hidden 256 --intermediate 1200 --num-experts 5 --heads 8
	for model in big stack; do
		for options in "--mode auto" "--mode v2 --outlier-sigma 3"; do
			# shellcheck disable=SC2086
			expected=$(OMP_NUM_THREADS=1 converted $model 1.xfp --cache 1 --bits 2,3 $options)
			for threads in 2 5; do
				rm -rf again*
				# shellcheck disable=SC2086
				[ "$(OMP_NUM_THREADS=$threads converted $model again.xfp --cache again -j2 --bits 2,3 $options)" = "$expected" ]
			done
			rm -rf 1.xfp* 1
		done
	done
}

@test "every instruction set" {
	for options in "" "--family qwen3 --dtype f32 --hidden 200"; do
		rm -rf m
		# shellcheck disable=SC2086
		make_model m $options
		expected=$(XFP_INSTRUCTIONS=plain converted m plain.xfp --cache plain --lm-head quant)
		for set in $(encoder_sets); do
			rm -rf c
			[ "$(XFP_INSTRUCTIONS=$set converted m "$set.xfp" --cache c --lm-head quant)" = "$expected" ]
		done
	done
	make_model m2
	XFP_INSTRUCTIONS=mmx run -2 xfp-lloyd-fit u000000
	[[ $output == *XFP_INSTRUCTIONS=mmx* ]]
}

@test "cold cache, warm cache, no work folder" {
	make_model m
	expected=$(converted m a.xfp)
	rm a.xfp
	[ "$(converted m a.xfp)" = "$expected" ]
	rm -r a.xfp a.xfp.work
	[ "$(converted m a.xfp)" = "$expected" ]
	[ "$(query "SELECT sum(repacked) + sum(fitted) FROM run_units WHERE run > 1")" = 0 ]
	[ "$(converted m b.xfp --rehash)" = "$expected" ]
	[ "$(query "SELECT sum(repacked) + sum(fitted) FROM run_units WHERE run > 1")" = 0 ]
}

@test "a checkpoint that was moved, copied, touched or re-sharded: the same keys, no work" {
	make_model m
	expected=$(converted m out.xfp)
	mv m moved
	[ "$(converted moved out.xfp)" = "$expected" ]
	cp -r moved copied
	touch copied/*
	[ "$(converted copied out.xfp)" = "$expected" ]
	make_model sharded --shards 3
	[ "$(converted sharded out.xfp)" = "$expected" ]
	[ "$(query "SELECT sum(repacked) + sum(fitted) FROM run_units WHERE run > 1")" = 0 ]
}

@test "experts one by one, fused, and fused and transposed: same units, codebooks and packed bytes" {
	for experts in split fused transposed; do
		make_model "$experts" --experts "$experts"
		xfp convert "$experts" -o "$experts.xfp" --cache "cache-$experts" -q
		packed_keys "cache-$experts" >"$experts.keys"
	done
	[ "$(grep -c routed_expert split.keys)" = 3 ]
	diff split.keys fused.keys
	diff split.keys transposed.keys
	mkdir split.d fused.d
	bsdtar -xf split.xfp -C split.d
	bsdtar -xf fused.xfp -C fused.d
	diff -r split.d/u fused.d/u
}

@test "locale, umask, time zone and folder do not matter" {
	make_model m
	expected=$(converted m out.xfp)
	mkdir -p deep/er
	LC_ALL=de_DE.UTF-8 LC_NUMERIC=de_DE.UTF-8 TZ=Asia/Tokyo LANG=tr_TR.UTF-8 \
		xfp convert m -o deep/er/out.xfp -q
	[ "$(sha deep/er/out.xfp)" = "$expected" ]
	(umask 077 && xfp convert m -o private.xfp --cache private -q)
	[ "$(sha private.xfp)" = "$expected" ]
}

@test "any changed weight changes the bundle, and only its own unit is converted again" {
	make_model m
	first=$(converted m out.xfp)
	# the last byte of the file is the last tensor's
	size=$(stat -c %s m/model.safetensors)
	printf '\x01' | dd of=m/model.safetensors bs=1 seek=$((size - 2)) conv=notrunc status=none
	[ "$(converted m out.xfp)" != "$first" ]
	[ "$(query "SELECT sum(repacked) FROM run_units WHERE run = 2")" -le 1 ]
}

@test "each option that affects bytes changes the bundle's description, and no other option does" {
	make_model m
	first=$(converted m out.xfp)
	for option in "--bits 2-5" "--outlier-sigma 3.5" "--outlier-cap 0.01" "--balance 0" "--lloyd-iters 3" "--moe-lloyd-iters 3" \
		"--start minmax" "--lm-head keep" "--on-miss best" "--min-cos-strict 0.991" "--floor router=0.5"; do
		# shellcheck disable=SC2086
		[ "$(converted m out.xfp $option)" != "$first" ] || { echo "$option"; return 1; }
	done
	[ "$(converted m out.xfp -j3 -k --rehash)" = "$first" ]
}

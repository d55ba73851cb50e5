#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Compact groups. To change the constants: tests/make-compact-seeds >kernels/encode/compact_seed.h

load helpers

setup() { setup_folder; }

@test "the constants of compact groups equal the output of their generator" {
	"$XFP_TEST_TOOLS/make-compact-seeds" >compact_seed.h
	cmp compact_seed.h "$srcdir/kernels/encode/compact_seed.h"
}

# A fit of few candidates has the bytes of groups, one of many does not, and all but one k miss the floor.
@test "groups are packed alike from the bytes of a fit and by another search" {
	floors=attention=0.9975,dense_mlp=0.9975,routed_expert=0.9975
	make_model m --layers 1 --hidden 128 --intermediate 256 --heads 4 --kv-heads 2
	xfp convert m -o kept.xfp -q --mode v2c --bits 4 --floor $floors --cache kept
	xfp convert m -o searched.xfp -q --mode v2c --bits 2,3,4 --floor $floors --cache searched
	[ -n "$(artifacts kept | xargs grep -l byte-v2c)" ]
	[ -z "$(artifacts searched | xargs grep -l byte-v2c)" ]
	for way in kept searched; do
		xfp info --units $way.xfp | grep -E '^ +(v2c|fp8|keep)' >$way.units
		xfp unpack $way.xfp -o $way.model
	done
	grep -q v2c kept.units
	cmp kept.units searched.units
	cmp kept.model/model.safetensors searched.model/model.safetensors
}

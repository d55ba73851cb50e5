#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Bundles that were made before word embeddings were units and fp8 a candidate, in tests/older: with --like every
# later xfp writes their bytes. Absent settings keep the meaning that they had then. The bundles are never
# regenerated; their source models are generated here.

load helpers

setup() {
	setup_folder
	by_default
}

again() { # NAME MODEL-OPTION...
	local name=$1 expected

	shift
	gzip -dc "$srcdir/tests/older/$name.xfp.gz" >older.bundle
	expected=$(sha older.bundle)
	"$XFP_TEST_TOOLS/make-checkpoint" --layers 1 --hidden 32 --intermediate 32 --heads 2 --kv-heads 1 --vocab 48 "$@" m
	run -0 --separate-stderr xfp convert m --like older.bundle -o again.xfp
	[ "$output" = "$expected  $PWD/again.xfp" ]
	cmp older.bundle again.xfp
	xfp verify -q --source m older.bundle
}

@test "an older bundle of a mixture of experts with default settings: --like gives its bytes" { again moe --num-experts 2; }
@test "likewise: floors by an override that names everything, a quantized head, --format embedding=keep" {
	again untied --family qwen3
}
@test "likewise: a tied embedding with bits of its own" { again tied --family llama --tie; }
@test "likewise: embeddings of words, positions and types, all three as fp8" {
	again bert --family bert --dtype f32 --hidden 16 --intermediate 16
}

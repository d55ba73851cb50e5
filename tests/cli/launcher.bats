#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Units on nodes of a cluster: xfp convert --launcher. The launchers here run on this machine.

load helpers

setup() {
	setup_folder
	by_default
	make_model m --layers 2 --hidden 128 --intermediate 96 --num-experts 4
}

# A launcher that logs what it is given.
make_logger() { # NAME
	cat >"$1" <<-EOF2
	#!/bin/sh
	echo "\$@" >>"$PWD/given"
	exec "\$@"
	EOF2
	chmod +x "$1"
}

@test "the bundle is the same, and every unit is launched" {
	expected=$(converted m local.xfp --cache local)
	make_logger logger
	[ "$(converted m out.xfp -j3 --launcher ./logger)" = "$expected" ]
	[ "$(wc -l <given)" = 3 ]
	[ "$(grep -o 'u0000[0-9]*-packed' given | sort -u | wc -l)" = 16 ]
	[ -z "$(find out.xfp.work -name 'step-*')" ]
}

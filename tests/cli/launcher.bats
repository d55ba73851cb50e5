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

@test "ssh-launcher: a command runs on a free host" {
	mkdir bin
	cat >bin/ssh <<-END
		#!/bin/sh
		while [ "\${1#-}" != "\$1" ] || [ "\$1" = BatchMode=yes ]; do shift; done
		echo "\$1" >>"$PWD/hosts"
		mkdir "$PWD/\$1" || echo "two on \$1" >>"$PWD/hosts"
		sh -c "\$2"
		status=\$?
		rmdir "$PWD/\$1"
		exit \$status
	END
	chmod +x bin/ssh
	expected=$(converted m local.xfp --cache local)
	export PATH=$PWD/bin:$PATH SSH_HOSTS="node1 node2"
	[ "$(converted m "the out.xfp" -j4 --launcher "$(xfp --pipelines)/slurm/ssh-launcher")" = "$expected" ]
	[ "$(sort -u hosts | xargs)" = "node1 node2" ]
}

# Without the comments at their beginnings.
@test "xfp-pipelines(7) shows the files of slurm/" {
	"$PYTHON" - "$XFP_TEST_MAN/man7/xfp-pipelines.7" "$XFP_DATADIR"/pipelines/slurm/* <<-'EOF2'
	import sys
	page, *files = (open(name).read() for name in sys.argv[1:])
	assert len(files) == 2
	for text in files:
	    comment, body = text.split("\n\n", 1)
	    shown = comment.split("\n")[0] + "\n" + body
	    assert "\n\\&" + shown.replace("\\", "\\e") + ".Ed\n" in page, shown
	EOF2
}

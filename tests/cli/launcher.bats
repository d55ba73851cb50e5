#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Units on nodes of a cluster: xfp convert --launcher. The launchers here run on this machine.

load helpers

setup() {
	setup_folder
	by_default
	unset XFP_LAUNCHER "${!SLURM_@}"
	make_model m --layers 2 --hidden 128 --intermediate 96 --num-experts 4
}

# A launcher: a shell script that has the command as "$@". It starts the check of a node without further ado.
launcher() { # NAME LINE...
	printf '%s\n' '#!/bin/bash' 'if [[ " $* " = *" --check "* ]]; then' \
		'while [[ $1 != */xfp-launch ]]; do shift; done; exec "$@"; fi' "${@:2}" >"$1"
	chmod +x "$1"
}

# The launcher ./logger, which logs its commands.
make_logger() {
	launcher logger "echo \"\$MAKEFLAGS\$MAKELEVEL\$XFP_LAYER|\$*\" >>'$PWD/given'" 'exec "$@"'
}

launched() { # PATTERN: the launched targets that match
	grep -o "u0000[0-9]*-$1" given | sort -u
}

has_ended() { # FILE of its PID
	! kill -0 "$(cat "$1")"
}

# Check that no launched stage is running.
all_ended() {
	[ ! -e out.xfp.work/lock.steps ] || flock -w 20 out.xfp.work/lock.steps true
}

# Run xfp convert, and send it a signal when a unit is at work. A job in the background ignores SIGINT: restore it.
interrupted() { # SIGNAL OPTION...
	"$PYTHON" - "$@" <<-'EOF2'
	import os, signal, subprocess, sys, time
	command = ["xfp", "convert", "m", "-o", "out.xfp", *sys.argv[2:]]
	run = subprocess.Popen(command, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
	deadline = time.monotonic() + 120
	while not os.path.exists("out.xfp.work/events") and not os.path.exists("started") and run.poll() is None:
	    assert time.monotonic() < deadline
	    time.sleep(.01)
	run.send_signal(getattr(signal, sys.argv[1]))
	sys.exit(128 - run.wait())
	EOF2
}

@test "the bundle is the same, and every unit is launched" {
	expected=$(BATCHES=b STEP=/ LAYERS=l converted m local.xfp --cache local)
	make_logger
	[ "$(converted m out.xfp -j3 --launcher ./logger)" = "$expected" ]
	[ "$(wc -l <given)" = 3 ]
	[ "$(launched packed | wc -l)" = 16 ]
	[ "$(grep -c '^|' given)" = 3 ] # nothing of make's
	[ -z "$(find out.xfp.work -name 'step-*')" ]
	# nothing is left to launch
	rm given
	[ "$(converted m out.xfp -j3 --launcher ./logger)" = "$expected" ]
	[ ! -e given ]
}

# NFS clients remember which files exist.
@test "folders are refreshed before a node makes its targets, and once all steps have ended" {
	needs_strace
	strace -f -q -o trace -e trace=statx,execve xfp convert m -o out.xfp -q -j1 --launcher env
	refreshed=$(grep -n "statx(AT_FDCWD, \"$PWD/xfp-cache/artifacts/a0\", .*AT_STATX_FORCE_SYNC" trace | cut -d: -f1)
	stages=$(grep -n 'execve("[^"]*/xfp-\(survey\|pack\)"' trace | cut -d: -f1)
	[ "$(wc -w <<<"$refreshed")" = 2 ]
	((${refreshed%%$'\n'*} < ${stages%%$'\n'*}))
	((${refreshed##*$'\n'} > ${stages##*$'\n'}))
	for folder in out.xfp.work/hosts out.xfp.work; do
		[ "$(grep -c "statx(AT_FDCWD, \"$PWD/$folder\", .*AT_STATX_FORCE_SYNC" trace)" -ge 2 ]
	done
}

@test "a launcher that passes no environment on" {
	expected=$(converted m local.xfp --cache local)
	[ "$(converted m out.xfp -j2 --launcher 'env -i PATH=/usr/bin:/bin')" = "$expected" ]
}

@test "the launcher is a command line of a shell: blanks, quotes, \$ and #" {
	expected=$(converted m local.xfp --cache local)
	launcher 'my launcher' "printf '<%s>' \"\${@:1:4}\" >>'$PWD/words'" 'shift 4; exec "$@"'
	export VALUE='a  "value"'
	line="./my\\ launcher 'it is #1' \"\$VALUE\" \$((40 + 2)) \"it's\""
	[ "$(converted m out.xfp -j1 --launcher "$line")" = "$expected" ]
	[ "$(cat words)" = "<it is #1><a  \"value\"><42><it's>" ]
}

@test "by XFP_LAUNCHER, and by a makefile, where \$ and # are written \$\$ and \\#" {
	expected=$(converted m local.xfp --cache local)
	make_logger
	[ "$(XFP_LAUNCHER=./logger converted m out.xfp -j2)" = "$expected" ]
	[ "$(launched packed | wc -l)" = 16 ]
	rm -r out.xfp* xfp-cache given
	export COUNT=1
	printf '%s\n' 'MODEL = m' 'OUT = out.xfp' "LAUNCHER = test 'a\\#' = \"a\\#\$\${COUNT\\#1}\" && ./logger" \
		'include $(shell xfp --pipelines)/convert.mk' >m.mk
	make -n -f m.mk -j2
	[ ! -e given ]
	make -f m.mk -j2 >/dev/null
	[ "$(sha out.xfp)" = "$expected" ]
	[ "$(launched packed | wc -l)" = 16 ]
}

@test "a makefile's launcher may have as many jobs as its allocation, without -j" {
	make_logger
	printf '%s\n' 'MODEL = m' 'OUT = out.xfp' 'LAUNCHER = ./logger' 'include $(shell xfp --pipelines)/convert.mk' >m.mk
	SLURM_NTASKS=3 make -f m.mk >/dev/null
	[ "$(wc -l <given)" = 3 ]
	# the launcher's own -j is not make's
	rm -r given out.xfp* xfp-cache
	SLURM_NTASKS=3 make -f m.mk LAUNCHER='true -j1 && ./logger' >/dev/null
	[ "$(wc -l <given)" = 3 ]
}

@test "-n launches nothing" {
	make_logger
	xfp convert m -o out.xfp -n --launcher ./logger
	xfp prepare m -o out.xfp -q --launcher ./logger
	export XFP_LAUNCHER=$PWD/logger XFP_WORK=$PWD/out.xfp.work XFP_CACHE=$PWD/xfp-cache
	XFP_PIPELINES=$(xfp --pipelines)
	export XFP_PIPELINES
	make -n -C out.xfp.work -f "$XFP_PIPELINES/graph.mk" >steps
	grep -q 'xfp-launch --heaviest .* u' steps
	[ ! -e given ]
	# by hand
	make -C out.xfp.work -f "$XFP_PIPELINES/graph.mk" -j2 >/dev/null
	[ "$(launched packed | wc -l)" = 16 ]
	[ "$(find out.xfp.work -name 'u*-packed' | wc -l)" = 16 ]
}

@test "jobs: the tasks of an allocation, by number or by node" {
	make_logger
	SLURM_NTASKS=5 xfp convert m -o out.xfp -q --launcher ./logger
	[ "$(wc -l <given)" = 5 ]
	rm -r given out.xfp* xfp-cache
	SLURM_TASKS_PER_NODE='2(x3),1' xfp convert m -o out.xfp -q --launcher ./logger
	[ "$(wc -l <given)" = 7 ]
	rm -r given out.xfp* xfp-cache
	SLURM_NTASKS=5 xfp convert m -o out.xfp -q -j2 --launcher ./logger
	[ "$(wc -l <given)" = 2 ]
}

@test "threads: those of the step's processors" {
	replace_stage xfp-survey 'echo "$OMP_NUM_THREADS" >>"$top/threads"; exec "$real" "$@"'
	SLURM_CPUS_PER_TASK=1 PATH=$PWD/bin:$PATH xfp convert m -o out.xfp -q -j16 --launcher env
	[ "$(sort -u threads)" = 1 ]
	rm -r threads out.xfp* xfp-cache
	SLURM_CPUS_ON_NODE=2 SLURM_STEP_TASKS_PER_NODE=2 PATH=$PWD/bin:$PATH xfp convert m -o out.xfp -q -j16 --launcher env
	[ "$(sort -u threads)" = 1 ]
	rm -r threads out.xfp* xfp-cache
	OMP_NUM_THREADS=3 PATH=$PWD/bin:$PATH xfp convert m -o out.xfp -q -j16 --launcher env
	[ "$(sort -u threads)" = 3 ]
}

fails() { # LAUNCHER PATTERN...
	run -1 xfp convert m -o out.xfp -q -j1 --launcher "$1"
	for pattern in "${@:2}"; do
		[[ $output == *$pattern* ]] || { echo "no '$pattern' in: $output"; return 1; }
	done
	no_output out.xfp
	[ -z "$(find out.xfp.work -name 'step-*')" ]
}

@test "launchers that fail: a message names the launcher, and the same command without one continues" {
	expected=$(converted m local.xfp --cache local)
	fails 'no-such-launcher -n1' "'no-such-launcher -n1'" 'status 127 (not found)'
	fails /etc/passwd "'/etc/passwd'" 'status 126 (cannot be executed)'
	fails false "'false'" 'ended with status 1 before'
	fails true "'true'" 'status 0' 'must run the command'
	fails 'true #' "'true #'" 'status 0' 'must run the command'
	fails 'kill -9 $$;' 'was killed by a signal (Killed)'
	fails "sh -c 'kill \$\$' x" 'status 143 (Terminated)'
	fails "unclosed '" 'status 2'
	fails 'exit 168;' 'status 168 before'
	fails $'e\e[31mvil' '\x1b[31mvil'
	[ "$(converted m out.xfp)" = "$expected" ]
	run -2 xfp convert m -o out.xfp --launcher ''
}

@test "a launcher dies in the middle: the message names the node, its stages end, and a rerun continues" {
	expected=$(converted m local.xfp --cache local)
	replace_stage xfp-pack 'mkdir "$top/first" || exec sleep 600; exec "$real" "$@"'
	# make removes the stamp of a step that ended, but that it has not yet waited for. It has, if another unit follows.
	launcher dying '"$@" &' 'for ((i = 0; i < 6000; i++)); do sleep .02;
		sed "1,/pack	made/d" out.xfp.work/events 2>/dev/null | grep -q "survey	started" && break; done' 'kill -9 $$'
	PATH=$PWD/bin:$PATH fails ./dying "'./dying'" 'status 137 (Killed)' \
		"node $(uname -n) did not finish u000006-packed and 15 others"
	flock -n out.xfp.work/lock.steps true # no stage is left
	[ "$(query "SELECT count(*) FROM artifacts WHERE kind = 'packed'")" = 1 ]
	xfp convert m -o out.xfp --json --launcher env -j2 >summary.json
	[ "$(sha out.xfp)" = "$expected" ]
	[ "$("$PYTHON" -c 'import json; print(json.load(open("summary.json"))["cached"] > 0)')" = True ]
}

@test "a launcher that does not start its command is reported once, after 30 seconds" {
	launcher slow 'until [ -e go ]; do sleep .1; done' 'exec "$@"'
	printf '%s\n' '#!/bin/sh' 'until [ -e go ]; do sleep .1; done' 'exec "$@"' >late
	chmod +x late
	for name in slow late; do
		xfp convert m -o $name.xfp --cache $name-cache -j2 --launcher ./$name >$name.text 2>&1 3>&- &
	done
	for name in slow late; do
		wait_until grep -q "has not started" $name.text
	done
	touch go
	wait
	for name in slow late; do
		[ "$(grep "has not started" $name.text)" = \
			"xfp: launcher './$name': has not started its command on a node for 30 s; still waiting" ]
		[ "$(grep -c "has not started" $name.xfp.work/log)" = 1 ]
	done
	cmp slow.xfp late.xfp
}

@test "a node reports success, but its files are not here" {
	launcher lying 'while [ "$1" != --step ]; do shift; done' 'printf "node n7\nstatus 0\n" >>"$2"'
	fails ./lying 'node n7 reported success, but' 'u000006-packed does not exist' 'must be shared'
}

@test "a node with another version of xfp is refused" {
	launcher old 'exec "${@/#'"$(xfp --version | cut -d' ' -f2)"'/0.0.1}"'
	fails ./old "'./old': node" 'xfp 0.0.1 runs the conversion; install the same version'
}

@test "a stage fails on a node: its message and status are as without a launcher; -k finishes the other units" {
	poke m/model.safetensors model.layers.0.self_attn.q_proj.weight 5 c07f
	run -3 xfp convert m -o local.xfp -q --cache local -j1
	[[ $output == *q_proj* ]]
	wanted=$(grep -c q_proj <<<"$output")
	run -3 xfp convert m -o out.xfp -q -j1 --launcher env
	[ "$(grep -c q_proj <<<"$output")" = "$wanted" ]
	[[ $output != *launcher* ]]
	run -3 xfp convert m -o out.xfp -q -j2 -k --launcher env
	[ "$(find out.xfp.work -name 'u*-packed' | wc -l)" = 15 ]
	no_output out.xfp
}

@test "without -k, a failure stops the steps on other nodes once the units in work are finished" {
	replace_stage xfp-pack 'touch "$top/packing"
		until find "$XFP_WORK" -name "step-*" -perm /100 | grep -q . || [ $((i += 1)) = 3000 ]; do sleep .01; done
		exec "$real" "$@"'
	launcher half 'case "$*" in *u000006-*)
		until [ -e packing ] || [ $((i += 1)) = 6000 ]; do sleep .02; done; exit 9 ;; *) exec "$@" ;; esac'
	export SLURM_CPUS_PER_TASK=1
	PATH=$PWD/bin:$PATH run -1 xfp convert m -o out.xfp -q -j2 --launcher ./half
	[[ $output == *"ended with status 9"* ]]
	[ "$(find out.xfp.work -name 'u*-packed' | wc -l)" = 1 ]
}

@test "a stage and a launcher fail: both are reported" {
	poke m/model.safetensors model.layers.0.self_attn.q_proj.weight 5 c07f
	launcher half 'case "$*" in *u000002-packed*) exec "$@" ;; *) exit 9 ;; esac'
	run -3 xfp convert m -o out.xfp -q -j16 -k --launcher ./half
	[[ $output == *"launcher './half': ended with status 9"*"14 more failures"* ]]
}

@test "a stage is killed on a node: the message names the node" {
	replace_stage xfp-pack 'kill -9 $$'
	PATH=$PWD/bin:$PATH run -1 xfp convert m -o out.xfp -q -j1 --launcher env
	[[ $output == *"xfp-pack was killed by a signal (Killed) on node $(uname -n): "* ]]
}

@test "Ctrl-C ends a launcher that ignores SIGINT, and what it started; the printed command resumes" {
	expected=$(converted m local.xfp --cache local)
	launcher "it's" 'trap "" INT' '"$@" &' 'wait'
	line="./it\\'s \"\$HOME\" \$((1))"
	launcher "it's" 'trap "" INT' 'shift 2; "$@" &' 'wait'
	run interrupted SIGINT -j2 -q --launcher "$line"
	[ "$status" = 130 ]
	flock -n out.xfp.work/lock.steps true
	no_output out.xfp
	[ -z "$(find . -name '.*.tmp' -o -name 'step-*')" ]
	command=$(grep -A1 'To resume' <<<"$output" | tail -n 1)
	[[ $command == *--launcher* ]]
	bash -c "$command"
	[ "$(sha out.xfp)" = "$expected" ]
}

@test "Ctrl-C ends a launcher that ignores all signals, after ten seconds" {
	launcher stubborn 'trap "" INT TERM HUP' 'touch started' 'sleep 60 & echo $! $$ >pids; wait' 'exec sleep 61'
	run interrupted SIGINT -j1 -q --launcher ./stubborn
	[ "$status" = 130 ]
	for pid in $(cat pids); do
		! kill -0 "$pid" 2>/dev/null || return 1
	done
}

@test "kill -9 ends launchers and stages, too" {
	launcher slow 'trap "" INT' '"$@" &' 'echo $$ >pid; wait'
	run interrupted SIGKILL -j1 -q --launcher ./slow
	[ "$status" = 137 ]
	all_ended
	wait_until has_ended pid
}

@test "kill -9 of xfp-launch ends a launcher that ignores all signals, after ten seconds" {
	run -1 xfp convert m -o out.xfp -q -j1 --launcher 'trap "" INT TERM HUP; echo $$ >pid; kill -9 $PPID; sleep 60 #'
	wait_until has_ended pid
}

@test "a launcher may leave a daemon: it holds no lock" {
	launcher leaving 'setsid sh -c "echo \$\$ >daemon; exec sleep 60" &' \
		'until [ -s daemon ] || [ $((i += 1)) = 6000 ]; do sleep .02; done' 'exec "$@"'
	xfp convert m -o out.xfp -q -j1 --launcher ./leaving
	[[ $(xfp status out.xfp) != *running* ]]
	xfp convert m -o out.xfp -q --drop-cache
	kill "$(cat daemon)"
}

@test "a step that outlives its launcher, as on another host, ends when its step file is removed" {
	replace_stage xfp-survey 'touch "$top/started"; sleep 60'
	launcher remote 'setsid "$@" & wait'
	PATH=$PWD/bin:$PATH run interrupted SIGINT -j1 -q --launcher ./remote
	[ "$status" = 130 ]
	all_ended
}

@test "make does not start on a node: the message says so" {
	launcher bare 'mkdir -p none && PATH=$PWD/none exec "$@"'
	fails ./bare "'./bare': node" 'make could not be run; is the installation complete?'
}

@test "a calibrated conversion: the same bundle, and layers are computed here" {
	make_text_model 2
	expected=$(converted m local.xfp --cache local --calibrate --calibrate-tokens 2048)
	make_logger
	[ "$(converted m out.xfp -j2 --calibrate --calibrate-tokens 2048 --launcher ./logger)" = "$expected" ]
	[ "$(launched packed | wc -l)" = "$(grep -o 'u0[0-9]*' out.xfp.work/units.mk | wc -l)" ]
	grep -q -- 'nice /' given
	! grep -q inputs given || return 1
	# with -k, a failure does not stop the layers
	rm -r out.xfp* xfp-cache
	launcher first 'case "$*" in *u000000-*) exit 9 ;; *) exec "$@" ;; esac'
	run -1 xfp convert m -o out.xfp -q -j16 -k --calibrate --calibrate-tokens 2048 --launcher ./first
	[[ $output == *"launcher './first': ended with status 9"* ]]
	[ "$(converted m out.xfp -j2 --calibrate --calibrate-tokens 2048 --launcher ./logger)" = "$expected" ]
}

@test "a goal: the same bundle, and all units are surveyed first" {
	expected=$(converted m local.xfp --cache local --target-bpw 8)
	make_logger
	[ "$(converted m out.xfp -j2 --target-bpw 8 --launcher ./logger)" = "$expected" ]
	[ "$(launched survey | wc -l)" = 16 ]
	[ "$(launched packed | wc -l)" = 16 ]
	head -n 1 given | grep -q survey
}

@test "a calibrated goal: the same bundle" {
	make_text_model 1
	options=(--calibrate --calibrate-tokens 2048 --target-bpw 20)
	expected=$(converted m local.xfp --cache local "${options[@]}")
	make_logger
	[ "$(converted m out.xfp -j2 "${options[@]}" --launcher ./logger)" = "$expected" ]
	launched scales | grep -q .
}

@test "ssh-launcher: a command runs on a free host" {
	mkdir bin
	# OpenSSH closes all descriptors that it inherits, with their locks.
	cat >bin/ssh <<-END
		#!/usr/bin/env bash
		for descriptor in {3..40}; do eval "exec \$descriptor>&-"; done
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

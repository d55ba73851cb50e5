#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# xfp convert --launcher with Slurm: two nodes on this machine (tests/slurm/cluster), each with a host name and process
# ids of its own.

load ../cli/helpers

launcher='srun -Q -N1 -n1'

cluster() { # COMMAND [ARGUMENT...]
	"$srcdir/tests/slurm/cluster" "$1" "$BATS_FILE_TMPDIR/cluster" "${@:2}"
}

setup_file() {
	if "$srcdir/tests/slurm/cluster" check >"$BATS_FILE_TMPDIR/reason"; then
		cluster start
	fi
}
teardown_file() {
	[ -s "$BATS_FILE_TMPDIR/reason" ] || cluster stop
}
setup() {
	[ ! -s "$BATS_FILE_TMPDIR/reason" ] || skip "$(cat "$BATS_FILE_TMPDIR/reason")"
	export SLURM_CONF=$BATS_FILE_TMPDIR/cluster/slurm.conf
	setup_folder
	mkdir local
	make_model m --layers 2
	expected=$(converted m local/out.xfp)
}
# A test that failed prints the last messages of the cluster, and must not disturb the next one.
teardown() {
	[ ! -s "$BATS_FILE_TMPDIR/reason" ] || return 0
	if [ -z "${BATS_TEST_COMPLETED-}" ]; then
		tail -n 15 said out.xfp.work/log "$BATS_FILE_TMPDIR"/cluster/*.log || true
	fi
	restored
}
# Start what was killed, and end all jobs.
restored() {
	local name

	for name in slurmctld xfp1 xfp2; do
		[ -e "$BATS_FILE_TMPDIR/cluster/$name.pid" ] || cluster boot "$name"
	done
	wait_for scancel --user=root
	wait_for all_idle
}

wait_for() { # COMMAND...
	local deadline=$((SECONDS + 300))

	until "$@"; do
		[ $SECONDS -lt $deadline ] || { echo "not within five minutes: $*"; return 1; }
		sleep 0.1
	done
}
all_idle() {
	[ "$(sinfo -h -t idle -o %D)" = 2 ] && [ -z "$(squeue -h)" ]
}

# Convert m on both nodes; xfp convert itself runs on neither.
allocated=(salloc -Q -N2 -n2 --no-kill xfp convert m -o out.xfp --launcher)
on_nodes() { # OPTION...
	"${allocated[@]}" "$launcher" "$@"
}
# Have a stage run SCRIPT on xfp2 until the file `released` exists. On xfp1 it waits, so that xfp2 gets a step, too.
stop_on_xfp2() { # [STAGE SCRIPT]
	replace_stage "${1:-xfp-pack}" "if [ \$(hostname) = xfp2 ] && [ ! -e \$top/released ]; then
		touch \$top/at-work
		${2:-until [ -e \$top/released ]; do sleep 0.2; done}
	fi
	until [ -e \$top/at-work ] || [ -e \$top/released ]; do sleep 0.2; done
	exec \$real \"\$@\""
	PATH=$PWD/bin:$PATH
}
# Convert in the background, until xfp2 is at work.
begin() { # OPTION...
	env --default-signal=INT,TERM "${allocated[@]}" "$launcher" "$@" >said 2>&1 3>&- &
	conversion=$!
	wait_for [ -e at-work ]
}
# The conversion fails with a message that has the text, and publishes nothing. Another one succeeds.
fails_with() { # TEXT
	local status=0

	wait $conversion || status=$?
	cat said
	[ $status -ne 0 ]
	grep -qF "$1" said
	[ ! -e out.xfp ]
	resumes
}
# What was lost is restored, and the next run gives the same bytes.
resumes() {
	touch released
	restored
	on_nodes -q
	[ "$(sha out.xfp)" = "$expected" ]
	nothing_runs
}
# Slurm starts a requeued job after two minutes.
waits_for_time() {
	[ "$(squeue -h -o '%T %r')" = "PENDING BeginTime" ]
}
# Neither a step nor a stage is left on a node.
nothing_runs() {
	local node

	[ -z "$(squeue -h --steps)" ] || return 1
	for node in xfp1 xfp2; do
		if cluster enter $node pgrep -a 'xfp-|make|sleep'; then
			return 1
		fi
	done
}

@test "a conversion on two nodes has the bytes of a local one" {
	local seen='hostname >>hosts; exec "$@"'

	launcher="srun -Q -N1 -n1 sh -c '$seen' sh" on_nodes >said
	cat said
	[ "$(sha out.xfp)" = "$expected" ]
	[ "$(find . -name hosts -type f -exec sort -u {} + | xargs)" = "xfp1 xfp2" ]
	nothing_runs
	run -0 on_nodes
	[[ $output == *"out.xfp is up to date"* ]]
}

@test "with --exact, two steps share a node" {
	cat >meet <<-END
		#!/bin/sh
		case "\$*" in
		*-packed*)
			mkdir $PWD/first 2>/dev/null || mkdir $PWD/second 2>/dev/null
			until [ -e $PWD/second ]; do sleep 0.1; done
			;;
		esac
		exec "\$@"
	END
	chmod +x meet
	timeout 300 salloc -Q -N1 -n2 xfp convert m -o out.xfp -q --launcher "$launcher --exact $PWD/meet"
	[ "$(sha out.xfp)" = "$expected" ]
}

@test "a goal" {
	unset XFP_MIN_COS_STRICT XFP_MIN_COS_LAZY
	size=$(($(stat -c %s local/out.xfp) * 97 / 100))
	expected=$(converted m local/goal.xfp --target-size $size)
	on_nodes -q --target-size $size
	[ "$(sha out.xfp)" = "$expected" ]
}

@test "a node that dies" {
	stop_on_xfp2
	begin
	cluster kill xfp2
	fails_with "node xfp2 did not finish"
}

@test "a job that is requeued, or requeues itself before its time ends, resumes" {
	stop_on_xfp2
	for command in "scontrol requeue" "scancel --batch --signal=USR1"; do
		rm -rf out.xfp out.xfp.work xfp-cache at-work released
		sbatch -Q --cpus-per-task=1 --mem-per-cpu=100 --time=10 --output=said \
			share/xfp/pipelines/slurm/convert.sbatch m out.xfp -q
		wait_for [ -e at-work ]
		job=$(squeue -h -o %A)
		$command "$job"
		wait_for waits_for_time
		nothing_runs
		touch released
		scontrol update JobId="$job" StartTime=now
		wait_for [ -e out.xfp ]
		wait_for all_idle
		cat said
		[ "$(sha out.xfp)" = "$expected" ]
		nothing_runs
	done
}

# With proctrack/pgid, Slurm measures the processes of the step's own group only.
@test "a step over its memory limit" {
	cat >greedy <<-END
		#!/bin/sh
		case "\$*" in
		*-packed*)
			touch $PWD/at-work
			[ -e $PWD/released ] ||
				$PYTHON -c 'import time; x = bytes(range(256)) * 2000000; time.sleep(600)' &
			;;
		esac
		exec "\$@"
	END
	chmod +x greedy
	replace_stage xfp-pack '[ -e $top/released ] || sleep 600; exec "$real" "$@"'
	PATH=$PWD/bin:$PATH
	launcher="$launcher --mem=100M $PWD/greedy"
	begin
	fails_with "did not finish"
}

@test "a stage that is killed, as the kernel does if memory is short" {
	stop_on_xfp2 xfp-pack 'kill -KILL $$'
	begin
	fails_with "node xfp2"
}

@test "scancel of a step" {
	stop_on_xfp2
	begin
	scancel "$(squeue -h --steps -o '%i %N' | awk '$2 == "xfp2" { print $1 }')"
	fails_with "node xfp2 did not finish"
}

@test "scancel of the job" {
	stop_on_xfp2
	begin
	scancel "$(squeue -h -o %A)"
	fails_with "did not finish"
}

@test "a full disk on one node" {
	stop_on_xfp2 xfp-outlier-extract "mount -t tmpfs -o size=4k none \$top/xfp-cache/artifacts"
	begin
	wait $conversion || true
	cluster enter xfp2 umount "$PWD/xfp-cache/artifacts"
	fails_with xfp2
	grep "No space left" said
}

# Each node runs a step when the controller is lost. They end normally. With a goal, others follow the surveys.
@test "a controller that is lost" {
	unset XFP_MIN_COS_STRICT XFP_MIN_COS_LAZY
	replace_stage xfp-survey "touch \$top/on-\$(hostname)
	[ ! -e \$top/on-xfp1 ] || [ ! -e \$top/on-xfp2 ] || touch \$top/at-work
	until [ -e \$top/released ]; do sleep 0.2; done
	exec \$real \"\$@\""
	PATH=$PWD/bin:$PATH
	begin --target-size $(($(stat -c %s local/out.xfp) * 97 / 100))
	cluster kill slurmctld
	touch released
	wait $conversion || true
	cat out.xfp.work/log
	export XFP_MIN_COS_STRICT=0.99 XFP_MIN_COS_LAZY=0.98
	fails_with "launcher 'srun -Q -N1 -n1'"
}

@test "an allocation that ends" {
	stop_on_xfp2
	begin
	scontrol update JobId="$(squeue -h -o %A)" EndTime=now+1
	fails_with "did not finish"
}

# Without an allocation, whose end would end the steps, too. Each step has a node of its own.
@test "Ctrl-C leaves no remote stage" {
	stop_on_xfp2
	allocated=("${allocated[@]:5}")
	launcher="$launcher --exclusive"
	begin -j2
	kill -INT $conversion
	run ! wait $conversion
	wait_for nothing_runs
	grep -q "interrupted; finished work is kept. To resume" said
	[ ! -e out.xfp ]
	resumes
}

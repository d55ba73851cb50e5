#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# A bundle verified with --work: recorded in its work folder at once, and in the manifest by the next run.

load helpers

setup() {
	setup_folder
	make_model m
	printf 'MODEL = m\nOUT = out.xfp\ninclude $(shell xfp --pipelines)/convert.mk\n' >my.mk
}

verdicts() {
	query "SELECT run, coalesce(verify_status, '-'), verified IS NULL FROM run_summaries ORDER BY run" | paste -sd' '
}

member() { # EXPRESSION
	xfp status out.xfp --json | "$PYTHON" -c 'import json, sys
print(eval(sys.argv[1], {}, json.load(sys.stdin)["runs"][0]))' "$1"
}

# Flip a bit in the middle, in place.
damage() { # FILE
	"$PYTHON" - "$1" <<-'EOF'
	import os, sys
	with open(sys.argv[1], "r+b") as file:
	    at = os.path.getsize(sys.argv[1]) // 2
	    file.seek(at)
	    byte = file.read(1)[0]
	    file.seek(at)
	    file.write(bytes([byte ^ 1]))
	EOF
}

@test "make verify: the status shows the result at once, the manifest after the next run" {
	run -0 make -f my.mk
	[ "$(member verified)" = None ]
	run -0 make -f my.mk verify
	[ "$(grep -c '	verify	' out.xfp.work/events)" = 1 ]
	xfp status out.xfp >text
	grep -Eq '^state    finished ' text
	grep -Eqx 'verified 20[0-9-]{8}T[0-9:]{8}Z' text
	[ "$(member 'verified["status"], verified["message"], verified["sha256"], failures')" = \
		"(0, None, '$(sha out.xfp)', [])" ]
	[ "$(verdicts)" = "1|-|1 2|-|1" ]
	time=$(member 'verified["time"]')
	# a run that finds the bundle unchanged also counts as one with a verified bundle
	run -0 make -f my.mk
	[ "$(verdicts)" = "1|-|1 2|0|0 3|0|0" ]
	[ "$(query "SELECT verified FROM bundles WHERE run = 2")" = "$time" ]
	# a bundle that was written again is not marked as verified
	run -0 make -f my.mk MIN_COS_LAZY=0.9 LLOYD_ITERS=3
	[ "$(verdicts)" = "1|-|1 2|0|0 3|0|0 4|-|1" ]
	# a work folder elsewhere
	run -0 make -f my.mk verify WORK=else/where
	[ "$(grep -c '	verify	' else/where/events)" = 1 ]
	run ! grep -q '	verify	' out.xfp.work/events
}

@test "a bundle that is damaged, or misses a floor: recorded, and not a failure of the run" {
	converted m out.xfp
	good=$(sha out.xfp)
	run -4 xfp verify -q --work out.xfp.work --min-cos-strict 0.9999 out.xfp
	xfp status out.xfp >text
	grep -Eq '^verify failed: out.xfp: floors are not met: .* \(20.*Z, status 4\)$' text
	grep -Eq '^state    finished ' text
	run ! grep -q failures text
	damage out.xfp
	run -3 xfp verify -q --work out.xfp.work out.xfp
	[[ $output != *recorded* ]]
	[ "$(member 'state, failures, verified["status"], "damaged (1 fault)" in verified["message"], verified["sha256"]')" = \
		"('finished', [], 3, True, '$good')" ]
	# the next run repairs it, and reports no failures of its own
	run -0 xfp convert m -o out.xfp -q
	[ -z "$output" ]
	[ "$(sha out.xfp)" = "$good" ]
	[ "$(verdicts)" = "1|3|0 2|-|1" ]
	[ "$(member verified)" = None ]
	# nor failures of the previous bundle that are recorded while it runs
	replace_stage xfp-pack 'PATH="$top/bin:$PATH"
		xfp verify -q --work "$top/out.xfp.work" --min-cos-strict 0.9999 "$top/out.xfp"; exec "$real" "$@"'
	run -0 bin/xfp convert m -o out.xfp -q -j1 --lloyd-iters 3
	[ -z "$output" ]
	grep -q '	verify	failed	' out.xfp.work/events
	[ "$(verdicts)" = "1|3|0 2|4|0 3|-|1" ]
}

@test "nothing is recorded for files that the run did not write; the verdict is printed" {
	converted m out.xfp
	cp out.xfp copy.xfp
	mkdir empty
	cp out.xfp.work/events before
	run -0 --separate-stderr xfp verify -q --work out.xfp.work copy.xfp
	[ "$stderr" = "xfp verify: outcome not recorded: copy.xfp: not the file that the run of out.xfp.work wrote" ]
	run -0 --separate-stderr xfp verify -q --work empty out.xfp
	[ "$stderr" = "xfp verify: outcome not recorded: empty: not the work folder of a run that wrote a bundle" ]
	[ -z "$(ls -A empty)" ]
	damage copy.xfp
	run -3 xfp verify -q --work out.xfp.work copy.xfp
	[[ $output == *"outcome not recorded: copy.xfp: not the file"* ]]
	# a missing checkpoint says nothing about the bundle
	run -3 xfp verify -q --work out.xfp.work --source ./missing out.xfp
	[[ $output == *"outcome not recorded: missing: cannot be compared with"* ]]
	touch out.xfp
	run -0 xfp verify -q --work out.xfp.work out.xfp
	[[ $output == *"outcome not recorded: out.xfp: changed since the run of out.xfp.work wrote it"* ]]
	cmp before out.xfp.work/events
}

@test "a record that cannot be written is a failure, unless there is a worse one" {
	converted m out.xfp
	rm out.xfp.work/events
	mkdir out.xfp.work/events
	run -1 xfp verify -q --work out.xfp.work out.xfp
	[[ $output == "xfp verify: cannot record the outcome: out.xfp.work/events: cannot open: "* ]]
	run -4 xfp verify -q --work out.xfp.work --min-cos-strict 0.9999 out.xfp
	[[ $output == *"outcome not recorded: out.xfp.work/events: cannot open: "* ]]
}

@test "a later verification of an earlier bundle does not extend the duration of a killed run" {
	converted m out.xfp
	replace_stage xfp-lloyd-fit 'touch "$top/began"; until [ -e "$top/go" ]; do sleep 0.05; done; exit 1'
	bin/xfp convert m -o out.xfp -q -j1 --lloyd-iters 3 &
	until [ -e began ]; do sleep 0.05; done
	kill -9 $!
	wait $! || true
	touch go
	flock out.xfp.work/lock true # until make is gone, too
	before=$(member seconds)
	sleep 2
	xfp verify -q --work out.xfp.work out.xfp
	[ "$(member "state, verified['status'], seconds < $before + 1")" = "('interrupted', 0, True)" ]
}

@test "on a terminal the progress line is erased before faults are printed" {
	converted m out.xfp
	spawned() { # WORD ...: what a terminal is sent
		"$PYTHON" - "$@" <<-'EOF'
		import os, pty, sys
		status = pty.spawn(sys.argv[1:], lambda fd: os.read(fd, 65536))
		sys.exit(os.waitstatus_to_exitcode(status))
		EOF
	}
	run -4 spawned xfp verify --min-cos-strict 0.9999 out.xfp
	[[ $output == *$' %\r\e[Kxfp verify: unit '* ]]
	run ! grep -E '%xfp' <<<"$output"
	# another model is refused before anything is measured
	make_model other --seed 7
	run -4 spawned xfp verify --source other out.xfp
	[[ $output == *$'bytes   0 %\r\e[Kxfp verify: '* && $output == *"is not the checkpoint"* ]]
	damage out.xfp
	run -3 spawned xfp verify out.xfp
	[[ $output == *$'bytes   0 %\r\e[Kxfp verify: '* ]]
}

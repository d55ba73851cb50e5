#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# xfp status: during a run, after its end, after a kill. It reads and never writes.

load helpers

setup() {
	setup_folder
	unset XFP_WORK XFP_OUT
	by_default
}

# Print a member of the first run in the answer.
member() { # EXPRESSION ARGUMENT...
	xfp status --json "${@:2}" | "$PYTHON" -c 'import json, sys
run = json.load(sys.stdin)["runs"][0]
value = eval(sys.argv[1], {}, {"run": run, **run})
print(json.dumps(value) if isinstance(value, (list, dict)) else value)' "$1"
}

snapshot() {
	find out.xfp.work xfp-cache -type f -exec sha256sum {} + | sort
	find out.xfp.work xfp-cache -printf '%p %T@ %C@\n' | sort
}

# The survey of u000005 starts and blocks: its stage runs as long as the test needs.
stuck() { # COMMAND...: in the background; its number is in $pid
	replace_stage xfp-survey '
		[ "$1" = u000005 ] || exec "$real" "$@"
		PYTHONPATH='"'$srcdir/tests'"' PYTHONDONTWRITEBYTECODE=1 "$PYTHON" -c "import seal
open(\"events\", \"a\").write(seal.event(\"u000005\", \"survey\", \"started\", \"-\", 0, 0, \"\"))"
		exec sleep 600'
	"$@" &
	pid=$!
	until grep -q "^u000005	survey	started" out.xfp.work/events 2>/dev/null; do sleep 0.01; done
}

slow() { replace_stage xfp-pack 'sleep 0.3; exec "$real" "$@"'; }

@test "a running conversion: state, pid, units in flight; nothing is written" {
	make_model m
	stuck bin/xfp convert m -o out.xfp -q -j1
	[ "$(member in_flight out.xfp)" = \
		'[{"number": 5, "unit": "model.layers.0.self_attn.o_proj.weight", "stage": "survey", "share": 0.0}]' ]
	[ "$(member 'pid, phase, status, ended' out.xfp)" = "($pid, 'converting', None, None)" ]
	xfp status out.xfp >text
	grep -q "^state    running, pid $pid, converting, for 0:0" text
	grep -q "^output   $PWD/out.xfp$" text
	grep -q "^log      $PWD/out.xfp.work/log$" text
	grep -Eq "^weights  [0-9]+%, .* of .* weights, .*/s" text
	grep -Eq "^units    5 of 9 done, 0 of them from the cache$" text
	grep -Eq "^attention +3 of 4 " text
	grep -Eq "^routed_expert +0 of 3 " text
	grep -A1 "^in flight" text | grep -q "^  u000005 survey  *0\.0%  model.layers.0.self_attn.o_proj.weight$"
	[ "$(member '0 < weights_done < weights and rate > 0 and eta_seconds > 0' out.xfp)" = True ]
	kill -9 $pid
	wait $pid || true
	# the lock is held as long as a stage lives, and so is the state
	flock out.xfp.work/lock true
	[ "$(member 'state, pid, in_flight' out.xfp)" = "('interrupted', None, [])" ]
	snapshot >before
	xfp status out.xfp >text
	grep -q "^state    interrupted after .*, killed$" text
	[ "$(tail -n 2 text)" = "to resume
  xfp convert m -o out.xfp -q -j1" ]
	snapshot | diff before -
	# from elsewhere, with the folder; and it works
	mkdir 'else where'
	cd 'else where'
	run -0 xfp status "$OLDPWD/out.xfp"
	[ "${lines[-1]}" = "  cd $OLDPWD && xfp convert m -o out.xfp -q -j1" ]
	eval "${lines[-1]}"
	cd "$BATS_TEST_TMPDIR"
	[ "$(member 'state, units_done, status, resume' out.xfp)" = "('finished', 9, 0, 'xfp convert m -o out.xfp -q -j1')" ]
	[ "$(member 'units_cached, weights_done == weights' out.xfp)" = "(5, True)" ]
	run -0 xfp status out.xfp
	[[ $output != *"to resume"* ]]
}

@test "progress within a long unit is printed by status and by convert" {
	"$XFP_TEST_TOOLS/bench/make-weights" --dense 8192x1024:1 m >/dev/null
	OMP_NUM_THREADS=1 "$PYTHON" - <<-'EOF'
	import json, os, pty, subprocess, sys, time
	convert = ["xfp", "convert", "m", "-o", "out.xfp", "-j1", "--mode", "v2", "--fit", "optimal"]
	run = subprocess.Popen(convert, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
	inside, done, etas, began = [], [], [], time.monotonic()
	while run.poll() is None:
	    status = subprocess.run(["xfp", "status", "--json", "out.xfp"], stdout=subprocess.PIPE,
	                            stderr=subprocess.DEVNULL, check=False).stdout
	    state = json.loads(status)["runs"][0] if status else {}
	    if state.get("phase") == "converting":
	        done.append(state["weights_done"])
	        etas.append(state["eta_seconds"])
	        inside += [flight["share"] for flight in state["in_flight"] if flight["stage"] == "lloyd-fit"]
	    time.sleep(0.1)
	lines = run.stderr.read()
	assert run.returncode == 0, lines
	assert done == sorted(done), done
	fit = sorted(set(inside))
	print(f"{time.monotonic() - began:.1f} s: {fit}; {lines}", file=sys.stderr)
	assert len([share for share in fit if 0 < share < 1]) >= 2, fit
	# one unit, of which half must be known: no forecast before
	weights = state["weights"]
	early = [eta for eta, weight in zip(etas, done) if weight < weights / 2]
	assert early and not any(early), etas
	assert "ETA" not in lines.split("%", 1)[0], lines
	# convert prints the progress of the same unit in lines
	percents = [int(line.split()[1].rstrip("%,")) for line in lines.splitlines() if "% " not in line and "%," in line]
	assert len([percent for percent in percents if 20 < percent < 80]) >= 2, lines
	EOF
	# and on a terminal
	OMP_NUM_THREADS=1 "$PYTHON" - >typescript <<-'EOF'
	import os, pty
	pty.spawn(["xfp", "convert", "m", "-o", "again.xfp", "--cache", "other", "-j1", "--mode", "v2", "--fit", "optimal"],
	          lambda fd: os.read(fd, 65536))
	EOF
	[ "$(tr '\r' '\n' <typescript | grep -oE '[0-9]+% [0-9.]+ [kMG]? ?of' | sort -u | wc -l)" -ge 4 ]
	cmp out.xfp again.xfp
}

@test "the lock decides, not the process id" {
	make_model m
	xfp convert m -o out.xfp -q
	sed -i "s/state=finished/state=running/; s/pid=[0-9]*/pid=$$/" out.xfp.work/run # alive, but not ours
	[ "$(member 'state, pid' out.xfp)" = "('interrupted', None)" ]
	exec 9>>out.xfp.work/lock
	flock 9
	sed -i 's/pid=[0-9]*/pid=1/' out.xfp.work/run
	[ "$(member state out.xfp)" = running ]
	# a missing record
	rm out.xfp.work/run
	[ "$(member state out.xfp)" = running ]
	exec 9>&-
	[ "$(member 'state, units_done' out.xfp)" = "('prepared', 9)" ]
}

@test "failures, with their messages; --watch ends with the run's status" {
	make_model m
	run -4 xfp convert m -o out.xfp --bits 2 --min-cos-lazy 0.99 --on-miss fail --lm-head fp8 -k
	run -4 xfp status out.xfp --watch
	[[ $output == *"failed: 1 of 9 units, "*", 8 failed" ]]
	run -0 xfp status out.xfp
	[[ $output == *"state    failed after "*", status 4"* ]]
	[[ $output == *"8 of the 9 remaining units could not be converted"* ]]
	[[ $output == *"u000002 autoselect: unit model.layers.0.self_attn."*": no candidate meets the floor"* ]]
	[[ ${lines[-1]} == "  xfp convert m -o out.xfp --bits 2 --min-cos-lazy 0.99 --on-miss fail --lm-head fp8 -k" ]]
	[ "$(member 'len(failures), failures[0]["stage"], failures[0]["status"]' out.xfp)" = "(8, 'autoselect', 4)" ]
	# a run that repairs it has none
	xfp convert m -o out.xfp -q --bits 2
	[ "$(member 'state, failures, units_done' out.xfp)" = "('finished', [], 9)" ]
	# interrupted, and refused
	stuck bin/xfp convert m -o out.xfp -q -j1 --rehash --bits 3 --outlier-cap 0.03 2>/dev/null
	[ "$(member state out.xfp)" = running ]
	kill -TERM $pid
	wait $pid || true
	run -143 xfp status out.xfp --watch
	rm m/model.safetensors
	run -3 xfp convert m -o out.xfp -q
	[ "$(member 'state, status' out.xfp)" = "('refused', 3)" ]
}

@test "hits are counted separately, and do not affect the rate" {
	make_model m
	xfp convert m -o first.xfp -q
	xfp convert m -o second.xfp -q
	[ "$(member 'units_done, units_cached, weights_cached == weights, rate' second.xfp)" = "(9, 9, True, 0.0)" ]
	xfp convert m -o third.xfp -q --rehash
	[ "$(member 'units_cached, rate' third.xfp)" = "(9, 0.0)" ]
}

@test "selecting the run: OUT, its work folder, --work, the environment, the current folder" {
	run -3 xfp status
	[[ $output == *"no work folder (OUT.xfp.work) here"*"--work"* ]]
	make_model m
	xfp convert m -o a.xfp -q
	for how in "" a.xfp a.xfp.work a.xfp.work/ "--work a.xfp.work"; do
		[ "$(member output $how)" = "$PWD/a.xfp" ] || { echo "$how"; return 1; }
	done
	(cd a.xfp.work && [ "$(member output)" = "$BATS_TEST_TMPDIR/a.xfp" ])
	(cd m && [ "$(XFP_OUT=$OLDPWD/a.xfp member output)" = "$OLDPWD/a.xfp" ])
	(cd m && [ "$(XFP_WORK=$OLDPWD/a.xfp.work member output)" = "$OLDPWD/a.xfp" ])
	xfp convert m -o b.xfp -q --work elsewhere
	run -3 xfp status b.xfp
	[[ $output == *"work folder b.xfp.work does not exist"*"--work"* ]]
	[ "$(member output --work elsewhere)" = "$PWD/b.xfp" ]
	mv elsewhere b.xfp.work
	[ "$(xfp status | grep -c "^output ")" = 2 ]
	[ "$(xfp status --json | grep -c '"output"')" = 2 ]
	run -2 xfp status --watch
	[[ $output == *"2 conversions found, 0 of them running; name one"* ]]
	run -3 xfp status --work m
	[[ $output == *"m: not the work folder of a conversion"* ]]
	run -2 xfp status a.xfp b.xfp
	run -2 xfp status --work a.xfp.work a.xfp
	xfp prepare m -o c.xfp -q
	[ "$(member 'state, resume, units_done' c.xfp)" = "('prepared', 'xfp convert m -o c.xfp -q', 9)" ]
}

@test "--watch: a line per change on a pipe, an object each with --json, and the end" {
	make_model m
	slow
	bin/xfp convert m -o out.xfp -q -j1 &
	until [ -e out.xfp.work/run ]; do sleep 0.01; done
	xfp status --watch >lines &
	watch=$!
	xfp status --watch --json >objects
	wait $watch
	[ "$(tail -n 1 lines | cut -d, -f1)" = "finished: 9 of 9 units" ]
	[ "$(wc -l <lines)" -gt 3 ]
	[ -z "$(uniq -d lines)" ]
	"$PYTHON" - <<-'EOF'
	import json
	runs = [json.loads(line)["runs"] for line in open("objects")]
	assert all(len(run) == 1 for run in runs) and len(runs) > 3
	assert runs[-1][0]["state"] == "finished" and runs[0][0]["state"] == "running"
	done = [run[0]["units_done"] for run in runs]
	assert done == sorted(done), done
	EOF
	wait
}

@test "--watch on a terminal redraws in place and leaves the final state" {
	make_model m
	slow
	bin/xfp convert m -o out.xfp -q -j1 &
	until [ -e out.xfp.work/run ]; do sleep 0.01; done
	"$PYTHON" - >typescript <<-'EOF'
	import os, pty, sys
	status = pty.spawn(["xfp", "status", "--watch", "out.xfp"], lambda fd: os.read(fd, 65536))
	sys.exit(os.waitstatus_to_exitcode(status))
	EOF
	wait
	grep -q $'\e\[[0-9]*A\r\e\[J' typescript
	tr -d '\r' <typescript | grep -q "^units    9 of 9 done"
	tr -d '\r' <typescript | grep -q "state    running"
}

@test "a thousand units take milliseconds" {
	make_model m --layers 143 --num-experts 2
	xfp prepare m -o out.xfp -q
	PYTHONPATH=$srcdir/tests PYTHONDONTWRITEBYTECODE=1 "$PYTHON" - <<-'EOF'
	import seal
	stages = ["survey", "outlier-extract", "libfit", "autoselect", "pack"]
	with open("out.xfp.work/events", "a") as events:
	    for unit in range(1003):
	        for stage in stages:
	            for outcome in "started", "made":
	                events.write(seal.event(f"u{unit:06}", stage, outcome, "ab" * 16, 1000, 0, ""))
	        for stamp in "survey", "outliers", "library", "choice", "packed":
	            name = f"u{unit:06}-{stamp}"
	            open(f"out.xfp.work/{name}", "w").write(seal.stamp(name, "ab" * 16))
	EOF
	[ "$(member 'units, units_done, units_cached' out.xfp)" = "(1003, 1003, 0)" ]
	best=$("$PYTHON" - <<-'EOF'
	import resource, subprocess
	times = []
	for _ in range(5):
	    before = resource.getrusage(resource.RUSAGE_CHILDREN)
	    subprocess.run(["xfp", "status", "out.xfp"], stdout=subprocess.DEVNULL, check=True)
	    after = resource.getrusage(resource.RUSAGE_CHILDREN)
	    times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
	print(int(min(times) * 1000))
	EOF
	)
	echo "$best ms"
	[ "${XFP_TEST_SANITIZERS:-no}" = yes ] || [ "$best" -lt 50 ]
}

@test "a second conversion into the same work folder is refused, and leaves the first one's record unchanged" {
	make_model m
	stuck bin/xfp convert m -o out.xfp -q -j1
	[ "$(member 'state, pid' out.xfp)" = "('running', $pid)" ]
	cp out.xfp.work/run before
	run -1 xfp convert m -o out.xfp -q
	[[ $output == *"another conversion is using this folder"* ]]
	cmp before out.xfp.work/run
	[ "$(member 'state, pid, message' out.xfp)" = "('running', $pid, None)" ]
	kill -9 $pid
	wait $pid || true
}

@test "a stage that is killed: the unit, the signal, the remedy, at once and in the status" {
	local data=$XFP_DATADIR

	make_model m
	for stage in xfp-survey xfp-libfit xfp-autoselect xfp-pack; do
		export XFP_DATADIR=$data
		replace_stage "$stage" 'kill -9 $$'
		named=$stage
		# whose recipe has the fits of 5 and 6 bits, too
		[ "$stage" != xfp-autoselect ] || named="xfp-autoselect, or the fit that it requested,"
		run -1 bin/xfp convert m -o out.xfp -q --cache "cache-$stage"
		[[ ${lines[-1]} =~ ^"xfp convert: unit u00000"[0-9]" ("[a-z_.0-9]*"): $named was killed by a signal (Killed): if memory ran out, use fewer --jobs; see $PWD/out.xfp.work/log"$ ]] || {
			echo "$stage: $output"
			return 1
		}
		[ "xfp convert: $(member message out.xfp)" = "${lines[-1]}" ]
		rm -rf bin out.xfp.work
	done
	export XFP_DATADIR=$data
	replace_stage xfp-lloyd-fit 'kill -SEGV $$'
	run -1 bin/xfp convert m -o out.xfp -q --mode v2
	[[ ${lines[-1]} == *"xfp-lloyd-fit was killed by a signal (Segmentation fault"*"): run again; if it happens again, xfp or "* ]]
	rm -rf bin
	export XFP_DATADIR=$data
	replace_stage xfp-bundle 'kill -9 $$'
	run -1 bin/xfp convert m -o out.xfp -q
	[[ ${lines[-1]} == "xfp convert: xfp-bundle was killed by a signal (Killed): if memory ran out, "* ]]
}

@test "convert itself crashes: failed, with a remedy, and a rerun gives the bundle" {
	make_model m
	expected=$(converted m other.xfp --cache other)
	for signal in "BUS bus error" "SEGV segmentation fault"; do
		rm -rf bin share out.xfp.work xfp-cache
		export XFP_DATADIR=$XFP_TEST_BIN/../share/xfp
		ASAN_OPTIONS=handle_sigbus=0:handle_segv=0 stuck bin/xfp convert m -o out.xfp -q -j1 2>said
		kill "-${signal%% *}" $pid
		status=0
		wait $pid || status=$?
		[ $status = $((128 + $(kill -l "${signal%% *}"))) ]
		flock out.xfp.work/lock true
		[ "$(cat said)" = "xfp convert: ${signal#* }; run again, and report this if it happens again" ]
		[ "xfp convert: $(member message out.xfp)" = "$(cat said)" ]
		[ "$(member 'state, phase, pid, ended >= started' out.xfp)" = "('failed', None, None, True)" ]
		[ "$(member status out.xfp)" = $status ]
		run -$status xfp status out.xfp --watch
		[ "$(converted m out.xfp)" = "$expected" ]
		[ "$(member 'state, message' out.xfp)" = "('finished', None)" ]
		rm out.xfp
	done
}

@test "inspect refuses: the status has its message" {
	make_model m
	xfp convert m -o out.xfp -q
	truncate -s -1 m/model.safetensors
	run -3 xfp convert m -o out.xfp -q
	[[ $output == "xfp convert: "* ]]
	[ "$(member 'state, status, units' out.xfp)" = "('refused', 3, 0)" ]
	[ "$(member message out.xfp)" = "${output#xfp convert: }" ]
	[[ $(xfp status out.xfp) == *"${output#xfp convert: }"*"to resume"* ]]
	make_model other --layers 2
	run -2 xfp convert other -o out.xfp -q --override nothing=4
	[[ $(xfp status out.xfp) == "state    refused "*" status 2"*"/other"* ]]
	run ! grep -E '^units|^class|^to resume' <(xfp status out.xfp)
	# a new folder is removed
	for refused in "2 other --override nothing=4" "3 m" "4 other --target-size 1k"; do
		run "-${refused%% *}" xfp convert ${refused#* } -o new.xfp -q
		[ ! -e new.xfp.work ]
	done
}

# No file can be created then, not even for the state: the record of the run is overwritten in place.
@test "a disk that is full to the last byte: the status reports the failure and the reason" {
	needs_mounts
	make_model m
	mkdir disk
	replace_stage xfp-libfit 'cat /dev/zero >"$top/disk/fill"; exec "$real" "$@"'
	cat >full.sh <<-'EOT'
	bin/xfp convert m -o disk/out.xfp -q
	echo "status $?"
	xfp status --json disk/out.xfp
	EOT
	run on_small_disk 4M disk sh full.sh
	[[ $output == *"xfp convert: "*"status 1"* ]]
	[[ $output == *'"state": "failed"'*'"message": "'* ]]
}

@test "a missing fit is not reported as the reason of a later failure" {
	make_model m
	xfp convert m -o out.xfp -q --mode v2
	replace_stage xfp-bundle 'echo "xfp-bundle: no such luck" >&2
exit 1'
	run -1 --separate-stderr bin/xfp convert m -o out.xfp -q --mode v2a
	[ "$stderr" = "xfp-bundle: no such luck" ]
	xfp status out.xfp.work --json >state
	grep -q "no such luck" state
	run ! grep -q "not made yet" state
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# A conversion may be killed at any moment; run again, it resumes and gives the same bytes.

load helpers

setup() {
	setup_folder
	by_default
	make_model m --layers 2 --hidden 128 --intermediate 96 --num-experts 4
}

finished() { # of the units, and when they were
	for stamp in out.xfp.work/u*-packed; do
		[ -e "$stamp" ] || continue
		read -r key <"$stamp"
		[ -e "xfp-cache/artifacts/${key:0:2}/$key.h5" ] &&
			stat -c '%n %i %y' "xfp-cache/artifacts/${key:0:2}/$key.h5"
	done | sort
}

milliseconds() { echo $(($(date +%s%N) / 1000000)); }

@test "kill -9 at ten random moments: the same bundle, and no finished unit is converted again" {
	start=$(milliseconds)
	expected=$(converted m whole.xfp --cache whole)
	took=$(($(milliseconds) - start))
	for i in {0..9}; do
		moment=$(((took * i + RANDOM % took) / 10))
		xfp convert m -o out.xfp -q 2>>errors &
		pid=$!
		sleep "$(printf '%d.%03d' $((moment / 1000)) $((moment % 1000)))"
		kill -9 $pid 2>/dev/null || true
		wait $pid || true
		[ ! -e out.xfp ] || [ "$(sha out.xfp)" = "$expected" ]
		finished >before
		if ((i % 3 == 2)); then # start over now and then: later moments find less to do
			xfp convert m -o out.xfp -q
			[ "$(sha out.xfp)" = "$expected" ]
			finished >after
			[ -z "$(comm -23 before after)" ] || { diff before after; return 1; }
			rm -r out.xfp out.xfp.work xfp-cache
		fi
	done
	[ "$(converted m out.xfp)" = "$expected" ]
	# orphaned stages have ended, and their temporary files are removed
	[ -z "$(find . -name '.*.tmp')" ]
}

@test "killed, its stages end with it" {
	xfp convert m -o out.xfp -q -j2 &
	pid=$!
	until [ -s out.xfp.work/events ]; do sleep 0.01; done
	kill -9 $pid
	wait $pid || true
	# the lock is held as long as one of them lives
	flock -w 5 out.xfp.work/lock true
}

@test "interrupted: a message with the command that resumes, the signal's status, no bundle" {
	expected=$(converted m whole.xfp --cache whole)
	for signal in INT TERM; do
		rm -rf "out 1.xfp.work" xfp-cache
		# a background job ignores SIGINT, which exec inherits: restore it
		"$PYTHON" -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])' xfp convert m -o "out 1.xfp" -j1 2>errors &
		pid=$!
		until [ -s "out 1.xfp.work/events" ]; do sleep 0.01; done
		kill -s $signal $pid
		status=0
		wait $pid || status=$?
		[ $status = $((128 + $(kill -l $signal))) ]
		no_output "out 1.xfp"
		grep -q "To resume" errors
		command=$(tail -n1 errors)
		[ "$command" = "  xfp convert m -o 'out 1.xfp' -j1" ]
		finished_before=$(find "out 1.xfp.work" -name 'u*-packed' | wc -l)
		eval "$command" >stdout
		[ "$(sha "out 1.xfp")" = "$expected" ]
		rm "out 1.xfp"
	done
}

interrupted() { # COMMAND...: its messages, once it has begun
	"$PYTHON" -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])' "$@" >stdout 2>errors &
	local pid=$!
	until [ -s out.xfp.work/events ]; do sleep 0.01; done
	kill -s TERM $pid
	wait $pid || true
}

@test "interrupted: settings of the environment are in the command, those of a makefile stay there" {
	export XFP_MIN_COS_STRICT=0.95 XFP_MIN_COS_LAZY=0.9 XFP_MODEL="$PWD/m"
	interrupted xfp convert -o out.xfp -j1 --min-cos-lazy 0.97
	command=$(tail -n1 errors)
	[[ $command == "  xfp convert --min-cos-strict 0.95 --min-cos-lazy 0.9 $PWD/m"* ]]
	[[ $command == *" -o out.xfp -j1 --min-cos-lazy 0.97" ]]
	unset XFP_MIN_COS_STRICT XFP_MIN_COS_LAZY XFP_MODEL
	expected=$(converted m whole.xfp --cache whole --min-cos-strict 0.95 --min-cos-lazy 0.97)
	eval "$command -q"
	[ "$(sha out.xfp)" = "$expected" ]
	rm -r out.xfp out.xfp.work xfp-cache
	mkdir 'my rules'
	XFP_FAMILIES="$PWD/my rules" interrupted xfp convert m -o out.xfp -j1
	[ "$(tail -n1 errors)" = "  XFP_FAMILIES='$PWD/my rules' xfp convert m -o out.xfp -j1" ]
	eval "$(tail -n1 errors) -q"
	rm -r out.xfp out.xfp.work xfp-cache
	export XFP_RUN_BY=make XFP_MIN_COS_LAZY=0.9 # as convert.mk does
	interrupted xfp convert m -o out.xfp -j1
	grep -q "To resume, run make again" errors
	run ! grep -q "^ *xfp convert [^:]*$" errors
	grep -q "^export XFP_RUN_BY = make" "$(xfp --pipelines)/convert.mk"
}

@test "interrupted in a makefile's run: the command is make's own, as typed" {
	printf 'MODEL = m\nOUT = out.xfp\ninclude $(shell xfp --pipelines)/convert.mk\n' >'my model.mk'
	expected=$(converted m whole.xfp --cache whole --min-cos-lazy 0.95)
	interrupted make -f 'my model.mk' -j1 MIN_COS_LAZY=0.95
	command=$(grep -A1 "To resume:" errors | tail -n 1)
	[ "$command" = "  make -f 'my model.mk' -j1 MIN_COS_LAZY=0.95" ]
	[ "$(xfp status out.xfp | tail -n 1)" = "$command" ]
	eval "$command" >stdout
	[ "$(sha out.xfp)" = "$expected" ]
	# make -C: the command to type depends on the folder
	rm -r out.xfp out.xfp.work xfp-cache
	mkdir elsewhere
	cd elsewhere
	"$PYTHON" -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])' make -kC .. -f 'my model.mk' -j1 MIN_COS_LAZY=0.95 >stdout 2>errors &
	pid=$!
	until [ -s ../out.xfp.work/events ]; do sleep 0.01; done
	kill -s TERM $pid
	wait $pid || true
	# make forwards the signal; the message may come after make's own end
	until grep -q "To resume:" errors; do sleep 0.01; done
	flock ../out.xfp.work/lock true
	command=$(grep -A1 "To resume:" errors | tail -n 1)
	[ "$command" = "  cd $BATS_TEST_TMPDIR && make -k -f 'my model.mk' -j1 MIN_COS_LAZY=0.95" ]
	[ "$(xfp status ../out.xfp | tail -n 1)" = "$command" ]
	eval "$command" >stdout
	[ "$(sha "$BATS_TEST_TMPDIR/out.xfp")" = "$expected" ]
}

@test "a second signal ends it at once" {
	replace_stage xfp-survey 'trap "" INT TERM HUP; touch stuck; sleep 60'
	bin/xfp convert m -o out.xfp -j1 2>errors &
	pid=$!
	until [ -e out.xfp.work/stuck ]; do sleep 0.01; done
	kill -TERM $pid
	sleep 0.3
	kill -0 $pid # it waits for the stage
	start=$(milliseconds)
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	[ $status = 143 ]
	[ $(($(milliseconds) - start)) -lt 30000 ] # the stage takes 60 s
	[ "$(tail -n1 errors)" = "  xfp convert m -o out.xfp -j1" ]
	no_output out.xfp
	[ "$(xfp status --json out.xfp | grep -c '"status": 143')" = 1 ]
}

@test "interrupted while it waits for another conversion: at once" {
	mkdir out.xfp.work
	exec 9>out.xfp.work/lock
	flock 9
	xfp convert m -o out.xfp 2>errors 9>&- &
	pid=$!
	until grep -q waiting errors; do sleep 0.01; done
	start=$(milliseconds)
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	exec 9>&-
	[ $status = 143 ]
	[ $(($(milliseconds) - start)) -lt 30000 ] # otherwise it never ends
	grep -q "To resume" errors
}

@test "unpack, interrupted: no folder, or an existing one that is still empty; the signal's status" {
	make_model large --layers 4 --hidden 512 --intermediate 512 --vocab 16000
	xfp convert large -o large.xfp -q --min-cos-strict 0 --min-cos-lazy 0
	for signal in INT TERM HUP; do
		for folder in new empty; do
			status=0
			# a run that ended before the signal came prints nothing: try again
			for _ in {1..20}; do
				rm -rf $folder
				[ $folder = new ] || mkdir empty
				"$PYTHON" -c 'import os, signal, sys
for ignored in signal.SIGINT, signal.SIGHUP: # by a shell of a job in the background, by nohup
    signal.signal(ignored, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])' xfp unpack large.xfp -o $folder --dtype f32 2>errors &
				pid=$!
				until compgen -G "$folder/.*.tmp" >/dev/null; do kill -0 $pid 2>/dev/null || break; done
				kill -s $signal $pid 2>/dev/null || true
				status=0
				wait $pid || status=$?
				[ $status = 0 ] || break
			done
			[ $status = $((128 + $(kill -l $signal))) ] || { echo "$signal $folder: $status"; return 1; }
			grep -q "xfp unpack: interrupted; $folder is unchanged" errors
			if [ $folder = new ]; then [ ! -e new ]; else rmdir empty; fi
		done
	done
	xfp unpack large.xfp -o new
}

@test "a unit that was finished when the run was killed counts as cached" {
	xfp convert m -o out.xfp -q -j1 &
	pid=$!
	until [ -e out.xfp.work/u000004-packed ]; do sleep 0.01; done
	kill -9 $pid
	wait $pid || true
	xfp convert m -o out.xfp >stdout
	repacked=$(sed -n 's/^.* \([0-9]*\) packed now.*/\1/p' stdout)
	total=$(query "SELECT count(*) FROM latest_units")
	[ "$repacked" -le $((total - 4)) ]
	[ "$repacked" -gt 0 ]
	[ "$(query "SELECT count(*) FROM runs WHERE ended IS NULL")" = 1 ]
}

@test "torn, foreign and outdated stamps are harmless" {
	expected=$(converted m out.xfp)
	xfp convert m -o other.xfp -q --outlier-sigma 3 --bits 2,3
	cp other.xfp.work/u*-* out.xfp.work/
	: >out.xfp.work/u000003-packed
	echo "not a key, but as long as one is" >out.xfp.work/u000004-fit
	touch out.xfp.work/u000999-packed
	rm out.xfp
	[ "$(converted m out.xfp)" = "$expected" ]
	[ ! -e out.xfp.work/u000999-packed ]
}

@test "another model in the same work folder" {
	expected=$(converted m out.xfp)
	make_model n --seed 3 --layers 1
	other=$(converted n alone.xfp --cache alone)
	[ "$(converted n out.xfp)" = "$other" ]
	[ "$(converted m out.xfp)" = "$expected" ]
}

@test "a checkpoint that changes while it is converted: no bundle" {
	mv m/model.safetensors real
	"$PYTHON" - <<-'EOF'
	import os, shutil
	shutil.copy("real", "m/model.safetensors")
	EOF
	xfp convert m -o out.xfp -j1 2>errors &
	pid=$!
	until [ -e out.xfp.work/u000001-packed ]; do sleep 0.01; done
	touch m/model.safetensors
	status=0
	wait $pid || status=$?
	[ $status = 1 ]
	grep -q "model.safetensors.*changed while" errors
	no_output out.xfp
	xfp convert m -o out.xfp -q
}

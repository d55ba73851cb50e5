#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# A conversion that waits for other processes still obeys a signal within seconds.

load helpers

setup() {
	setup_folder
	make_model m
	xfp convert m -o first.xfp -q
	holder=
}

teardown() {
	[ -z "$holder" ] || kill "$holder" 2>/dev/null || true
}

# Another process locks FILE, or the manifest, for a minute.
hold() { # FILE
	flock "$1" sh -c 'touch held; exec sleep 60' 3>&- &
	holder=$!
	until [ -e held ]; do sleep 0.01; done
}
hold_manifest() {
	"$PYTHON" -c '
import pathlib, sqlite3, time
db = sqlite3.connect("xfp-cache/manifest.sqlite")
db.execute("BEGIN IMMEDIATE")
pathlib.Path("held").touch()
time.sleep(60)' 3>&- &
	holder=$!
	until [ -e held ]; do sleep 0.01; done
}

# When it begins to wait, send it SIGNAL; it ends by that, and prints how to resume.
ends_by() { # SIGNAL SECONDS OF WAITING
	local began=$SECONDS status=0

	env --default-signal="$1" xfp convert m -o out.xfp -q --min-cos-strict 0.97 2>said 3>&- &
	sleep "$2"
	kill -0 $! || { cat said; return 1; }
	kill -s "$1" $!
	wait $! || status=$?
	[ "$status" = $((128 + $(kill -l "$1"))) ] || { echo "status $status"; cat said; return 1; }
	[ $((SECONDS - began)) -le $(($2 + 30)) ] || { echo "after $((SECONDS - began)) s"; return 1; }
	grep -q "interrupted; finished work is kept. To resume" said
	no_output out.xfp
}

@test "for the lock of the cache" {
	hold xfp-cache/lock
	ends_by INT 1
	ends_by TERM 1
}

@test "for a process that repairs the manifest" {
	hold xfp-cache
	ends_by INT 1
	ends_by TERM 1
}

@test "for the manifest, before the first unit" {
	hold_manifest
	ends_by INT 1
	ends_by TERM 1
}

# The run terminates its stages, whichever process received the signal.
@test "for the manifest, while stages are running" {
	replace_stage xfp-pack 'touch "$top/at-work"; sleep 30 & wait; exec "$real" "$@"'
	PATH=$PWD/bin:$PATH env --default-signal=INT xfp convert m -o out.xfp -q --min-cos-strict 0.97 2>said 3>&- &
	pid=$!
	until [ -e at-work ]; do sleep 0.01; done
	hold_manifest
	# one more artifact to record
	echo "u000000	lloyd-fit	made	0.1	0	$(basename "$(artifacts | head -1)" .h5)	" >>out.xfp.work/events
	sleep 1.5
	began=$SECONDS
	kill -s INT $pid
	status=0
	wait $pid || status=$?
	[ "$status" = 130 ]
	[ $((SECONDS - began)) -le 20 ] # the stage takes 30 s
	no_output out.xfp
}

@test "for the lock of its own work folder" {
	mkdir out.xfp.work
	hold out.xfp.work/lock
	began=$SECONDS
	env --default-signal=TERM xfp convert m -o out.xfp -q 2>said 3>&- &
	sleep 1
	kill -s TERM $!
	status=0
	wait $! || status=$?
	[ "$status" = 143 ]
	[ $((SECONDS - began)) -le 30 ] # the lock is held for 60 s
}

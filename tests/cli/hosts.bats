#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Stages of one conversion on several hosts: their events, the locks that they share, their versions. A host is a UTS
# namespace with a name of its own.

load helpers

setup() {
	setup_folder
	make_model m
	unshare --uts --mount true 2>/dev/null || skip "this machine does not let tests set a host name"
}

# Stages of units run on node1 or node2: units with an odd number on node1. BEFORE is run before that, INSIDE there.
on_nodes() { # [BEFORE [INSIDE]]
	local stage

	replace_stage xfp-survey "${1:-}"'
		for unit; do :; done
		case $unit in *[13579]) node=node1 ;; *) node=node2 ;; esac
		export node top real="${real%/*}/${0##*/}"
		exec unshare --uts --mount sh -c '"'hostname \"\$node\"; ${2:-:}; exec \"\$real\" \"\$@\"'"' sh "$@"'
	for stage in outlier-extract libfit lloyd-fit pack; do
		cp bin/xfp-survey "bin/xfp-$stage"
	done
}

# JSON without what differs between two runs of the same conversion.
settled() { # MEMBER...
	"$PYTHON" -c '
import json, sys
def strip(value):
    if isinstance(value, dict):
        return {k: strip(v) for k, v in value.items() if "second" not in k and k not in sys.argv[1:]}
    if isinstance(value, list):
        return sorted(map(strip, value), key=lambda v: v.get("stage", "") if isinstance(v, dict) else "")
    return value
print(json.dumps(strip(json.load(sys.stdin)), indent=1, sort_keys=True))' "$@"
}

described() { # FOLDER
	xfp status --json "$1/out.xfp" | settled pid started ended work output log cache rate resume
	xfp report "$1/out.xfp" --json --cache "$1/cache" --work "$1/out.xfp.work" |
		settled path work cache output command longest
	query 'SELECT number, unit, mode, survey_key, packed_key, fitted, repacked FROM run_units ORDER BY number' \
		"$1/cache"
	query 'SELECT key, kind, bytes FROM artifacts ORDER BY key' "$1/cache"
}

@test "stages on three hosts: the same bundle, status, report and manifest as on one" {
	by_default
	mkdir one three
	xfp convert m -o one/out.xfp --cache one/cache -q
	on_nodes
	bin/xfp convert m -o three/out.xfp --cache three/cache -q
	cmp one/out.xfp three/out.xfp
	[ -s three/out.xfp.work/events ]
	[ "$(ls three/out.xfp.work/hosts | sed 's/-[0-9a-f]\{8\}$//' | tr '\n' ' ')" = "node1 node2 " ]
	[ ! -e one/out.xfp.work/hosts ]
	sort_events() { cut -f 1-3 "$@" | sort; }
	diff <(sort_events one/out.xfp.work/events) \
		<(sort_events three/out.xfp.work/events three/out.xfp.work/hosts/*/events)
	described one >want
	described three >got
	diff want got
	# the next run reads the events of all hosts, and begins with none
	rm three/out.xfp
	bin/xfp convert m -o three/out.xfp --cache three/cache -q
	cmp one/out.xfp three/out.xfp
	[ ! -e three/out.xfp.work/hosts ]
}

# Over NFS, each host numbers its devices by itself.
@test "another host may have the checkpoint on a device of another number" {
	mkdir empty
	remount='mount -t overlay -o "lowerdir=$top/m:$top/empty" none "$top/m"'
	number=$(top=$PWD unshare --mount sh -c "$remount && stat -c %d m/model.safetensors") ||
		skip "overlays cannot be mounted here"
	[ "$number" != "$(stat -c %d m/model.safetensors)" ]
	want=$(converted m here.xfp --cache here)
	on_nodes "" "$remount"
	bin/xfp convert m -o out.xfp -q
	[ "$(sha out.xfp)" = "$want" ]
}

@test "messages of a stage on another host name it" {
	on_nodes '[ "${0##*/}" != xfp-pack ] || { trap "" XFSZ; ulimit -f 8; }' # a full disk
	run -1 bin/xfp convert m -o out.xfp -j1
	[[ $output == *"xfp: pack: node"[12]": unit model."*": File too large"* ]]
	xfp status out.xfp | grep -q "node[12]: unit model"
}

@test "a host with another version is refused" {
	on_nodes '[ "${0##*/}" != xfp-survey ] || export XFP_RUN_VERSION=0.1'
	by_default
	run -1 bin/xfp convert m -o out.xfp -j1
	[[ $output == *"xfp: survey: node2: xfp "*" is installed here, but xfp 0.1 runs the conversion; install the same"* ]]
	no_output out.xfp
	bin/xfp convert m -o other.xfp -q --outlier-sigma 3 # does not survey
}

@test "steps that a killed conversion left are cancelled by the next one" {
	expected=$(converted m out.xfp)
	touch out.xfp.work/step-000000
	flock --no-fork --shared out.xfp.work/lock.steps \
		sh -c 'touch held; while [ -e out.xfp.work/step-000000 ]; do sleep 0.05; done' 3>&- &
	wait_until [ -e held ]
	[ "$(converted m out.xfp)" = "$expected" ]
}

@test "a stage that outlives its conversion on another host" {
	xfp convert m -o out.xfp -q
	for folder in out.xfp.work xfp-cache; do
		flock --no-fork --shared "$folder/lock.steps" sh -c 'touch held; exec sleep 600' 3>&- &
		holder=$!
		wait_until [ -e held ]
		rm held
		if [ $folder = xfp-cache ]; then
			run -1 xfp cache gc
			[[ $output == *"in use by stages of a conversion that has ended, or by another host"* ]]
			xfp convert m -o out.xfp --min-cos-strict 0.97 -q
		else
			run -1 xfp convert m -o out.xfp --min-cos-strict 0.97
			[[ $output == *"out.xfp.work: stages of an earlier conversion are using this folder; wait for them"* ]]
			xfp cache gc
		fi
		kill $holder
		wait $holder || true
	done
	# a killed conversion is not over before its stages are
	sed -i "s/state=[a-z]*/state=running/" out.xfp.work/run
	xfp status out.xfp | grep -q "^state *interrupted"
	flock --shared out.xfp.work/lock.steps xfp status out.xfp | grep -q "^state *running"
	xfp cache gc
	xfp convert m -o out.xfp -q
}

waits_for() { # FILE: a process waits for its lock
	grep -q -e "-> FLOCK .*:$(stat -c %i "$1") " /proc/locks
}

@test "each stage shares the locks of the work folder and of the cache" {
	[ -r /proc/locks ] || skip "this system does not list locks"
	xfp prepare m -o out.xfp -q
	export XFP_WORK=$PWD/out.xfp.work XFP_CACHE=$PWD/xfp-cache
	for folder in out.xfp.work xfp-cache; do
		exec 5>"$folder/lock.steps"
		flock 5
		xfp-outlier-extract u000001 3>&- 5>&- &
		wait_until waits_for "$folder/lock.steps"
		[ -z "$(artifacts)" ]
		exec 5>&-
		wait $!
		[ -n "$(artifacts)" ]
		rm -r xfp-cache/artifacts
	done
}

# A launcher that starts commands on node7, after SCRIPT there.
on_node7() { # [SCRIPT]
	printf '#!/bin/sh\ncd /\nexec unshare --uts --mount sh -c '"'"'hostname node7; %s; exec "$@"'"'"' sh "$@"\n' \
		"${1:-:}" >node7
	chmod +x node7
}

refused() { # STATUS: a launcher that must not make anything
	run "-$1" xfp convert m -o out.xfp --launcher "$PWD/node7"
	no_output out.xfp
	[ ! -e out.xfp.work/events ]
	[ -z "$(find out.xfp.work xfp-cache -name '.host-*')" ]
	[ -z "$(artifacts)" ]
}

@test "--launcher: a node that shares everything" {
	want=$(converted m here.xfp --cache here)
	on_node7
	[ "$(converted m out.xfp --launcher "$PWD/node7")" = "$want" ]
	ls out.xfp.work/hosts | grep -q '^node7-'
	[ -z "$(find out.xfp.work xfp-cache -name '.host-*')" ]
	[ "$(converted m env.xfp --cache env --launcher env)" = "$want" ]
	[ ! -e env.xfp.work/hosts ]
}

@test "--launcher: a node with another work folder or cache is refused" {
	mkdir xfp-cache
	on_node7 "mount -t tmpfs none $PWD/out.xfp.work"
	refused 1
	[[ $output == *"xfp convert: node node7: $PWD/out.xfp.work: is not the folder of the conversion's host; mount the same"* ]]
	on_node7 "mount -t tmpfs none $PWD/xfp-cache"
	refused 1
	[[ $output == *"xfp convert: node node7: $PWD/xfp-cache: is not the folder of the conversion's host; mount the same"* ]]
	on_node7 "mount -t tmpfs none $PWD"
	refused 1
}

@test "--launcher: a node that does not see locks or renames is refused" {
	# what the node writes into an overlay stays there; what it reads is shared, but locks are its own
	mkdir -p xfp-cache upper/{a,b,c,d}
	on_node7 "mount -t tmpfs none $PWD/upper && mkdir $PWD/upper/a $PWD/upper/b &&
		mount -t overlay -o lowerdir=$PWD/out.xfp.work,upperdir=$PWD/upper/a,workdir=$PWD/upper/b none $PWD/out.xfp.work"
	refused 1
	[[ $output == *"xfp convert: node node7: $PWD/out.xfp.work: locks of the conversion's host are not seen"* ]]
}

@test "--launcher: one that fails, or another version of xfp" {
	printf '#!/bin/sh\nexit 5\n' >node7
	chmod +x node7
	refused 1
	[[ $output == *"xfp convert: launcher '$PWD/node7': ended with status 5 before a node was checked; correct --launcher"* ]]
	rm node7
	refused 1
	[[ $output == *"ended with status 127 (not found) before a node was checked"* ]]
	printf '#!/bin/bash\nexec "${@/#[0-9].[0-9].[0-9]*/0.1}"\n' >node7
	chmod +x node7
	refused 1
	[[ $output == *"xfp convert: node $(hostname): xfp "*" is installed here, but xfp 0.1 runs the conversion; "* ]]
	printf '#!/bin/sh\n:\n' >node7 # runs nothing
	refused 1
	[[ $output == *"ended with status 0: "*": no node has answered there; the launcher must run the command"* ]]
}

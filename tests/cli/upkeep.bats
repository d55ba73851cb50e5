#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# xfp cache: contents are listed correctly, damage is found, the manifest is rebuilt, and gc removes only what is
# unused.

load helpers

setup() {
	setup_folder
	make_model m
	convert=
}

# End a conversion that a test has stopped.
teardown() {
	[ -z "$convert" ] || kill -CONT "$convert" 2>/dev/null || true
}

cache() { # COMMAND OPTION...
	xfp cache "$@" --cache xfp-cache
}

# A member of the JSON object on standard input, by a Python expression.
json() { # EXPRESSION
	"$PYTHON" -c 'import json, sys
o = json.load(sys.stdin)
print(eval(sys.argv[1]))' "$1"
}

key_of() { # KIND [ROLE]
	query "SELECT ${1}_key FROM latest_units WHERE role = '${2:-q}'"
}

file_of() { # KEY
	echo "xfp-cache/artifacts/${1:0:2}/$1.h5"
}

flip() { # FILE OFFSET
	"$PYTHON" - "$1" "$2" <<-'EOF'
	import sys
	with open(sys.argv[1], "r+b") as f:
	    f.seek(int(sys.argv[2])); byte = f.read(1)[0]
	    f.seek(int(sys.argv[2])); f.write(bytes([byte ^ 0x40]))
	EOF
}

# Two runs of one output, the second with another candidate for attention.
two_runs() {
	first=$(converted m out.xfp)
	second=$(converted m out.xfp --floor attention=0.5)
}

# ---- ls --------------------------------------------------------------------------------------------

@test "ls lists every artifact with its size, and says which are current" {
	two_runs
	cache ls --json >list
	[ "$(json 'o["manifest"]' <list)" = sound ]
	json '"\n".join(sorted(a["key"] for a in o["artifacts"]))' <list | diff - <(artifacts | sed 's/.*\///; s/\.h5//' | sort)
	[ "$(json 'o["bytes"]' <list)" -eq "$(artifacts | xargs stat -c %s | awk '{ s += $1 } END { print s }')" ]
	json '"\n".join("%s %d" % (a["key"], a["bytes"]) for a in o["artifacts"])' <list | sort |
		diff - <(query "SELECT key || ' ' || bytes FROM artifacts ORDER BY key")
	# choice and packing of the first run are obsolete where attention was chosen again
	[ "$(json 'o["current"]' <list)" -eq $((7 * 3 + 8)) ]
	[ "$(json 'sorted(set(a["kind"] for a in o["artifacts"] if not a["current"]))' <list)" = "['choice', 'packed']" ]
	[ "$(json 'sorted(set(str(a["runs"]) for a in o["artifacts"]))' <list)" = "['[1, 2]', '[1]', '[2]']" ]
	COLUMNS=200 cache ls >text
	[ "$(head -n -1 text | tail -n +2 | wc -l)" -eq "$(artifacts | wc -l)" ]
	[[ $(tail -n1 text) == "$(artifacts | wc -l) artifacts, "*"; 29 current (*), "* ]]
}

@test "ls selects and sorts" {
	converted m out.xfp
	[ "$(cache ls --kind fit --json | json 'set(a["kind"] for a in o["artifacts"])')" = "{'fit'}" ]
	[ "$(cache ls --kind fit --json | json 'o["count"]')" -eq 7 ]
	[ "$(cache ls --unit '*q_proj*' --json | json 'o["count"]')" -eq 4 ]
	[ "$(cache ls --unit 'no such' --json | json 'o["artifacts"]')" = "[]" ]
	for order in unit key kind size made; do
		for way in "" --reverse; do
			# shellcheck disable=SC2086
			cache ls --sort $order $way --json >list
			[ "$(json 'o["count"]' <list)" -eq 29 ]
			case $order in
			unit) json '[a["unit"] for a in o["artifacts"]]' <list ;;
			key) json '[a["key"] for a in o["artifacts"]]' <list ;;
			kind) json '[["outliers", "fit", "choice", "packed"].index(a["kind"]) for a in o["artifacts"]]' <list ;;
			size) json '[-a["bytes"] for a in o["artifacts"]]' <list ;;
			made) json '[-int("".join(c for c in a["made"] if c.isdigit())) for a in o["artifacts"]]' <list ;;
			esac >values
			"$PYTHON" -c 'import sys
values = eval(open("values").read())
assert values == sorted(values, reverse=bool(sys.argv[1])), values' "$way" || { echo "$order $way"; return 1; }
		done
	done
	run -2 cache ls --kind fits
	run -2 cache ls --sort age
	run -2 cache ls one two
}

@test "ls KEY prints everything about an artifact of each kind" {
	converted m out.xfp
	for kind in outliers fit choice packed; do
		key=$(key_of $kind)
		cache ls "${key:0:10}" >text
		grep -qx "key       $key" text
		grep -qx "kind      $kind" text
		grep -q '^current   yes$' text
		grep -q "^run       1 of .*/out.xfp$" text
		cache ls "$key" --json >object
		[ "$(json 'o["kind"]' <object)" = $kind ]
		[ "$(json 'o["key_text"].split("\n")[0]' <object)" = "kind $kind" ]
		[ "$(json 'o["runs"][0]["bundle"]' <object)" = "$(sha out.xfp)" ]
		case $kind in
		outliers) [ "$(json 'o["into"]' <object)" = "['$(key_of fit)']" ] ;;
		fit)
			[ "$(json 'o["from"]' <object)" = "['$(key_of outliers)']" ]
			[ "$(json 'sorted(o["into"])' <object)" = "$("$PYTHON" -c 'import sys
print(sorted(sys.argv[1:]))' "$(key_of choice)" "$(key_of packed)")" ]
			[ "$(json '[c["k"] for c in o["holds"]]' <object)" = "[2, 3, 4]" ]
			;;
		choice) [ "$(json 'o["holds"][0]["fit_key"]' <object)" = "$(key_of fit)" ] ;;
		packed) [ "$(json 'o["holds"][0]["bytes"]' <object)" = "$(query "SELECT bytes FROM latest_units WHERE role = 'q'")" ] ;;
		esac || { cat object; return 1; }
	done
	run -1 cache ls 0123456789abcdef0123456789abcdef
	run -2 cache ls xyz
	# --keys prints for all what ls KEY prints for one
	cache ls --keys | grep -qx "    outliers $(key_of outliers)"
}

@test "an artifact that is not in the manifest is listed, and described from its file" {
	converted m out.xfp
	key=$(key_of fit)
	cache ls "$key" --json | json 'o["holds"]' >before
	"$PYTHON" -c 'import sqlite3, sys
db = sqlite3.connect("xfp-cache/manifest.sqlite"); db.execute("PRAGMA foreign_keys = ON")
db.execute("DELETE FROM artifacts WHERE key = ?", sys.argv[1:]); db.commit()' "$key"
	[ "$(cache ls --json | json '[a["known"] for a in o["artifacts"] if a["key"] == "'"$key"'"]')" = "[False]" ]
	cache ls "$key" --json | json 'o["holds"]' | diff - before
	# and without a manifest
	rm xfp-cache/manifest.sqlite
	run -0 --separate-stderr cache ls
	[[ $stderr == *"no manifest"*"xfp cache rebuild"* ]]
	[[ ${lines[-1]} == "29 artifacts"* ]]
	cache ls "$key" --json 2>/dev/null | json 'o["holds"]' | diff - before
	[ ! -e xfp-cache/manifest.sqlite ] # looking makes none
}

@test "a folder that is not a cache: status 1, and nothing is created there" {
	mkdir empty
	for command in ls check rebuild gc stats; do
		run -1 xfp cache $command --cache none
		[ "$output" = "xfp cache $command: none: no such cache; name one with --cache" ]
		run -1 xfp cache $command --cache empty
		run -1 xfp cache $command --cache m/config.json
	done
	[ ! -e none ]
	[ -z "$(ls -A empty)" ]
	run -2 xfp cache
	run -2 xfp cache list
	run -2 xfp cache rebuild --force
	for command in ls check rebuild gc stats; do
		[[ $(xfp cache $command --help) == "usage: xfp cache $command "* ]]
		xfp cache --help | grep -qE "^(usage:|   or:) xfp cache $command "
	done
}

# ---- check -----------------------------------------------------------------------------------------

@test "check finds every kind of damage, names the remedy, and --remove applies it" {
	expected=$(converted m out.xfp)
	cache check
	cache check --read-data
	for harm in header envelope truncated empty data; do
		key=$(key_of packed)
		file=$(file_of "$key")
		case $harm in
		header) flip "$file" 1 ;;
		envelope) flip "$file" 100 ;;
		truncated) truncate -s -1 "$file" ;;
		empty) : >"$file" ;;
		data) flip "$file" 4000 ;;
		esac
		data=()
		if [ $harm = data ]; then
			cache check # only reading finds that
			data=(--read-data)
		fi
		run -3 cache check "${data[@]}"
		[[ $output == *"$file: damaged artifact"*"xfp cache check"*" --remove"* ]] || { echo "$harm: $output"; return 1; }
		cache check "${data[@]}" --json >object && return 1
		[ "$(json '[(f["what"], f["key"], f["removed"]) for f in o["findings"]]' <object)" = "[('damaged', '$key', False)]" ]
		[ -e "$file" ]
		run -0 cache check "${data[@]}" --remove
		[ ! -e "$file" ]
		[ "$(query "SELECT count(*) FROM artifacts WHERE key = '$key'")" = 0 ]
		run -0 cache check --read-data
		rm out.xfp
		[ "$(converted m out.xfp)" = "$expected" ]
	done
}

@test "check detects an artifact under a wrong name" {
	converted m out.xfp
	cp "$(file_of "$(key_of fit)")" "$(file_of "$(key_of fit v)")"
	run -3 cache check --read-data
	[[ $output == *"made for key $(key_of fit)"* ]]
}

@test "check distinguishes harmless findings from damage: status 0" {
	converted m out.xfp
	gone=$(key_of packed)
	rm "$(file_of "$gone")"
	touch xfp-cache/artifacts/00-notes xfp-cache/notes xfp-cache/manifest.sqlite.old-3
	"$PYTHON" -c 'import sqlite3, sys
db = sqlite3.connect("xfp-cache/manifest.sqlite")
db.execute("DELETE FROM choices WHERE key = ?", sys.argv[1:])
db.execute("DELETE FROM inputs WHERE key = ?", sys.argv[1:])
db.execute("DELETE FROM artifacts WHERE key = ?", sys.argv[1:]); db.commit()' "$(key_of choice)"
	cache check --json >object
	[ "$(json 'sorted((f["what"], f["key"]) for f in o["findings"] if f["key"])' <object)" = \
		"[('gone', '$gone'), ('not in the manifest', '$(key_of choice)')]" ]
	[ "$(json 'sorted(f["what"] for f in o["findings"] if not f["key"])' <object)" = \
		"['leftover', 'unknown file', 'unknown file']" ]
	cache rebuild
	[ "$(cache check --json | json '[f["what"] for f in o["findings"] if f["key"]]')" = "[]" ]
}

@test "check reads a part: n/t in turn reads everything once, x% that share" {
	converted m out.xfp
	total=$(artifacts | wc -l)
	sum=0
	for n in 1 2 3; do
		sum=$((sum + $(cache check --read-data-subset $n/3 --json | json 'o["read"]')))
	done
	[ $sum -eq "$total" ]
	[ "$(cache check --read-data-subset 100% --json | json 'o["read"]')" -eq "$total" ]
	[ "$(cache check --read-data-subset 50% --json | json 'o["read"]')" -eq $(((total + 1) / 2)) ]
	[ "$(cache check --read-data-subset 0.001% --json | json 'o["read"]')" -eq 1 ]
	[ "$(cache check --json | json 'o["read"]')" -eq 0 ]
	# the damage is in one part of three
	flip "$(file_of "$(key_of fit)")" 4000
	found=0
	for n in 1 2 3; do
		cache check --read-data-subset $n/3 >/dev/null || found=$((found + 1))
	done
	[ $found -eq 1 ]
	for bad in 0/3 4/3 3 5 x% 101% 0% -1/3 1/3x %; do
		run -2 cache check --read-data-subset "$bad"
	done
}

@test "check finds a damaged manifest, and rebuild repairs it" {
	converted m out.xfp
	"$PYTHON" - <<-'EOF'
	with open("xfp-cache/manifest.sqlite", "r+b") as f:
	    f.seek(3 * 4096); f.write(b"\xa5" * 4096)
	EOF
	run -3 cache check
	[[ $output == *"xfp-cache/manifest.sqlite: "*"xfp cache rebuild"* ]]
	run -3 cache check --json
	cache rebuild
	run -0 cache check --read-data
	echo "this is no database" >xfp-cache/manifest.sqlite
	run -3 cache check
	run -0 cache rebuild
	run -0 cache check
}

@test "a read-only cache is listed, checked and summed up; commands that would write report it" {
	needs_mounts
	converted m out.xfp
	flip "$(file_of "$(key_of fit)")" 4000
	[ "$(read_only xfp-cache xfp cache ls --json | json 'o["count"]')" -eq 29 ]
	read_only xfp-cache xfp cache stats
	read_only xfp-cache xfp cache gc --dry-run
	read_only xfp-cache xfp cache check
	run -3 read_only xfp-cache xfp cache check --read-data
	[[ $output == *"damaged artifact"* ]]
	for command in "check --read-data --remove" "rebuild" "gc"; do
		# shellcheck disable=SC2086
		run -1 read_only xfp-cache xfp cache $command
		[[ $output == *"read-only"* ]]
	done
}

# ---- rebuild ---------------------------------------------------------------------------------------

@test "rebuild: the same manifest, with runs and sources, and nothing is recomputed" {
	two_runs
	dump() {
		"$PYTHON" -c 'import sqlite3
db = sqlite3.connect("xfp-cache/manifest.sqlite")
for (t,) in db.execute("SELECT name FROM sqlite_master WHERE type = ? ORDER BY name", ("table",)).fetchall():
    for row in sorted(map(repr, db.execute("SELECT * FROM \"%s\"" % t))): print(t, row)'
	}
	dump >before
	cache rebuild --json >object
	[ "$(json 'o["artifacts"], o["runs"], o["source_files"], o["left_out"], o["lost"], o["aside"]' <object)" = \
		"(37, 2, 1, 0, None, None)" ]
	dump | diff before -
	# a lost manifest is rebuilt, except for data that only it had
	rm xfp-cache/manifest.sqlite
	cache rebuild >text
	[ "$(query "SELECT count(*) FROM artifacts")" = 37 ]
	[ "$(query "SELECT count(*) FROM runs")" = 0 ]
	grep -q "source files" text
	rm out.xfp
	[ "$(converted m out.xfp --floor attention=0.5)" = "$second" ]
	[ "$(query "SELECT sum(fitted) + sum(repacked) FROM run_units")" = 0 ]
	[ -z "$(find xfp-cache -name '.*.tmp*')" ]
}

@test "rebuild and gc do not disturb a conversion, and name it" {
	"$XFP_TEST_TOOLS/make-checkpoint" --layers 3 --hidden 512 --intermediate 256 --num-experts 4 big
	xfp convert big -o big.xfp -q --cache xfp-cache 3>&- & convert=$!
	# not before stages run: readers must wait while a manifest is made
	for _ in $(seq 3000); do
		[ ! -s big.xfp.work/events ] || break
		sleep .01
	done
	kill -STOP $convert
	for command in gc rebuild; do
		run -1 cache $command
		[[ $output == *"in use by xfp convert -o "*"/big.xfp (process $convert)"* ]] || { echo "$output"; return 1; }
	done
	run -0 cache ls
	run -0 cache check
	run -0 cache stats
	run -0 cache gc --dry-run
	kill -CONT $convert
	wait $convert
	sum=$(sha big.xfp)
	cache gc
	cache rebuild
	rm big.xfp
	[ "$(converted big big.xfp --cache xfp-cache)" = "$sum" ]
	[ "$(query "SELECT sum(fitted) + sum(repacked) FROM run_units WHERE run = 2")" = 0 ]
}

@test "a conversion waits for an exclusive holder of the cache" {
	expected=$(converted m out.xfp)
	rm out.xfp
	flock xfp-cache/lock sh -c ': >locked; sleep 1; : >over' 3>&- &
	for _ in $(seq 500); do
		[ ! -e locked ] || break
		sleep .01
	done
	[ "$(converted m out.xfp)" = "$expected" ]
	[ -e over ]
	wait
}

# ---- gc --------------------------------------------------------------------------------------------

@test "gc removes what the last run does not use, and nothing must be recomputed" {
	two_runs
	before=$(artifacts | wc -l)
	cache gc --dry-run --json >plan
	[ "$(artifacts | wc -l)" -eq "$before" ]
	[ "$(json 'len(o["removed"]), o["artifacts"]["count"], o["dry_run"]' <plan)" = "(8, 8, True)" ]
	cache gc --json >done
	[ "$(json 'sorted(o["removed"])' <done)" = "$(json 'sorted(o["removed"])' <plan)" ]
	[ "$(json 'o["freed"]' <done)" = "$(json 'o["freed"]' <plan)" ]
	[ "$(artifacts | wc -l)" -eq $((before - 8)) ]
	[ "$(query "SELECT count(*) FROM artifacts")" = $((before - 8)) ]
	run -0 cache check --read-data
	rm out.xfp
	[ "$(converted m out.xfp --floor attention=0.5)" = "$second" ]
	[ "$(query "SELECT sum(fitted) + sum(repacked) FROM run_units WHERE run = 3")" = 0 ]
	# a dry run lists 20 files at most
	rm out.xfp
	count=$(artifacts | wc -l)
	[ "$count" -gt 20 ]
	cache gc --keep-runs 0 --dry-run >text
	[ "$(grep -c '^would be removed: ' text)" -eq 20 ]
	grep -qx "and $((count - 20)) more artifacts; --json has the keys of all" text
	# removed artifacts are made again when they are needed
	[ "$(converted m out.xfp)" = "$first" ]
}

@test "gc and --drop-cache of another output keep the surveys and scales that a goal was solved with" {
	by_default
	make_text_model 1
	goal="--mode v2c --lm-head keep --format embedding=keep --target-bpw 32"
	for options in "$goal" "$goal --calibrate --calibrate-tokens 4096"; do
		rm -rf out.xfp* xfp-cache
		xfp convert m -o out.xfp -q $options
		count=$(query "SELECT count(*) FROM artifacts WHERE kind IN ('survey', 'scales')")
		[ "$count" = $([ "$options" = "$goal" ] && echo 7 || echo 14) ]
		cache gc >/dev/null
		[ "$(query "SELECT count(*) FROM artifacts WHERE kind IN ('survey', 'scales')")" = "$count" ]
		xfp convert m -o other.xfp -q $options --drop-cache
		[ "$(query "SELECT count(*) FROM artifacts WHERE kind IN ('survey', 'scales')")" = "$count" ]
		rm -r out.xfp other.xfp*
		xfp convert m -o out.xfp $options --check-survey 1 >said 2>&1
		grep -q "^xfp-survey: unit .*: the survey is right$" said
		cache gc --keep-runs 0 >/dev/null
		[ "$(query "SELECT count(*) FROM artifacts")" = 0 ]
	done
}

# Artifacts larger than what the manifest needs to be written.
larger_runs() {
	rm -r m
	make_model m --hidden 256 --intermediate 128
	two_runs
}

gc_on_full_disk() { # COMMAND...: that runs gc on one
	before=$(artifacts | wc -l)
	"$@" >done
	[ "$(json 'len(o["removed"])' <done)" = 8 ]
	[ "$(artifacts | wc -l)" -eq $((before - 8)) ]
	[ "$(query "SELECT count(*) FROM artifacts")" = $((before - 8)) ]
	run -0 cache check --read-data
	rm out.xfp
	[ "$(converted m out.xfp --floor attention=0.5)" = "$second" ]
	[ "$(query "SELECT sum(fitted) + sum(repacked) FROM run_units WHERE run = 3")" = 0 ]
}

@test "gc on a disk without a free byte removes artifacts, then writes the manifest" {
	larger_runs
	# sanitizers must be loaded first
	export FULL_DISK=$PWD/xfp-cache ASAN_OPTIONS=verify_asan_link_order=0
	LD_PRELOAD=$XFP_TEST_TOOLS/full_disk.so run -1 xfp cache rebuild --cache "$FULL_DISK"
	[[ $output == *"free some"* ]]
	gc_on_full_disk env LD_PRELOAD="$XFP_TEST_TOOLS/full_disk.so" xfp cache gc --cache "$FULL_DISK" --json
}

@test "gc on a real file system without a free byte" {
	needs_mounts
	larger_runs
	mkdir disk
	gc_on_full_disk on_small_disk 16m disk sh -c 'cp -r xfp-cache disk/cache
		cat /dev/zero >disk/fill 2>fill
		grep -q "No space left" fill || exit 9
		xfp cache gc --cache disk/cache --json || exit
		rm -r xfp-cache
		cp -r disk/cache xfp-cache'
}

@test "gc that cannot write the manifest reports the freed bytes; the next one removes the rows" {
	needs_strace
	two_runs
	before=$(artifacts | wc -l)
	run -1 strace -f -qq -o trace -e inject=pwrite64:error=ENOSPC xfp cache gc --cache xfp-cache
	[[ $output == *"xfp cache gc: 8 artifacts were removed, and the manifest still lists them: "*"free some space and run again"* ]]
	[ "$(artifacts | wc -l)" -eq $((before - 8)) ]
	[ "$(query "SELECT count(*) FROM artifacts")" = "$before" ]
	# which are misses in the meantime
	cp -r xfp-cache other
	[ "$(converted m other.xfp --cache other)" = "$first" ]
	cache gc --json >done
	[ "$(json 'len(o["removed"]), o["rows"]' <done)" = "(0, 8)" ]
	[ "$(query "SELECT count(*) FROM artifacts")" = $((before - 8)) ]
	run -0 cache check --read-data
}

@test "gc keeps nothing for a deleted output, and reports it; -n only reports" {
	make_model m
	xfp convert m -o one.xfp -q
	make_model m2 --seed 7
	xfp convert m2 -o two.xfp -q
	total=$(artifacts | wc -l)
	[ "$(cache gc -n --json | json 'o["removed"], o["gone"]')" = "([], [])" ]
	mkdir away
	mv two.xfp away
	cache gc -n >text
	grep -qx "output deleted, nothing is kept for it: $PWD/two.xfp" text
	[ "$(artifacts | wc -l)" = "$total" ]
	[ "$(cache gc --json | json 'len(o["removed"]) > 8, o["gone"]')" = "(True, ['$PWD/two.xfp'])" ]
	[ "$(artifacts | wc -l)" -lt "$total" ]
	before=$(artifacts | wc -l)
	# the first one lost nothing, and a missing folder may reappear
	xfp convert m -o one.xfp | grep -q "is up to date"
	xfp convert m2 -o away/two.xfp -q --cache xfp-cache
	mv away elsewhere
	[ "$(cache gc --json | json 'o["removed"], o["gone"]')" = "([], [])" ]
	[ "$(artifacts | wc -l)" -gt "$before" ]
	# interrupted, it has no output yet
	rm one.xfp
	"$PYTHON" -c 'import sqlite3
db = sqlite3.connect("xfp-cache/manifest.sqlite")
db.execute("UPDATE runs SET status = NULL, ended = NULL"); db.commit()'
	[ "$(cache gc --json | json 'o["removed"], o["gone"]')" = "([], [])" ]
}

@test "gc --keep-runs and --older-than" {
	two_runs
	[ "$(cache gc --keep-runs 2 --json | json 'o["removed"]')" = "[]" ]
	[ "$(cache gc --older-than 1 --json | json 'o["removed"], o["stays"]["young"]["count"]')" = "([], 8)" ]
	artifacts | xargs touch -d '3 days ago'
	"$PYTHON" -c 'import sqlite3
db = sqlite3.connect("xfp-cache/manifest.sqlite")
db.execute("UPDATE runs SET started = \"2020-01-01T00:00:00Z\" WHERE run = 1"); db.commit()'
	[ "$(cache gc --older-than 4 --json | json 'len(o["removed"])')" -eq 0 ]
	[ "$(cache gc --older-than 2 --json | json 'len(o["removed"])')" -eq 8 ]
	cache gc --keep-runs 0
	[ -z "$(artifacts)" ]
	rm out.xfp
	[ "$(converted m out.xfp)" = "$first" ]
}

@test "gc --max-size: no more than needed; artifacts that must stay are reported, with status 4" {
	two_runs
	size() { cache stats --json | json 'o["all"]["bytes"] + o["other_bytes"]'; }
	run -0 cache gc --max-size 1G
	[ "$(artifacts | wc -l)" -eq 37 ]
	run -0 cache gc --max-size $(($(size) - 1))
	[ "$(artifacts | wc -l)" -eq 36 ]
	run -4 cache gc --max-size 1K
	[[ $output == *"--max-size"* ]]
	[ "$(artifacts | wc -l)" -eq 29 ]
	run -2 cache gc --max-size 0
	run -2 cache gc --max-size 5X
	run -2 cache gc --keep-runs x
	run -2 cache gc --older-than 0
}

@test "gc keeps artifacts of an interrupted run" {
	converted m out.xfp
	# a run that was killed before the manifest recorded anything
	make_model n --seed 7
	converted n n.xfp
	"$PYTHON" -c 'import sqlite3
db = sqlite3.connect("xfp-cache/manifest.sqlite"); db.execute("PRAGMA foreign_keys = ON")
db.execute("DELETE FROM run_units WHERE run = 2"); db.execute("DELETE FROM bundles WHERE run = 2")
db.execute("UPDATE runs SET ended = NULL, status = NULL WHERE run = 2"); db.commit()'
	[ "$(cache gc --json | json 'o["removed"], o["stays"]["unfinished"]["count"]')" = "([], 29)" ]
	rm n.xfp
	converted n n.xfp
	[ "$(query "SELECT sum(fitted) + sum(repacked) FROM run_units WHERE run = 3")" = 0 ]
}

@test "gc keeps files that xfp did not create, and names them; leftovers of dead processes are removed" {
	converted m out.xfp
	echo mine >xfp-cache/notes
	echo mine >xfp-cache/artifacts/00-notes
	mkdir -p xfp-cache/artifacts/00
	echo mine >xfp-cache/artifacts/00/notes.h5
	echo old >xfp-cache/manifest.sqlite.old-1
	echo half >xfp-cache/artifacts/00/.00.h5.999999999-00000001-0.tmp
	touch -d '3 days ago' xfp-cache/artifacts/00/.00.h5.999999999-00000001-0.tmp
	cache gc >text
	[ "$(grep -c 'not made by xfp' text)" -eq 3 ]
	[ -e xfp-cache/notes ]
	[ -e xfp-cache/artifacts/00-notes ]
	[ -e xfp-cache/artifacts/00/notes.h5 ]
	[ ! -e xfp-cache/manifest.sqlite.old-1 ] && [ -z "$(find xfp-cache -name '*.tmp')" ]
}

@test "gc without a manifest removes nothing: it cannot know what is in use" {
	converted m out.xfp
	rm xfp-cache/manifest.sqlite
	run -1 cache gc
	[[ $output == *"xfp cache rebuild"* ]]
	cache rebuild
	[ "$(cache gc --json | json 'o["removed"], o["stays"]["unrecorded"]["count"]')" = "([], 29)" ]
}

# ---- stats -----------------------------------------------------------------------------------------

@test "stats: counts and bytes are those of the files, hits and costs those of the runs" {
	two_runs
	cache stats --json >object
	for kind in outliers fit choice packed; do
		[ "$(json "o['kinds']['$kind']['artifacts'], o['kinds']['$kind']['bytes']" <object)" = \
			"$(query "SELECT '(' || count(*) || ', ' || sum(bytes) || ')' FROM artifacts WHERE kind = '$kind'")" ]
	done
	[ "$(json 'o["all"]["bytes"] + o["other_bytes"]' <object)" -eq \
		"$(find xfp-cache -type f -print0 | xargs -0 stat -c %s | awk '{ s += $1 } END { print s }')" ]
	[ "$(json '[(r["run"], r["units"], r["fitted"], r["repacked"], r["cached"], r["status"]) for r in o["runs"]]' <object)" = \
		"[(1, 8, 7, 8, 0, 0), (2, 8, 0, 4, 4, 0)]" ]
	[ "$(json 'o["weights"]' <object)" = "$(query "SELECT sum(weights) FROM latest_units")" ]
	[ "$(json 'abs(o["kinds"]["fit"]["share"] * 2 * o["weights"] - o["kinds"]["fit"]["current_bytes"]) < 1' <object)" = True ]
	[ "$(json 'o["gc_frees"]' <object)" = "$(cache gc --json | json 'o["freed"]')" ]
	[ "$(json 'o["damaged"]' <object)" = 0 ]
	truncate -s -1 "$(file_of "$(key_of fit)")"
	[ "$(cache stats --json | json 'o["damaged"], o["gc_frees"]')" = "(1, 0)" ]
	cache stats | grep -q '^damaged: 1,'
}

@test "a run whose units could not be recorded is not the last one of its output: gc keeps its artifacts" {
	make_model m
	xfp convert m -o out.xfp -q
	xfp convert m -o out.xfp -q --min-cos-lazy 0.95
	used=$(artifacts | wc -l)
	# simulate a full disk when the units are recorded
	"$PYTHON" -c 'import sqlite3
sqlite3.connect("xfp-cache/manifest.sqlite").execute("""CREATE TRIGGER full BEFORE INSERT ON run_units
	BEGIN SELECT RAISE(ABORT, "disk full, as it were"); END""")'
	xfp convert m -o out.xfp -q --min-cos-lazy 0.95 2>err
	grep -q "the manifest does not record what this run used" err
	[ "$(query "SELECT count(*) FROM runs WHERE status = 0")" = 2 ]
	[ "$(query "SELECT count(*) FROM runs WHERE ended IS NULL")" = 1 ]
	"$PYTHON" -c 'import sqlite3; sqlite3.connect("xfp-cache/manifest.sqlite").execute("DROP TRIGGER full")'
	xfp cache gc >/dev/null
	xfp convert m -o out.xfp --min-cos-lazy 0.95 --json | grep -q '"repacked": 0'
	[ "$(artifacts | wc -l)" -le "$used" ]
	rm out.xfp
	xfp convert m -o out.xfp --min-cos-lazy 0.95 --json | grep -q '"fitted": 0'
}

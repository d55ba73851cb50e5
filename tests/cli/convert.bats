#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# xfp convert from the user's view: options, output, paths, floors, make.

load helpers

setup() { setup_folder; }

@test "a conversion: summary on stdout, progress on stderr, a bundle and two folders" {
	make_model m
	xfp convert m -o out.xfp >stdout 2>stderr
	grep -q "^sha256 $(sha out.xfp)$" stdout
	grep -q "^8 units: 7 fitted, 8 packed now, 0 from the cache" stdout
	grep -q routed_expert stdout
	grep -q "^xfp: 100%" stderr
	run ! grep -q "100%" stdout
	[ "$(ls -A)" = "m
out.xfp
out.xfp.work
stderr
stdout
xfp-cache" ]
	xfp verify out.xfp --source m
}

@test "on a terminal, progress is one bar with the rate, erased at the end" {
	make_model m --layers 8 # long enough for a bar to be drawn
	"$PYTHON" - >typescript <<-'EOF'
	import os, pty, sys
	status = pty.spawn(["xfp", "convert", "m", "-o", "out.xfp"], lambda fd: os.read(fd, 65536))
	sys.exit(os.waitstatus_to_exitcode(status))
	EOF
	# all weights done, and weights per second
	grep -Eq $'\r\e\\[K(\\[#* *\\] )? *[0-9]+% [0-9.]+ ?[kM]? of [0-9.]+ [kM] weights, [0-9.]+ ?[kM]?/s' typescript
	grep -q $'\r\e\[Kwriting the bundle\r\e\[K' typescript
	run -1 grep "^xfp: [0-9]*%" typescript
}

@test "a second run does nothing, and the bundle is unchanged" {
	make_model m
	xfp convert m -o out.xfp -q
	before=$(stat -c '%i %Y %z' out.xfp)
	run -0 xfp convert m -o out.xfp
	[[ $output == *"out.xfp is up to date"* ]]
	[[ $output == *" 0 packed now, 8 from the cache"* ]]
	[ "$before" = "$(stat -c '%i %Y %z' out.xfp)" ]
}

@test "a bundle that was changed or removed is written again from the same units" {
	make_model m
	first=$(converted m out.xfp)
	printf x | dd of=out.xfp bs=1 seek=5000 conv=notrunc status=none
	run -0 --separate-stderr xfp convert m -o out.xfp --json
	[[ $output == *'"repacked": 0'* && $output == *'"unchanged": false'* ]]
	[ "$(sha out.xfp)" = "$first" ]
	rm out.xfp
	[ "$(converted m out.xfp)" = "$first" ]
}

@test "--json is one object" {
	make_model m
	xfp convert m -o out.xfp --json >summary 2>/dev/null
	"$PYTHON" - "$(sha out.xfp)" "$(stat -c %s out.xfp)" <<-'EOF'
	import json, sys
	summary = json.load(open("summary"))
	assert summary["sha256"] == sys.argv[1] and summary["bytes"] == int(sys.argv[2])
	assert summary["repacked"] == summary["units"] and not summary["unchanged"]
	assert sum(c["units"] for c in summary["classes"]) == summary["units"]
	assert summary["source_precision"] == summary["below_floor"] == 0
	experts = [c for c in summary["classes"] if c["class"] == "routed_expert"][0]
	assert 0.98 <= experts["cos_median_least"] <= experts["cos_median"] < 1
	EOF
}

@test "-q prints nothing" {
	make_model m
	run -0 xfp convert m -o out.xfp -q
	[ -z "$output" ]
}

@test "--dry-run lists the work and does nothing" {
	make_model m
	run -0 xfp convert m -o out.xfp -n
	[ "$(ls -A)" = m ]
	[[ $output == *"model.layers.0.self_attn.q_proj.weight: outlier-extract lloyd-fit autoselect pack"* ]]
	[[ $output == *"lm_head.weight: pack"* && $output == *"out.xfp would be written" ]]
	xfp convert m -o out.xfp -q
	run -0 xfp convert m -o out.xfp --dry-run
	[[ $output == *$'\n'"0 of "* && $output == *"out.xfp is up to date" ]]
	run -0 xfp convert m -o out.xfp --dry-run --min-cos-lazy 0.9
	[[ $output == *"mlp.experts.*"*": pack with "*"bits"* && $output != *"q_proj"* && $output != *lloyd-fit* ]]
	[[ $output == *"out.xfp would be written again" ]]
	# not printed by a run that finds all measurements
	run -0 xfp convert m -o out.xfp -n --floor attention=0.998
	[[ $output == *"k_proj.weight: lloyd-fit --extended autoselect pack"* ]]
	xfp convert m -o out.xfp -q --bits 2 --floor attention=0.999
	run -0 xfp convert m -o out.xfp -n --bits 2 --floor attention=0.999 --on-miss fail
	[[ $output == *"q_proj.weight: fails: no candidate meets its floor"* ]]
	# another floor with the same choices: no unit is processed, but the bundle is written
	run -0 xfp convert m -o out.xfp -n --bits 2 --floor attention=0.9991
	[[ $output == *$'\n'"0 of "* && $output == *"out.xfp would be written again" ]]
	run -2 xfp convert m -o out.xfp -n --json
	[[ $output == *"--json"*"--dry-run"* ]]
}

@test "a file that is not a bundle is not replaced: status 2, and the file is unchanged" {
	make_model m
	ln -s m link
	echo mine >notes.txt
	find m notes.txt -type f -exec sha256sum {} + >before
	for out in m/model.safetensors m/config.json link/config.json; do
		for how in -q -n; do
			run -2 xfp convert m -o "$out" "$how"
			[[ $output == *"$out: is a file of the checkpoint"* ]] || { echo "$output"; return 1; }
		done
		run -2 xfp convert m/model.safetensors -o m/model.safetensors
	done
	for how in -q -n; do
		run -2 xfp convert m -o notes.txt "$how"
		[[ $output == *"notes.txt: exists and is not an .xfp bundle"* ]]
	done
	sha256sum -c --quiet before
	[ "$(ls -A)" = "before
link
m
notes.txt" ]
	: >empty # of mktemp, perhaps
	xfp convert m -o empty -q && xfp convert m -o empty -q --min-cos-lazy 0.9 && xfp verify empty
}

@test "--version, with or without other words" {
	[ "$(xfp convert --version)" = "$(xfp --version)" ]
	[ "$(xfp convert m -o out.xfp --version)" = "$(xfp --version)" ]
	xfp convert --help | grep -q -e --version
}

@test "tools find the rules next to them, and report missing ones" {
	make_model m
	mkdir -p moved/bin moved/share build
	cp "$XFP_TEST_BIN"/xfp* moved/bin
	cp "$XFP_TEST_BIN"/xfp* build
	cp -r "$XFP_DATADIR" moved/share/xfp
	expected=$(converted m out.xfp)
	unset XFP_DATADIR
	[ "$(moved/bin/xfp --pipelines)" = "$(realpath moved/share/xfp/pipelines)" ]
	moved/bin/xfp convert m -o moved.xfp --cache moved-cache -q
	[ "$(sha moved.xfp)" = "$expected" ]
	for command in "build/xfp --pipelines" "build/xfp convert m -o no.xfp" "build/xfp-inspect m"; do
		XFP_DATADIR=$PWD/nowhere run -1 $command
		[[ $output == *"$PWD/nowhere/pipelines"*"XFP_DATADIR"* ]] || { echo "$command: $output"; return 1; }
	done
	[ ! -e no.xfp.work ]
	cp -r moved/share/xfp/pipelines .
	[ "$(build/xfp --pipelines)" = "$(realpath pipelines)" ]
	build/xfp convert m -o build.xfp --cache build-cache -q
	[ "$(sha build.xfp)" = "$expected" ]
}

@test "wrong command lines: status 2, a message that names the option, nothing written" {
	make_model m
	while read -r -a words; do
		run -2 xfp convert m -o out.xfp "${words[@]}"
		[[ ${lines[0]} == "xfp convert: "*"${words[0]}"* ]] || { echo "${words[*]}: $output"; return 1; }
	done <<-'EOF'
	--no-such-option
	--min-cos-strict 1.5
	--min-cos-lazy -1
	--min-cos-lazy 0.98x
	--floor attention
	--floor attention=high
	--floor nothing=0.9
	--floor attention=0.9,lm_head=0.9
	--bits 7
	--bits 1-3
	--outlier-sigma 0
	--outlier-cap 2
	--balance 1.5
	--lloyd-iters 0
	--start best
	--lm-head int8
	--on-miss perhaps
	--on-nonfinite zero
	--mode v3
	--mode keep
	--group-size 100
	--library-size 512
	--libfit best
	--fit best
	--jobs 0
	--cache
	EOF
	run -2 xfp convert m -o out.xfp --mode v2c --group-size 128
	[[ $output == *"groups of v2c have 16, 32 or 64 columns"* ]]
	run -2 xfp convert m -o out.xfp --floor experts=0.9
	[[ $output == *"no class 'experts'; classes are attention, "* ]]
	run -2 xfp convert -o out.xfp
	run -2 xfp convert m
	run -2 xfp convert m m -o out.xfp
	run -2 xfp convert m -o folder/
	run -2 xfp no-such-command
	[ "$(ls -A)" = m ]
}

@test "the environment sets options; the command line takes precedence" {
	make_model m
	XFP_MIN_COS_STRICT=0.9 XFP_MIN_COS_LAZY=0.8 xfp convert m -o out.xfp -q --min-cos-lazy 0.85 --lm-head quant \
		--floor lm_head=0.95
	"$PYTHON" - <<-'EOF'
	import json
	floor = json.load(open("out.xfp.work/parameters.json"))["parameters"]["floors"]
	get = lambda name: float(floor[name])
	assert get("attention") == 0.9 and get("routed_expert") == 0.85 and get("lm_head") == 0.95, floor
	EOF
	XFP_MIN_COS_LAZY=much run -2 xfp convert m -o out.xfp
	[[ $output == *XFP_MIN_COS_LAZY* ]]
	XFP_CACHE=$PWD/elsewhere xfp convert m -o other.xfp -q
	[ -e elsewhere/manifest.sqlite ]
}

@test "paths with blanks, quotes, make and shell syntax and other letters" {
	for name in "with two blanks" 'größe-日本' 'a$(touch pwned)b' "it's#1" 'x`touch pwned`"y' '-dash' 'percent%d'; do
		mkdir -p "./$name dir"
		(cd "./$name dir" && make_model "./$name" && converted "./$name" "./$name.xfp" >sha)
	done
	[ "$(sort -u ./*dir/sha | wc -l)" = 1 ]
	[ -z "$(find . -name pwned)" ]
}

@test "a makefile for one model: the same bytes, from any folder" {
	make_model m
	expected=$(converted m out.xfp --min-cos-lazy 0.97)
	mkdir 'other folder'
	make_model 'other folder/m $1 #2'
	cat >'other folder/my.mk' <<-'EOF'
	MODEL = m $$1 \#2
	OUT = ü $$(x).xfp
	MIN_COS_LAZY = 0.97
	include $(shell xfp --pipelines)/convert.mk
	EOF
	(cd 'other folder' && make -f my.mk -j2)
	[ "$(sha 'other folder/ü $(x).xfp')" = "$expected" ]
	make -f "$(xfp --pipelines)/qwen3-moe.mk" MODEL=m OUT=third.xfp MIN_COS_LAZY=0.97
	[ "$(sha third.xfp)" = "$expected" ]
}

# A makefile of the settings in LINE..., and OPTION... of make.
refused_by_make() { # NEAREST "LINE..." [OPTION...]
	printf '%s\n' 'MODEL = m' 'OUT = out.xfp' "$2" 'include $(shell xfp --pipelines)/convert.mk' >my.mk
	run -2 make -f my.mk "${@:3}"
	[[ $output == *"xfp convert: "*"$1"* ]] || { echo "$output"; return 1; }
	[ "$(ls -A)" = "m
my.mk" ]
}

@test "in a makefile a mistyped setting is refused, and on make's command line any unknown variable" {
	make_model m
	while IFS='|' read -r name nearest; do
		refused_by_make "$name is not a setting; did you mean $nearest?" "$name = 3"
		refused_by_make "$name is not a setting; did you mean $nearest?" '' "$name=3"
		refused_by_make "$name is not a setting; did you mean $nearest?" "override $name := 3"
	done <<-'END'
		OVERIDE|OVERRIDE
		FLOORS|FLOOR
		LLOYD_ITER|LLOYD_ITERS
		MIN_COS_LAZYY|MIN_COS_LAZY
		MIN_CSO_LAZZ|MIN_COS_LAZY
		MDOE|MODE
		min_cos_lazy|MIN_COS_LAZY
		bits|BITS
		Output|OUT
		OUTPUT|OUT
	END
	refused_by_make "QUALITY, on make's command line, is not a setting" 'QUALITY = 1' QUALITY=2
	refused_by_make "DIR is not a setting; did you mean FIT?" '' DIR=x
	refused_by_make "use make -j" 'JOBS = 3'
	# unlike any setting, or declared as the makefile's own, or from the environment without our prefix
	printf '%s\n' 'MODEL = m' 'OUT = out.xfp' 'QUALITY = 1' 'DIR = x' 'bit = 1' 'XFP_OTHERS = FLOORS TARGET' 'FLOORS = 1' \
		'include $(shell xfp --pipelines)/convert.mk' >my.mk
	OVERIDE=1 make -f my.mk TARGET=x FLOORS=2 2>errors
	[ "$(sha out.xfp)" = "$(converted m direct.xfp)" ]
	run ! grep -e ignored -e "not a setting" errors
}

@test "a bundle does not go to standard output" {
	make_model m
	before=$(ls -A)
	for command in convert plan prepare; do
		run -2 xfp $command m -o -
		[[ ${lines[0]} == "xfp $command: --output -: a bundle is not written to standard output; name a file"* ]]
	done
	[ "$(ls -A)" = "$before" ]
}

@test "settings that the mode lacks are refused, with a remedy" {
	make_model m
	while IFS='|' read -r options said; do
		run -2 xfp plan m $options
		[[ ${lines[0]} == *"$said"* ]] || { echo "$options: $output"; return 1; }
	done <<-'END'
		--mode v2 --group-size 32|--group-size 32: --mode v2 has a codebook for each row and no groups; omit one of them, or use --mode v2c
		--group-size 32 --mode v2|--mode v2c
		--mode v2c --library-size 16|--library-size 16: only libraries of v2a have a variable size; omit it, or use --mode v2a
		--mode auto --libfit published|--mode v2a
		--mode v2c --fit optimal|--fit optimal: applies only to codebooks of v2; omit it, or use --mode v2
	END
	xfp plan m --mode v2c --group-size 32 >plan
	xfp plan m --mode v2a --library-size 16 --libfit published >plan
	xfp plan m --mode auto --fit optimal >plan
	# settings of a profile that another mode lacks are ignored
	xfp plan m --profile paper-v2a --mode v2 >plan
	printf 'mode = v2\ngroup-size = 32\n' >odd.profile
	run -2 xfp plan m --profile odd.profile
	[[ ${lines[0]} == *"odd.profile: --group-size 32: --mode v2 has"* ]]
}

@test "every command refuses a mistyped XFP_ variable" {
	make_model m
	xfp convert m -o out.xfp -q
	for command in "status out.xfp" "info out.xfp" "verify out.xfp" "unpack out.xfp -o d" "compare m" "cache ls"; do
		XFP_CACH=$PWD/elsewhere run -2 xfp $command
		[[ $output == "xfp ${command%% *}: the environment has XFP_CACH, "*"did you mean XFP_CACHE? "* ]] ||
			{ echo "$command: $output"; return 1; }
		XFP_CACH=$PWD/elsewhere xfp ${command%% *} --help >help
	done
	XFP_SERVER=here xfp info out.xfp >told 2>errors
	[ "$(cat errors)" = "xfp info: ignored, since xfp has no such variable: XFP_SERVER" ]
}

@test "a mistyped XFP_ variable is refused; an unrelated one is mentioned once" {
	make_model m
	for name in XFP_OVERIDE XFP_FLOORS XFP_LLOYD_ITER XFP_FTI XFP_FAMILLIES XFP_INSTRUCTIOSN_ XFP_MODLE XFP_DATA_DIR; do
		run -2 env "$name=3" xfp convert m -o out.xfp
		[[ ${lines[0]} == "xfp convert: the environment has $name, which is not a variable of xfp; did you mean XFP_"* ]]
		[ "$(ls -A)" = m ]
	done
	run -2 env XFP_LLOYD_ITER=3 xfp plan m
	[[ ${lines[0]} == *"did you mean XFP_LLOYD_ITERS?"* ]]
	# an empty value is ignored; other tools may use such names
	env XFP_FLOORS= XFP_SERVER=here $'XFP_BACK\eEND=cuda' xfp convert m -o out.xfp -q 2>errors
	[ "$(cat errors)" = "xfp convert: ignored, since xfp has no such variable: XFP_SERVER XFP_BACK\x1bEND" ] ||
		[ "$(cat errors)" = "xfp convert: ignored, since xfp has no such variable: XFP_BACK\x1bEND XFP_SERVER" ]
	run ! grep ignored out.xfp.work/log
	XFP_FLORS=0.9 xfp convert --help >help
}

@test "make verify: makes the bundle, and checks it against its checkpoint" {
	make_model 'm $1'
	printf 'MODEL = m $$1\nOUT = the out.xfp\ninclude $(shell xfp --pipelines)/convert.mk\n' >my.mk
	run -0 make -f my.mk verify
	[[ $output == *"the out.xfp: every byte is unchanged;"$'\n'"the weights are those of the checkpoint;"$'\n'* ]]
	run -0 make -f my.mk verify
	[[ $output == *"is up to date"*"every byte is unchanged"* ]]
	run -0 make -f my.mk -n verify
	[[ $output == *"xfp verify --source"* ]]
}

@test "make -n does nothing, make -k continues after a failure" {
	make_model m
	printf 'MODEL = m\nOUT = out.xfp\ninclude $(shell xfp --pipelines)/convert.mk\n' >my.mk
	run -0 make -f my.mk -n
	[[ $output == *"units to do"* ]]
	[ "$(ls -A)" = "m
my.mk" ]
	run -2 make -k -f my.mk ON_MISS=fail BITS=2
	[ "$(grep -c "no candidate meets" <<<"$output")" -gt 1 ]
}

@test "unrelated settings in the user's environment have no effect" {
	make_model m
	expected=$(converted m out.xfp)
	printf 'MODEL = m\nOUT = out2.xfp\ninclude $(shell xfp --pipelines)/convert.mk\n' >my.mk
	MODE=fast BITS=64 WORK=home CACHE=none START=now make -f my.mk
	[ "$(sha out2.xfp)" = "$expected" ]
	[ ! -e none ] && [ ! -e home ]
}

@test "inside another make: its jobserver is shared, its variables are not" {
	make_model m
	expected=$(converted m out.xfp --cache c1)
	printf 'all:\n\t+xfp convert m -o out.xfp --cache c2 -q\n' >outer.mk
	make -j2 -f outer.mk UNIT=u000999 FIT_UNITS=nothing
	[ "$(sha out.xfp)" = "$expected" ]
	run ! grep -q jobserver out.xfp.work/log
	printf 'all:\n\txfp convert m -o out.xfp --cache c3 -q\n' >outer.mk
	make -j2 -f outer.mk
	[ "$(sha out.xfp)" = "$expected" ]
}

@test "a higher or lower lazy floor repacks only the units whose choice changed" {
	make_model m --layers 2
	xfp convert m -o out.xfp -q --min-cos-lazy 0.9
	xfp convert m -o out.xfp --min-cos-lazy 0.985 >stdout
	query "SELECT a.number FROM run_units a JOIN run_units b USING (number) WHERE a.run = 1 AND b.run = 2
		AND (a.k, a.mode) IS NOT (b.k, b.mode)" >changed
	query "SELECT number FROM run_units WHERE run = 2 AND repacked" >repacked
	[ -s changed ]
	diff changed repacked
	[ "$(query "SELECT count(*) FROM run_units WHERE run = 2 AND repacked AND class <> 'routed_expert'")" = 0 ]
	total=$(query "SELECT count(*) FROM run_units WHERE run = 2")
	line="$(wc -l <changed) packed now, $((total - $(wc -l <changed))) from the cache"
	grep -q "^$total units: .*$line" stdout
	grep -q "^$total units: .*$line" out.xfp.work/log
	# back again: everything exists already
	xfp convert m -o out.xfp --min-cos-lazy 0.9 | grep -q "^$total units: .* 0 packed now"
	# a floor on another class does not affect the experts
	xfp convert m -o out.xfp -q --min-cos-lazy 0.9 --floor attention=0.9
	[ "$(query "SELECT count(*) FROM run_units WHERE run = 4 AND repacked AND class <> 'attention'")" = 0 ]
}

@test "a floor that nothing meets: keep, best, fail" {
	make_model m
	xfp convert m -o keep.xfp -q --bits 2 --cache cache
	[ "$(query "SELECT DISTINCT mode FROM run_units WHERE run = 1 AND class = 'attention'" cache)" = keep ]
	xfp convert m -o best.xfp -q --bits 2 --on-miss best --cache cache
	xfp convert m -o keep.xfp --bits 2 --cache cache | grep -q "^7 units stay at source precision: no candidate met"
	[ "$(query "SELECT DISTINCT mode, met FROM run_units WHERE run = 2 AND class = 'attention'" cache)" = "v2|0" ]
	run -4 xfp convert m -o fail.xfp --bits 2 --on-miss fail --cache cache
	[[ $output == *"no candidate meets the floor"*"allow more bits"* && $output == *fail.xfp.work/log* ]]
	# the unit's name once, and no advice that cannot be followed
	run -4 xfp convert m -o fail.xfp --min-cos-strict 1 --on-miss fail --cache cache -j1
	[[ $output == *"q_proj.weight (q): no candidate meets the floor 1.0: "* && $output != *"more bits"* ]]
	no_output fail.xfp
	[ "$(query "SELECT status FROM runs WHERE run = 4" cache)" = 4 ]
}

@test "no output folder, or one that is a file: status 1 and its name, before any work" {
	make_model m
	run -1 xfp convert m -o missing/out.xfp
	[[ $output == *"$PWD/missing"* ]]
	touch file
	run -1 xfp convert m -o file/out.xfp
	[[ $output == *"$PWD/file"* ]]
	mkdir out.xfp
	run -1 xfp convert m -o out.xfp
	[[ $output == *out.xfp* ]]
	[ "$(ls -A)" = "file
m
out.xfp" ]
}

@test "a second conversion in the same work folder is refused while the first is at work" {
	make_model m
	mkdir out.xfp.work
	exec 9>out.xfp.work/lock
	flock 9
	run -1 xfp convert m -o out.xfp 9>&-
	exec 9>&-
	[[ $output == *"waiting for another conversion in $PWD/out.xfp.work"*"another conversion is using this folder"* ]]
	no_output out.xfp
	xfp convert m -o out.xfp -q
}

@test "running the steps by hand gives the same bundle" {
	make_model m
	expected=$(converted m out.xfp)
	xfp prepare m -o hand.xfp --cache cache2 -q
	export XFP_WORK=$PWD/hand.xfp.work XFP_CACHE=$PWD/cache2 XFP_PIPELINES
	XFP_PIPELINES=$(xfp --pipelines)
	make -C hand.xfp.work -f "$XFP_PIPELINES/unit.mk" UNIT=u000003 -s
	[ -e hand.xfp.work/u000003-packed ]
	make -C hand.xfp.work -f "$XFP_PIPELINES/graph.mk" -j2 -s
	xfp prepare m -o hand.xfp | grep -q "^0 of "
	xfp-bundle hand.xfp
	[ "$(sha hand.xfp)" = "$expected" ]
}

@test "a dry run leaves an existing cache unchanged" {
	make_model m
	mkdir xfp-cache
	xfp convert m -o out.xfp -n >/dev/null
	[ -z "$(ls -A xfp-cache)" ]
	xfp convert m -o out.xfp -q
	find xfp-cache -type f -exec sha256sum {} + | sort >before
	xfp convert m -o other.xfp -n --min-cos-lazy 0.5 >/dev/null
	find xfp-cache -type f -exec sha256sum {} + | sort | diff before -
}

@test "flags of an outer make do not reach ours" {
	make_model m
	GNUMAKEFLAGS=-n MAKEFLAGS=-n xfp convert m -o out.xfp -q -j2
	[ -s out.xfp ]
}

@test "the output is a link: its target is written, and the link stays" {
	make_model m
	mkdir disk other
	ln -s disk/to.xfp out.xfp
	run -0 --separate-stderr xfp convert m -o out.xfp # nothing is there yet
	[[ $output == *"$PWD/disk/to.xfp"* ]]
	[ "$(readlink out.xfp)" = disk/to.xfp ]
	[ -f disk/to.xfp ]
	[ ! -L disk/to.xfp ]
	[ -d out.xfp.work ]
	[ -d xfp-cache ]
	[ "$(ls -A disk)" = to.xfp ]
	first=$(sha disk/to.xfp)
	inode=$(stat -c %i disk/to.xfp)
	xfp convert m -o out.xfp -q
	[ "$(stat -c %i disk/to.xfp)" = "$inode" ] # up to date
	xfp convert m -o out.xfp -q --min-cos-strict 0.999
	[ "$(readlink out.xfp)" = disk/to.xfp ]
	[ "$(sha disk/to.xfp)" != "$first" ]
	xfp verify -q out.xfp
	[[ $(xfp status out.xfp) == "state    finished "* ]]
	# a chain of links, one of them absolute
	ln -s "$PWD/other/last.xfp" other/middle.xfp
	ln -s other/middle.xfp chain.xfp
	xfp convert m -o chain.xfp -q
	[ "$(sha other/last.xfp)" = "$first" ]
	[ -L chain.xfp ]
	[ -L other/middle.xfp ]
	# refused combinations
	echo text >note
	ln -s note note.xfp
	run -2 xfp convert m -o note.xfp -q
	[[ $output == *"exists and is not an .xfp bundle"* ]]
	[ "$(cat note)" = text ]
	ln -s circle.xfp circle.xfp
	run -2 xfp convert m -o circle.xfp -q
	[[ $output == *"circle.xfp: symbolic link loop; remove it"* ]]
	ln -s nowhere/out.xfp lost.xfp
	run -1 xfp convert m -o lost.xfp -q
	[[ $output == *"$PWD/nowhere: the output folder does not exist"*"mkdir -p"* ]]
	run -1 xfp convert m -n -o lost.xfp
	[[ $output == *"$PWD/nowhere: the output folder does not exist"* ]]
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# xfp walk --probe: bundles are built and judged, from the most aggressive one on, until both boundaries are known.

load helpers

setup() {
	setup_folder
	by_default
	make_text_model 1
	seq 1 400 | tr '\n' ' ' >text.txt
	# Passes from a routed floor of .98 on; the score is the floor. Logs the floors that it is asked about.
	cat >check <<-'END'
		#!/bin/sh
		floor=$(tar xOf "$1" xfp.json | sed -n 's/.*"routed_expert": "\([0-9.]*\)".*/\1/p' | head -n 1)
		echo "$floor" >>asked
		echo "floor $floor"
		case $floor in 0.98* | 0.99*) exit 0 ;; *) exit 1 ;; esac
	END
	chmod +x check
}

# Evaluate a Python expression over the walk w.
holds() { # EXPRESSION
	"$PYTHON" -c 'import json, sys
w = json.load(open("walk.json"))
points = w["points"]
probes = [p["probe"] for p in points]
if not eval(sys.argv[1]):
    sys.exit("%s\n%s" % (sys.argv[1], json.dumps(w, indent=1)))' "$1"
}

field() { # EXPRESSION
	"$PYTHON" -c 'import json, sys; w = json.load(open("walk.json")); print(eval(sys.argv[1]))' "$1"
}

walk() { # OPTION...
	xfp walk --json -q --strict .9 "$@" m >walk.json
}

@test "a command finds what passes and what fits; only what is needed is built" {
	walk --lazy .89:.995:.015 --probe --probe-command ./check
	holds '[p["lazy"] for p in points] == [.89, .905, .92, .935, .95, .965, .98, .995]'
	holds '[p and p["verdict"] for p in probes] == ["garbage"] * 6 + ["passed", None]'
	holds 'w["garbage"] == 5 and w["passed"] == w["recommended"] == 6 and probes[6]["score"] == .98'
	[ "$(ls m.xfp.walk)" = walk.json ]
	# Bundles of the same units are judged once.
	[ "$(xargs <asked)" = "0.89 0.965 0.98" ]
	# The command that is printed makes the bundle that was probed.
	eval "$(field 'w["command"]') -q"
	[ "$(sha m.xfp)" = "$(field 'w["points"][6]["probe"]["sha256"]')" ]
	[ "$(stat -c %s m.xfp)" = "$(field 'w["points"][6]["probe"]["built_bytes"]')" ]
	# Known points are not probed again, and others are if a limit asks for them.
	rm asked
	walk --lazy .89:.995:.015 --probe --probe-command ./check --target-size 1GB
	[ "$(cat asked)" = 0.995 ]
	holds 'w["passed"] == 6 and w["recommended"] == w["largest"] == 7'
	# A limit between the last two bundles.
	size=$(field 'w["points"][6]["probe"]["built_bytes"] + 1000')
	walk --lazy .89:.995:.015 --probe --probe-command ./check --target-size "$size"
	holds 'w["largest"] == w["recommended"] == 6 and not points[6]["fits"]'
	[ "$(cat asked)" = 0.995 ]
	run -4 xfp walk m --lazy .89 --strict .9 --probe --probe-command ./check -q
	[[ $output == *"no point passes; the nearest is lazy 0.89, strict 0.9" ]]
}

@test "a text: the figures are those of xfp eval, and continuations are compared with the source's" {
	walk --lazy .9:.98:.04 --probe --text text.txt --target-size 1GB
	holds 'w["passed"] == 0 and w["recommended"] in (0, 2) and probes[1] is None'
	holds 'all(0 <= p["repeats"] <= 1 and p["perplexity"] > 1 for p in probes if p) and 0 <= w["source_repeats"] <= 1'
	eval "$(field 'w["command"]') -q"
	xfp eval --source m --text text.txt --fast --json m.xfp >eval.json
	holds '(lambda e, p: [e["kl"]["mean"], e["top1_agreement"], e["perplexity"], e["source"]["perplexity"]] ==
		[p["kl"], p["agreement"], p["perplexity"], p["source_perplexity"]])(
		json.load(open("eval.json")), probes[w["recommended"]])'
	# The source is a row of the table.
	run -0 xfp walk m --lazy .9:.98:.04 --strict .9 --probe --text text.txt --target-size 1GB -q
	row=$(field '"%.3f +%.1f%%" % (w["points"][0]["probe"]["source_perplexity"], 100 * w["source_repeats"])')
	grep -E "^source .* $row\$" <<<"$output"
	[[ $output == *"KL and top-1 agreement: xfp eval --source --fast. Repeats: repeated 4-grams."* ]]
	# Stricter criteria make garbage of every point.
	run -4 xfp walk m --lazy .9:.98:.04 --strict .9 --probe --text text.txt --garbage 1,1 -q
	[[ $output == *"no point passes; the nearest, lazy 0.98, strict 0.9, has a top-1 agreement of "*" % with the source, and repeats "* ]]
	[[ $output == *"garbage up to  lazy 0.98, strict 0.9"* ]]
}

@test "sizes and profiles" {
	xfp walk m --json -q --points small,careful --probe --probe-command 'echo 1; true' >walk.json 2>messages
	[ ! -s messages ]
	holds 'probes[0]["verdict"] == "passed" and probes[1] is None and "--profile" in w["command"]'
}

@test "with a given threshold, measurements of bundles refine estimates, and no survey runs" {
	walk --mode v2 --lazy .9:.98:.08 --probe --probe-command 'echo 1; true'
	holds 'probes[0]["verdict"] == "passed" and points[0]["surveyed"] == 0'
	[ "$(query "SELECT count(*) FROM artifacts WHERE kind = 'survey'")" = 0 ]
	run -0 xfp walk m -q --mode v2 --lazy .9 --strict .9
	[[ $output == *"Sizes follow from measurements."* ]]
}

@test "an interrupted walk resumes, with the same result" {
	cat >slow <<-'END'
		#!/bin/sh
		touch started
		[ -e go ] || sleep 60
		exec ./check "$1"
	END
	chmod +x slow
	touch go
	walk --lazy .9:.98:.04 --probe --probe-command ./slow
	mv walk.json whole.json
	rm -r m.xfp.walk started go asked
	xfp walk --json --strict .9 --lazy .9:.98:.04 --probe --probe-command ./slow m >walk.json 2>messages &
	walking=$!
	for _ in {1..300}; do [ ! -e started ] || break; sleep .1; done
	kill -TERM $walking
	status=0
	wait $walking || status=$?
	[ "$status" != 0 ]
	grep -q 'interrupted; finished work is kept. To resume' messages
	grep -q -e '--probe-command ./slow' messages
	[ -f m.xfp.walk/probe.xfp ]
	touch go
	# Another walk leaves no bundle, also if it needs no probe.
	cp -r m.xfp.walk kept
	walk --lazy .9 --probe --probe-command 'echo 1; true'
	cp kept/probe.xfp m.xfp.walk
	walk --lazy .9 --probe --probe-command 'echo 1; true'
	[ "$(ls m.xfp.walk)" = walk.json ]
	rm -r m.xfp.walk
	mv kept m.xfp.walk
	walk --lazy .9:.98:.04 --probe --probe-command ./slow
	diff whole.json walk.json
	[ "$(ls m.xfp.walk)" = walk.json ]
}

@test "commands that do not start, hang or print no number" {
	run -2 xfp walk m --lazy .9 --strict .9 -q --probe --probe-command ./missing
	[[ $output == *"lazy 0.9, strict 0.9: --probe-command: ended with status 127: "*missing* ]]
	run -1 xfp walk m --lazy .9 --strict .9 -q --probe --probe-command 'sleep 100; true' --probe-timeout 1
	[[ $output == *"--probe-command: still running after 1 s, and was killed; --probe-timeout allows more" ]]
	run -1 xfp walk m --lazy .9 --strict .9 -q --probe --probe-command 'kill -SEGV $$; true'
	[[ $output == *"--probe-command: ended with status 139"* ]]
	run -3 xfp walk m --lazy .9 --strict .9 -q --probe --probe-command 'echo fine; true'
	[[ $output == *"--probe-command: the last line of its output ends without a number; print the score"* ]]
	[ ! -e m.xfp.walk ]
	# Damaged results are ignored.
	mkdir -p m.xfp.walk
	echo '{"key": 1' >m.xfp.walk/walk.json
	walk --lazy .9 --probe --probe-command 'echo 2; true'
	holds 'probes[0]["score"] == 2'
}

@test "texts and models that cannot judge, and options that contradict" {
	printf ' \n' >empty.txt
	printf 'a\377b' >bytes.txt
	while IFS='|' read -r status options message; do
		run "-$status" xfp walk m $options
		[[ $output == *"$message"* ]] || { echo "$options: $output"; return 1; }
	done <<-'END'
		2|--probe|--probe needs --text FILE or --probe-command CMD
		2|--text text.txt|--text applies to --probe
		2|--probe-command true|--probe-command applies to --probe
		2|--probe --text -|name a file
		2|--probe --text text.txt -n|--probe builds bundles
		2|--probe --text text.txt --garbage 2,3|--garbage '2,3': expected two numbers from 0 to 1
		3|--probe --text missing.txt|--text: missing.txt: no such file
		3|--probe --text empty.txt|empty.txt: is too short
		3|--probe --text bytes.txt|bytes.txt: is not UTF-8
	END
	sed -i 's/"qwen3_moe"/"another_moe"/' m/config.json
	run -3 xfp walk m --family qwen3_moe --lazy .9 --probe --text text.txt -q
	[[ $output == *"models of type another_moe are not supported"*"--probe-command CMD, without --text"* ]]
	walk --family qwen3_moe --lazy .98 --probe --probe-command ./check
	holds 'w["passed"] == 0'
}

@test "results apply to their calibration, criteria and weights only" {
	seq 400 700 | tr '\n' ' ' >other.txt
	for options in '--calibrate-text text.txt' '--calibrate-text other.txt'; do
		walk --lazy .9 $options --probe --probe-command 'echo 1 | tee -a judged; :'
	done
	[ "$(wc -l <judged)" = 2 ]
	for options in '' '--weight attention=9'; do
		walk() { xfp walk --json -q "$@" m >walk.json; }
		walk --points sizes $options --probe --probe-command 'echo 1 | tee -a judged; :'
	done
	[ "$(wc -l <judged)" = 4 ]
	# The share of tokens passes, but not a billionth more.
	walk --strict .9 --lazy .9 --probe --text text.txt
	least=$(field 'int(w["points"][0]["probe"]["agreement"] * 1e9)')
	walk --strict .9 --lazy .9 --probe --text text.txt --garbage "1,$(printf .%09d "$least")"
	run -4 xfp walk -q m --strict .9 --lazy .9 --probe --text text.txt --garbage "1,$(printf .%09d $((least + 1)))"
}

@test "a repeated walk with another limit on GPUs computes the sizes of bundles anew" {
	probe=(--lazy .9:.98:.04 --probe --probe-command 'echo 1; true')
	walk "${probe[@]}" --envelope 1GB
	between=$(field 'sum(w["points"][i]["probe"]["built_gpu_bytes"] for i in (0, 2)) // 2000')
	mv walk.json first.json
	for other in --target-size=1GB --envelope=4x1GB; do
		rm m.xfp.walk/walk.json
		walk "${probe[@]}" $other
		walk "${probe[@]}" --envelope "$between"kB
		holds 'w["recommended"] < 2 and w["largest"] < 2 and probes[2]["verdict"] == "too large"'
		holds 'probes[0]["built_gpu_bytes"] == json.load(open("first.json"))["points"][0]["probe"]["built_gpu_bytes"]'
	done
}

@test "a command whose status is lost does not pass, and what it leaves running holds no lock" {
	run -1 xfp walk m --lazy .9 --strict .9 -q --probe --probe-command ': >m.xfp.walk/status; echo 1; kill -9 $PPID; :'
	[[ $output == *"lazy 0.9, strict 0.9: sh: ended without a status" ]]
	# The walk ends with its group of processes, so the command waits until the server has left it.
	echo 'echo $$ >server; exec sleep 600' >serve
	walk --lazy .9 --probe --probe-command \
		'setsid sh serve >/dev/null 2>&1 & until [ -s server ]; do sleep .1; done; echo 1; true'
	run xfp convert -q --min-cos-strict .9 --min-cos-lazy .9 m -o m.xfp
	kill "$(cat server)"
	[ "$status" = 0 ]
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# xfp plan: its output, that it changes no files, and that runs stay within its memory and disk.

load helpers

setup() {
	setup_folder
	mkdir tmp
	export TMPDIR=$PWD/tmp
}

# Names, sizes, times and content of all files, without the folders that tests write into.
everything() {
	find . -mindepth 1 ! -path ./tmp ! -name plan.json -printf '%p %y %s %T@ %C@\n' | sort
	find . -type f ! -name plan.json -exec sha256sum {} + | sort
}

# Evaluate a Python expression over the plan p and, if there is one, the measured run r.
holds() { # EXPRESSION
	"$PYTHON" - "$1" <<-'EOF'
	import json, os, sys
	p = json.load(open("plan.json"))
	r = json.load(open("run.json")) if os.path.exists("run.json") else None
	if not eval("(" + sys.argv[1] + ")"):
	    sys.exit("%s\n%s\n%s" % (sys.argv[1], json.dumps(p), json.dumps(r)))
	EOF
}

plan() { # OPTION...
	xfp plan --json "$@" >plan.json
}

@test "a plan: a table, then bundle, memory, disk, time and cache; nothing is changed or left" {
	make_model m
	before=$(everything)
	output=$(xfp plan m -o out.xfp)
	[ "$before" = "$(everything)" ]
	[ -z "$(ls -A tmp)" ]
	[[ $output == "$PWD/m"$'\n'"bundle of "*" bits per weight overall; "*$'\n'"family qwen3_moe, safetensors, "*" weights in 8 units"* ]]
	for word in 'attention  *q  *1 ' 'routed_expert  *down  *1 ' 'lm_head .*fp8 ' 'all units  *8 ' 'kept tensors ' \
		'^Bits are an estimate' '^bundle  *[0-9]' '^memory  *[0-9]' '^disk  *[0-9]' '^time  *about [0-9]' \
		'^cache .*/xfp-cache: there is none yet$'; do
		grep -q "$word" <<<"$output" || { echo "no $word in: $output"; return 1; }
	done
}

@test "with a launcher: memory of a step on a node, and --drop-cache keeps what all nodes work on" {
	make_model m --layers 2
	plan m -j 2
	memory=$("$PYTHON" -c 'import json; print(json.load(open("plan.json"))["memory"]["peak"])')
	SLURM_NTASKS=16 SLURM_CPUS_PER_TASK=2 plan m --launcher env
	holds "p['jobs'] == 2 and p['memory']['peak'] == $memory"
	SLURM_NTASKS=16 SLURM_CPUS_PER_TASK=2 xfp plan m --launcher env | grep -q "with 2 jobs of one step on a node"
	plan m -j 6 --drop-cache
	disk=$("$PYTHON" -c 'import json; print(json.load(open("plan.json"))["disk"]["cache"])')
	SLURM_CPUS_PER_TASK=3 plan m -j 2 --drop-cache --launcher env
	holds "p['disk']['cache'] == $disk"
	plan m -j 2 --drop-cache
	holds "p['disk']['cache'] != $disk"
}

@test "nodes: one is the prediction without a launcher, more are faster until something else binds" {
	make_model m
	plan m -j 1 --nodes 1,4,16 --disk-bandwidth 1TB
	holds '[n["nodes"] for n in p["nodes"]["predictions"]] == [1, 4, 16]'
	holds 'p["nodes"]["processors"] == 1 and p["nodes"]["disk_bandwidth"] == 10**12 and p["nodes"]["launch_seconds"] == .3'
	holds '(lambda one, *more: abs(one["seconds"] - p["time"]["seconds"]) < 1e-9 and one["steps"] == 0
		and all(n["steps"] and n["units"] >= max(.3, n["work"]) and n["work"] < one["work"] for n in more))(
		*p["nodes"]["predictions"])'
	plan m -j 1 --nodes 4 --launch-seconds 0 --disk-bandwidth 1kB --node-processors 3
	holds 'p["nodes"]["predictions"][0]["binds"] in ("disk", "head node") and p["nodes"]["processors"] == 3'
	holds 'p["nodes"]["predictions"][0]["disk"] > sum(g["source_bytes"] for g in p["groups"]) / 1000'
	holds 'p["nodes"]["predictions"][0]["launching"] == 0'
	holds 'abs(p["nodes"]["predictions"][0]["bundle"] - 2 * p["bundle"]["expected"] / 1000) < 1e-9'
	run -0 xfp plan m -q --nodes 1,4 --disk-bandwidth 1kB --node-processors 3
	[[ $output == *$'\n\nSeconds on nodes of 3 processors, a disk of 1.00 kB/s, 0.3 s to launch a step:\n\nnodes  '* ]]
	[[ $output == *$'\n    1 '*$'\n    4 '*"xfp verify --source then takes "*$'\n\nPossible sizes'* ]]
	plan m
	holds 'p["nodes"] is None'
	xfp convert m -o m.xfp -q
	plan m --nodes 2
	holds 'p["nodes"] is None and p["current"]'
	while IFS='|' read -r options message; do
		run -2 xfp plan m $options
		[[ $output == *"$message"* ]] || { echo "$options: $output"; return 1; }
	done <<-'END'
		--nodes 0|--nodes '0': expected up to 8 numbers of nodes from 1 to 4096, as in 1,4,16
		--nodes 1,|expected up to 8 numbers
		--nodes 4097|expected up to 8 numbers
		--nodes 1,2,3,4,5,6,7,8,9|expected up to 8 numbers
		--nodes 2 --node-processors 5000|expected a number of processors
		--disk-bandwidth 0|expected bytes per second above 0, as in 2GB
		--launch-seconds -1|expected seconds from 0 to 3600, as in .3
	END
}

@test "no output, cache or writable folder is needed" {
	make_model m
	run -0 xfp plan m
	[[ $output == *"$PWD/xfp-cache: there is none yet"* ]]
	run -0 xfp plan m/ -o missing/folder/out.xfp --cache nowhere
	[[ $output == *"$PWD/nowhere: there is none yet"* ]]
	cd m
	run -0 xfp plan . --json
	cd ..
	needs_mounts
	xfp convert m -o out.xfp -q
	run -0 read_only "$PWD" env TMPDIR=/dev/shm xfp plan m -o out.xfp
	[[ $output == *"Bits follow from measurements."*"out.xfp is up to date"* ]]
	run -0 read_only "$PWD" env TMPDIR=/dev/shm xfp plan m -o out.xfp --min-cos-lazy 0.9
	[[ $(tr -s ' \n' ' ' <<<"$output") == *"knows 8 of 8 units; outlier-extract 7 of 7, lloyd-fit 7 of 7"* ]]
}

@test "--json agrees with the text" {
	make_model m --tie
	plan m
	holds 'sum(g["units"] for g in p["groups"]) == p["units"] == 7 and p["measured"] == 0 and p["estimate"]'
	holds 'sum(g["weights"] for g in p["groups"]) == p["weights"]'
	holds 'all(sum(g["bits"].values()) + g["fp8"] + g["source_precision"] == g["units"] for g in p["groups"])'
	holds '{g["floor"] for g in p["groups"]} == {0.98, 0.99}'
	holds 'set(p["tensors"]) == {"quantized", "kept", "tied", "dropped"} and p["tensors"]["kept"]["tensors"] > 0'
	holds 'p["bundle"]["least"] <= p["bundle"]["expected"] <= p["bundle"]["most"] == p["disk"]["bundle"]'
	holds 'p["disk"]["total"] == sum(p["disk"][k] for k in ("bundle", "cache", "work")) <= p["disk"]["cache_free"]'
	holds 'p["memory"]["peak"] == max(p["memory"][k] for k in ("inspect", "units", "bundle"))'
	holds 'p["time"]["seconds"] > 0 and p["time"]["lloyd_fit"] > 0 and p["time"]["seconds_a_unit"] > 0'
	holds 'p["time"]["lloyd_fit_extended"] == p["time"]["libfit"] == p["time"]["libfit_extended"] == p["time"]["pack_fp8"] == 0'
	holds 'not p["cache"]["exists"] and p["cache"]["known"] == p["cache"]["done"] == 0 and not p["current"]'
	bytes=$(stat -c %s m/model.safetensors)
	holds "0 < $bytes - sum(t['bytes'] for t in p['tensors'].values()) < 10000"
}

@test "options of convert are used: floors, bits, lm-head, jobs" {
	make_model m --hidden 256 --intermediate 192
	plan m --floor attention=0.5 --min-cos-lazy 0.998 -j1
	holds '[g["bits"] for g in p["groups"] if g["class"] == "attention"] == [{"2": 1}] * 4'
	holds 'all(set(g["bits"]) <= {"5", "6"} for g in p["groups"] if g["class"] == "routed_expert")'
	holds 'p["time"]["lloyd_fit_extended"] > 0 and p["time"]["pack_fp8"] > 0 and p["jobs"] == 1'
	one=$(holds 'print(p["memory"]["peak"]) or True')
	plan m --lm-head keep -j4 --bits 4
	holds 'p["jobs"] == 4 and not any(g["class"] == "lm_head" for g in p["groups"])'
	holds 'all(set(g["bits"]) == {"4"} for g in p["groups"])'
	holds "p['memory']['peak'] > $one + 3 * 4000000"
	plan m --floor attention=1 --on-miss keep
	holds 'all(g["source_precision"] == g["below_floor"] == 1 for g in p["groups"] if g["class"] == "attention")'
}

@test "formats and overrides are used, as in convert" {
	make_model m --hidden 256 --intermediate 192
	plan m --format attention=2,routed_expert=keep,embedding=fp8 --override 'role:o=floor:0.5' --override role:q=3,4
	holds '{g["role"]: g["bits"] for g in p["groups"] if g["class"] == "attention" and g["role"] in "ok"} == {"o": {"2": 1}, "k": {"2": 1}}'
	holds '{g["role"]: g["below_floor"] for g in p["groups"] if g["class"] == "attention"} == {"q": 0, "k": 1, "v": 1, "o": 0}'
	holds '[g["floor"] for g in p["groups"] if g["role"] == "o"] == [0.5]'
	holds 'all(g["source_precision"] == 1 and g["floor"] is None for g in p["groups"] if g["class"] == "routed_expert")'
	holds '[g["fp8"] for g in p["groups"] if g["class"] == "embedding"] == [1]'
	run -0 xfp plan m --format attention=2
	[[ $output == *"4 units are expected to be below their floor: their bits are fixed."* ]]
	run -2 xfp plan m --override 'role:nothing=4'
	[[ $output == *"matches no unit; xfp inspect -v lists them"* ]]
	run -2 xfp plan m --override 'role:gat=4'
	[[ $output == *"matches no unit; the nearest roles are: gate"* ]]
}

@test "after a conversion everything is known: bits, bytes, hits" {
	make_model m
	xfp convert m -o out.xfp -q
	xfp info --json out.xfp >info.json
	touch plan.json
	before=$(everything)
	plan m -o out.xfp
	holds 'p["measured"] == 7 and not p["estimate"] and p["current"] and p["cache"]["done"] == p["units"] == 8'
	holds 'all(s["there"] == s["needed"] for s in p["cache"]["stages"])'
	holds 'p["memory"]["largest_unit"] is None and p["memory"]["units"] == p["memory"]["bundle"] == 0'
	holds 'p["disk"]["total"] == 0 < p["bundle"]["least"] == p["bundle"]["most"]'
	holds '{(u["class"], u["role"]): u["bytes"] for u in json.load(open("info.json"))["units"]} ==
		{(g["class"], g["role"]): g["bytes"]["expected"] for g in p["groups"]}'
	holds 'all(len(set(g["bytes"].values())) == 1 for g in p["groups"])'
	# another floor: measured, not packed
	plan m -o out.xfp --min-cos-lazy 0.9
	holds 'p["measured"] == 7 and not p["current"] and p["cache"]["known"] == 8 and p["cache"]["done"] == 5'
	holds '{s["stage"]: s["needed"] - s["there"] for s in p["cache"]["stages"]} == {"outlier-extract": 0,
		"lloyd-fit": 0, "lloyd-fit --extended": 0, "autoselect": 3, "pack": 3}'
	# other outliers: only the output head exists
	plan m -o out.xfp --outlier-sigma 5
	holds 'p["measured"] == 0 and p["cache"]["known"] == 8 and p["cache"]["done"] == 1'
	# the same weights under another name are other files, which are not read
	cp -r m copy
	plan copy -o out.xfp
	holds 'p["cache"]["exists"] and p["cache"]["known"] == 0'
	rm -r copy
	[ "$before" = "$(everything)" ]
}

@test "library modes: expected bits, time, hits, and what a dry run says" {
	make_model m --hidden 256 --intermediate 192
	plan m --mode v2c --floor attention=0.95 --min-cos-lazy 0.999
	holds '[g["bits"] for g in p["groups"] if g["class"] == "attention"] == [{"2": 1}] * 4'
	holds 'all(set(g["bits"]) == {"5"} for g in p["groups"] if g["class"] == "routed_expert")'
	holds 'p["time"]["libfit"] > 0 and p["time"]["libfit_extended"] > 0 and p["time"]["pack"] > 0'
	holds 'p["time"]["lloyd_fit"] == p["time"]["lloyd_fit_extended"] == 0'
	holds '[s["stage"] for s in p["cache"]["stages"]] ==
		["outlier-extract", "libfit", "libfit --extended", "autoselect", "pack"]'
	run -0 xfp convert m -o out.xfp -n --mode auto --outlier-sigma 4
	[[ $output == *": outlier-extract lloyd-fit libfit autoselect pack"* ]]
	run -0 xfp convert m -o out.xfp -n --mode v2a
	[[ $output == *": outlier-extract libfit autoselect pack"* ]]
	plan m --mode auto --outlier-sigma 4 -o out.xfp
	holds 'p["time"]["libfit"] > 0 and p["time"]["lloyd_fit"] > 0'
	holds 'p["bundle"]["least"] <= p["bundle"]["expected"] <= p["bundle"]["most"] == p["disk"]["bundle"]'

	xfp convert m -o out.xfp -q --mode auto --outlier-sigma 4
	xfp info --json out.xfp >info.json
	plan m -o out.xfp --mode auto --outlier-sigma 4
	holds 'p["measured"] == 7 and p["current"] and p["disk"]["total"] == 0'
	holds 'all(s["there"] == s["needed"] for s in p["cache"]["stages"])'
	holds '{(u["class"], u["role"]): u["bytes"] for u in json.load(open("info.json"))["units"]} ==
		{(g["class"], g["role"]): g["bytes"]["expected"] for g in p["groups"]}'
	# measurements of lloyd-fit remain valid without the libraries; other libraries must be made
	plan m -o out.xfp --mode v2
	holds 'p["measured"] == 7 and not p["current"]'
	plan m -o out.xfp --mode auto --outlier-sigma 4 --group-size 64
	holds '{s["stage"]: s["needed"] - s["there"] for s in p["cache"]["stages"]} == {"outlier-extract": 0,
		"lloyd-fit": 0, "libfit": 7, "lloyd-fit --extended": 0, "libfit --extended": 0, "autoselect": 7, "pack": 7}'
}

@test "surveys: how many exist, and their selections" {
	unset XFP_MODE
	make_model m --hidden 256 --intermediate 192
	plan m -o out.xfp
	holds '[s["stage"] for s in p["cache"]["stages"]][:4] == ["survey", "outlier-extract", "lloyd-fit", "libfit"]'
	holds 'p["time"]["survey"] > 0'
	holds 'all(s["there"] == 0 for s in p["cache"]["stages"])'
	# one fit per unit, whichever it will be
	holds 'sum(s["needed"] for s in p["cache"]["stages"] if s["stage"] in ("lloyd-fit", "libfit")) == 7'
	run -0 xfp convert m -o out.xfp -n
	[[ $output == *"q_proj.weight: survey outlier-extract lloyd-fit or libfit autoselect pack"* ]]
	run -0 xfp convert m -o out.xfp -n --format attention=4
	[[ $output == *"q_proj.weight: survey outlier-extract lloyd-fit libfit autoselect pack"* ]]
	[ ! -e xfp-cache ]
	[ ! -e out.xfp.work ]

	xfp convert m -o out.xfp -q
	xfp info --json out.xfp >info.json
	plan m -o out.xfp
	holds 'p["measured"] == 7 and p["current"] and p["disk"]["total"] == 0'
	holds 'all(s["there"] == s["needed"] for s in p["cache"]["stages"])'
	holds '{(u["class"], u["role"]): u["bytes"] for u in json.load(open("info.json"))["units"]} ==
		{(g["class"], g["role"]): g["bytes"]["expected"] for g in p["groups"]}'
	run -0 xfp plan m -o out.xfp
	[[ $(tr -s ' \n' ' ' <<<"$output") == *"knows 8 of 8 units; survey 7 of 7, outlier-extract 7 of 7"* ]]
	[ -z "$(sed '/^cache /d' <<<"$output" | awk 'length > 80')" ]
	# another floor: surveys exist, and determine the fit
	plan m -o out.xfp --min-cos-strict 0.998
	holds '[(s["needed"], s["there"]) for s in p["cache"]["stages"] if s["stage"] == "survey"] == [(7, 7)]'
	run -0 xfp convert m -o out.xfp -n --min-cos-strict 0.998
	[[ $output != *": survey"* && $output == *"q_proj.weight: "*"libfit autoselect pack"* && $output != *lloyd-fit* ]]
	# another cap: other surveys
	plan m -o out.xfp --outlier-cap 0.01
	holds '[(s["needed"], s["there"]) for s in p["cache"]["stages"] if s["stage"] == "survey"] == [(7, 0)]'
}

@test "if the manifest has a journal, as in a run or after kill -9, it is read with it" {
	make_model m
	xfp convert m -o out.xfp -q
	"$PYTHON" - <<-'EOF'
	import os, sqlite3
	db = sqlite3.connect("xfp-cache/manifest.sqlite")
	db.execute("CREATE TABLE IF NOT EXISTS more (x)")
	db.commit()
	os._exit(0)
	EOF
	[ -s xfp-cache/manifest.sqlite-wal ]
	before=$(sha xfp-cache/manifest.sqlite; sha xfp-cache/manifest.sqlite-wal; ls -A xfp-cache)
	plan m -o out.xfp
	holds 'p["measured"] == 7 and p["cache"]["known"] == 8'
	[ "$before" = "$(sha xfp-cache/manifest.sqlite; sha xfp-cache/manifest.sqlite-wal; ls -A xfp-cache)" ]
}

@test "wrong use is status 2, a bad checkpoint status 3; nothing is left behind" {
	make_model m
	make_bad truncated-shard bad
	for options in '' 'm m' '--floor nonsense=1 m' '--no-such-option m'; do
		# shellcheck disable=SC2086
		run -2 xfp plan $options
	done
	run -3 xfp plan bad
	[[ $output == *"bad"* ]]
	run -3 xfp plan missing
	[ -z "$(ls -A tmp)" ]
	[ ! -e xfp-cache ]
}

@test "the size is as expected, within a tenth" {
	make_model m --hidden 1024 --intermediate 1024 --num-experts 2 --heads 8
	plan m -o out.xfp
	xfp convert m -o out.xfp -q
	size=$(stat -c %s out.xfp)
	holds "p['bundle']['least'] <= $size <= p['bundle']['most']"
	holds "0.9 * $size <= p['bundle']['expected'] <= 1.1 * $size"
}

# A conversion takes at most the predicted memory, and at least half of it.
keeps_to_plan() { # MODEL OPTION...
	rm -rf run
	mkdir run
	plan "$1" -o run/out.xfp "${@:2}"
	"$PYTHON" "$srcdir/tests/measure-peak" -i 5 -d run -o run.json xfp convert "$1" -o run/out.xfp -q "${@:2}"
	holds 'r["samples"] >= 20'
	holds 'r["pss"] <= p["memory"]["peak"] <= 2 * r["pss"]'
	holds 'r["disk"] <= p["disk"]["total"] <= 2 * r["disk"]'
}

@test "runs stay within the predicted memory and disk, with one job and with two" {
	[ "${XFP_TEST_SANITIZERS:-no}" = no ] || skip "the sanitizers have memory of their own"
	make_model m --family llama --hidden 1024 --intermediate 2816 --heads 8 --vocab 1024
	for jobs in 1 2; do
		keeps_to_plan m -j$jobs
	done
	make_model stack --experts transposed --hidden 512 --intermediate 256 --num-experts 16 --heads 8 --dtype f32
	keeps_to_plan stack -j2
	keeps_to_plan stack -j2 --mode v2a
	keeps_to_plan m -j1 --mode v2c
	keeps_to_plan m -j2 --mode auto
}

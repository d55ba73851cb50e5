#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Floors of calibrated units apply to the cosines of outputs.

load helpers

setup() {
	setup_folder
	by_default
	make_text_model 2
}

calibrated() { # OUT OPTION...
	xfp convert m -o "$1" -q --calibrate --calibrate-tokens 2048 --mode v2c "${@:2}"
}

@test "a floor is met by outputs, and the fit, the choice, xfp.json, info and the manifest agree" {
	xfp convert m -o out.xfp --json --calibrate --calibrate-tokens 2048 --mode v2c --bits 2,3,4,5,6 \
		--min-cos-strict 0.98 --min-cos-lazy 0.98 --floor embedding=0.9,lm_head=0.98 >converted
	xfp info --json out.xfp >info
	query "SELECT u.unit || '|' || u.output_median || '|' || c.output_median || '|' || u.met || '|' || u.cos_median
		FROM latest_units AS u JOIN choices AS c ON c.key = u.choice_key WHERE u.output_median NOT NULL" >units
	query "SELECT unit || '|' || k || '|' || meets || '|' || chosen || '|' || bytes || '|' || output_median
		FROM latest_candidates WHERE output_median NOT NULL" >candidates
	"$PYTHON" - <<-'EOF'
	import json
	units = {unit["name"]: unit for unit in json.load(open("info"))["units"]}
	rows = {row[0]: row[1:] for row in (line.strip().split("|") for line in open("units"))}
	calibrated = {name for name, unit in units.items() if unit["outputs"]}
	assert set(rows) == calibrated and len(calibrated) > 10, (rows, units)
	assert [unit["class"] for unit in units.values() if not unit["outputs"]] == ["embedding"]
	for name, (median, choice, met, cosine) in rows.items():
	    unit = units[name]
	    assert median == choice and abs(float(median) - unit["outputs"]["cos_median"]) < 1e-6, (name, median, unit)
	    assert unit["met"] == (float(median) >= unit["floor"]) == bool(int(met)), (name, median, unit)
	    assert unit["cos_median"] < 1 and abs(float(cosine) - unit["cos_median"]) < 1e-6
	candidates = [line.strip().split("|") for line in open("candidates")]
	differ = 0
	for name in rows:
	    mine = [row for row in candidates if row[0] == name]
	    met = [row for row in mine if float(row[5]) >= units[name]["floor"]]
	    assert met == [row for row in mine if row[2] == "1"], mine
	    smallest = min(met, key=lambda row: int(row[4]))
	    assert [row for row in mine if row[3] == "1"] == [smallest], (smallest, mine)
	    differ += units[name]["cos_median"] < units[name]["floor"]
	assert differ, "no choice shows that outputs decide"
	for c in json.load(open("converted"))["classes"]:
	    mine = [unit for unit in units.values() if unit["class"] == c["class"]]
	    cosines = sorted((unit["outputs"] or unit)["cos_median"] for unit in mine)
	    assert c["calibrated"] == sum(unit["outputs"] is not None for unit in mine), c
	    assert [c["cos_median"], c["cos_median_least"]] == [cosines[(len(mine) - 1) // 2], cosines[0]], (c, cosines)
	EOF
	xfp info out.xfp >info
	units=$("$PYTHON" -c 'print(sum(1 for line in open("units")))')
	line="floors and cosines are those of outputs for $units of $((units + 1)) units"
	grep -qx "$line; the others have no calibration" info
	xfp info --units out.xfp | tr -s ' \n' ' ' | grep -q '; floor of outputs: cos median 0\.98'
}

@test "a floor that outputs miss: best, fail and keep" {
	floors=(--bits 2 --override 'role:q=2-3' --min-cos-strict 0.9999 --min-cos-lazy 0)
	floors+=(--format embedding=keep --lm-head keep)
	run -4 calibrated no.xfp -j1 "${floors[@]}" --on-miss fail
	[[ $output == *"no candidate meets the floor 0.9999: the best, v2c with 3 bits, "* ]]
	[[ $output == *", has median cosine 0."*" of outputs; lower the floor"* ]]
	no_output no.xfp
	xfp convert m -o out.xfp -j1 --calibrate --calibrate-tokens 2048 --mode v2c "${floors[@]}" --on-miss best >summary
	grep -q 'below its floor: no candidate meets it, and this is the best (outputs 0\.[0-9]* of 0.9999)' summary
	xfp info --json out.xfp | "$PYTHON" -c 'import json, sys
missed = [unit for unit in json.load(sys.stdin)["units"] if not unit["met"]]
assert {unit["role"] for unit in missed} > {"q"}, missed'
	# at source precision outputs are exact
	calibrated kept.xfp "${floors[@]}" --on-miss keep
	xfp info --json kept.xfp | "$PYTHON" -c 'import json, sys
kept = [unit for unit in json.load(sys.stdin)["units"] if unit["role"] == "q"]
assert kept and all(unit["mode"] == "keep" and unit["met"] and unit["outputs"] ==
                    {"cos_median": 1, "cos_p5": 1, "error": 0} for unit in kept), kept'
}

# Units stored as fp8 of a bundle, and that all units but the embedding have measured outputs.
check_fp8() { # BUNDLE
	xfp verify -q "$1"
	xfp info --json "$1" | "$PYTHON" -c 'import json, sys
units = json.load(sys.stdin)["units"]
assert all(unit["outputs"] for unit in units if unit["class"] != "embedding"), units
fp8 = [unit["outputs"] for unit in units if unit["mode"] == "fp8" and unit["outputs"]]
assert fp8 and all(.99 < o["cos_median"] < 1 and o["error"] > 0 for o in fp8), fp8'
}

@test "fp8 is chosen by its outputs, whichever fit measures it" {
	fp8=(xfp convert m -q --calibrate --calibrate-tokens 2048 --lm-head keep --on-miss best)
	floors=(--min-cos-strict 0.9995 --min-cos-lazy 0.9995 --floor attention=0.9995)
	# as the only candidate of the extended set
	"${fp8[@]}" -o out.xfp "${floors[@]}" --bits 2,3,4,8 --outlier-sigma 4
	check_fp8 out.xfp
	# as the only candidate
	"${fp8[@]}" -o out.xfp "${floors[@]}" --bits 2,8 --outlier-sigma auto
	[ -n "$(query "SELECT unit FROM latest_candidates GROUP BY unit HAVING min(k) = 8")" ]
	check_fp8 out.xfp
	# and for a goal
	"${fp8[@]}" -o out.xfp --bits 2,8 --min-cos-strict 0.99 --min-cos-lazy 0.99 --floor attention=0.99 \
		--target-bpw 60
	check_fp8 out.xfp
}

@test "the floor of a unit whose inputs are always zero applies to its weights" {
	"$PYTHON" - <<-'EOF'
	import json, struct
	with open("m/model.safetensors", "r+b") as file:
	    size = struct.unpack("<Q", file.read(8))[0]
	    begin, end = json.loads(file.read(size))["model.layers.1.self_attn.v_proj.weight"]["data_offsets"]
	    file.seek(8 + size + begin)
	    file.write(bytes(end - begin))
	EOF
	for sigma in none auto; do
		options=(--min-cos-strict 0.98 --min-cos-lazy 0.98 --floor attention=0.98,lm_head=0.98
			--outlier-sigma $sigma)
		calibrated out.xfp "${options[@]}"
		xfp verify -q out.xfp
		xfp convert m -o plain.xfp -q --mode v2c "${options[@]}"
		for bundle in out plain; do
			xfp info --json $bundle.xfp >$bundle
		done
		"$PYTHON" - <<-'EOF'
		import json
		out, plain = ({unit["name"]: unit for unit in json.load(open(name))["units"]} for name in ("out", "plain"))
		assert sum(bool(unit["outputs"]) for unit in out.values()) > 10
		unit, same = (units["model.layers.1.self_attn.o_proj.weight"] for units in (out, plain))
		assert unit["outputs"] is None and unit["met"] and unit["cos_median"] >= unit["floor"], unit
		assert all(unit[name] == same[name] for name in ("mode", "k", "cos_median", "outliers")), (unit, same)
		EOF
	done
	[ "$(query "SELECT count(*) FROM scales WHERE matrices = 0 AND growth = 1 AND feedback_median = 1
		AND rounding_median = 1")" = 1 ]
}

@test "verify checks the weights, and reports what was checked of outputs" {
	calibrated out.xfp --min-cos-strict 0.98 --min-cos-lazy 0.97 --floor lm_head=0.98
	xfp verify --source m out.xfp >report
	grep -qx 'floors of [0-9]* units apply to outputs, which were measured when the bundle was made' report
	grep -q '^floors and cosines are those of outputs for ' report
	xfp verify --json out.xfp | "$PYTHON" -c 'import json, sys
units = json.load(sys.stdin)["units"]
assert all(unit["met"] for unit in units) and sum(bool(unit["outputs"]) for unit in units) > 10
assert any(unit["outputs"] and unit["cos_median"] < unit["floor"] < unit["outputs"]["cos_median"] for unit in units)'
	# other floors are compared with the recorded outputs
	xfp verify -q --min-cos-strict 0.97 out.xfp
	run -4 xfp verify --min-cos-lazy 0.99999 out.xfp
	[[ $output == *"its median cosine of outputs is 0."*", below its floor 0.99999"* ]]
	# without calibration nothing changes
	xfp convert m -o plain.xfp -q
	xfp verify plain.xfp >report
	run -1 grep outputs report
	xfp info plain.xfp >report
	run -1 grep outputs report
}

@test "a sample of experts does not decide with --calibrate" {
	run -2 xfp convert m -o no.xfp --calibrate --moe-sample first:2
	[[ $output == *"--moe-sample first:2: with --calibrate all experts decide for their stack"* ]]
	no_output no.xfp
	xfp convert -n m -o out.xfp --calibrate --calibrate-tokens 2048 --moe-sample 0
}

@test "a survey's prediction of outputs selects what is fitted" {
	auto=(--outlier-sigma auto --min-cos-strict 0.99 --min-cos-lazy 0.99 --format embedding=keep --lm-head keep)
	calibrated out.xfp "${auto[@]}"
	expected=$(sha out.xfp)
	query "SELECT unit, count(*) <= 3, sum(chosen), max(meets AND chosen) FROM latest_candidates
		WHERE output_median NOT NULL GROUP BY unit" >units
	[ "$(cut -d'|' -f2- units | sort -u)" = "1|1|1" ]
	# about as many bits as if all had been measured
	calibrated all.xfp --min-cos-strict 0.99 --min-cos-lazy 0.99 --format embedding=keep --lm-head keep
	for bundle in out all; do
		xfp info --json $bundle.xfp >$bundle
	done
	"$PYTHON" - <<-'EOF'
	import json
	out, all = (json.load(open(name))["units"] for name in ("out", "all"))
	more = [a["k"] - b["k"] for a, b in zip(out, all) if a["outputs"] and a["mode"] == b["mode"] == "v2c"]
	assert len(more) > 10 and set(more) <= {-1, 0, 1} and sum(more) < len(more) / 3, more
	# weights alone would have needed more
	assert sum(unit["outputs"] is not None and unit["cos_median"] < .99 for unit in out) > 10, out
	EOF
	# resumed without its choices, and with damaged scales
	calibrated again.xfp "${auto[@]}" --cache again -j1
	[ "$(sha again.xfp)" = "$expected" ]
	rm xfp-cache/artifacts/*/"$(query "SELECT choice_key FROM latest_units WHERE output_median NOT NULL LIMIT 1")".h5
	for key in $(query "SELECT key FROM artifacts WHERE kind = 'scales'"); do
		printf x | dd of=xfp-cache/artifacts/${key:0:2}/$key.h5 bs=1 seek=3000 conv=notrunc 2>/dev/null
	done
	calibrated out.xfp "${auto[@]}" --force
	[ "$(sha out.xfp)" = "$expected" ]
}

@test "lost scales do not matter for units that are packed" {
	auto=(--outlier-sigma auto --min-cos-strict 0.99 --min-cos-lazy 0.99 --format embedding=keep --lm-head keep
		--override model.layers.0.self_attn.q_proj.weight=4)
	calibrated out.xfp "${auto[@]}"
	expected=$(sha out.xfp)
	query "SELECT key FROM artifacts WHERE kind = 'scales'" >keys
	[ "$(wc -l <keys)" -eq 14 ]
	while read -r key; do
		rm "xfp-cache/artifacts/${key:0:2}/$key.h5"
	done <keys
	run -0 xfp convert m -o out.xfp --calibrate --calibrate-tokens 2048 --mode v2c "${auto[@]}" --force
	[ "${lines[0]}" = "$PWD/out.xfp is up to date" ]
	calibrated again.xfp "${auto[@]}"
	[ "$(sha again.xfp)" = "$expected" ]
	[ -z "$(grep '	made	' again.xfp.work/events | grep -v '	bundle	')" ]
	# a unit that must be packed again needs its scales, and those the inputs
	rm xfp-cache/artifacts/*/"$(query "SELECT packed_key FROM latest_units WHERE output_median NOT NULL LIMIT 1")".h5
	calibrated again.xfp "${auto[@]}" --force
	[ "$(sha again.xfp)" = "$expected" ]
	grep -q 'calibrate	made' again.xfp.work/events
}

@test "a profile has floors of its own for calibration, which --like repeats" {
	for options in "" "--profile balanced"; do
		xfp convert m -o out.xfp -q --calibrate --calibrate-tokens 2048 $options
		tar xOf out.xfp xfp.json | grep -q '"routed_expert": "0.9989"'
		tar xOf out.xfp xfp.json | grep -q '"lm_head": "0.99997"'
	done
	[ "$(converted m again.xfp --like out.xfp --cache again)" = "$(sha out.xfp)" ]
	xfp convert m -o out.xfp -q --calibrate --calibrate-tokens 2048 --min-cos-lazy 0.9
	tar xOf out.xfp xfp.json | grep -q '"routed_expert": "0.9"'
	xfp convert m -o out.xfp -q
	tar xOf out.xfp xfp.json | grep -q '"routed_expert": "0.995"'
	# a goal has no floors unless they are given
	xfp convert m -o goal.xfp -q --calibrate --calibrate-tokens 2048 --target-bpw 30
	xfp info goal.xfp | grep -q 'bits chosen for a goal, no floors'
	printf 'calibrated bits = 2\n' >own.profile
	run -2 xfp convert m -o no.xfp --profile ./own.profile
	[[ $output == *"own.profile:1: calibrated bits: only floors and on-miss are different"* ]]
}

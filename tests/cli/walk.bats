#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# xfp walk: points, their predicted bundles, and the recommendation.

load helpers

setup() {
	setup_folder
	by_default
	make_model m --hidden 128
}

# Evaluate a Python expression over the walk w.
holds() { # EXPRESSION
	"$PYTHON" -c 'import json, sys
w = json.load(open("walk.json"))
points = w["points"]
if not eval(sys.argv[1]):
    sys.exit("%s\n%s" % (sys.argv[1], json.dumps(w, indent=1)))' "$1"
}

walk() { # OPTION...
	xfp walk --json -q "$@" m >walk.json
}

@test "floors: sizes and errors by surveys, and nothing is written without --survey" {
	run -0 xfp walk m --lazy .9:.99:.03 --strict .96
	[[ $output == *"estimates, from typical cosines"* ]]
	[ "$(ls)" = m ]
	walk --survey --lazy .88:.99:.01 --strict .96:.99:.03
	holds 'len(points) == 24 and all(p["surveyed"] == p["units"] == 9 for p in points)'
	holds 'all(a["bytes"] <= b["bytes"] for a, b in zip(points, points[1:]))'
	holds '{p["strict"] for p in points} == {.96, .99} and len({p["lazy"] for p in points}) == 12'
	# With one floor fixed, the error does not grow with the other.
	holds 'all(a["error"] >= b["error"] for a in points for b in points
		if a["strict"] == b["strict"] and a["lazy"] <= b["lazy"])'
	holds 'all(sum(m["units"] for m in p["modes"]) == 9 for p in points)'
	holds 'w["recommended"] is None and w["command"] is None'
	run -0 xfp walk m --lazy .9 --strict .96
	[[ ${lines[*]} == *"lazy/strict "*" 0.9/0.96 "*"Sizes follow from surveys."* ]]
	[[ $output != *Recommended* ]]
	[[ $output == *"No limit: every point fits, and none is recommended; --envelope or "* ]]
	[[ $output == *"Floors are least cosines: lazy of routed experts, strict of the other classes."* ]]
}

@test "the default range includes convert's own floors, and recommends them as its defaults" {
	walk --target-size 1GB
	holds '[p["lazy"] for p in points] == [x / 100 for x in range(90, 100)] + [.995] and points[10]["options"] == []'
	holds 'w["recommended"] == 10 and w["command"] == "xfp convert -o m.xfp -q m"'
	walk --profile small --target-size 1GB
	holds '[p["lazy"] for p in points] == [x / 100 for x in range(90, 100)] and points[9]["options"] == []'
}

@test "the command is wrapped with backslashes, and works so" {
	folder=$(printf 'a folder %.0s' {1..4})
	COLUMNS=300 xfp walk m --lazy .95 --target-size 1GB --profile careful --work "$folder" --cache another-folder -q >walk.txt
	sed -n '/^  xfp convert/,$p' walk.txt >command
	[ "$(wc -l <command)" = 2 ]
	awk 'length > 100 { exit 1 }' command
	[[ $(head -n 1 command) == "  xfp convert --min-cos-lazy 0.95 -o m.xfp "*' \' ]]
	sh ./command
	[ -f m.xfp ] && [ -d "$folder" ]
}

@test "a point is what xfp plan predicts, and what its command makes" {
	walk --survey --lazy .93:.97:.02 --strict .97 --target-size 1GB
	for point in 0 1 2; do
		options=$("$PYTHON" -c 'import json, sys
print(*json.load(open("walk.json"))["points"][int(sys.argv[1])]["options"])' "$point")
		xfp plan m -q --json $options >plan.json
		holds "(lambda p, plan: p['bytes'] == plan['bundle']['expected']
			and abs(p['bits'] - 8 * p['bytes'] / plan['whole']['elements']) < 1e-9
			if 'elements' in plan['whole'] else p['bytes'] == plan['bundle']['expected'])(
			points[$point], json.load(open('plan.json')))"
	done
	holds 'w["recommended"] == 2 and points[2]["lazy"] == .97'
	command=$("$PYTHON" -c 'import json; print(json.load(open("walk.json"))["command"])')
	[[ $command == "xfp convert --min-cos-lazy 0.97 --min-cos-strict 0.97 -o m.xfp "*" m" ]]
	eval "$command -q"
	size=$(stat -c %s m.xfp)
	holds "abs(points[2]['bytes'] / $size - 1) < .05"
}

@test "a point is what its surveys say: choices, bits and error, computed again" {
	walk --survey --lazy .95 --strict .96
	"$PYTHON" "$srcdir/tests/walk_point.py" m xfp-cache >expected.json
	holds '(lambda e: e["classes"].keys() == points[0]["classes"].keys()
		and all(abs(points[0]["classes"][c] - bits) < 1e-9 for c, bits in e["classes"].items())
		and abs(points[0]["error"] - e["error"]) < 1e-12)(json.load(open("expected.json")))'
}

@test "a limit: a size, bits per weight, or GPUs; also from the environment" {
	walk --survey --lazy .9:.99:.03 --strict .96
	bytes=$("$PYTHON" -c 'import json; print(json.load(open("walk.json"))["points"][1]["bytes"])')
	walk --lazy .9:.99:.03 --strict .96 --target-size "$bytes"
	holds 'w["recommended"] == w["largest"] and points[w["largest"]]["bytes"] == '"$bytes"
	holds 'all(p["fits"] == (p["margin"] >= 0) for p in points) and not points[3]["fits"]'
	holds '"target-size" not in w["command"]'
	XFP_ENVELOPE=2x1MB XFP_RESERVE=kv=900kB walk --lazy .9:.99:.03 --strict .96
	holds 'w["gpus"] == 2 and w["limit"] == 100000 and all(p["gpu_bytes"] < p["bytes"] for p in points)'
	holds 'all(p["margin"] == 100000 - p["gpu_bytes"] for p in points)'
	walk --lazy .9:.99:.03 --target-bpw=20 --strict=.96
	holds 'w["largest"] == 3 and "20" not in w["command"]'
	run -4 xfp walk m --lazy .9:.99:.03 --strict .96 --target-size 10kB -q
	[[ $output == *"--target-size 10kB: no point fits; the nearest, lazy 0.9, strict 0.96, needs "*" but the limit is 10.0 kB"* ]]
}

@test "sizes and profiles" {
	walk --survey --points sizes
	xfp plan m -q --json >plan.json
	holds '[p["target"] for p in points] == sorted({p["bytes"] for p in json.load(open("plan.json"))["curve"]["points"]})'
	holds 'all(p["lazy"] is None and p["bytes"] <= p["target"] for p in points)'
	walk --points careful,small,paper-v2 --target-size 1GB
	holds '{p["profile"] for p in points} == {"careful", "small", "paper-v2"}'
	holds 'w["command"].startswith("xfp convert --profile " + points[2]["profile"])'
	xfp plan m -q --json --profile small >plan.json
	holds 'json.load(open("plan.json"))["bundle"]["expected"] in [p["bytes"] for p in points if p["profile"] == "small"]'
}

@test "sizes: the limit itself is a point, which fits and is what its command makes" {
	walk --survey --points sizes
	sizes=$("$PYTHON" -c 'import json; print(*[p["bytes"] for p in json.load(open("walk.json"))["points"][3:5]])')
	between=$((${sizes/ /+}))
	between=$((between / 2 / 1000))
	walk --points sizes --target-size "$between"kB
	holds 'len(points) == 9 and points[4]["options"] == ["--target-size", "'$between'kB"]'
	holds 'w["recommended"] == 4 and 0 <= points[4]["margin"] < points[3]["margin"] / 2'
	eval "$("$PYTHON" -c 'import json; print(json.load(open("walk.json"))["command"])')"
	[ "$(stat -c %s m.xfp)" -le "$between"000 ]
	walk --points sizes --envelope 2x1GiB --reserve "kv=$(((1 << 30) - 1000 * between / 2))"
	holds 'len(points) == 9 and points[w["recommended"]]["options"][:2] == ["--envelope", "2x1GiB"]'
	holds '0 <= points[w["recommended"]]["margin"] < points[w["recommended"] - 1]["margin"]'
	xfp plan m -q --json $("$PYTHON" -c 'import json
w = json.load(open("walk.json"))
print(*w["points"][w["recommended"]]["options"])') >plan.json
	holds '(lambda plan, p: plan["bundle"]["expected"] == p["bytes"] and plan["goal"]["allowed"] == w["limit"])(
		json.load(open("plan.json")), points[w["recommended"]])'
	walk --points sizes --target-bpw 15.5
	holds 'sum(p["options"] == ["--target-bpw", "15.5"] for p in points) == 1'
	# A limit that is one of the sizes, or that nothing fits, adds no point.
	walk --points sizes --target-size "${sizes% *}"
	holds 'len(points) == 8 and w["recommended"] == 3'
	run -4 xfp walk m -q --points sizes --target-size 10kB
}

@test "CSV" {
	xfp walk m --csv -q --lazy .9:.95:.05 --strict .96 >walk.csv
	"$PYTHON" -c 'import csv
rows = list(csv.DictReader(open("walk.csv")))
assert [r["lazy"] for r in rows] == ["0.9", "0.95"] and all(int(r["bytes"]) > 0 for r in rows), rows'
}

@test "the plot is XML without overlapping labels, with a mark for each point and the limit" {
	run -0 xfp walk m -q --lazy .9:.99:.03 --strict .96 --target-size 1MB --plot plot.svg
	"$PYTHON" "$srcdir/tests/svg_boxes.py" plot.svg
	"$PYTHON" -c 'import os, xml.dom.minidom
d = xml.dom.minidom.parse("plot.svg")
titles = [t.firstChild.data for t in d.getElementsByTagName("title")]
assert titles[0] == "4 points of a walk: size and predicted error" and len(titles) == 5, titles
assert titles[1].startswith("lazy 0.9, strict 0.96: "), titles
marks = [c.getAttribute("class") for c in d.getElementsByTagName("circle")]
assert marks.count("best") == 2 and marks.count("point") == 5, marks # one each in the legend
text = open("plot.svg").read()
assert "prefers-color-scheme: dark" in text and os.getcwd() not in text'
	run -0 xfp walk m -q --lazy .9 --strict .96 --plot plot.svg
	"$PYTHON" "$srcdir/tests/svg_boxes.py" plot.svg
	profile=./$(printf 'é%.0s' {1..100}).profile
	echo 'min-cos-lazy = .9' >"$profile"
	run -0 xfp walk m -q --points "$profile" --plot plot.svg
	"$PYTHON" "$srcdir/tests/svg_boxes.py" plot.svg
	run -1 xfp walk m -q --lazy .9 --plot nowhere/plot.svg
	[[ $output == *"--plot nowhere/plot.svg: its folder does not exist; create it first"* ]]
	# Checked before anything is surveyed or probed, and no other file is replaced.
	run -1 xfp walk m -q --lazy .9 --survey --probe --probe-command 'touch asked; echo 1; :' --plot nowhere/plot.svg
	[ ! -e asked ] && [ ! -e xfp-cache ] && [ ! -e m.xfp.walk ]
	before=$(cat m/* | sha256sum)
	for file in m/config.json m/model.safetensors; do
		run -2 xfp walk m -q --lazy .9 --plot $file
		[[ $output == *"--plot $file: exists, and is not a figure in SVG; remove it first"* ]]
	done
	[ "$(cat m/* | sha256sum)" = "$before" ]
	mkfifo pipe
	run -2 xfp walk m -q --lazy .9 --plot pipe
	[[ $output == *"--plot: pipe: is a pipe or a device, not a regular file"* ]]
	[ -p pipe ]
}

@test "invalid points and options" {
	while IFS='|' read -r options message; do
		run -2 xfp walk m $options
		[[ $output == *"$message"* ]] || { echo "$options: $output"; return 1; }
	done <<-'END'
		--lazy 1.5|--lazy '1.5': expected a cosine from 0 to 1, or FIRST:LAST:STEP, as in .88:.95:.01
		--lazy .9:.95|expected a cosine
		--lazy .95:.9:.01|expected a cosine
		--strict .9:.95:0|--strict '.9:.95:0': expected a cosine
		--strict .9:.95:.01:1|expected a cosine
		--lazy 0:1:.00001|expected a cosine
		--lazy .1:.9:.01 --strict .1:.9:.01|more than 1000 points; use a larger step
		--points sizes --lazy .9|--points excludes --lazy and --strict
		--points small,,careful|--points 'small,,careful': expected sizes, or profiles
		--points smal|did you mean small?
		--csv --json|exclude each other
		--drop-cache|--drop-cache would remove
	END
	run -2 xfp walk
	[[ $output == *"MODEL is missing"* ]]
}

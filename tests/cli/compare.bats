#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# xfp compare: its figures match those of conversions and the specifications of the formats, it writes only the
# requested files, and errors have their status.

load helpers

setup() {
	setup_folder
	mkdir tmp
	export TMPDIR=$PWD/tmp
}

teardown() {
	[ -z "$(ls -A tmp)" ] || { ls -A tmp; return 1; }
}

# Run Python on the result: c is compare.json, `ways` the formats of a unit (or of all).
check() { # SCRIPT
	"$PYTHON" - "$1" <<-'EOF'
	import csv, json, os, struct, sys
	c = json.load(open("compare.json")) if os.path.exists("compare.json") else None
	def unit(name):
	    return next(u for u in c["units"] if u["name"] == name)
	def ways(unit, **wanted):
	    return [w for w in unit["ways"] if all(w[k] == v for k, v in wanted.items())]
	exec(sys.argv[1])
	EOF
}

compare() { # ARGUMENT...
	xfp compare --json "$@" >compare.json
}

# Compare a bundle's units with the measurements selected by `wanted`; stacks have outliers of their own.
agree() { # BUNDLE WANTED
	xfp info --json "$1" >info.json
	check "
info = json.load(open('info.json'))
compared = 0
for u in info['units']:
    if u['mode'] == 'fp8' or u['experts'] > 1:
        continue
    way, = ways(unit(u['name']), $2)
    compared += 1
    for key in 'bytes', 'outliers', 'cos_median', 'cos_p5', 'true_bits':
        assert way[key] == u[key], (u['name'], key, way[key], u[key])
assert compared >= 4"
}

@test "fp8 is listed once, with the figures of a conversion" {
	make_model m
	compare m --rows all --per-unit --bits 3,8
	xfp convert m -o c.xfp -q --override '*=fp8'
	xfp info --json c.xfp >info.json
	check "
for u in json.load(open('info.json'))['units']:
    assert u['mode'] == 'fp8'
    way, = ways(unit(u['name']), format='fp8')
    assert way['k'] == 8 and way['outlier_sigma'] is None
    for key in 'bytes', 'outliers', 'cos_median', 'true_bits':
        assert way[key] == u[key], (u['name'], key, way[key], u[key])"
	compare m --bits 3
	check 'assert not ways(c["all"], format="fp8")'
	xfp compare m >text
	[ "$(grep -cE '^fp8 +8 +8\.' text)" = 1 ]
	[ "$(grep -cw fp8 text)" = 1 ]
}

@test "with all rows, figures equal those of conversions" {
	floors=(--min-cos-strict 0 --min-cos-lazy 0 --bits 3)
	for options in "" "--dtype f32 --hidden 200"; do
		rm -rf m ./*.xfp xfp-cache
		# shellcheck disable=SC2086
		make_model m $options
		compare m --rows all --per-unit --bits 3 --outlier-sigma none,4
		check 'assert c["unit_count"] == 9 and all(u["rows"] == u["rows_measured"] for u in c["units"])'
		for group in 16 32; do
			xfp convert m -o c.xfp -q "${floors[@]}" --mode v2c --group-size $group --outlier-sigma 4
			agree c.xfp "format='v2c', group_size=$group, outlier_sigma=4"
		done
		xfp convert m -o 2.xfp -q "${floors[@]}" --mode v2 --outlier-sigma 4
		agree 2.xfp "format='v2', outlier_sigma=4"
		xfp convert m -o a.xfp -q "${floors[@]}" --mode v2a --outlier-sigma none
		agree a.xfp "format='v2a', libfit='refined', outlier_sigma=None"
		xfp convert m -o p.xfp -q "${floors[@]}" --mode v2a --profile paper-v2a --outlier-sigma none \
			--moe-lloyd-iters 20
		agree p.xfp "format='v2a', libfit='published'"
	done
}

@test "bits of common formats are exact, and so are the figures of the simplest one" {
	make_model m --dtype f32 --hidden 40 --heads 2
	compare m --rows all --per-unit --bits 2 --outlier-sigma none
	check '
blocks = {"int4-32": (32, 18), "int4-128": (128, 66), "int4z-32": (64, 37), "int4z-128": (256, 133), "Q4_0": (32, 18),
          "Q2_K": (256, 84), "Q3_K": (256, 110), "Q4_K": (256, 144), "Q5_K": (256, 176), "Q6_K": (256, 210),
          "IQ4_XS": (256, 136), "NVFP4": (16, 9), "MXFP4": (32, 17), "FP8-128x128": (1, 1)}
for name, (weights, size) in blocks.items():
    for u in c["units"]:
        n = u["weights"] // u["experts"]
        tiles = -(-(n // u["cols"]) // 128) * -(-u["cols"] // 128)
        shared = {"NVFP4": 4, "FP8-128x128": 4 * tiles}.get(name, 0)
        w, = ways(u, format=name)
        assert w["bytes"] == u["experts"] * (-(-n // weights) * size + shared), (name, u["name"])
        assert abs(w["true_bits"] - w["bytes"] * 8 / u["weights"]) < 1e-12 and 0 < w["error"] < .2 and w["cos_median"] > .9
    w, = ways(c["all"], format=name)
    assert w["bytes"] == sum(ways(u, format=name)[0]["bytes"] for u in c["units"])
    mean = sum(ways(u, format=name)[0]["cos_median"] for u in c["units"]) / len(c["units"])
    assert abs(w["cos_median"] - mean) < 1e-12
'
	# int4-32 by its definition, in a matrix whose row length is not a multiple of the group size
	check '
f = open("m/model.safetensors", "rb")
size, = struct.unpack("<Q", f.read(8))
header = json.loads(f.read(size))
name = "model.layers.0.self_attn.k_proj.weight"
begin, end = header[name]["data_offsets"]
assert header[name]["shape"][1] % 32
f.seek(8 + size + begin)
w = struct.unpack("<%df" % ((end - begin) // 4), f.read(end - begin))
error = 0
for g in range(0, len(w), 32):
    group = w[g:g + 32]
    d, = struct.unpack("<e", struct.pack("<e", max(group, key=abs) / -8))
    error += sum((x - d * max(-8, min(7, round(x / d)))) ** 2 for x in group)
way, = ways(unit(name), format="int4-32")
assert abs(way["error"] / (error / sum(x * x for x in w)) - 1) < 1e-5
'
}

@test "formats with scales per matrix and per tile match their formulas, for all rows and for some" {
	# Rows and columns end inside a tile. Experts differ in size, so that a scale of the wrong expert shows;
	# embeddings and head have more rows than one pass holds.
	make_model m --dtype f32 --hidden 352 --intermediate 304 --vocab 1100
	"$PYTHON" - <<-'EOF'
	import json, numpy as np, struct
	f = open("m/model.safetensors", "r+b")
	size, = struct.unpack("<Q", f.read(8))
	header = json.loads(f.read(size))
	for name, tensor in header.items():
	    if ".experts." in name:
	        begin, end = tensor["data_offsets"]
	        f.seek(8 + size + begin)
	        w = np.frombuffer(f.read(end - begin), "<f4") * np.float32(1.7 ** int(name.split(".experts.")[1].split(".")[0]))
	        f.seek(8 + size + begin)
	        f.write(w.astype("<f4").tobytes())
	EOF
	for rows in all 100; do
		compare m --rows $rows --per-unit --bits 2 --outlier-sigma none --libfit refined
		check '
import numpy as np
f = open("m/model.safetensors", "rb")
size, = struct.unpack("<Q", f.read(8))
header = json.loads(f.read(size))
def matrix(name):
    begin, end = header[name]["data_offsets"]
    f.seek(8 + size + begin)
    return np.frombuffer(f.read(end - begin), "<f4").reshape(header[name]["shape"])
E2M1 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6], "f4")
E4M3 = np.array([m * 2. ** -9 if e == 0 else (8 + m) * 2. ** (e - 10) for e in range(16) for m in range(8)][:-1], "f4")
def nearest(y, values): # of two the one with the even code
    size = abs(y)
    over = np.searchsorted(values, size).clip(1, len(values) - 1)
    up, down = values[over] - size, size - values[over - 1]
    return np.copysign(values[over - ((down < up) | ((down == up) & (over % 2 == 1)))], y)
def amax(w, rows, cols): # of each tile, at each of its weights
    top = np.zeros_like(w)
    for r in range(0, len(w), rows):
        for c in range(0, w.shape[1], cols):
            top[r:r + rows, c:c + cols] = abs(w[r:r + rows, c:c + cols]).max()
    return top
def nvfp4(w):
    whole = abs(w).max() / np.float32(2688)
    step = nearest((amax(w, 1, 16) / (np.float32(6) * whole)).clip(2. ** -9, 448), E4M3) * whole
    return nearest(w / step, E2M1) * step
def mxfp4(w):
    step = np.ldexp(np.float32(1), np.frexp(amax(w, 1, 32))[1] - 3) # log2 of what is just below a power of two is it
    return nearest((w / step).clip(-6, 6), E2M1) * step
def fp8(w):
    step = amax(w, 128, 128) / np.float32(448)
    return nearest(w / step, E4M3) * step
seen = 0
for name, reference in {"NVFP4": nvfp4, "FP8-128x128": fp8, "MXFP4": mxfp4}.items():
    for u in c["units"]:
        member = [n for n in header if n == u["name"] or (u["experts"] > 1 and u["role"] + "_proj" in n and ".experts." in n)]
        member.sort(key=lambda n: (int(n.split(".experts.")[1].split(".")[0]) if ".experts." in n else 0))
        assert len(member) == u["experts"], (u["name"], member)
        w = [matrix(n) for n in member]
        if w[0].shape[1] % 16 or (name == "MXFP4" and w[0].shape[1] % 32):
            continue
        off = np.concatenate([((a.astype("f8") - reference(a)) ** 2).sum(1) for a in w])
        norm = np.concatenate([(a.astype("f8") ** 2).sum(1) for a in w])
        peak = np.concatenate([abs(a).max(1) for a in w])
        n, k = len(off), u["rows_measured"]
        assert n == u["rows"] and k == min(n, {"all": n}.get("'$rows'", 100))
        sample = [i * n // k for i in range(k)]
        picked = sorted(set(sorted(range(n), key=lambda r: (-peak[r], r))[:16]) - set(sample))
        each = (n - len(picked)) / k
        expected = (off[sample].sum() * each + off[picked].sum()) / (norm[sample].sum() * each + norm[picked].sum())
        way, = ways(u, format=name)
        assert abs(way["error"] / expected - 1) < 1e-5, (name, u["name"], way["error"], expected)
        seen += 1
assert seen >= 20, seen
'
	done
}

@test "claims follow from the measurements" {
	make_model m --hidden 128 --intermediate 96
	compare m --per-unit --bits 2-4 --outlier-sigma none,3
	check '
rivals = ["int4-32", "int4-128", "int4z-32", "int4z-128", "Q4_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS", "NVFP4",
          "MXFP4", "FP8-128x128"] + ["v2a"] * 3
for u in c["units"] + [c["all"]]:
    assert [x["format"]["format"] for x in u["claims"]] == rivals
    for x in u["claims"]:
        allowed = x["format"]["format"] in ("IQ4_XS", "MXFP4")
        assert x["shared_allowed"] == allowed
        fit = [w for w in u["ways"] if w["format"] in ("v2", "v2a", "v2c") and w["libfit"] != "published"
               and w["bytes"] - (w["shared_bytes"] if allowed else 0) <= x["format"]["bytes"]]
        if not fit:
            assert x["xfp"] is None and x["ratio"] is None
            continue
        assert x["xfp"]["error"] == min(w["error"] for w in fit) and x["xfp"] in fit
        assert abs(x["ratio"] - x["xfp"]["error"] / x["format"]["error"]) < 1e-12
worst = [x for x in c["all"]["claims"] if x["worst"] is not None]
assert worst
for x in worst:
    i = c["all"]["claims"].index(x)
    assert x["worst"] == max(u["claims"][i]["ratio"] for u in c["units"]) == unit(x["worst_unit"])["claims"][i]["ratio"]
    assert x["unit_by_unit"] <= x["worst"]
assert len(c["all"]["ways"]) == (3 + 3 + 6) * 2 + 3 + 14
'
}

@test "the answer comes first: the best setting for a size, and the comparable llama.cpp types" {
	make_model m --hidden 256 --intermediate 256
	compare m --bits 2-5,8 --outlier-sigma none,3
	check '
assert [a["bits"] for a in c["answers"]] == [2.5, 3, 3.5, 4, 4.5, 5, 6]
ways = c["all"]["ways"]
ours = [w for w in ways if w["format"] in ("v2", "v2a", "v2c", "fp8") and w["libfit"] != "published"]
llama = [w for w in ways if w["format"] in ("Q4_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS")]
assert len(llama) == 7
found = {"replaces": 0, "cheapest": 0}
for a in c["answers"]:
    fit = [w for w in ours if w["true_bits"] <= a["bits"]]
    if not fit:
        assert a["xfp"] is None and a["replaces"] is None and a["cheapest"] is None
        continue
    best = a["xfp"]
    assert best in fit and best["error"] == min(w["error"] for w in fit)
    worse = [w for w in llama if w["bytes"] >= best["bytes"] and w["error"] >= best["error"]]
    better = [w for w in llama if w["error"] <= best["error"]]
    for key, types, by in ("replaces", worse, "error"), ("cheapest", better, "bytes"):
        found[key] += bool(types)
        assert a[key] == (min(types, key=lambda w: w[by]) if types else None), (a, key)
assert min(found.values()) > 0, found
'
	COLUMNS=200 xfp compare m --bits 2-5,8 --outlier-sigma none,3 --per-unit >text
	sed -n 1p text | grep -q '^9 units, '
	sed -n 3p text | grep -qE '^up to bits +best setting +bits/weight +error +replaces +llama.cpp needs$'
	[ "$(sed -n 4,10p text | awk '{ print $1 }' | xargs)" = "2.5 3.0 3.5 4.0 4.5 5.0 6.0" ]
	check '
for line, a in zip(open("text").read().splitlines()[3:10], c["answers"]):
    for key in "replaces", "cheapest":
        type = a["xfp"] and a[key]
        want = "%s (%.3f)" % (type["format"], type["true_bits"]) if type else "none" if a["xfp"] else "nothing is as small"
        assert want in line, (line, want)
'
	xfp compare m --bits 5 >text
	grep -qE '^ *4\.5 +nothing is as small$' text
}

@test "text: one table of our candidates, one of common formats; both for each unit" {
	make_model m --hidden 256 --intermediate 256
	COLUMNS=200 xfp compare m --bits 3,4 >text
	grep -qE '^9 units, .* weights; ' text
	grep -qE '^mode +k +bits/weight +cosine +error +with outliers' text
	for word in 'v2 +3' 'v2a, 128 +4' 'v2a, 128 published +3' 'v2c, 16 +4' 'v2c, 32 +3' 'Q2_K' 'Q4_K' 'IQ4_XS' 'NVFP4' \
		'published v2a, k 4' '\* not counting row scales'; do
		grep -qE "^$word" text || { cat text; return 1; }
	done
	[ "$(COLUMNS=200 xfp compare m --bits 3 --per-unit --outlier-sigma none | grep -c '^mode ')" = 10 ]
	run -0 --separate-stderr xfp compare m role:q --bits 3 --libfit refined --outlier-sigma 4
	[[ $output == "1 unit, "* && $output != *published* && $output != *"worst unit"* ]]
}

@test "CSV: one line per candidate, with a fixed number of columns" {
	make_model m
	xfp compare m --csv --bits 3 >all.csv
	xfp compare m --csv --bits 3 --per-unit >units.csv
	check '
rows = list(csv.DictReader(open("all.csv")))
assert list(rows[0]) == ("unit format k group_size library_size libfit outlier_sigma weights bytes shared_bytes true_bits "
                         "outliers cos_median cos_p5 error").split()
assert len(rows) == 4 * 7 + 1 + 14 and not any(None in r or None in r.values() or r["unit"] for r in rows)
assert [r["outlier_sigma"] for r in rows[:7]] == ["none", "5.0", "4.0", "3.5", "3.0", "2.7", "2.5"]
assert all(abs(float(r["true_bits"]) - int(r["bytes"]) * 8 / int(r["weights"])) < 1e-6 for r in rows)
more = list(csv.DictReader(open("units.csv")))
assert more[:len(rows)] == rows and len(more) == 10 * len(rows)
assert sum(int(r["weights"]) for r in more[len(rows)::len(rows)]) == int(rows[0]["weights"])
'
}

@test "units by name, glob, role and class; a kept matrix by its name; no match is a usage error" {
	make_model m
	names() { # TENSOR...
		compare m --bits 2 --outlier-sigma none --libfit refined --per-unit "$@"
		check 'print(" ".join(u["role"] + ":" + u["class"] for u in c["units"]))'
	}
	[ "$(names)" = "lm_head:lm_head embedding:embedding q:attention k:attention v:attention o:attention gate:routed_expert up:routed_expert down:routed_expert" ]
	[ "$(names 'role:[qk]' model.layers.0.self_attn.o_proj.weight)" = "q:attention k:attention o:attention" ]
	[ "$(names class:routed_expert)" = "gate:routed_expert up:routed_expert down:routed_expert" ]
	[ "$(names 'model.layers.0.mlp.experts.*.down_proj.weight')" = "down:routed_expert" ]
	[ "$(names model.layers.0.mlp.gate.weight)" = "router:router" ]
	[ "$(names lm_head.weight)" = "lm_head:lm_head" ]
	run -2 xfp compare m 'model.layers.0.self_attn.q.weight'
	[[ $output == *"TENSOR 'model.layers.0.self_attn.q.weight': matches no unit; the nearest names are"*q_proj* ]]
	run -2 xfp compare m model.norm.weight
	[[ $output == *"not a matrix of floating-point weights"* && $output != *--override* ]]
	run -2 xfp compare m self_attn.q_proj
	[[ $output == *"TENSOR 'self_attn.q_proj': matches no unit; names that contain it match '*self_attn.q_proj*'"* ]]
	run -2 xfp compare m class:norn
	[[ $output == "xfp compare: TENSOR 'class:norn': no class 'norn'; did you mean norm?"* ]]
	run -2 xfp compare m ''
}

@test "the same bytes with any number of threads and any instruction set" {
	make_model m --hidden 200 --intermediate 96
	expected=$(OMP_NUM_THREADS=1 xfp compare m --csv --per-unit --rows 100 --bits 2-4 -o 1.svg)
	[ "$(OMP_NUM_THREADS=3 xfp compare m --csv --per-unit --rows 100 --bits 2-4 -o 3.svg)" = "$expected" ]
	cmp 1.svg 3.svg
	for set in plain avx2 avx512; do
		if [ $set = plain ] || grep -qw "${set/avx512/avx512dq}" /proc/cpuinfo; then
			[ "$(XFP_INSTRUCTIONS=$set xfp compare m --csv --per-unit --rows 100 --bits 2-4)" = "$expected" ]
		else
			echo "# this machine has no $set: not compared" >&3
		fi
	done
	XFP_INSTRUCTIONS=mmx run -2 xfp compare m
}

no_label_covered() { # SVG...
	for svg in "$@"; do
		"$PYTHON" "$srcdir/tests/svg_boxes.py" "$svg" || { echo "$svg"; return 1; }
	done
}

@test "plots of results name their models and explain their marks, and labels do not overlap" {
	no_label_covered "$srcdir"/tests/models/results/*.svg
	for model in all-MiniLM-L6-v2 qwen3-moe-8m; do
		grep -q "class=\"title\" .*>$model: " "$srcdir/tests/models/results/$model.svg"
		grep -q '>a point is a setting, at fixed bits or at a floor; lines join those of a mode<' \
			"$srcdir/tests/models/results/$model.svg"
	done
	PYTHONDONTWRITEBYTECODE=1 "$PYTHON" - "$srcdir/tests/models" <<-'EOF'
	import sys
	sys.path.insert(0, sys.argv[1])
	from loss_plot import plot
	# ten of nearly the same size and loss
	points = [("llama.cpp", "Q%d_K_M" % i, 4 + i / 100, .1 + i / 5000) for i in range(10)]
	open("crowded.svg", "w").write(plot("m: loss", points + [("v2", "v2, k = %d" % k, k + .3, .5 ** k) for k in (3, 4, 5)]))
	EOF
	no_label_covered crowded.svg
}

@test "the plot is XML with a line per mode and a name per format, the model's name, and a legend" {
	make_model m --hidden 256 --intermediate 256
	before=$(find . -path ./tmp -prune -o -type f -print | sort)
	xfp compare m --bits 2-4,8 -o plot.svg >/dev/null
	[ "$(find . -path ./tmp -prune -o -type f ! -name plot.svg -print | sort)" = "$before" ]
	check '
import xml.dom.minidom
d = xml.dom.minidom.parse("plot.svg")
texts = [t.firstChild.data for t in d.getElementsByTagName("text")]
for name in ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS", "Q4_0", "int4-32", "int4-128", "int4z-32", "int4z-128",
             "NVFP4", "MXFP4"):
    assert texts.count(name) == 2, name
for name in "v2", "v2a, 128", "v2a, 128 published", "v2c, 16", "v2c, 32":
    assert texts.count(name) == 1, name
assert not {"fp8", "FP8-128x128"} & set(texts) # which have more bits than are shown
assert any(t.startswith("m: 9 units, ") for t in texts), texts
assert "small dots: each outlier threshold, and none; lines join the best of each number of bits" in texts
assert "common formats" in texts
lines = [p for p in d.getElementsByTagName("polyline") if p.getAttribute("points").strip()]
assert len(lines) == 5 * 3
assert "prefers-color-scheme: dark" in open("plot.svg").read() and os.getcwd() not in open("plot.svg").read()
'
	no_label_covered plot.svg
	# rows so short that labels are crowded; a name with characters that XML escapes
	make_model short
	mv short 'a <b> & c'
	xfp compare 'a <b> & c/' role:q -o short.svg >/dev/null
	no_label_covered short.svg
	grep -q '>a &lt;b&gt; &amp; c: 1 unit, ' short.svg
	run -2 xfp compare m -o m/model.safetensors
	[[ $output == *"ends in .svg"* ]]
	run -1 xfp compare m -o nowhere/plot.svg
	[[ $output == *nowhere/plot.svg* ]]
}

@test "a wrong command line: status 2" {
	make_model m
	for wrong in "" "m --rows 0" "m --rows x" "m --bits 7" "m --outlier-sigma 0" "m --outlier-sigma 4,auto" \
		"m --outlier-sigma 1,2,3,4,5,6,7,8,9" "m --libfit other" "m --balance 2" "m --json --csv" "m --per-units" \
		"m --group-size 48" "m --mode v2"; do
		# shellcheck disable=SC2086
		run -2 xfp compare $wrong
		[[ $output == *"Try 'xfp compare --help'"* ]]
	done
}

@test "NaN fails, or omits its unit" {
	make_bad nan strange
	run -3 xfp compare strange
	[[ $output == *NaN*--on-nonfinite* ]]
	make_bad good good
	xfp compare good --json --bits 2 --outlier-sigma none >good.json
	xfp compare strange --json --bits 2 --outlier-sigma none --on-nonfinite keep >compare.json 2>errors
	grep -q "is left out" errors
	check 'assert c["left_out"] == 1 and c["unit_count"] == json.load(open("good.json"))["unit_count"] - 1'
}

@test "extreme weights have figures, and JSON stays valid" {
	for kind in all-zero constant tiny huge k1 k-odd shell-names; do
		make_bad $kind "$kind"
		compare "$kind" --per-unit --rows all
		check 'for u in c["units"] + [c["all"]]:
    for w in u["ways"]:
        assert w["error"] is None or 0 <= w["error"] < 2, (u.get("name"), w)
        assert w["cos_median"] is None or -1 <= w["cos_median"] <= 1'
		xfp compare "$kind" --per-unit -o "$kind.svg" >text
		run ! grep -qE 'nan|inf' text
		"$PYTHON" -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$kind.svg"
	done
}

@test "a broken checkpoint: status 3" {
	for kind in truncated-shard header-not-json hole; do
		make_bad $kind bad
		run -3 xfp compare bad
		[[ $output == *.safetensors* ]]
		rm -r bad
	done
	run -3 xfp compare nowhere
}

@test "settings come from the environment; the command line takes precedence" {
	make_model m
	xfp compare m role:q --bits 3 --rows 4 --outlier-sigma none --csv >given
	XFP_BITS=3 XFP_OUTLIER_SIGMA=none xfp compare m role:q --rows 4 --csv >inherited
	cmp given inherited
	XFP_BITS=2 XFP_OUTLIER_SIGMA=none xfp compare m role:q --rows 4 --csv --bits 3 | cmp given
	XFP_BITS=9 run -2 xfp compare m
	[[ ${lines[0]} == "xfp compare: XFP_BITS '9': expected bits from 2 to 6"* ]]
}

@test "interrupted: it leaves nothing and ends by the signal" {
	make_model m --hidden 512 --intermediate 512 --layers 4
	replace_stage xfp-inspect '
		"$real" "$@"
		status=$?
		touch "$top/inspected"
		[ ! -e "$top/stall" ] || sleep 60
		exit $status'
	# while headers are read, then while weights are measured
	touch stall
	for when in reading measuring; do
		bin/xfp compare m --rows all -o plot.svg >text 2>errors &
		pid=$!
		for _ in $(seq 1000); do
			[ ! -e inspected ] || break
			sleep 0.01
		done
		[ -e inspected ] || { cat errors; return 1; }
		sleep 0.3
		kill -TERM $pid
		status=0
		wait $pid || status=$?
		[ $status = 143 ]
		[ ! -e plot.svg ] && [ ! -s text ] && [ -z "$(ls -A tmp)" ] || { echo "$when"; return 1; }
		rm -f stall inspected
	done
}

@test "on a terminal: progress and remaining time, erased at the end" {
	make_model m
	"$PYTHON" - >typescript <<-'EOF'
	import os, pty, sys
	status = pty.spawn(["xfp", "compare", "m", "--rows", "64", "--bits", "2"], lambda fd: os.read(fd, 65536))
	sys.exit(os.waitstatus_to_exitcode(status))
	EOF
	grep -Eq $'\r\e\\[K  0% 1 of 9: lm_head' typescript
	grep -Eq $'\r\e\\[K 23% 3 of 9, about [0-9]+ s left: model' typescript # 128 of 560 columns are done
	[[ $(sed $'s/.*\r\e\\[K//' typescript) == *units* && $(sed $'s/.*\r\e\\[K//' typescript) != *" of 9"* ]]
	xfp compare m --rows 64 --bits 2 2>errors >table
	[ "$(cat errors)" = "xfp compare: measuring 9 units in every mode and in 14 common formats; this takes a while" ]
	xfp compare m role:q --rows 64 --bits 2 2>errors >table
	grep -q '^xfp compare: measuring 1 unit in' errors
	xfp compare m --rows 64 --bits 2 -q 2>errors >table
	cat errors
	[ ! -s errors ]
}

@test "threads wait passively, in a process with the same arguments, unless the environment says otherwise" {
	make_model m
	expected=$(xfp compare m --csv --rows 64 --bits 2 role:q)
	[ "$(OMP_NUM_THREADS=2 OMP_DISPLAY_ENV=verbose xfp compare m --csv --rows 64 --bits 2 role:q 2>shown)" = "$expected" ]
	grep -q SPINCOUNT shown || skip "this OpenMP does not say how it waits"
	grep -q "GOMP_SPINCOUNT = '0'" shown
	OMP_WAIT_POLICY=active OMP_NUM_THREADS=2 OMP_DISPLAY_ENV=verbose xfp compare m --rows 64 --bits 2 role:q >table 2>shown
	run ! grep "GOMP_SPINCOUNT = '0'" shown
	run -2 xfp compare --rowz 3
	[[ ${lines[0]} == "xfp compare: unknown option --rowz; did you mean --rows?" ]]
}

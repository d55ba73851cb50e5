#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Output for people: totals first, tables that fit the screen, and reasons.

load helpers

setup() {
	setup_folder
	unset COLUMNS
}

# The model under longer names: seventy letters and more each.
long_names() { # MODEL NEW
	"$PYTHON" - "$1" "$2" <<-'EOF'
	import json, os, shutil, struct, sys
	old, new = sys.argv[1:]
	shutil.copytree(old, new)
	path = new + "/model.safetensors"
	data = open(path, "rb").read()
	size = struct.unpack("<Q", data[:8])[0]
	header = {k.replace("model.layers", "model.language_model.model.layers"): v
	          for k, v in json.loads(data[8:8 + size]).items()}
	text = json.dumps(header).encode()
	text += b" " * (-len(text) % 8)
	open(path, "wb").write(struct.pack("<Q", len(text)) + text + data[8 + size:])
	EOF
}

# Lines wider than NUMBER, except those that contain a whole path.
wider() { # NUMBER
	grep -v -F "$PWD" | grep -v "^rules   " | awk -v most="$1" 'length > most' || true
}

fits() { # NUMBER COMMAND...
	local most=$1 lines
	shift
	"$@" >printed 2>/dev/null
	[ -s printed ] || { echo "$*: prints nothing"; return 1; }
	lines=$(wider "$most" <printed)
	[ -z "$lines" ] || { echo "$*: wider than $most:"; echo "$lines"; return 1; }
}

@test "every table fits into 80 columns with names of any length, and is wider if there is space" {
	make_model short --layers 2
	long_names short m
	XFP_MODE=auto xfp convert m -o o.xfp --format attention=2 -q
	export XFP_MODE=auto
	fits 80 xfp plan m
	fits 80 xfp plan m -o o.xfp
	fits 80 xfp convert m -o o.xfp --format attention=2
	fits 80 xfp info o.xfp
	fits 80 xfp info --units o.xfp
	grep -q '^model.language_model.model.layers.1.mlp.experts.\*.down_proj.weight (down' printed
	fits 80 xfp verify "$PWD/o.xfp"
	fits 80 xfp status o.xfp
	fits 80 xfp compare m --bits 3 --rows 4
	fits 80 xfp compare m --bits 3 --rows 4 --per-unit
	fits 80 xfp-inspect m
	fits 80 xfp-inspect -v m
	for command in ls "ls --keys" stats "gc -n" check; do
		fits 80 xfp cache $command
	done
	# all columns side by side, and names in the same row
	COLUMNS=300 xfp info --units o.xfp >wide
	grep -q '^class .* bits/weight .* worst unit$' wide
	grep -q '^mode .*  unit$' wide
	grep -q '^v2c  *[0-9]* .* model.language_model.model.layers.1.mlp.experts.\*.up_proj.weight (up, .*; library of 16' wide
	COLUMNS=120 xfp info o.xfp | awk 'length > 120 { exit 1 }'
}

@test "tables show mode and group size next to bits" {
	make_model m
	export XFP_MODE=v2c
	xfp convert m -o o.xfp --group-size 32 -q
	grep -Eq '^attention +4 +12.3 k v2c +32 +[2-6]' <<<"$(xfp info o.xfp)"
	grep -Eq '^lm_head +1 +6.14 k fp8 +- +- ' <<<"$(xfp info o.xfp)"
	grep -Eq '^attention +q +1 +4.10 k +0.99 +v2c +32 +[2-6]$' <<<"$(xfp plan m -o o.xfp --group-size 32)"
}

@test "size, bits per weight and share of the source come first, and add up" {
	make_model m --tie
	xfp convert m -o o.xfp >converted
	xfp info o.xfp >info
	xfp info --json o.xfp >info.json
	xfp plan m -o o.xfp --json >plan.json
	"$PYTHON" - <<-'EOF'
	import json, os, re, struct
	data = open("m/model.safetensors", "rb").read()
	header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
	header.pop("__metadata__", None)
	def count(shape):
	    n = 1
	    for d in shape: n *= d
	    return n
	elements = sum(count(t["shape"]) for t in header.values())
	source = sum(b - a for a, b in (t["data_offsets"] for t in header.values()))
	size = os.path.getsize("o.xfp")
	info = json.load(open("info.json"))
	w = info["whole"]
	assert (w["bytes"], w["elements"], w["source_bytes"]) == (size, elements, source), (w, size, elements, source)
	assert abs(w["bits_per_weight"] - size * 8 / elements) < 1e-9
	quantized = [u for u in info["units"] if u["mode"] != "keep"]
	assert w["quantized_bytes"] == sum(u["bytes"] for u in quantized)
	paper = sum(u["paper_bits"] * u["weights"] for u in quantized) / sum(u["weights"] for u in quantized)
	assert abs(w["paper_bits"] - paper) < 1e-9 and 2 <= paper < w["true_bits"]
	for name in "converted", "info":
	    lines = open(name).read().splitlines()
	    found = re.fullmatch(r"[0-9.]+ kB, ([0-9.]+) bits per weight overall; ([0-9.]+) % of the source's [0-9.]+ kB", lines[1])
	    assert found, lines[1]
	    assert abs(float(found[1]) - size * 8 / elements) < .001 and abs(float(found[2]) - 100 * size / source) < .06
	    shares = re.fullmatch(r"quantized ([0-9.]+) % of bytes, at ([0-9.]+) bits per weight \(([0-9.]+) as papers count\); "
	                          r"kept tensors ([0-9.]+) %, files ([0-9.]+) %, index and padding ([0-9.]+) %",
	                          " ".join(lines[2:4]))
	    assert shares, lines[2:4]
	    assert abs(sum(float(shares[i]) for i in (1, 4, 5, 6)) - 100) < .3 and abs(float(shares[3]) - paper) < .001
	p = json.load(open("plan.json"))["whole"]
	assert (p["elements"], p["source_bytes"], p["quantized_bytes"], p["kept_bytes"], p["file_bytes"]) == \
	       (elements, source, w["quantized_bytes"], w["kept_bytes"], w["file_bytes"]), (p, w)
	assert abs(p["paper_bits"] - paper) < 1e-9 and abs(p["bytes"] / size - 1) < .05
	EOF
}

@test "a head that is stored in addition counts once" {
	make_model m
	"$PYTHON" - <<-'EOF'
	import json, struct
	data = bytearray(open("m/model.safetensors", "rb").read())
	size = struct.unpack("<Q", data[:8])[0]
	header = json.loads(data[8:8 + size])
	a, b = header["model.embed_tokens.weight"]["data_offsets"]
	c, d = header["lm_head.weight"]["data_offsets"]
	data[8 + size + c:8 + size + d] = data[8 + size + a:8 + size + b]
	open("m/model.safetensors", "wb").write(data)
	config = json.load(open("m/config.json"))
	config["tie_word_embeddings"] = True
	json.dump(config, open("m/config.json", "w"))
	EOF
	xfp convert m -o o.xfp -q
	xfp info --json o.xfp | "$PYTHON" -c '
import json, sys
i = json.load(sys.stdin)
tied = [t for t in i["tensors"] if t["fate"] == "tied"]
assert [t["name"] for t in tied] == ["lm_head.weight"]
n = 0
for t in i["tensors"]:
    e = 1
    for d in t["shape"]: e *= d
    n += e
assert i["whole"]["elements"] == n - 96 * 64, (i["whole"], n)
assert i["whole"]["source_bytes"] == 2 * n'
}

@test "kept tensors that are a large share of a bundle are named with a remedy, and the remedy works" {
	unset XFP_FORMAT XFP_LM_HEAD # a tied matrix would obey the second, too
	make_model m --vocab 20000 --tie
	run -0 --separate-stderr xfp convert m -o o.xfp --format embedding=keep
	[[ ${lines[4]} =~ ^kept\ tensors\ are\ ([0-9]+)\ %\ of\ the\ bundle\;\ (--format\ embedding=fp8)\ quantizes\ ([0-9]+)\ %$ ]]
	[ "${BASH_REMATCH[1]}" -gt 80 ]
	remedy=${BASH_REMATCH[2]}
	xfp convert m -o again.xfp -q $remedy
	[ "$(stat -c %s again.xfp)" -lt "$(($(stat -c %s o.xfp) * 2 / 3))" ]
	run ! grep "kept tensors are" <<<"$(xfp info again.xfp)"
	make_model wide --vocab 2000 --tie --hidden 1024
	xfp convert wide -o wide.xfp --format embedding=keep | grep -q -- '--format embedding=6 quantizes'
	xfp convert wide -o six.xfp --format embedding=6 -q
	xfp convert wide -o fp8.xfp --format embedding=fp8 -q
	[ "$(stat -c %s six.xfp)" -lt "$(stat -c %s fp8.xfp)" ]
	XFP_MODE=auto xfp convert m -o auto.xfp --format embedding=keep | grep -q -- '--format embedding=6 quantizes'
	XFP_MODE=auto xfp convert m -o auto6.xfp --format embedding=6 -q
	[ "$(stat -c %s auto6.xfp)" -lt "$(stat -c %s again.xfp)" ]
	# if nothing can be changed, the share of kept tensors is all that is printed
	"$PYTHON" - <<-'EOF'
	import json, os, struct
	os.mkdir("vectors")
	text = json.dumps({"model.norm.weight": {"dtype": "F32", "shape": [20000], "data_offsets": [0, 80000]}}).encode()
	open("vectors/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + bytes(80000))
	EOF
	run -0 --separate-stderr xfp convert vectors -o vectors.xfp --allow-empty
	[[ $output == *"kept tensors "[89]?.?" %, files"* ]]
	[[ $output != *"kept tensors are"* ]]
	xfp plan m -o o.xfp --format embedding=keep | grep -q '^kept tensors are [89][0-9] % of the bundle; --format embedding='
}

@test "a unit that differs from the request has a reason" {
	make_model m
	xfp convert m -o fixed.xfp --format attention=2 >stdout
	grep -A1 -F 'self_attn.q_proj.weight (q)' stdout | grep -Eq '^    below its floor: its bits are fixed \(0.9[0-9]+ of 0.99\)$'
	COLUMNS=250 xfp info --units fixed.xfp | grep 'q_proj.weight (q, ' | grep -q 'bits fixed by --format attention=2; below its floor: its bits are fixed$'
	xfp info --json fixed.xfp | grep -q '"missed": "below its floor: its bits are fixed"'
	xfp convert m -o best.xfp --min-cos-lazy 1 --on-miss best >stdout
	grep -q '^    below its floor: no candidate meets it, and this is the best (0.99[0-9]* of 1)$' stdout
	xfp convert m -o kept.xfp --min-cos-lazy 1 >stdout
	grep -q '^    at source precision: no smaller candidate meets its floor$' stdout
	make_model many --layers 4
	xfp convert many -o many.xfp --format attention=2 >stdout
	[ "$(grep -c 'below its floor: its bits are fixed' stdout)" -eq 5 ]
	grep -q '^  and 11 more: xfp info --units$' stdout
	xfp convert m -o good.xfp >stdout
	run ! grep -q "below its floor\|at source precision" stdout
}

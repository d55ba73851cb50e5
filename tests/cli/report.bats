#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# xfp report: the page is valid, self-contained and has the bundle's figures; names cannot inject markup; bad input has
# its status.

load helpers

setup() {
	setup_folder
}

page() { # PAGE
	"$PYTHON" "$srcdir/tests/check_page.py" "$1"
}

# Run Python on a page: `text` is its text, `tables` the rows of its tables by caption.
check() { # PAGE SCRIPT
	"$PYTHON" - "$1" "$2" <<-'EOF'
	import json, re, sys, textwrap
	import xml.etree.ElementTree as ElementTree
	source = open(sys.argv[1], encoding="utf-8").read()
	root = ElementTree.fromstring(source.split("\n", 1)[1])
	text = re.sub(r"\s+", " ", "".join(root.itertext()))
	tables = {
	    "".join(table.find("caption").itertext()): [
	        ["".join(cell.itertext()) for cell in row] for row in table.findall("tbody/tr")
	    ]
	    for table in root.iter("table")
	}
	info = json.load(open("info.json"))
	exec(textwrap.dedent(sys.argv[2]))
	EOF
}

@test "the page has the figures of the bundle" {
	make_model m --layers 3
	xfp convert m -o c.xfp -q
	xfp info --json c.xfp >info.json
	run -0 --separate-stderr xfp report c.xfp -o r.html
	[ -z "$output$stderr" ]
	page r.html
	grep -q "$(sha c.xfp)" r.html
	check r.html '
	assert "qwen3_moe" in text and "Worst layer: layer" in text
	units = tables["Every unit"]
	assert [row[0] for row in units] == [u["name"] for u in info["units"]]
	for row, unit in zip(units, info["units"]):
	    assert row[2:4] == [unit["mode"], str(unit["k"] or "-")]
	    assert row[6] == "%.6f" % unit["cos_median"] and row[4] == "%.3f" % unit["true_bits"]
	parts = tables["Bits by component (the paper'"'"'s table 3)"]
	assert sum(int(row[3]) for row in parts[:-1]) == int(parts[-1][3]) == len(info["units"])
	ledger = tables["Tensors of the checkpoint, grouped by name"]
	assert sum(int(row[3]) for row in ledger) == len(info["tensors"])
	assert {row[0] for row in ledger} == {t["fate"] for t in info["tensors"]}'
}

@test "the same bundle gives the same page in any folder, without its path" {
	make_model m
	xfp convert m -o c.xfp -q
	xfp report c.xfp -o 1.html
	mkdir -p 'other place'
	cp c.xfp 'other place/d.xfp'
	(cd 'other place' && TZ=Asia/Tokyo LC_ALL=C.UTF-8 xfp report d.xfp -o ../2.html)
	cmp 1.html 2.html
	! grep -q -e "$PWD" -e "$(hostname)" -e "$(date +%Y-)" 1.html
}

@test "the printed command makes the bundle again" {
	by_default
	make_model m --layers 2
	for options in '' "--profile paper-v2" "--mode v2c --floor lm_head=0.9 --min-cos-lazy 0.99 --bits 2-4 \
		--override 'model.layers.1.*=3' --override 'role:k=floor:0.95' --format embedding=fp8" \
		"--lm-head fp8 --outlier-sigma 3.5 --outlier-cap 0.01 --balance 0.4 --moe-sample first:2" "--target-bpw 23"; do
		eval "xfp convert m -o c.xfp -q $options"
		xfp report c.xfp -o r.html
		xfp info --json c.xfp >info.json
		command=$(check r.html 'print(root.findtext("body/header/pre"))')
		[[ $command == "xfp convert MODEL -o AGAIN.xfp"* ]]
		eval "${command/MODEL/m} -q" 2>/dev/null || eval "${command/MODEL -o AGAIN.xfp --like OUT/m -o AGAIN.xfp --like c} -q"
		cmp c.xfp AGAIN.xfp
		rm AGAIN.xfp
	done
}

@test "units below their floor are marked, with the reason" {
	make_model m
	xfp convert m -o c.xfp -q --override '*q_proj*=2' || [ $? = 4 ]
	xfp report c.xfp -o r.html
	page r.html
	xfp info --json c.xfp >info.json
	check r.html '
	missed = [u for u in info["units"] if u["missed"]]
	assert missed and [row[10] for row in tables["Every unit"] if row[10]] == [u["missed"] for u in missed]
	assert source.count(" miss\"") == sum(not u["met"] for u in info["units"])'
}

@test "the suggested option makes the bundle better by about the prediction" {
	make_model m --layers 2 --hidden 256
	xfp convert m -o c.xfp -q --bits 3 --on-miss best || [ $? = 4 ]
	xfp report c.xfp -o r.html
	xfp info --json c.xfp >info.json
	option=$(check r.html 'print(tables["The worst layer first, then components by relative error"][0][5])')
	eval "xfp convert m -o d.xfp -q --bits 3 --on-miss best ${option}" || [ $? = 4 ]
	xfp report d.xfp -o s.html
	loss() { check "$1" 'print(re.search(r"Loss([0-9.e-]+)squared", text)[1])'; }
	left=$(check r.html 'print(tables["The worst layer first, then components by relative error"][0][4][:-2])')
	"$PYTHON" -c "
import sys
before, after, predicted = map(float, sys.argv[1:])
assert abs(after / before - predicted / 100) < .1, (after / before, predicted)" "$(loss r.html)" "$(loss s.html)" "$left"
}

@test "names cannot inject markup or control characters" {
	make_model m
	"$PYTHON" - <<-'EOF'
	import json, struct
	with open("m/model.safetensors", "rb") as f:
	    size = struct.unpack("<Q", f.read(8))[0]
	    header, data = json.loads(f.read(size)), f.read()
	added = {"a<script>alert('1')</script>&\"": "norm", "b\x1b[31m\u202e\uffff": "norm", "]]>--><style>": "norm"}
	at = len(data)
	for name in added:
	    header[name] = {"dtype": "F32", "shape": [1], "data_offsets": [at, at + 4]}
	    at += 4
	text = json.dumps(header).encode()
	with open("m/model.safetensors", "wb") as f:
	    f.write(struct.pack("<Q", len(text)) + text + data + bytes(at - len(data)))
	config = json.load(open("m/config.json"))
	config["_name_or_path"] = "</title><b onload=x>\x07"
	json.dump(config, open("m/config.json", "w"))
	EOF
	xfp convert m -o c.xfp -q
	xfp report c.xfp -o r.html
	page r.html
	grep -qF 'a&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;&quot;' r.html
	grep -qF 'b\x1b[31m' r.html
	grep -qF '&lt;/title&gt;&lt;b onload=x&gt;\x07' r.html
}

@test "bad input and bad output have their status, and leave the old page" {
	make_model m
	xfp convert m -o c.xfp -q
	echo old >r.html
	run -2 xfp report c.xfp
	[[ $output == *"-o FILE is missing"* ]]
	run -2 xfp report c.xfp -o c.xfp
	[[ $output == *"replace its own input"* ]]
	ln c.xfp link.xfp
	run -2 xfp report c.xfp -o link.xfp
	mkdir folder
	run -2 xfp report c.xfp -o folder
	[[ $output == *"folder"* ]]
	run -1 xfp report c.xfp -o nowhere/r.html
	run -3 xfp report none.xfp -o r.html
	run -3 xfp report m/config.json -o r.html
	size=$(stat -c %s c.xfp)
	head -c $((size - 5000)) c.xfp >short.xfp
	run -3 xfp report short.xfp -o r.html
	# A byte of a unit, which the index does not protect.
	cp c.xfp bad.xfp
	printf 'X' | dd of=bad.xfp bs=1 seek=$((size / 2)) conv=notrunc status=none
	cmp -s c.xfp bad.xfp || {
		run -3 xfp report bad.xfp -o r.html
		[[ $output == "xfp report: bad.xfp: "* ]]
	}
	[ "$(cat r.html)" = old ]
	no_output nowhere.html
}

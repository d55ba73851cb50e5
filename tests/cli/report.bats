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
	xfp report c.xfp --json >r.json
	page r.html
	grep -q "$(sha c.xfp)" r.html
	check r.html '
	assert "qwen3_moe" in text and "Worst layer: layer" in text
	title = "c.xfp: qwen3_moe, %.3f bits per weight" % json.load(open("r.json"))["bits_per_weight"]
	assert root.findtext("head/title") == "Report of " + title and root.findtext("body/header/h1") == title
	assert "\"The paper\" in captions of tables is the one on the published XFP method" in text
	units = tables["Every unit"]
	assert [row[0] for row in units] == [u["name"] for u in info["units"]]
	for row, unit in zip(units, info["units"]):
	    assert row[2:4] == [unit["mode"], str(unit["k"] or "-")]
	    assert row[6] == "%.6f" % unit["cos_median"] and row[4] == "%.3f" % unit["true_bits"]
	parts = tables["Bits by component (the paper'"'"'s table 3)"]
	assert sum(int(row[2]) for row in parts[:-1]) == int(parts[-1][2]) == len(info["units"])
	ledger = tables["Tensors of the checkpoint, grouped by name"]
	assert sum(int(row[3]) for row in ledger) == len(info["tensors"])
	assert {row[0] for row in ledger} == {t["fate"] for t in info["tensors"]}'
	cp c.xfp ./-c.xfp
	(cd m && xfp report ../-c.xfp --source . -o ../r.html)
	grep -q '<title>Report of -c.xfp: qwen3_moe,' r.html
	grep -q 'xfp report ./-c.xfp --eval' r.html
}

@test "the same bundle gives the same page in any folder, without its path" {
	make_model m
	xfp convert m -o c.xfp -q
	xfp report c.xfp -o 1.html
	mkdir -p 'other place'
	cp c.xfp 'other place/c.xfp'
	(cd 'other place' && TZ=Asia/Tokyo LC_ALL=C.UTF-8 xfp report "$PWD/c.xfp" -o ../2.html)
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
		eval "${command/MODEL/m} -q"
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
	xfp report c.xfp -o r.html --json >r.json
	xfp info --json c.xfp >info.json
	page r.html
	advice='tables["Classes of the worst layer, and components, by loss saved per MB"]'
	option=$(check r.html "print(re.search('--override .*', $advice[0][0])[0])")
	check r.html "
	advice = json.load(open('r.json'))['advice']
	saved = [(1 - a['loss_afterwards']) / a['more_bytes'] for a in advice]
	assert len(saved) > 2 and saved == sorted(saved, reverse=True), saved
	assert [row[6] for row in $advice] == ['%.3g %%' % (1e8 * one) for one in saved]
	assert 'This bundle is not calibrated. --calibrate or --calibrate-self' in text"
	eval "xfp convert m -o d.xfp -q --bits 3 --on-miss best ${option}" || [ $? = 4 ]
	xfp report d.xfp -o s.html
	loss() { check "$1" 'print(re.search(r"Loss([0-9.e-]+)squared", text)[1])'; }
	left=$(check r.html "print($advice[0][5][:-2])")
	"$PYTHON" -c "
import sys
before, after, predicted = map(float, sys.argv[1:])
assert abs(after / before - predicted / 100) < .1, (after / before, predicted)" "$(loss r.html)" "$(loss s.html)" "$left"
}

@test "suggested options add bits to the units of one class only, and the fewest that help" {
	make_model m --layers 3
	xfp convert m -o c.xfp -q --bits 3 --on-miss best --override '*layers.1.mlp*=2 *layers.2.*o_proj*=fp8' || [ $? = 4 ]
	xfp info --json c.xfp >info.json
	xfp report c.xfp --json -o r.html >r.json
	check r.html '
	import fnmatch
	advice = json.load(open("r.json"))["advice"]
	rows = tables["Classes of the worst layer, and components, by loss saved per MB"]
	assert len(advice) == len(rows) > 3
	for one, row in zip(advice, rows):
	    units = [u for u in info["units"] if fnmatch.fnmatchcase(u["name"], one["names"])]
	    bits = {u["k"] for u in units}
	    assert {u["class"] for u in units} == {one["class"]} and 0 not in bits, (one, units)
	    assert one["k"] == (max(bits) if len(bits) > 1 else max(bits) + 1) <= min(bits) + 1, (one, bits)
	    assert row[1] == "-".join(map(str, sorted(bits))) + " to %d" % one["k"]
	    more = sum((one["k"] - u["k"]) * u["weights"] for u in units) / 8
	    assert one["more_bytes"] == more > 0, (one, more)
	assert any(a["layer"] == 1 and a["class"] == "routed_expert" for a in advice), advice
	assert any(a["least_k"] < a["largest_k"] for a in advice), advice'
}

@test "a calibrated bundle is judged by the errors of its outputs" {
	make_text_model 2
	xfp convert m -o c.xfp -q --calibrate --calibrate-tokens 2048 --mode v2c --bits 3 --on-miss best || [ $? = 4 ]
	xfp info --json c.xfp >info.json
	xfp report c.xfp --json -o r.html >r.json
	page r.html
	check r.html '
	r, units = json.load(open("r.json")), info["units"]
	measured = [u for u in units if u["outputs"]]
	assert measured and len(measured) < len(units)
	of_weights = {u["name"]: u["weight_error"] for u in r["units"]}
	def error(u):
	    return u["outputs"]["error"] if u["outputs"] else of_weights[u["name"]]
	def loss(units):
	    return sum(error(u) * u["weights"] for u in units)
	mean = loss(units) / sum(u["weights"] for u in units)
	assert abs(r["all"]["error"] / mean - 1) < 1e-9 and r["all"]["calibrated"] == len(measured), (r["all"], mean)
	assert r["all"]["weight_error"] > 1.1 * r["all"]["error"] or r["all"]["weight_error"] < r["all"]["error"] / 1.1
	of = "outputs (weights for %d of %d units)" % (len(units) - len(measured), len(units))
	assert "Loss%.3gsquared error of %s, relative to their squares" % (mean, of) in text
	assert "The loss is the squared error of " + of in text and "The cosine of each row of " + of in text
	layers = [loss([u for u in units if ".layers.%d." % i in u["name"]]) for i in (0, 1)]
	worst = layers.index(max(layers))
	assert "Worst layer: layer %d, with %.1f %% of the loss" % (worst, 100 * max(layers) / loss(units)) in text
	assert "its lowest cosine of outputs is" in text
	assert [row[9] for row in tables["Every unit"]] == ["%.3g" % error(u) for u in units]'
}

@test "a bundle made for a size has no floors to meet" {
	by_default
	make_model m
	for options in '' --target-bpw\ 23; do
		xfp convert m -o c.xfp -q $options
		xfp info --json c.xfp >info.json
		xfp report c.xfp -o r.html
		page r.html
		if [ -n "$options" ]; then
			xfp verify c.xfp | grep -x 'no unit has a floor'
			check r.html 'assert text.count("no unit has a floor (made for a size)") == 2 and "floors are met" not in text and "tall line" not in text'
		else
			check r.html '
			units = info["units"]
			met = "recorded floors are met (%d of %d units have one)" % (sum(u["floor"] > 0 for u in units), len(units))
			assert text.count(met) == 2 and "no unit has" not in text, text'
			grep -x 'recorded floors are met (.*)' <(xfp verify c.xfp)
		fi
	done
}

# A bundle c.xfp of m, which has a tokenizer, with eval.json and compare.json.
make_inputs() {
	make_text_model 2
	xfp convert m -o c.xfp -q
	"$PYTHON" -c 'import numpy; numpy.save("t.npy", numpy.arange(60).reshape(2, 30) ** 2 % 250)'
	xfp eval c.xfp --source m --tokens t.npy --json >eval.json 2>/dev/null
	xfp compare m --json --per-unit --rows 32 >compare.json
	xfp inspect m --stats --json >stats.json
	xfp walk m --json -q --lazy .9:.98:.02 --strict .96 >walk.json
}

@test "other files add their sections, and --json has the same data" {
	make_inputs
	run -0 --separate-stderr xfp report c.xfp --json
	echo "$output" >plain.json
	xfp report c.xfp -o plain.html
	page plain.html
	[ "$(grep -c 'xfp report c.xfp --.* -o report.html</pre>$' plain.html)" = 7 ]
	grep -qx '<h3>Outliers</h3>' plain.html
	# A command a line.
	grep -qx 'xfp report c.xfp --stats stats.json -o report.html</pre>' plain.html
	run -1 grep -F '\x0a' plain.html
	xfp report c.xfp --eval eval.json --compare compare.json --walk walk.json --stats stats.json --work c.xfp.work --cache xfp-cache --json -o r.html >r.json
	page r.html
	run -1 grep 'Sections without data' r.html
	xfp info --json c.xfp >info.json
	check r.html '
	r, plain = json.load(open("r.json")), json.load(open("plain.json"))
	evaluation, compare = json.load(open("eval.json")), json.load(open("compare.json"))
	for key in "evaluation", "formats", "walk", "outlier_ablation", "tails", "times":
	    assert r[key] and plain[key] is None
	for key in plain:
	    assert plain[key] is None or key == "advice" or r[key] == plain[key]
	assert r["evaluation"]["kl_mean"] == evaluation["kl"]["mean"]
	assert tables["Perplexity of the evaluated tokens"][0][1] == "%.4f" % evaluation["perplexity"]
	drift = [layer["alone"] for layer in evaluation["layers"]]
	assert "Worst layer: layer %d, whose own error is the largest: if only this layer is quantized, the residual " \
	    "stream after it has a relative squared error of %.3g." % (drift.index(max(drift)), max(drift)) in text
	assert {a["layer"] for a in r["advice"]} == {None, drift.index(max(drift))}
	assert "KL divergence%.4gfrom the source" % evaluation["kl"]["mean"] in text
	assert "Same token%.2f %%of the tokens" % (100 * evaluation["top1_agreement"]) in text
	assert "Perplexity%.4f%.4f of its source" % (evaluation["perplexity"], evaluation["source"]["perplexity"]) in text
	assert tables["Relative squared error of the residual stream after each layer"][1][1] == "%.3g" % drift[0]
	def way(unit, sigma):
	    of = next(u for u in compare["units"] if (u["name"], u["role"]) == (unit["name"], unit["role"]))
	    return next(w for w in of["ways"] if w["format"] == unit["mode"] and w["k"] == unit["k"]
	                and w["outlier_sigma"] == sigma)
	one = next(a for a in r["outlier_ablation"] if a["role"] == "down")
	units = [u for u in r["units"] if u["role"] == "down"]
	gains = [way(u, 4.0)["cos_median"] - way(u, None)["cos_median"] for u in units]
	assert one["units"] == len(units) and abs(one["gain_largest"] - max(gains)) < 1e-12
	assert abs(one["gain_mean"] - sum(gains) / len(gains)) < 1e-12
	roles = json.load(open("stats.json"))["by_role"]
	assert [tail["kurtosis"] for tail in r["tails"]] == [role["stats"]["kurtosis"] for role in roles]
	assert [row[6] for row in tables["Tails by role (the paper\u0027s table B)"]] == [
	    "%.1f" % role["stats"]["largest_in_sigma"] for role in roles]
	assert {"lloyd-fit", "pack", "bundle"} <= {t["stage"] for t in r["times"]}'
}

@test "the commands of a page add a section and keep the others" {
	make_inputs
	cp c.xfp "a b.xfp"
	cp -r c.xfp.work "a b.xfp.work"
	xfp report "a b.xfp" --eval eval.json --work "a b.xfp.work" -o r.html
	page r.html
	xfp info --json c.xfp >info.json
	check r.html '
	section = next(one for one in root.iter("section") if one.get("id") == "missing")
	commands = {h.text: p.text.split("\n")[-1] for h, p in zip(section.findall("h3"), section.findall("pre"))}
	assert list(commands) == ["Rate and error", "Points of a walk", "Outliers", "Tails", "Samples of experts"]
	given = "xfp report \u0027a b.xfp\u0027 --eval eval.json"
	assert all(c.startswith(given) and "--work \u0027a b.xfp\u0027.work" in c for c in commands.values()), commands
	assert not {a.get("href") for a in root.iter("a")} & {"#rate", "#tails"}
	open("command", "w").write(commands["Tails"])'
	eval "$(cat command)"
	check report.html '
	names = [h.text for h in root.iter("h2")]
	assert {"Tails", "Perplexity, divergence and drift", "Time per stage"} <= set(names), names'
}

@test "samples of experts are those of conversions with --moe-sample" {
	make_model m --num-experts 7 --layers 3
	xfp convert m -o c.xfp -q --bits 2-6 --on-miss best --min-cos-lazy 0.97
	xfp convert m -o d.xfp -q --bits 2-6 --on-miss best --min-cos-lazy 0.97 --moe-sample 4
	xfp report c.xfp --work c.xfp.work --cache xfp-cache --json >c.json
	xfp info --json c.xfp >info.json
	xfp info --json d.xfp >sampled.json
	"$PYTHON" - <<-'EOF'
	import json
	c, info, sampled = (json.load(open(name + ".json")) for name in ("c", "info", "sampled"))
	assert [s["role"] for s in c["samples"]] == ["gate", "up", "down"]
	for s in c["samples"]:
	    pairs = [(u["bytes"], v["bytes"]) for u, v in zip(info["units"], sampled["units"])
	             if u["role"] == s["role"] and u["experts"] == 7]
	    assert s["stacks"] == len(pairs) == 3 and s["by_16"] is None
	    assert s["by_4"] == {"same": sum(a == b for a, b in pairs), "too_few": sum(b < a for a, b in pairs),
	                         "too_many": sum(b > a for a, b in pairs)}, (s, pairs)
	EOF
	run -2 xfp report c.xfp --cache xfp-cache -o r.html
	[[ $output == *"--cache needs --work"* ]]
	run -1 xfp report c.xfp --work c.xfp.work --cache none -o r.html
	[[ $output == *none* ]]
	mkdir -p empty/artifacts
	xfp report c.xfp --work c.xfp.work --cache empty --json -o r.html >gone.json
	grep -q '9 stacks are not in the table' r.html
	find xfp-cache/artifacts -name '*.h5' -exec sh -c 'printf X | dd of="$1" bs=1 seek=700 conv=notrunc status=none' sh {} \;
	run -3 xfp report c.xfp --work c.xfp.work --cache xfp-cache -o s.html
	[[ $output == *"xfp cache check"* ]]
	[ ! -e s.html ]
}

@test "samples of experts: counts computed again from rows of unpacked bundles" {
	local script=$srcdir/tests/sample_bits.py options=(-q --mode v2c --outlier-sigma 4 --on-miss best) words=() k
	make_model m --num-experts 20 --layers 4 --dtype f32
	"$PYTHON" "$script" skew m
	for k in 2 3 4 5; do
		xfp convert m -o $k.xfp "${options[@]}" --bits $k
		xfp unpack -o $k.unpacked $k.xfp
		words+=("$k=$k.xfp=$k.unpacked")
	done
	"$PYTHON" "$script" choose m between "${words[@]}" >expected.json
	floor=$("$PYTHON" -c 'import json; print(json.load(open("expected.json"))["floor"])')
	xfp convert m -o c.xfp "${options[@]}" --bits 2-5 --min-cos-lazy "$floor"
	xfp report c.xfp --work c.xfp.work --cache xfp-cache --json -o r.html >r.json
	xfp info --json c.xfp >info.json
	check r.html '
	expected = json.load(open("expected.json"))["roles"]
	found = {s["role"]: {key: s[key] for key in ("by_4", "by_16")} for s in json.load(open("r.json"))["samples"]}
	assert found == expected, (found, expected)
	# The test would not see a fault if every sample chose what all experts do.
	for kind in "too_few", "too_many":
	    assert all(sum(one[by][kind] for one in expected.values()) for by in ("by_4", "by_16")), expected
	rows = tables["Bits by a sample of the experts (the paper\u0027s table C)"]
	for row, role in zip(rows, ("gate", "up", "down")):
	    assert row[0] == "routed_expert " + role and row[1:3] == ["20", "4"], row
	    assert row[4:] == [str(n) for by in ("by_4", "by_16") for n in expected[role][by].values()], row'
}

@test "--source finds the checkpoint by digests, and outliers are measured on it as xfp compare does" {
	make_model m --layers 2 --hidden 128
	xfp convert m -o c.xfp -q --bits 2-4 --min-cos-lazy 0.95 --min-cos-strict 0.95
	xfp compare m --json --per-unit -q >compare.json
	mkdir temporary
	export TMPDIR=$PWD/temporary
	xfp report c.xfp --compare compare.json --json >by-compare.json
	xfp report c.xfp --source m --ablate-outliers --json -o r.html >r.json
	page r.html
	xfp info --json c.xfp >info.json
	check r.html '
	r, other = json.load(open("r.json")), json.load(open("by-compare.json"))
	assert r["source_checked"] and not other["source_checked"]
	assert len(r["outlier_ablation"]) == len(other["outlier_ablation"]) > 5
	for a, b in zip(r["outlier_ablation"], other["outlier_ablation"]):
	    assert all(a[k] == b[k] if isinstance(a[k], (str, int)) else abs(a[k] - b[k]) < 1e-9 for k in b), (a, b)
	assert max(a["error_ratio_p50"] for a in r["outlier_ablation"]) > 1
	matrices = sum(u["experts"] for u in info["units"])
	assert "Its source was checked: the weights of all %d matrices of its units have" % matrices in text
	assert re.search(r"Measured on \d+ of the \d+ rows of these units", text)'
	[ -z "$(ls temporary)" ]
	run -2 xfp report c.xfp --ablate-outliers -o s.html
	[[ $output == *"--ablate-outliers needs --source"* ]]
	make_model seed --layers 2 --hidden 128 --seed 1
	run -3 xfp report c.xfp --source seed -o s.html
	[[ $output == "xfp report: --source seed: not the checkpoint that the bundle was made from: "*" has other weights" ]]
	make_model shape --layers 2 --hidden 64
	run -3 xfp report c.xfp --source shape -o s.html
	[[ $output == *" is not a unit of it, or has another shape" ]]
	# The last weight of the last expert's matrix.
	"$PYTHON" - <<-'EOF'
	import json, struct
	with open("m/model.safetensors", "r+b") as f:
	    size = struct.unpack("<Q", f.read(8))[0]
	    end = json.loads(f.read(size))["model.layers.1.mlp.experts.2.down_proj.weight"]["data_offsets"][1]
	    f.seek(8 + size + end - 1)
	    byte = f.read(1)[0]
	    f.seek(8 + size + end - 1)
	    f.write(bytes([byte ^ 1]))
	EOF
	run -3 xfp report c.xfp --source m -o s.html
	[[ $output == *"model.layers.1.mlp.experts.2.down_proj.weight has other weights" ]]
	run -3 xfp report c.xfp --source none -o s.html
	[ ! -e s.html ]
	[ -z "$(ls temporary)" ]
}

# The report refuses a file that is not what it should be.
refuses() { # OPTION FILE TEXT
	run -3 xfp report c.xfp "$1" "$2" -o r.html
	[[ $output == "xfp report: $2: "*"$3"* ]] || { echo "$output"; return 1; }
	[ ! -e r.html ]
}

@test "files that are not what they should be are refused, with the command that makes them" {
	make_inputs
	echo '{"family": ' >torn.json
	refuses --eval torn.json 'invalid JSON'
	echo '[]' >list.json
	refuses --compare list.json 'not a JSON object; make it with xfp compare'
	refuses --eval compare.json '"sequences" is missing or not a whole number; make it with xfp eval'
	refuses --compare eval.json '"all" is missing or not an object'
	for edit in 's/"perplexity": [0-9.]*/"perplexity": "\\u001b[31m"/' 's/"family": "qwen3_moe"/"family": "other\\u001b"/' \
		's/"layer": 1/"layer": 7/' 's/"kl": {/"kl": 3, "x": {/'; do
		sed "$edit" eval.json >edited.json
		run -1 cmp -s eval.json edited.json
		refuses --eval edited.json ''
		[[ $output != *$'\e'* ]]
	done
	refuses --stats eval.json '"by_role" is missing or not a list; make it with xfp inspect MODEL --stats --json'
	sed 's/"roles": \[/"roles": 3, "x": [/' stats.json >edited.json
	refuses --stats edited.json '"roles" is missing or not a list'
	sed 's/"ways": \[/"ways": 5, "x": [/' compare.json >edited.json
	refuses --compare edited.json '"ways" is missing or not a list'
	mkdir empty.work
	refuses --work empty.work 'not the work folder of this bundle'
	refuses --work none 'not the work folder of this bundle'
	run -3 xfp report c.xfp --eval none.json -o r.html
	[[ $output == *none.json* ]]
	sum=$(sha eval.json)
	run -2 xfp report c.xfp --eval eval.json -o eval.json
	[ "$(sha eval.json)" = "$sum" ]
}

@test "a perplexity beyond double precision is infinite" {
	make_inputs
	sed 's/"perplexity": [0-9.]*/"perplexity": null/; s/"stream": [0-9.e-]*/"stream": null/' eval.json >infinite.json
	xfp info --json c.xfp >info.json
	xfp report c.xfp --eval infinite.json --json -o r.html >r.json
	page r.html
	run -1 grep -i '[="]-*nan' r.html
	check r.html '
	assert [row[1] for row in tables["Perplexity of the evaluated tokens"]] == ["infinite"] * 2
	evaluation = json.load(open("r.json"))["evaluation"]
	assert evaluation["perplexity"] is None and evaluation["layers"][0]["stream"] is None'
}

@test "an evaluation of another bundle is refused" {
	make_inputs
	[ "$(sed -n 's/  "index_sha256": "\(.*\)",/\1/p' eval.json)" = "$(tar -xOf c.xfp xfp.sum | sed -n 's/ *xfp.idx$//p')" ]
	xfp convert m -o d.xfp -q --bits 3 --on-miss best
	for of in d.xfp m; do
		xfp eval $of --source m --tokens t.npy --json >other.json 2>/dev/null
		refuses --eval other.json 'make it with xfp eval'
		[[ $output == *"of a"*", not of this bundle"* ]]
	done
	cp c.xfp copy.xfp
	xfp report copy.xfp --eval eval.json -o r.html
	# Of an older version.
	grep -v index_sha256 other.json >older.json
	xfp report c.xfp --eval older.json -o r.html
}

# A walk of m with bundles that a command judges: walk.json. The floor .98 passes, and .995 does not fit.
make_walk() { # OPTION...
	cat >judge <<-'END'
		#!/bin/sh
		floor=$(tar xOf "$1" xfp.json | sed -n 's/.*"routed_expert": "\([0-9.]*\)".*/\1/p' | head -n 1)
		echo "$floor"
		case $floor in 0.98* | 0.99*) exit 0 ;; *) exit 1 ;; esac
	END
	chmod +x judge
	xfp walk m --json -q --strict .9 --lazy .89:.995:.015 "$@" >walk.json
}

@test "a walk: its points, boundaries and recommendation, and the point that is this bundle" {
	by_default
	make_model m --layers 2 --hidden 128
	make_walk --probe --probe-command ./judge
	limit=$("$PYTHON" -c 'import json; print(json.load(open("walk.json"))["points"][6]["probe"]["built_bytes"] + 500)')
	make_walk --probe --probe-command ./judge --target-size "$limit"
	xfp convert m -o c.xfp -q --min-cos-strict .9 --min-cos-lazy .98
	xfp report c.xfp --walk walk.json --json -o r.html >r.json
	page r.html
	xfp info --json c.xfp >info.json
	run -0 check r.html '
	walk, w = json.load(open("walk.json")), json.load(open("r.json"))["walk"]
	assert walk["points"][6]["probe"]["sha256"] == json.load(open("r.json"))["sha256"]
	assert w["chosen"] == w["recommended"] == w["passed"] == 6 and w["garbage"] == 5 and w["largest"] == 6, w
	for a, b in zip(walk["points"], w["points"]):
	    built = a["probe"] or {}
	    assert b["bytes"] == built.get("built_bytes", a["bytes"]) and b["verdict"] == built.get("verdict"), (a, b)
	    for key in "point", "bits", "true_bits", "error", "unweighted_error", "fits":
	        assert a[key] == b[key], key
	rows = tables["Points of the walk, from aggressive to conservative"]
	assert [row[0] for row in rows] == [p["point"] for p in walk["points"]]
	for row, p in zip(rows, w["points"]):
	    errors = ["%.3g" % p["unweighted_error"], "%.3g" % p["error"]]
	    assert row[2:6] == ["%.3f" % p["bits"], "%.3f" % p["true_bits"]] + errors, row
	heads = ["".join(h.itertext()) for h in root.iter("th")]
	assert {"bits per weight of the file", "stored bits of units", "squared error of units", "weighted error"} <= set(heads)
	assert rows[6][6:] == ["--min-cos-lazy 0.98 --min-cos-strict 0.9", "passed", "0.98"], rows[6]
	assert "Garbage up to: 0.965/0.9 Passes from: 0.98/0.9" in text and "This bundle: 0.98/0.9" in text
	svg = next(svg for svg in root.iter("{http://www.w3.org/2000/svg}svg") if "walk-figure" in svg.get("aria-labelledby"))
	kinds = [one.get("class") for one in svg if one.find("{http://www.w3.org/2000/svg}title") is not None]
	assert kinds == ["miss" if p["probe"] and p["probe"]["verdict"] == "garbage" else "a" if i == 6 else "other"
	                 for i, p in enumerate(walk["points"])], kinds
	labels = [one.text for one in svg if one.tag.endswith("}text")]
	assert {"garbage", "does not fit", "recommended", "this bundle"} <= set(labels), labels
	report = json.load(open("r.json"))
	assert abs(w["points"][6]["true_bits"] / report["all"]["true_bits"] - 1) < .05
	assert abs(w["points"][6]["unweighted_error"] / report["all"]["error"] - 1) < .1'
	# Without probes the floors tell which point it is; another bundle is none of them.
	make_walk
	xfp report c.xfp --walk walk.json --json | grep -q '"chosen": 6'
	xfp convert m -o d.xfp -q --min-cos-strict .9 --min-cos-lazy .99
	xfp report d.xfp --walk walk.json --json -o r.html | grep -q '"chosen": null'
	page r.html
	grep -q 'This bundle is not a point of the walk' r.html
	grep -q 'xfp walk --probe does it' r.html
}

@test "a walk of another model, or one that is not what it should be, is refused" {
	make_model m --hidden 128
	make_model other --hidden 128 --vocab 100
	xfp convert m -o c.xfp -q --min-cos-lazy 0.9
	xfp walk other --json -q --lazy .9 --strict .96 >walk.json
	refuses --walk walk.json "of a model with "
	xfp walk m --json -q --lazy .9:.95:.05 --strict .96 >walk.json
	for edit in 's/"points": \[/"points": 3, "x": [/' 's/"largest": .*/"largest": 2,/' 's/"bits": [0-9.]*,/"bits": null,/' \
		's/"options": \[/"options": [4, /' 's/"probe": null/"probe": {"verdict": "fine"}/'; do
		sed "$edit" walk.json >edited.json
		run -1 cmp -s walk.json edited.json
		refuses --walk edited.json "make it with xfp walk"
	done
	sed 's/"points": \[/"points": [], "x": [/; s/"largest": .*/"largest": null,/' walk.json >empty.json
	xfp report c.xfp --walk empty.json -o r.html
	page r.html
	run -2 xfp report c.xfp --walk walk.json -o walk.json
}

@test "a page of five thousand units would be under 5 MB" {
	make_model m --layers 120 --hidden 32 --intermediate 16 --num-experts 1 --vocab 32
	xfp convert m -o c.xfp -q --bits 3 --on-miss best -j2 || [ $? = 4 ]
	xfp report c.xfp -o r.html
	page r.html
	xfp info --json c.xfp >info.json
	check r.html 'assert len(info["units"]) > 800 and len(source) < 1000 * len(info["units"]), len(source)'
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
	echo '<!DOCTYPE html>old' >r.html
	run -2 xfp report c.xfp
	[[ $output == *"-o FILE or --json is missing"* ]]
	run -2 xfp report c.xfp -o c.xfp
	[[ $output == *"replace its own input"* ]]
	ln c.xfp link.xfp
	run -2 xfp report c.xfp -o link.xfp
	# Only a page is replaced, or an empty file.
	cp c.xfp other.xfp
	run -2 xfp report c.xfp -o other.xfp
	[[ $output == "xfp report: -o other.xfp: exists, and is not a page of xfp report; remove it first" ]]
	cmp c.xfp other.xfp
	mkfifo pipe
	run -2 xfp report c.xfp -o pipe
	[[ $output == "xfp report: -o: pipe: "* ]]
	: >empty.html
	xfp report c.xfp -o empty.html
	sum=$(sha empty.html)
	xfp report c.xfp -o empty.html
	[ "$(sha empty.html)" = "$sum" ]
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
	[ "$(cat r.html)" = '<!DOCTYPE html>old' ]
	no_output nowhere.html
}

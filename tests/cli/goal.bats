#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Target sizes: --target-size, --target-bpw, --envelope, and the sizes listed by xfp plan.

load helpers

setup() {
	setup_folder
	by_default
}

# The models, and the plan of each from headers alone: xfp plan measures this machine, so it runs once.
setup_file() {
	cd "$BATS_FILE_TMPDIR"
	by_default
	"$XFP_TEST_TOOLS/make-checkpoint" --layers 1 moe
	"$XFP_TEST_TOOLS/make-checkpoint" --family qwen3 --layers 1 --hidden 256 --intermediate 768 --vocab 512 --tie dense
	"$XFP_TEST_TOOLS/make-checkpoint" --family bert --dtype f32 --layers 1 --hidden 192 --heads 6 --head-dim 32 \
		--intermediate 512 --vocab 300 bert
	"$XFP_TEST_TOOLS/make-checkpoint" --layers 1 even
	even_columns even
	for model in moe dense bert even; do
		xfp plan $model --json -q --cache none >$model.plan
	done
}

make_models() {
	cp -r "$BATS_FILE_TMPDIR"/{moe,dense,bert,even} .
}

field() { # NAME...: of the JSON on standard input
	"$PYTHON" -c 'import json, sys
value = json.load(sys.stdin)
for name in sys.argv[1:]:
    value = value[int(name) if name.lstrip("-").isdigit() else name]
print(value)' "$@"
}

# A size between those of the fewest and the most bits, from headers alone.
size_at() { # MODEL PERMILLE
	"$PYTHON" -c 'import json, sys
points = json.load(sys.stdin)["curve"]["points"]
print(points[0]["bytes"] + (points[-1]["bytes"] - points[0]["bytes"]) * int(sys.argv[1]) // 1000)' "$2" \
		<"$BATS_FILE_TMPDIR/$1.plan"
}

bits_at() { # MODEL PERMILLE: likewise, bits per weight
	"$PYTHON" -c 'import json, sys
points = json.load(sys.stdin)["curve"]["points"]
print("%.4f" % (points[0]["bits"] + (points[-1]["bits"] - points[0]["bits"]) * int(sys.argv[1]) / 1000))' "$2" \
		<"$BATS_FILE_TMPDIR/$1.plan"
}

packed_now() { # OUT OPTION...: number of units packed by this run
	xfp convert moe -o "$1" --json -q "${@:2}" | field repacked
}

@test "sizes are hit: twenty goals on three models" {
	make_models
	for model in moe dense bert; do
		xfp plan $model --survey --json -q >plan
		[ "$(field curve surveyed <plan)" = "$(field curve units <plan)" ]
		least=$(field curve points 0 bytes <plan) most=$(field curve points -1 bytes <plan)
		for i in 1 2 3 4 5 6 7; do
			# goals vary without a pattern
			goal=$((least + (most - least) * (i * 137 % 997) / 997 + i * 409))
			xfp convert $model -o $model.xfp --target-size $goal --json -q >summary
			bytes=$(stat -c %s $model.xfp)
			[ "$bytes" -le $goal ] || { echo "$model: $bytes of $goal"; return 1; }
			[ $((bytes * 100)) -ge $((goal * 99)) ] || { echo "$model: only $bytes of $goal"; return 1; }
			[ "$(field goal file <summary)" = "$bytes" ]
			[ "$(field goal allowed <summary)" = "$goal" ]
		done
	done
	xfp verify bert.xfp --source bert -q
}

@test "cold, warm, with other jobs, from another goal's cache: the same bytes" {
	make_models
	bits=$(bits_at moe 300)
	cold=$(converted moe cold.xfp --target-bpw "$bits" --cache cold -j1)
	[ "$(converted moe warm.xfp --target-bpw "$bits" --cache cold)" = "$cold" ]
	xfp convert moe -o other.xfp --cache other -q --target-size "$(size_at moe 600)"
	xfp convert moe -o floors.xfp --cache other -q
	[ "$(OMP_NUM_THREADS=3 converted moe other.xfp --target-bpw "$bits" --cache other -j3)" = "$cold" ]
	# by hand: prepare and make in turn, until no work is left
	export XFP_WORK=$PWD/hand.xfp.work XFP_CACHE=$PWD/hand XFP_PIPELINES
	XFP_PIPELINES=$(xfp --pipelines)
	for round in 1 2 3 4 5; do
		xfp prepare moe -o hand.xfp --target-bpw "$bits" | tail -n 1 >left
		if grep -q '^0 of' left; then break; fi
		make -C hand.xfp.work -f "$XFP_PIPELINES/graph.mk" >/dev/null
	done
	[ "$round" -ge 3 ]
	xfp-bundle hand.xfp
	[ "$(sha hand.xfp)" = "$cold" ]
}

@test "the solution of a goal is recorded, and repeated without solving" {
	make_models
	sha=$(converted moe out.xfp --target-size "$(size_at moe 300)")
	tar xOf out.xfp xfp.json >json
	[ "$(field parameters assigned <json | tr ' ' '\n' | sed 's/^\([0-9]*\)\*.*/\1/; /[^0-9]/s/.*/1/' | awk '{ n += $1 } END { print n }')" = \
		"$(xfp info out.xfp --json | field units | tr '{' '\n' | grep -c "'role'")" ]
	xfp info out.xfp | grep -qx 'method auto; bits chosen for a goal, no floors'
	run grep -E 'target|bpw|survey' json
	[ "$status" -eq 1 ]
	xfp convert moe -o again.xfp --like out.xfp --cache like -q
	[ "$(sha again.xfp)" = "$sha" ]
	[ "$(query "SELECT count(*) FROM artifacts WHERE kind = 'survey'" like)" = 0 ]
	run -2 xfp convert moe -o again.xfp --like out.xfp --target-bpw 4.6
	[[ $output == *"--target-bpw 4.6: contradicts --like"* ]]
	# a handmade list of more units than the bundle has is refused before memory is allocated
	list=$(field parameters assigned <json)
	more=99999999*v2-3
	[ $(((${#list} - ${#more}) % 2)) = 0 ] || more=9999999*v2-3
	while [ ${#more} -lt ${#list} ]; do more+=" -"; done
	edited out.xfp more.xfp "$list" "$more"
	run -3 xfp convert moe -o again.xfp --like more.xfp --cache like
	[[ $output == *"more.xfp: xfp.json: \"assigned\" has an impossible value"* ]]
	# without a goal, none of this is recorded
	xfp convert moe -o floors.xfp -q
	[ -e out.xfp.work/assigned ]
	[ ! -e floors.xfp.work/assigned ]
	xfp info floors.xfp | grep -qx 'method auto; default parameters'
	xfp convert moe -o off.xfp -q --min-cos-lazy 0 --floor attention=0,lm_head=0,embedding=0,other=0 --min-cos-strict 0
	xfp info off.xfp | grep -q '^method auto; no floors'
	xfp convert moe -o out.xfp -q
	[ ! -e out.xfp.work/assigned ]
	[ "$(sha out.xfp)" = "$(sha floors.xfp)" ]
}

@test "another goal repacks only what changes" {
	make_models
	size=$(size_at moe 400)
	units=$(xfp convert moe -o out.xfp --target-size "$size" --json -q | field units)
	bytes=$(stat -c %s out.xfp)
	again=$(packed_now out.xfp --target-size "$size")
	[ "$again" = 0 ]
	near=$(packed_now out.xfp --target-size $((size - 60000)))
	[ "$near" -gt 0 ]
	[ "$near" -lt "$units" ]
	[ "$(stat -c %s out.xfp)" -lt "$bytes" ]
	# errors of attention weigh little compared with those of experts: other units get the bits
	xfp convert moe -o out.xfp --target-size "$size" -q
	before=$(sha out.xfp)
	[ "$(packed_now out.xfp --target-size "$size" --weight attention=0.001)" -gt 0 ]
	[ "$(sha out.xfp)" != "$before" ]
	[ "$(stat -c %s out.xfp)" -le "$size" ]
}

@test "killed at each stage of each phase, it resumes to the same bytes" {
	make_models
	size=$(size_at bert 300)
	want=$(converted bert want.xfp --target-size "$size" --cache want)
	original=$PATH data=$XFP_DATADIR
	for stage in xfp-survey xfp-outlier-extract xfp-libfit xfp-autoselect xfp-pack xfp-bundle; do
		rm -rf out.xfp out.xfp.work cache count
		export XFP_DATADIR=$data
		replace_stage $stage 'echo >>"$top/count"
			[ $(wc -l <"$top/count") -ge '"$([ $stage = xfp-bundle ] && echo 1 || echo 3)"' ] || exec "$real" "$@"
			"$real" "$@" && kill -KILL "$(cat "$top/pid")" && sleep 5'
		PATH=$PWD/bin:$original xfp convert bert -o out.xfp --target-size "$size" --cache cache -q -j1 &
		echo $! >pid
		ended=0
		wait $! || ended=$?
		[ $ended -eq 137 ] || { echo "$stage: $ended"; return 1; }
		XFP_DATADIR=$data xfp convert bert -o out.xfp --target-size "$size" --cache cache -q
		[ "$(sha out.xfp)" = "$want" ] || { echo "killed at $stage"; return 1; }
	done
}

@test "a modified assignment is not used" {
	make_models
	size=$(size_at bert 300)
	want=$(converted bert out.xfp --target-size "$size")
	export XFP_WORK=$PWD/out.xfp.work XFP_CACHE=$PWD/xfp-cache
	# detected by its seal
	sed -i '2s/-[2-6]/-5/' out.xfp.work/assigned
	rm out.xfp.work/u000001-choice out.xfp.work/u000001-packed
	run -75 xfp-autoselect u000001
	[[ $output == *"assigned: damaged at unit u000001"* ]]
	run xfp-bundle again.xfp
	[ "$status" -ne 0 ]
	no_output again.xfp
	[ "$(converted bert out.xfp --target-size "$size")" = "$want" ]
	# a missing one: the unit no longer matches the assignment, and is made again
	rm out.xfp out.xfp.work/assigned
	[ "$(converted bert out.xfp --target-size "$size")" = "$want" ]
}

@test "impossible goals" {
	make_models
	run -2 xfp convert moe -o out.xfp --target-size 0
	[[ $output == *"--target-size '0': expected a size"* ]]
	run -2 xfp convert moe -o out.xfp --target-bpw four
	run -2 xfp convert moe -o out.xfp --target-size 3MB --target-bpw 4
	[[ $output == *"contradicts --target-size 3MB"* ]]
	run -2 xfp convert moe -o out.xfp --envelope 2x3MB --reserve kv=3MB
	[[ $output == *"reserve less"* ]]
	run -2 xfp convert moe -o out.xfp --envelope 2x3MB --reserve kv=2MB --reserve act=1MB
	[[ $output == *"takes 3.00 MB of each GPU, which has 3.00 MB; reserve less"* ]]
	run -2 xfp convert moe -o out.xfp --envelope 24GiB --reserve kv=32GiB
	[[ $output == *"takes 32 GiB of each GPU, which has 24 GiB; reserve less, or name larger GPUs"$'\n'* ]]
	# a number without a unit means bytes; a small one is hardly intended
	for goal in '--envelope 24' '--envelope 2x96' '--target-size 4'; do
		run -4 xfp convert moe -o out.xfp $goal
		[[ $output == *"the goal allows "*"; a number without a unit is bytes: units are K, M, G, T "*"GiB, TiB" ]]
	done
	run -4 xfp convert moe -o out.xfp --target-size 4k
	[[ $output != *"without a unit"* ]]
	run -2 xfp convert moe -o out.xfp --envelope 24 --reserve kv=8GiB
	[[ $output == *"takes 8 GiB of each GPU, which has 24 B; "*"; a number without a unit is bytes: "* ]]
	xfp convert moe -o out.xfp -n --envelope '3 mb' --reserve kv=8 2>&1 >/dev/null |
		grep -qx 'xfp: --reserve: a number without a unit is bytes: units are .*'
	xfp convert moe -o out.xfp -n --envelope 3MB --reserve kv=8k 2>said >/dev/null
	run ! grep -- --reserve said
	XFP_RESERVE=kv=2MB xfp convert moe -o out.xfp -n --envelope 2x3MB --reserve kv=1MB >/dev/null # the option wins
	run -2 xfp convert moe -o out.xfp --reserve kv=3MB
	run -2 xfp convert moe -o out.xfp --envelope 9x3MB
	[[ $output == *"is split by experts and has 8 of them"* ]]
	run -2 xfp convert moe -o out.xfp --target-size 3MB --weight atention=2
	[[ $output == *"no class 'atention'"* ]]
	run -2 xfp convert moe -o out.xfp --target-size 14QiB
	xfp plan moe --target-size 3MB --weight role:dwon=2 2>&1 >/dev/null | grep -q 'weight role:dwon: matches no unit'
	xfp convert moe -o out.xfp -n --weight attention=2 2>&1 >/dev/null | grep -q 'weight: has no effect without a goal'
	xfp convert moe -o out.xfp -n 2>said >/dev/null
	run -1 grep -e --weight said
	least=$(size_at moe 0)
	run -2 xfp convert moe -o out.xfp --target-size "$least" --format routed_expert=6
	[[ $output == *"give them fewer bits with --format"* ]]
	named=$(sed -n 's/.*request about \([0-9]*\) bytes.*/\1/p' <<<"$output")
	# before any reading: the smallest possible size, and the nearest possible one
	run -4 xfp convert moe -o out.xfp --target-size 10kB
	[[ $output == *"the fewest bits need at least "*"the nearest goal that is probably possible"* ]]
	floor=$(sed -n 's/.*bits need at least \([0-9]*\) bytes.*/\1/p' <<<"$output")
	nearest=$(sed -n 's/.*probably possible is \([0-9]*\) bytes.*/\1/p' <<<"$output")
	[ "$floor" -le "$nearest" ]
	[ "$nearest" = "$least" ]
	run -4 xfp convert moe -o out.xfp --target-size $((floor - 1))
	[ ! -e xfp-cache ] || [ -z "$(artifacts)" ]
	run -4 xfp convert moe -o out.xfp --target-bpw 1.5
	bits=$(sed -n 's/.*probably possible is \([0-9.]*\) bits.*/\1/p' <<<"$output")
	# all suggested sizes are possible
	xfp convert moe -o out.xfp --target-size "$nearest" -q
	[ "$(stat -c %s out.xfp)" -le "$nearest" ]
	xfp convert moe -o out.xfp --target-bpw "$bits" -q
	xfp convert moe -o out.xfp --target-size "$named" --format routed_expert=6 -q
}

@test "a goal above the size with the most bits does not bind, and that size is the bundle's" {
	make_models
	xfp convert moe -o out.xfp --target-size 1TB >said
	most=$(stat -c %s out.xfp)
	grep -q "goal   --target-size 1TB is not binding: the most bits take $most bytes" said
	xfp convert moe -o out.xfp --target-size "$most" --json -q >summary
	[ "$(field goal binding <summary)" = False ]
	[ "$(field goal most <summary)" = "$most" ]
	xfp convert moe -o out.xfp --target-size $((most - 1)) --json -q >summary
	[ "$(field goal binding <summary)" = True ]
	[ "$(field goal most <summary)" -ge "$most" ]
}

@test "floors that are given are conditions; default floors are not" {
	make_models
	xfp convert moe -o out.xfp -q --target-size "$(size_at moe 100)" --floor attention=0.997
	[ "$(query "SELECT min(cos_median) >= 0.997 FROM latest_units WHERE class = 'attention'")" = 1 ]
	[ "$(query "SELECT min(cos_median) >= 0.98 FROM latest_units WHERE class = 'routed_expert'")" = 0 ]
	xfp verify out.xfp --source moe -q
	xfp info out.xfp | grep -qx 'method auto; bits chosen for a goal, with floor:attention=0.997'
	# detected after the survey, with figures
	run -4 xfp convert moe -o none.xfp -q --target-size "$(size_at moe 200)" --floor routed_expert=0.999
	[[ $output == *"the fewest bits that meet the floors need "*"lower the floors"* ]]
	[ ! -e none.xfp ]
	[ "$(query "SELECT count(*) FROM artifacts WHERE kind = 'survey'")" -gt 0 ]
}

# All columns of o_proj are equally large: balancing has no effect.
even_columns() { # MODEL
	"$PYTHON" - "$1" <<-'EOF'
	import json, struct, sys
	import numpy as np
	path = sys.argv[1] + "/model.safetensors"
	data = bytearray(open(path, "rb").read())
	size = struct.unpack("<Q", data[:8])[0]
	header = json.loads(data[8:8 + size])
	[name] = [n for n in header if n.endswith("o_proj.weight")]
	rows, columns = header[name]["shape"]
	r, c = np.mgrid[:rows, :columns]
	w = np.array([1, -.5, .5, -1], np.float32)[(r + c + r // 4 * c) % 4] / 64
	begin = 8 + size + header[name]["data_offsets"][0]
	data[begin:begin + 2 * w.size] = (w.view(np.uint32) >> 16).astype("<u2").tobytes()
	open(path, "wb").write(data)
	EOF
}

@test "a unit without balance, with a given threshold: the size is exact" {
	make_models
	xfp convert even -o out.xfp -q --target-size "$(size_at even 500)" --outlier-sigma 5
	[ "$(bsdtar -tf out.xfp | grep -c '\.bal$')" -lt "$(query "SELECT count(*) FROM latest_units WHERE mode != 'keep'")" ]
}

@test "a given threshold or mode is used" {
	make_models
	xfp convert bert -o out.xfp -q --target-size "$(size_at bert 400)" --outlier-sigma 3.3 --mode v2c
	[ "$(query "SELECT DISTINCT sigma_milli FROM latest_units")" = 3300 ]
	[ "$(query "SELECT DISTINCT mode FROM latest_units")" = v2c ]
	xfp convert bert -o again.xfp --like out.xfp --cache like -q
	xfp convert bert -o two.xfp -q --target-size "$(size_at bert 500)" --bits 3,5 --mode v2
	[ "$(query "SELECT DISTINCT k FROM latest_units WHERE output LIKE '%/two.xfp' ORDER BY 1")" = $'3\n5' ]
}

@test "an envelope limits the bytes on the fullest GPU" {
	make_models
	xfp convert moe -o out.xfp --envelope 2x1.4MB --reserve kv=500kB,act=100kB --json -q >summary
	[ "$(field goal kind <summary)" = envelope ]
	[ "$(field goal allowed <summary)" = 800000 ]
	taken=$(field goal taken <summary)
	[ "$taken" -le 800000 ]
	[ "$taken" -ge 792000 ]
	# the sum over GPUs is the file without tensors that engines do not load, and with replicated tensors
	# counted twice
	[ $((2 * taken)) -lt $(($(stat -c %s out.xfp) + 400000)) ]
	xfp convert moe -o one.xfp --envelope 1.6MB -q
	[ "$(stat -c %s one.xfp)" -gt 1580000 ]
}

@test "what fits: a mixture of 397 billion weights, from its headers" {
	"$PYTHON" "$srcdir/tests/make-sparse-checkpoint.py" big
	[ "$(du -s --block-size=1M big | cut -f1)" -lt 64 ]
	xfp plan big -q --json --envelope 2x96GB --reserve kv=8GB,act=10GB >plan
	[ "$(field goal allowed <plan)" = 78000000000 ]
	taken=$(field goal taken <plan)
	[ "$taken" -le 78000000000 ]
	[ "$taken" -ge 77220000000 ]
	"$PYTHON" -c 'import sys; assert 3 < float(sys.argv[1]) < 3.3' "$(field goal bits <plan)"
	[ "$(field curve surveyed <plan)" = 0 ]
	run -4 xfp plan big -q --envelope 80GB
	[[ $output == *"the fewest bits need at least "*" on a GPU, but the goal allows 80000000000"* ]]
	xfp plan big -q --json --envelope 141GB >plan
	[ "$(field goal taken <plan)" -le 141000000000 ]
	# the smallest dimension that is split: rows of in_proj_a and in_proj_b
	run -2 xfp plan big -q --envelope 65x96GB
	[[ $output == *"(in_proj_"*") is split by rows and has 64 of them; name at most that many GPUs"* ]]
}

@test "plan: eight sizes, by typical cosines, then by surveys, close to the results" {
	make_models
	xfp plan moe --target-size 3MB >plan
	grep -q '^Possible sizes for --target-size' plan
	grep -q '^by typical cosines (--survey measures):' plan
	[ -z "$(find . -name '*.h5')" ]
	xfp plan moe --target-size 3MB --survey -q >plan
	grep -q '^by surveys:' plan
	grep -q '^Bits follow from surveys' plan
	[ "$(sed -n '/^ *size  bits/,$p' plan | wc -l)" = 9 ]
	xfp plan moe --target-size 3MB --json -q >plan
	[ "$(field curve points <plan | tr '{' '\n' | grep -c bytes)" = 8 ]
	[ "$(find . -name '*.h5' | grep -c artifacts)" = "$(field curve units <plan)" ]
	# a plan with floors uses the surveys, too
	xfp plan moe -q >floors
	grep -q '^Bits follow from surveys' floors
	for i in 1 4 6; do
		bytes=$(field curve points $i bytes <plan)
		[ "$(field curve points $i margin <plan)" = $((3000000 - bytes)) ]
		xfp convert moe -o out.xfp --target-size "$bytes" --json -q >summary
		[ "$(stat -c %s out.xfp)" -le "$bytes" ]
		"$PYTHON" -c 'import sys; a, b = map(float, sys.argv[1:]); assert abs(a - b) < .1 * b, (a, b)' \
			"$(field goal error <summary)" "$(field curve points $i error <plan)"
	done
}

@test "in a makefile, in the environment, in a profile" {
	make_models
	bits=$(bits_at bert 300)
	want=$(converted bert out.xfp --target-bpw "$bits")
	printf 'MODEL = bert\nOUT = made.xfp\nTARGET_BPW = %s\ninclude %s/convert.mk\n' "$bits" "$(xfp --pipelines)" >Makefile
	make -s >/dev/null 2>&1
	[ "$(sha made.xfp)" = "$want" ]
	[ "$(XFP_TARGET_BPW=$bits converted bert env.xfp)" = "$want" ]
	echo "target-bpw = $bits" >own.profile
	[ "$(converted bert profile.xfp --profile own.profile)" = "$want" ]
	[ "$(converted bert later.xfp --profile own.profile --target-size "$(size_at bert 600)")" != "$want" ]
}

@test "plan --like of a bundle made for a goal expects its size, with any cache" {
	make_models
	bytes=$(size_at moe 600)
	xfp convert moe -o out.xfp --target-size "$bytes" -q
	run -0 xfp plan moe -o other.xfp --cache empty --like out.xfp --json -q
	expected=$(field bundle expected <<<"$output")
	actual=$(stat -c %s out.xfp)
	echo "expected $expected, actual $actual"
	[ $((expected * 100)) -gt $((actual * 93)) ]
	[ $((expected * 93)) -lt $((actual * 100)) ]
}

@test "after --drop-cache the bundle is still up to date for its goal" {
	make_models
	size=$(size_at bert 300)
	xfp convert bert -o out.xfp --target-size "$size" --drop-cache -q
	want=$(sha out.xfp)
	xfp convert bert -o out.xfp --target-size "$size" --json -q >summary
	[ "$(field unchanged <summary)" = True ]
	[ ! -e xfp-cache/artifacts ] || [ -z "$(artifacts)" ]
	xfp convert bert -o out.xfp --target-size "$(size_at bert 600)" -q
	[ "$(sha out.xfp)" != "$want" ]
	[ "$(converted bert out.xfp --target-size "$size")" = "$want" ]
}

@test "plan: with a goal, the size is the solution's, and the one that convert writes" {
	make_models
	for goal in "--target-bpw $(bits_at moe 400)" "--target-size $(size_at moe 500)" '--envelope 2x1MB'; do
		xfp plan moe $goal --json -q --cache none >plan
		file=$(field goal file <plan)
		[ "$(field bundle expected <plan)" = "$file" ]
		[ "$(field whole bytes <plan)" = "$file" ]
		[ "$(field bundle least <plan)" -le "$file" ]
		[ "$(field bundle most <plan)" -ge "$file" ]
		if [ "$(field goal kind <plan)" = size ]; then
			[ "$(field bundle most <plan)" -le "$(field goal allowed <plan)" ]
		fi
		[ "$(field whole bits_per_weight <plan)" = "$(field goal bits <plan)" ]
		xfp convert moe -o out.xfp -q $goal
		xfp plan moe -o other.xfp $goal --json -q >plan
		for bound in least expected most; do
			[ "$(field bundle $bound <plan)" = "$(stat -c %s out.xfp)" ]
		done
		[ "$(field disk bundle <plan)" = "$(stat -c %s out.xfp)" ]
	done
	# labels of figures are aligned, and no line is longer than the screen
	xfp plan moe -o other.xfp $goal >said
	for label in bundle memory disk goal time cache; do
		grep -qE "^$label {$((9 - ${#label}))}[^ ]" said || { echo "$label: $(grep "^$label" said)"; return 1; }
	done
}

@test "a goal that leaves a class a very low quality causes a warning" {
	make_models
	low=$(size_at bert 30) remark='cosines this low have ruined models ([^ ]* 0\.9[0-9]*).* see Floors in xfp-convert(1)'
	for command in plan 'convert -o out.xfp'; do
		xfp $command bert --target-size "$low" 2>/dev/null >said
		tr -s ' \n' ' ' <said | grep -q "$remark" || { cat said; return 1; }
		xfp $command bert --target-size "$(size_at bert 800)" 2>/dev/null >said
		run ! grep ruined said
	done
	# not for bits that were requested
	xfp plan bert --target-size "$low" --override '*=2' >said
	run ! grep ruined said
	# the named class is the lowest of them
	xfp convert bert -o out.xfp --target-size "$low" >said
	class=$(tr -s ' \n' ' ' <said | sed -n 's/.*ruined models (\([^ ]*\) .*/\1/p')
	[ "$(query "SELECT class FROM latest_units GROUP BY class ORDER BY sum(cos_median * rows * cols) / sum(rows * cols) LIMIT 1")" = "$class" ]
}

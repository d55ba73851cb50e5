#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Surveyed outlier thresholds, the default: what they gain, and that everything else is unchanged.

load helpers

setup() {
	setup_folder
	unset XFP_MODE
}

medium=(--layers 1 --hidden 256 --intermediate 192 --heads 4 --kv-heads 2 --num-experts 3)

# Run SQL on the units of the last run.
units() { # COLUMNS [WHERE]
	query "SELECT $1 FROM latest_units WHERE mode NOT IN ('fp8') AND ${2:-1} ORDER BY number"
}

made() { # KIND: how many there are
	query "SELECT count(*) FROM artifacts WHERE kind = '$1'"
}

# Replace the weights of one f32 tensor: an expression of a standard normal z and the index i.
reshape() { # FOLDER TENSOR EXPRESSION
	"$PYTHON" - "$@" <<-'END'
		import json, random, struct, sys
		folder, tensor, expression = sys.argv[1:]
		path = folder + "/model.safetensors"
		data = bytearray(open(path, "rb").read())
		head = struct.unpack("<Q", data[:8])[0]
		entry = json.loads(data[8:8 + head])[tensor]
		assert entry["dtype"] == "F32", entry
		begin, end = (8 + head + at for at in entry["data_offsets"])
		draw, code = random.Random(1), compile(expression, "expression", "eval")
		values = [eval(code, {"z": draw.gauss(0, 1), "i": i, "nan": float("nan")}) for i in range((end - begin) // 4)]
		data[begin:end] = struct.pack(f"<{len(values)}f", *values)
		open(path, "wb").write(data)
	END
}

@test "by default: mode auto, thresholds auto, and every floor is met" {
	make_model m "${medium[@]}"
	for floor in 0.97 0.99 0.998; do
		xfp convert m -o out.xfp -q --min-cos-strict $floor --min-cos-lazy $floor
		[ "$(units 'count(*)' 'met AND cos_median >= floor')" = 7 ]
		[ "$(units "min(floor)")" = $floor ]
		xfp verify out.xfp --source m -q
	done
	tar xOf out.xfp xfp.json >json
	grep -q '"mode": "auto"' json
	grep -q '"outlier_sigma": "auto"' json
	grep -q '"outlier_cap": "0.0625"' json
	grep -q '"survey": [0-9]' json
	run -0 xfp info out.xfp
	[[ $output == *"method auto; floor:attention=0.998 "* && $output != *outlier_* ]]
	# with a fixed threshold, surveys decide nothing
	xfp convert m -o named.xfp -q --outlier-sigma 4
	tar xOf named.xfp xfp.json >json
	run -1 grep survey json
	grep -q '"outlier_cap": "0.02"' json
	xfp convert m -o v2.xfp -q --mode v2
	tar xOf v2.xfp xfp.json | grep -q '"outlier_sigma": "4.0"'
}

@test "the threshold follows the tails of the weights" {
	make_model m "${medium[@]}" --dtype f32 --family llama
	layer=model.layers.0.self_attn
	reshape m $layer.q_proj.weight '(i * 40503 % 65536 - 32768) / 1e6'
	reshape m $layer.o_proj.weight '(z if i % 50 else 8 * z) / 50'
	xfp convert m -o out.xfp -q --mode v2 --outlier-sigma auto
	[ "$(units sigma_milli "unit = '$layer.q_proj.weight'")" = 0 ]
	[ "$(units 'sigma_milli BETWEEN 2500 AND 5000' "unit = '$layer.o_proj.weight'")" = 1 ]
	[ "$(units 'outlier_share > 0.005' "unit = '$layer.o_proj.weight'")" = 1 ]
	[ "$(units 'outlier_share' "unit = '$layer.q_proj.weight'")" = 0.0 ]
	# and so does that of the existing artifact
	[ "$(query "SELECT count(DISTINCT sigma_milli) FROM outliers")" -ge 2 ]
	xfp verify out.xfp --source m -q
}

@test "no more bytes than with 4 sigma, at the same floors" {
	make_model m "${medium[@]}"
	for floor in 0.985 0.995; do
		for sigma in auto 4; do
			xfp convert m -o "$sigma.xfp" -q --outlier-sigma $sigma --min-cos-strict $floor --min-cos-lazy $floor
		done
		query "SELECT a.unit, a.bytes, b.bytes FROM latest_units AS a JOIN latest_units AS b USING (number)
			WHERE a.output LIKE '%/auto.xfp' AND b.output LIKE '%/4.xfp' AND a.bytes > b.bytes" >more
		[ ! -s more ] || { cat more; return 1; }
		[ "$(query "SELECT sum(bytes) FROM latest_units WHERE output LIKE '%/auto.xfp'")" -lt \
			"$(query "SELECT sum(bytes) FROM latest_units WHERE output LIKE '%/4.xfp'")" ]
	done
}

@test "another floor: surveys are hits, and only dependent work is repeated" {
	make_model m "${medium[@]}"
	xfp convert m -o out.xfp -q
	[ "$(made survey)" = 7 ]
	xfp convert m -o out.xfp -q --min-cos-lazy 0.996
	[ "$(made survey)" = 7 ]
	run -1 grep "survey	" out.xfp.work/events
	# attention is unchanged
	[ "$(query "SELECT sum(repacked) + sum(fitted) FROM run_units WHERE run = 2 AND class = 'attention'")" = 0 ]
	[ "$(query "SELECT sum(repacked) FROM run_units WHERE run = 2 AND class = 'routed_expert'")" = 3 ]
	# the first settings again: no work
	xfp convert m -o out.xfp -q
	[ "$(query "SELECT sum(repacked) + sum(fitted) FROM run_units WHERE run = 3")" = 0 ]
}

@test "the same bytes: jobs, threads, instruction sets, warm, moved" {
	make_model m
	expected=$(converted m a.xfp --cache c1 -j1)
	[ "$(OMP_NUM_THREADS=1 converted m b.xfp --cache c2 -j3)" = "$expected" ]
	[ "$(OMP_NUM_THREADS=4 converted m c.xfp --cache c3 -j1)" = "$expected" ]
	rm -r a.xfp a.xfp.work
	[ "$(converted m a.xfp --cache c1)" = "$expected" ]
	[ "$(query "SELECT sum(repacked) + sum(fitted) FROM run_units WHERE run > 1" c1)" = 0 ]
	for set in plain avx2 avx512; do
		[ $set = plain ] || grep -qw "${set/avx512/avx512bw}" /proc/cpuinfo || continue
		[ "$(XFP_INSTRUCTIONS=$set converted m $set.xfp --cache c-$set)" = "$expected" ]
	done
	mv m moved
	[ "$(converted moved d.xfp --cache c4)" = "$expected" ]
}

@test "the same bytes: killed in a survey and resumed, and made again by --like" {
	make_model m
	expected=$(converted m whole.xfp --cache whole)
	replace_stage xfp-survey '
		if [ ! -e "$top/stuck" ] && [ "$1" = u000003 ]; then echo $$ >"$top/pid"; touch "$top/stuck"; exec sleep 60; fi
		exec "$real" "$@"'
	bin/xfp convert m -o out.xfp -q -j1 &
	pid=$!
	until [ -e stuck ]; do sleep 0.01; done
	kill -9 $pid
	wait $pid || true
	# the orphaned stage holds the lock
	kill -9 "$(cat pid)" 2>/dev/null || true
	flock out.xfp.work/lock true
	rm -rf bin share
	PATH=$XFP_TEST_BIN:$PATH
	[ "$(converted m out.xfp)" = "$expected" ]
	[ "$(query "SELECT sum(fitted) FROM run_units WHERE run = 2")" = 5 ]
	run -0 xfp convert m --like whole.xfp -o again.xfp -q --cache other
	[ "$(sha again.xfp)" = "$expected" ]
}

@test "a damaged or missing survey is made again" {
	make_model m
	expected=$(converted m out.xfp)
	key=$(query "SELECT key FROM artifacts WHERE kind = 'survey' LIMIT 1")
	survey=xfp-cache/artifacts/${key:0:2}/$key.h5
	for how in damaged gone; do
		cp "$survey" kept
		case $how in
		damaged) printf x | dd of="$survey" bs=1 seek=3000 conv=notrunc status=none ;;
		gone) rm "$survey" ;;
		esac
		# with another floor, so that it is needed
		xfp convert m -o other.xfp -q --min-cos-strict 0.98$((RANDOM % 9 + 1))
		cmp "$survey" kept 2>/dev/null || [ -e "$survey" ]
		rm -f out.xfp
		[ "$(converted m out.xfp)" = "$expected" ]
	done
	[ "$(query "SELECT count(*) FROM runs WHERE status != 0")" = 0 ]
	# damaged while a stage uses it
	replace_stage xfp-outlier-extract '
		key=$(cat "$top/hit.xfp.work/$1-survey")
		file=$top/fresh/artifacts/$(echo "$key" | cut -c1-2)/$key.h5
		if [ ! -e "$top/once" ]; then touch "$top/once"; truncate -s 600 "$file"; fi
		exec "$real" "$@"'
	bin/xfp convert m -o hit.xfp -q -j1 --cache fresh
	[ "$(sha hit.xfp)" = "$expected" ]
	[ -e once ]
	xfp cache check --read-data --cache fresh
}

@test "gc keeps the surveys of the last run, ls and stats show them" {
	make_model m
	xfp convert m -o out.xfp -q
	xfp convert m -o out.xfp -q --outlier-cap 0.01
	[ "$(made survey)" = 14 ]
	xfp cache ls --kind survey | grep -q "^14 artifacts.*; 7 current"
	xfp cache gc >/dev/null
	[ "$(made survey)" = 7 ]
	xfp cache stats | grep -Eq "^survey +7 "
	key=$(query "SELECT key FROM artifacts WHERE kind = 'survey' LIMIT 1")
	run -0 xfp cache ls "$key"
	[[ $output == *"kind      survey"* && $output == *"sigma_milli 2700"* && $output == *"into"* ]]
	xfp cache rebuild >/dev/null
	[ "$(made survey)" = 7 ]
	[ "$(query "SELECT count(*) FROM candidates JOIN artifacts ON key = fit_key WHERE kind = 'survey'")" = $((7 * (7 * 15 + 1))) ]
	[ "$(xfp convert m -o out.xfp --outlier-cap 0.01 | grep -c "0 fitted, 0 packed")" = 1 ]
}

@test "weights that are not finite" {
	make_model m --dtype f32 --family llama
	reshape m model.layers.0.self_attn.k_proj.weight 'z / 50 if i != 777 else nan'
	run -3 xfp convert m -o out.xfp -q
	[[ $output == *"k_proj.weight"* ]]
	no_output out.xfp
	run -3 xfp convert m -o out.xfp -q -k
	[ "$(grep -c "survey	failed" out.xfp.work/events)" = 1 ]
	xfp convert m -o out.xfp -q --on-nonfinite keep
	[ "$(units mode "unit LIKE '%k_proj.weight'")" = keep ]
	[ "$(units "count(*)" "mode != 'keep' AND met")" = 6 ]
	xfp verify out.xfp --source m -q
}

@test "fixed bits: 4 sigma, in the smallest mode" {
	make_model m
	xfp convert m -o out.xfp -q --format attention=4 --override 'role:up=3'
	[ "$(units "DISTINCT sigma_milli, k" "class = 'attention'")" = "4000|4" ]
	[ "$(units "sigma_milli, k" "role = 'up'")" = "4000|3" ]
	# a single number in --bits does not fix the bits
	xfp convert m -o bits.xfp -q --bits 3 --on-miss best --min-cos-strict 0.98
	[ "$(query "SELECT DISTINCT k FROM latest_units WHERE output LIKE '%/bits.xfp' AND mode NOT IN ('fp8', 'keep')")" = 3 ]
	xfp verify out.xfp --source m -q
	xfp verify bits.xfp --source m -q || true
}

@test "in the other modes, if requested" {
	make_model m "${medium[@]}"
	for mode in v2 v2a v2c; do
		xfp convert m -o $mode.xfp -q --mode $mode --outlier-sigma auto
		xfp convert m -o $mode-4.xfp -q --mode $mode
		sizes=$(query "SELECT sum(bytes) FROM latest_units WHERE output LIKE '%/$mode.xfp' OR output LIKE '%/$mode-4.xfp'
			GROUP BY output ORDER BY output LIKE '%-4.xfp'")
		[ "$(head -n 1 <<<"$sizes")" -le "$(tail -n 1 <<<"$sizes")" ]
		[ "$(query "SELECT count(DISTINCT mode) FROM latest_units WHERE output LIKE '%/$mode.xfp' AND mode NOT IN ('fp8', 'keep')")" = 1 ]
		xfp verify $mode.xfp --source m -q
	done
	# consistent settings make it again
	run -0 xfp convert m --like v2a.xfp -o again.xfp -q --outlier-sigma auto
	run -2 xfp convert m --like v2a.xfp -o again.xfp -q --outlier-sigma 4
}

@test "stacks of one expert, rows shorter than a group, single rows" {
	make_model one --num-experts 1
	make_model narrow --family bert --dtype f32 --hidden 8 --heads 2 --head-dim 4 --intermediate 12
	make_model f16 --dtype f16 --experts transposed --shards 3
	for model in one narrow f16; do
		xfp convert $model -o $model.xfp -q --on-miss best --min-cos-strict 0.95
		xfp verify $model.xfp --source $model -q --min-cos-strict 0 --min-cos-lazy 0 || [ $? = 4 ]
		[ "$(OMP_NUM_THREADS=3 converted $model again.xfp --cache again-$model --on-miss best --min-cos-strict 0.95)" = \
			"$(sha $model.xfp)" ]
		rm again.xfp
	done
}

@test "a floor that nothing meets" {
	make_model m
	xfp convert m -o out.xfp -q --min-cos-strict 0.9999999 --min-cos-lazy 0.9999999
	[ "$(units "DISTINCT mode")" = keep ]
	xfp convert m -o best.xfp -q --min-cos-strict 0.9999999 --min-cos-lazy 0.9999999 --on-miss best
	[ "$(query "SELECT DISTINCT k FROM latest_units WHERE output LIKE '%/best.xfp' AND mode LIKE 'v2%'")" = 6 ]
	run -4 xfp convert m -o fail.xfp -q --min-cos-strict 0.9999999 --on-miss fail
}

@test "by hand: the chain, -n without effect, and refusals" {
	make_model m
	expected=$(converted m whole.xfp --cache whole)
	xfp prepare m -o out.xfp -q
	export XFP_WORK=$PWD/out.xfp.work XFP_CACHE=$PWD/xfp-cache XFP_PIPELINES
	XFP_PIPELINES=$(xfp --pipelines)
	make -n -C out.xfp.work -f "$XFP_PIPELINES/graph.mk" >told
	[ "$(grep -c '^xfp-survey' told)" = 7 ]
	[ -z "$(artifacts)" ]
	[ ! -e out.xfp.work/u000001-fits.mk ]
	xfp-survey u000001
	[[ "$(cat out.xfp.work/u000001-fits.mk)" == "FITS = "* ]]
	# no stage of its unit continues without it
	run -75 xfp-outlier-extract u000002
	[[ $output == *u000002* || $output == *survey* ]]
	make -n -C out.xfp.work -f "$XFP_PIPELINES/unit.mk" UNIT=u000001 >told
	run -1 grep xfp-survey told
	make -C out.xfp.work -f "$XFP_PIPELINES/graph.mk" >/dev/null
	xfp prepare m -o out.xfp -q
	xfp-bundle out.xfp
	[ "$(sha out.xfp)" = "$expected" ]
	# hits
	xfp-survey u000001
	tail -n 1 out.xfp.work/events | grep -q "^u000001	survey	hit"
	run -2 xfp-survey u000000
	[[ $output == *"is not fitted, so there is nothing to survey"* ]]
	run -2 xfp-survey u000999
	run -2 xfp-survey
	run -2 xfp-survey u000001 u000002
	run -2 xfp-survey --extended u000001
	xfp prepare m -o named.xfp -q --work named --outlier-sigma 4
	# with a fixed threshold, as a goal has it surveyed: only that one
	xfp-survey --work named u000001
	[ "$(cat named/u000001-fits.mk)" = "FITS = fit library" ]
	xfp cache rebuild >/dev/null
	[ "$(query "SELECT count(DISTINCT sigma_milli) FROM candidates JOIN artifacts ON key = fit_key
		WHERE kind = 'survey' GROUP BY key ORDER BY 1" | uniq)" = $'2\n7' ]
}

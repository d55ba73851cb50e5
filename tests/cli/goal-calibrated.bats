#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Sizes and floors with --calibrate: surveys predict the errors of outputs from scales.

load helpers

setup() {
	setup_folder
	by_default
	make_text_model 2
}

text=(--calibrate --calibrate-tokens 4096)
kept=(--mode v2c --lm-head keep --format embedding=keep)
goal=("${text[@]}" "${kept[@]}" --min-cos-strict 0 --min-cos-lazy 0 --target-bpw)

# Compare the measured errors of outputs with those that surveys and scales predict; prints the units.
compared() { # OUT
	query "SELECT u.unit, c.output_error, a.error, s.growth, s.feedback FROM latest_units AS u
		JOIN choices AS c ON c.key = u.choice_key
		JOIN artifacts AS own ON own.kind = 'survey' AND own.unit = u.unit
		JOIN candidates AS a ON a.fit_key = own.key AND a.mode = c.mode AND a.k = c.k AND a.\"group\" = c.\"group\"
			AND a.sigma_milli = c.sigma_milli
		JOIN inputs AS i ON i.name = 'survey' AND i.input = own.key
		JOIN scales AS s ON s.key = i.key WHERE u.output = '$PWD/$1'" >rows
	"$PYTHON" - <<-'EOF'
	ratios = []
	for line in open("rows"):
	    unit, measured, error, growth, feedback = line.rstrip().split("|")
	    measured, error, growth, feedback = map(float, (measured, error, growth, feedback))
	    predicted = error / (1 - (growth - 1) * error) * feedback
	    print(unit, measured, predicted)
	    ratios.append(predicted / measured)
	# inputs of a random model that are held out may have other directions
	assert 0.4 < min(ratios) and max(ratios) < 2, ratios
	assert 0.7 < sorted(ratios)[len(ratios) // 2] < 1.3, ratios
	EOF
}

@test "a size with --calibrate is solved with predicted errors of outputs, which are close to the measured ones" {
	xfp plan m "${goal[@]}" 32 >plan
	grep -q '^layers   2 of 3 layers to compute' plan
	xfp convert m -o out.xfp "${goal[@]}" 32 >summary
	grep -q '^floors and cosines are those of outputs for 14 of 14 units' summary
	[ "$(query "SELECT count(*) FROM artifacts WHERE kind = 'scales'")" -eq 14 ]
	compared out.xfp >units
	cat units
	[ "$(wc -l <units)" -eq 14 ]
	xfp cache check --read-data | grep -q 'no damage found'
	key=$(query "SELECT key FROM artifacts WHERE kind = 'scales' LIMIT 1")
	xfp cache ls "$key" | grep -q '^holds .*matrices [13] rows .*growth .* feedback .* rounding_median '
	xfp cache ls --kind scales | grep -q scales
	expected=$(sha out.xfp)
	xfp convert m -o out.xfp "${goal[@]}" 32 | grep -qx "$PWD/out.xfp is up to date"
	# the manifest is made again, and scales that are damaged
	xfp cache rebuild >/dev/null
	printf x | dd of="xfp-cache/artifacts/${key:0:2}/$key.h5" bs=1 seek=2500 conv=notrunc 2>/dev/null
	rm -r out.xfp.work
	[ "$(converted m out.xfp "${goal[@]}" 32)" = "$expected" ]
	xfp plan m "${goal[@]}" 32 | grep -q '^layers   0 of 3 layers\|the bundle is up to date\|knows 14 of 14'
}

@test "a size with --calibrate: one SHA-256 for jobs and instruction sets, killed and resumed" {
	expected=$(converted m one.xfp "${goal[@]}" 32 --cache one -j1)
	[ "$(XFP_INSTRUCTIONS=plain converted m four.xfp "${goal[@]}" 32 --cache four -j4)" = "$expected" ]
	for moment in 'u[0-9]*	survey	made' 'u[0-9]*	libfit	made'; do
		xfp convert m -o out.xfp -q "${goal[@]}" 32 -j2 2>errors &
		pid=$!
		until grep -q "^$moment" out.xfp.work/events 2>/dev/null; do
			kill -0 $pid && sleep 0.01
		done
		kill -9 $pid
		wait $pid || true
		flock -w 5 out.xfp.work/lock true
		[ "$(converted m out.xfp "${goal[@]}" 32)" = "$expected" ]
		rm -r out.xfp out.xfp.work xfp-cache
	done
}

@test "surveys and their keys are those of a conversion without --calibrate" {
	surveys="SELECT key FROM artifacts WHERE kind = 'survey' ORDER BY key"
	xfp convert m -o plain.xfp -q "${kept[@]}" --target-bpw 32
	query "$surveys" >plain
	[ -z "$(query "SELECT key FROM artifacts WHERE kind = 'scales'")" ]
	xfp convert m -o out.xfp -q "${goal[@]}" 32
	query "$surveys" | cmp - plain
}

@test "floors with --calibrate: the survey selects by outputs, which need fewer bits than weights" {
	floors=("${kept[@]}" --outlier-sigma auto --min-cos-strict 0.99 --min-cos-lazy 0.99)
	xfp convert m -o plain.xfp -q "${floors[@]}"
	xfp convert m -o out.xfp -q "${text[@]}" "${floors[@]}"
	bits="SELECT sum(k * weights) FROM latest_units WHERE output = '$PWD"
	[ "$(query "$bits/out.xfp'")" -lt "$(query "$bits/plain.xfp'")" ]
	[ "$(query "SELECT count(*) FROM latest_units AS u JOIN inputs AS i ON i.key = u.choice_key AND i.name = 'scales'
		WHERE u.output = '$PWD/out.xfp'")" -eq 14 ]
	expected=$(sha out.xfp)
	rm -r out.xfp out.xfp.work
	[ "$(converted m out.xfp "${text[@]}" "${floors[@]}")" = "$expected" ]
	[ -z "$(grep '	made	' out.xfp.work/events | grep -v '	bundle	')" ]
	[ "$(converted m out.xfp "${text[@]}" "${floors[@]}" --cache other --drop-cache)" = "$expected" ]
	# another floor: scales are found
	xfp convert m -o out.xfp -q "${text[@]}" "${floors[@]}" --floor attention=0.95
	[ -z "$(grep 'survey	made' out.xfp.work/events)" ]
}

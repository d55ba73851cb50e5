#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Storage modes with libraries: what they store, that they are reproducible, and how auto chooses.

load helpers

setup() {
	setup_folder
	unset XFP_MODE
}

modes() { # BUNDLE
	xfp info --json "$1" | "$PYTHON" -c 'import json, sys
print(*sorted({unit["mode"] for unit in json.load(sys.stdin)["units"] if unit["mode"] not in ("keep", "fp8")}))'
}

bytes_by_unit() { # BUNDLE
	xfp info --json "$1" | "$PYTHON" -c 'import json, sys
for unit in json.load(sys.stdin)["units"]:
    print(unit["name"], unit["role"], unit["bytes"], unit["met"], sep="|")'
}

@test "every claim of a bundle in either mode follows from the definitions" {
	make_model moe --layers 2
	make_model narrow --family bert --dtype f32 --hidden 40 --heads 2 --head-dim 20
	for mode in v2a v2c; do
		for model in moe narrow; do
			xfp convert "$model" -o "$model-$mode.xfp" --mode "$mode" --bits 2-6
			[ "$(modes "$model-$mode.xfp")" = "$mode" ]
			"$PYTHON" "$srcdir/tests/oracle_cosine.py" --all "$model-$mode.xfp" "$model"
			xfp verify "$model-$mode.xfp" --source "$model"
		done
	done
}

@test "an independent reader decodes the same weights as xfp unpack" {
	make_model m --experts fused
	xfp convert m -o m.xfp --mode auto --bits 2,3 --on-miss best
	xfp unpack m.xfp -o unpacked --dtype f32
	PYTHONPATH=$srcdir/tests:$srcdir/tests/models "$PYTHON" - <<-'END'
		import numpy, read_bundle
		from safetensors_io import Checkpoint
		bundle, unpacked = read_bundle.Bundle("m.xfp"), Checkpoint("unpacked")
		seen = set()
		for number, matrix in enumerate(bundle.matrices):
		    flat = unpacked.read(bundle.tensors[matrix["tensor"]]["name"]).ravel()
		    unit = bundle.units[matrix["unit"]]
		    at = numpy.arange(unit["rows"])[:, None] * matrix["row_stride"] + \
		        numpy.arange(unit["cols"]) * matrix["col_stride"] + matrix["base"]
		    assert (flat[at] == bundle.matrix(number)).all(), number
		    seen.add(unit["mode"])
		assert len(seen) >= 2, seen
	END
}

@test "jobs, threads, instruction sets, warm and cold caches: the same bytes" {
	make_model m
	for mode in v2a v2c auto; do
		expected=$(converted m "$mode.xfp" --cache "c-$mode" --mode "$mode" --bits 2,3 --on-miss best -j1)
		[ "$(OMP_NUM_THREADS=3 converted m "$mode-3.xfp" --mode "$mode" --bits 2,3 --on-miss best --cache c3 -j3)" = "$expected" ]
		rm -r "$mode.xfp" "$mode.xfp.work"
		[ "$(converted m "$mode.xfp" --cache "c-$mode" --mode "$mode" --bits 2,3 --on-miss best)" = "$expected" ]
		for set in plain avx2; do
			rm -rf c
			grep -qw avx2 /proc/cpuinfo || [ $set = plain ] || continue
			[ "$(XFP_INSTRUCTIONS=$set converted m "$set.xfp" --cache c --mode "$mode" --bits 2,3 --on-miss best)" = "$expected" ]
		done
		rm -rf c3
	done
	[ "$(query "SELECT sum(repacked) + sum(fitted) FROM run_units WHERE run > 1" c-auto)" = 0 ]
}

@test "auto chooses the fewest bytes of all modes, and measures no candidate twice" {
	make_model m
	for mode in v2 v2a v2c auto; do
		xfp convert m -o "$mode.xfp" --mode "$mode" --outlier-sigma 4 --bits 2,3,4 --floor attention=0.97 \
			--on-miss best -q
		bytes_by_unit "$mode.xfp" >"$mode.units"
	done
	# Each unit of auto is as small as the smallest candidate that meets the floor equally.
	"$PYTHON" - <<-'END'
		def units(mode):
		    rows = [line.rstrip().rsplit("|", 2) for line in open(f"{mode}.units")]
		    return {name: (met, int(size)) for name, size, met in rows}
		auto, others = units("auto"), [units(mode) for mode in ("v2", "v2c")]
		v2a, v2c = units("v2a"), others[1]
		assert all(v2c[name][1] <= v2a[name][1] for name in v2c if v2c[name][0] == "True"), "v2a takes less"
		for name, (met, size) in auto.items():
		    met_sizes = [other[name][1] for other in others if other[name][0] == "True"]
		    if met == "True":
		        assert size == min(met_sizes), (name, size, met_sizes)
		    else:
		        assert not met_sizes, name
	END
	# the fits are the existing ones of v2 and v2c
	[ "$(query "SELECT count(*) FROM artifacts WHERE kind = 'fit' AND key_text LIKE '%start%'")" = 7 ]
	[ "$(query "SELECT count(*) FROM artifacts WHERE kind = 'fit' AND key_text LIKE '%modes v2c%'")" = 7 ]
}

@test "group and library sizes are the requested ones" {
	make_model m
	xfp convert m -o a.xfp --mode v2a --group-size 64 --library-size 8 --bits 3 --on-miss best -q
	xfp convert m -o c.xfp --mode v2c --group-size 64 --bits 3 --on-miss best -q
	for bundle in a c; do
		PYTHONPATH=$srcdir/tests "$PYTHON" - "$bundle" <<-'END'
			import sys, read_bundle
			for unit in read_bundle.Bundle(sys.argv[1] + ".xfp").units:
			    if read_bundle.MODES[unit["mode"]] in ("v2a", "v2c"):
			        assert unit["group"] == 6, unit
			        assert unit["library"] == (3 if sys.argv[1] == "a" else 4), unit
		END
	done
	run -2 xfp convert m -o x.xfp --group-size 100
	[[ $output == *"power of two"* ]]
	run -2 xfp convert m -o x.xfp --library-size 512
}

@test "killed again and again, and resumed: the same bytes" {
	make_model m
	expected=$(converted m a.xfp --cache c1 --mode auto --bits 2,3,4)
	for delay in 0.05 0.1 0.2 0.3; do
		timeout -s KILL $delay xfp convert m -o b.xfp --cache c2 --mode auto --bits 2,3,4 -q || true
	done
	[ "$(converted m b.xfp --cache c2 --mode auto --bits 2,3,4)" = "$expected" ]
}

@test "--like makes the same bundle from the recorded settings" {
	make_model m
	expected=$(converted m a.xfp --mode auto --group-size 32 --bits 2,3,4)
	run -0 xfp convert m -o b.xfp --like a.xfp --cache other
	[ "$(sha b.xfp)" = "$expected" ]
}

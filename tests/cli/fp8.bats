#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# 8-bit floats as one of the candidates: no choice is both larger and worse than fp8.

load helpers

setup() {
	setup_folder
	by_default
}

# Of every unit: name, mode, bytes, median cosine.
units() { # BUNDLE
	xfp info --json "$1" | "$PYTHON" -c '
import json, sys
for u in json.load(sys.stdin)["units"]:
    print(u["name"], u["role"], u["mode"], u["bytes"], u["cos_median"])'
}

# Compared with its fp8 form, no unit is larger and worse, and none meets its floor with more bytes.
no_worse() { # MODEL BUNDLE
	xfp convert "$1" -o "$2.all" -q --override '*=fp8'
	units "$2" >chosen
	units "$2.all" >fp8
	"$PYTHON" - <<-'END'
		fp8 = {tuple(line.split()[:2]): line.split()[2:] for line in open("fp8")}
		for line in open("chosen"):
		    name, role, mode, size, cosine = line.split()
		    _, most, best = fp8[name, role]
		    assert mode == "keep" or int(size) <= int(most) or float(cosine) > float(best), (line, most, best)
	END
}

@test "tiny matrices, whose codebooks would be too large, are fp8: in_proj_ba among them" {
	"$PYTHON" "$srcdir/tests/families.py" make qwen3_next model
	for options in '' '--min-cos-strict 0.999' '--min-cos-strict 0.9995 --min-cos-lazy 0.9995' '--min-cos-strict 0.99 --on-miss best' \
		'--outlier-sigma 4 --min-cos-strict 0.998'; do
		# shellcheck disable=SC2086 # a list of words
		xfp convert model -o out.xfp -q $options
		no_worse model out.xfp
		xfp verify -q --source model out.xfp
	done
	xfp convert model -o out.xfp -q --min-cos-strict 0.999
	units out.xfp | grep in_proj_ba >small
	[ "$(grep -c ' fp8 ' small)" -gt 0 ]
	# it was chosen because it meets its floor, not because of a setting
	xfp info --json out.xfp | "$PYTHON" -c '
import json, sys
small = [u for u in json.load(sys.stdin)["units"] if u["role"] == "in_proj_ba" and u["mode"] == "fp8"]
assert small and all(u["met"] and u["floor"] == 0.999 and u["k"] == 0 and u["format_by"] is None for u in small), small'
}

@test "fp8 is not chosen if codebooks are smaller: not with a floor that five bits meet" {
	make_model m --hidden 256 --vocab 600
	xfp convert m -o out.xfp -q --min-cos-strict 0.9993 --min-cos-lazy 0.9993
	no_worse m out.xfp
	[ "$(units out.xfp | grep -c ' v2c ')" -ge 8 ]
}

@test "explicit bits exclude fp8, and so does another mode; 8 among them is fp8" {
	make_model m --vocab 8
	modes() { # OPTION...
		xfp convert m -o out.xfp -q "$@" && units out.xfp | cut -d' ' -f 3 | sort -u | tr '\n' ' '
	}
	[[ $(modes) == *fp8* ]]
	for options in '--bits 2-6' '--mode v2c' '--mode v2' '--format lm_head=2-6,embedding=2-6,attention=2-6,routed_expert=2-6'; do
		# shellcheck disable=SC2086 # a list of words
		[[ $(modes $options) != *fp8* ]] || { echo "$options"; return 1; }
	done
	[ "$(modes --bits 8 --min-cos-strict 0.9 --min-cos-lazy 0.9)" = 'fp8 ' ]
	[[ $(modes --mode v2c --bits 2-6,8) == *fp8* ]]
	[ "$(modes --mode v2 --bits 8 --min-cos-strict 0.9 --min-cos-lazy 0.9)" = 'fp8 ' ]
	# 8 fixed bits mean fp8: no floor, no fit
	first=$(converted m a.xfp --format attention=fp8)
	[ "$first" = "$(converted m b.xfp --format attention=8)" ]
}

@test "units chosen as fp8 are packed like requested ones, and found in the cache" {
	make_model m --vocab 8
	xfp convert m -o out.xfp -q
	units out.xfp | grep '^lm_head.weight .* fp8 '
	packed=$(query "SELECT count(*) FROM artifacts WHERE kind = 'packed'")
	xfp convert m -o asked.xfp -q --lm-head fp8 --format embedding=fp8
	[ "$(query "SELECT count(*) FROM artifacts WHERE kind = 'packed'")" = "$packed" ]
	# again without the work folder, from the cached measurements; and from scratch
	expected=$(sha out.xfp)
	rm -r out.xfp out.xfp.work
	[ "$(converted m out.xfp)" = "$expected" ]
	[ "$(converted m cold.xfp --cache cold -j 2)" = "$expected" ]
	# with another floor that they meet, only what changed is packed again
	xfp convert m -o out.xfp -q --floor lm_head=0.9991,embedding=0.9991
	[ "$(query "SELECT count(*) FROM artifacts WHERE kind = 'packed'")" = "$packed" ]
	xfp cache check >/dev/null
	xfp cache rebuild >/dev/null
	[ "$(converted m out.xfp)" = "$expected" ]
}

@test "weights that would become zero in fp8 are not stored as fp8" {
	make_model m --dtype f32 --vocab 8
	"$PYTHON" - <<-'END'
		import json, struct
		data = bytearray(open("m/model.safetensors", "rb").read())
		head = struct.unpack("<Q", data[:8])[0]
		begin = 8 + head + json.loads(data[8:8 + head])["lm_head.weight"]["data_offsets"][0]
		data[begin:begin + 4 * 64] = struct.pack("<64I", *([1] * 64)) # a row of 2^-149
		open("m/model.safetensors", "wb").write(data)
	END
	xfp convert m -o out.xfp -q
	xfp verify -q --source m out.xfp
	run ! grep -q '^lm_head.weight .* fp8 ' <(units out.xfp)
	grep -q '^model.embed_tokens.weight .* fp8 ' <(units out.xfp)
}

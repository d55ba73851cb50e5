#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Every installed executable: a man page whose SYNOPSIS matches --help, --version, and the status of a wrong
# command line.

bats_require_minimum_version 1.5.0

setup() {
	bin=$XFP_TEST_BIN
	man=$XFP_TEST_MAN
	programs=("$bin"/*)
	[ ${#programs[@]} -ge 2 ]
}

# Join lines and collapse blanks.
squeeze() { tr -s ' \n\t' ' ' | sed 's/^ //; s/ $//'; }

# --help begins with "usage: xfp ..."; alternatives begin with "or:"; a blank line ends them.
usage_of() { "$@" --help | sed -n '/^usage:/,/^[[:space:]]*$/p' | sed -E 's/^ *(usage|or): *//' | squeeze; }

synopsis_of() {
	mandoc -T ascii -O width=78 "$1" | sed 's/.\x08//g' | sed -n '/^SYNOPSIS/,/^[A-Z]/p' | sed '/^[A-Z]/d' | squeeze
}

@test "every executable and every command of xfp has a man page" {
	read -r -d '' -a commands < <(xfp --help | sed -n 's/^  xfp \([a-z]*\) .*/\1/p') || true
	[ ${#commands[@]} -ge 4 ]
	for name in "${programs[@]##*/}" "${commands[@]/#/xfp-}"; do
		[ -f "$man/man1/$name.1" ] || { echo "$name has none"; return 1; }
	done
}

# The subject of a page of section 1: xfp-pack is an executable, xfp-convert a command of the front end.
described() { # PAGE
	local name

	name=$(basename "$1" .1)
	if [ -x "$bin/$name" ]; then echo "$name"; else echo "xfp ${name#xfp-}"; fi
}

@test "--help and the man page give the same synopsis" {
	for page in "$man"/man1/*.1; do
		read -r -a command < <(described "$page")
		usage=$(usage_of "${command[@]}")
		[ -n "$usage" ] || { echo "${command[*]} --help has no usage line"; return 1; }
		synopsis=$(synopsis_of "$page")
		diff <(echo "$usage") <(echo "$synopsis") || { echo "${command[*]}: --help < > man page"; return 1; }
	done
}

# The long options of a command's tables, but for those that all have.
options_of() { # WORD...
	{
		"$@" --completions
		if [ "$*" = 'xfp cache' ]; then
			for command in $(xfp cache --help | sed -n 's/^  xfp cache \([a-z]*\) .*/\1/p'); do
				xfp cache "$command" --completions
			done
		fi
	} 2>/dev/null | grep -oE '^--[a-z-]+' | grep -vxE -e '--(help|version)' | sort -u
}

# The same without those that the page leaves to xfp-convert(1).
own_options_of() { # WORD...
	case $* in
	'xfp walk') comm -23 <(options_of xfp walk) <(options_of xfp convert) ;;
	*) options_of "$@" ;;
	esac
}

@test "the man page describes every option, and no other" {
	for page in "$man"/man1/*.1; do
		read -r -a command < <(described "$page")
		case ${command[*]} in xfp | 'xfp plan') continue ;; esac # plan has the options of convert
		grep -E '^\.It Fl' "$page" | grep -oE '(Fl|,) -[a-z-]+' | sed 's/.* -/--/' |
			grep -vxE -e '--(help|version)' | sort -u >"$BATS_TEST_TMPDIR/described"
		diff <(own_options_of "${command[@]}") "$BATS_TEST_TMPDIR/described" ||
			{ echo "${command[*]}: options < > $page"; return 1; }
	done
}

@test "--help goes to standard output, with status 0" {
	for program in "${programs[@]}"; do
		[ -z "$("$program" --help 2>&1 >/dev/null)" ]
	done
}

@test "-h is --help, of every executable and of every command" {
	commands=("${programs[@]##*/}" $(xfp --help | sed -n 's/^  xfp \([a-z]*\) .*/xfp_\1/p')
		$(xfp cache --help | sed -n 's/^  xfp cache \([a-z]*\) .*/xfp_cache_\1/p') xfp_prepare)
	[ ${#commands[@]} -ge 24 ]
	for command in "${commands[@]}"; do
		diff <(${command//_/ } -h) <(${command//_/ } --help) || { echo "$command"; return 1; }
		[ -n "$(${command//_/ } -h)" ]
	done
}

@test "an unknown command, option, profile, class or family gets the nearest names" {
	cd "$BATS_TEST_TMPDIR"
	"$XFP_TEST_TOOLS/make-checkpoint" --layers 1 --hidden 64 --heads 4 --kv-heads 2 --num-experts 2 --vocab 96 m
	while IFS='|' read -r command nearest; do
		run -2 $command
		[[ ${lines[0]} == *"did you mean $nearest?"* ]] || { echo "$command: $output"; return 1; }
	done <<-'END'
		xfp vrify|verify
		xfp covnert m -o out.xfp|convert
		xfp --verson|--version
		xfp help stauts|status
		xfp cache lst|ls
		xfp cache ls --revresed|--reverse
		xfp convert m -o out.xfp --flor=attention=0.9|--floor
		xfp plan m --min-cos-lasy 0.9|--min-cos-lazy
		xfp compare m --rosw=3|--rows
		xfp-lloyd-fit --extend-ed u000000|--extended
		xfp-kernel-verify --benhc|--bench
		xfp COMPARE|compare
		xfp comp|compare
		xfp convert m -o out.xfp --profile carefull|careful
		xfp convert m -o out.xfp --profile paper-vv2|paper-v2, paper-v2a or paper-g
		xfp convert m -o out.xfp --format attn=4|attention
		xfp convert m -o out.xfp --floor expert=0.9|shared_expert or routed_expert
		xfp convert m -o out.xfp --override class:atention=4|attention
		xfp verify m --floor attn=0.99|attention
		xfp convert m -o out.xfp --preset small|--profile
		xfp plan m --quant=4|--profile
		xfp plan m --size 4G|--target-size
	END
	# a family is looked up when there is a model
	run -2 xfp convert m -o out.xfp --family qwen3moe
	[[ ${lines[0]} == *"no family 'qwen3moe'; did you mean qwen3_moe?"* ]] || { echo "$output"; return 1; }
	run -2 xfp frobnicate
	[ "$output" = "xfp: no command 'frobnicate'; xfp --help lists them" ]
}

@test "--version names the program and its version" {
	for program in "${programs[@]}"; do
		output=$("$program" --version)
		[[ $output =~ ^${program##*/}\ (\(xfp\)\ )?[0-9]+\.[0-9]+\.[0-9]+($|$'\n') ]] || { echo "$output"; return 1; }
	done
}

@test "help of a command of xfp cache is that command's" {
	diff <(xfp help cache gc) <(xfp cache gc --help)
	diff <(xfp help cache) <(xfp cache --help)
	diff <(xfp help help) <(xfp --help)
	diff <(xfp help plan) <(xfp plan --help)
}

@test "an unknown option is a usage error: status 2, nothing on standard output" {
	for program in "${programs[@]}"; do
		status=0
		output=$("${program##*/}" --no-such-option 2>"$BATS_TEST_TMPDIR/errors") || status=$?
		[ "$status" -eq 2 ] || { echo "${program##*/}: status $status"; return 1; }
		[ -z "$output" ]
		grep -q "^${program##*/}: " "$BATS_TEST_TMPDIR/errors" || { cat "$BATS_TEST_TMPDIR/errors"; return 1; }
	done
}

@test "texts of --help are aligned; an option that is too wide has a line of its own" {
	diff - <(xfp cache gc --help | sed -n '/^  *-/,$p') <<-'END'
		      --cache DIR   the cache (default: XFP_CACHE, or xfp-cache)
		      --keep-runs N  keep artifacts of the last N successful runs of each output
		                    (default 1)
		      --max-size BYTES
		                    remove only until the cache has this size, least recently
		                    used first; with K, M, G, T, or KiB ...
		      --older-than DAYS
		                    remove only artifacts not made or used since
		  -n, --dry-run     remove nothing; list what would be removed
		      --json        print one JSON object, see xfp-cache(1)
		  -h, --help        print this help and exit
		      --version     print the version and exit
	END
	diff - <(xfp unpack --help | sed -n '/^  -o/,/--no/p') <<-'END'
		  -o, --output DIR        write to this folder, which must be new or empty
		      --dtype TYPE        type of decoded weights (default: source, the original
		                          one); kept tensors are not converted
		      --max-shard-size N  maximum bytes of data in a file, with K, M, G, KB, MB,
		                          GB (powers of 1000) or KiB, MiB, GiB (powers of 1024);
		                          default 5GB
		      --no-check          do not check the bundle's digests first
	END
}

@test "commands of --help are aligned in a column" {
	[ "$(xfp --help | sed -n 's/^\(  xfp [a-z]*  *\).*/\1/p' | awk '{ print length }' | sort -u | wc -l)" -eq 1 ]
	run ! grep -E '^  xfp [a-z]* [^ ]' <(xfp --help)
}

@test "no line of --help is longer than 80 columns, of every executable and of every command" {
	commands=("${programs[@]##*/}" $(xfp --help | sed -n 's/^  xfp \([a-z]*\) .*/xfp_\1/p')
		$(xfp cache --help | sed -n 's/^  xfp cache \([a-z]*\) .*/xfp_cache_\1/p') xfp_prepare)
	[ ${#commands[@]} -ge 24 ]
	for command in "${commands[@]}"; do
		long=$(${command//_/ } --help | awk 'length > 80')
		[ -z "$long" ] || { echo "$command: $long"; return 1; }
	done
	# wider on a wide terminal
	[ "$(COLUMNS=200 xfp convert --help | wc -l)" -lt "$(xfp convert --help | wc -l)" ]
}

@test "convert's help begins with the most common options, and options of other tools are translated" {
	cd "$BATS_TEST_TMPDIR"
	xfp convert --help | sed -n 's/^  *\(-o, \)*--\([a-z-]*\) .*/\2/p' >names
	[ "$(head -n 5 names | tr '\n' ' ')" = "output profile target-size target-bpw envelope " ]
	[ "$(grep -n '^floor$' names | cut -d: -f1)" -lt "$(grep -n '^bits$' names | cut -d: -f1)" ]
	run -2 xfp info --preset small # which has none
	[[ ${lines[0]} == "xfp info: unknown option --preset" ]]
}

@test "errors of the command line name the option or the operand" {
	while IFS='|' read -r command said; do
		run -2 $command
		[[ ${lines[0]} == "xfp "[a-z]*": $said"* ]] || { echo "$command: $output"; return 1; }
	done <<-'END'
		xfp cache|expected a command: ls, check, rebuild, gc, stats, export or import
		xfp cache --nothing|no option '--nothing'
		xfp status a b|expected one conversion, got 'b' as well
		xfp status --work a b|OUT.xfp or --work, not both
		xfp verify --min-cos-strict 2 a|--min-cos-strict '2': expected a cosine from 0 to 1, as in 0.99
		xfp unpack --dtype f64 -o d a|--dtype 'f64': expected bf16
		xfp plan . --target-bpw 99|--target-bpw '99': expected bits per weight above 0, as in 4.25, and 64 at most
	END
}

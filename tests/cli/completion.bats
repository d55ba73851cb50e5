#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# What shells complete is what the commands accept: --completions of each command compared with its --help, and
# both scripts run in their shells.

load helpers

setup() {
	setup_folder
	bash_file=$(find "$XFP_TEST_ROOT" -path '*/bash-completion/completions/xfp')
	zsh_file=$(find "$XFP_TEST_ROOT" -path '*/zsh/site-functions/_xfp')
	# shellcheck source=/dev/null
	source "$bash_file"
}

# Every command, as the scripts call it: cache-gc is xfp cache gc.
all_commands() {
	echo xfp
	echo prepare
	xfp --help | sed -n 's/^  xfp \([a-z]*\) .*/\1/p'
	xfp cache --help | sed -n 's/^  xfp cache \([a-z]*\) .*/cache-\1/p'
	for tool in "$XFP_TEST_BIN"/xfp-*; do echo "${tool##*/}"; done
}

help_of() { # COMMAND
	case $1 in
	xfp | xfp-*) "$1" --help ;;
	cache-*) xfp cache "${1#cache-}" --help ;;
	*) xfp "$1" --help ;;
	esac
}

# All options in --help; of short options, those at the beginning of a line.
options_in_help() { # COMMAND
	help_of "$1" | sed "s/'srun [^']*'//" >help # an example of another program's options
	grep -oE -e '(^|[^a-z-])--[a-z][a-z-]*' help | grep -oE -e '--.*' || true
	grep -oE -e '^ +-[a-z][, ]' help | grep -oE -e '-[a-z]' || true
}

completed() { # WORD...: what is offered for the last one
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	_xfp
	printf '%s\n' "${COMPREPLY[@]}" | sort
}

@test "each option of each command is offered, and no other" {
	[ "$(all_commands | wc -l)" -ge 20 ]
	for command in $(all_commands); do
		options_in_help "$command" | sort -u >expected
		case $command in
		# where subcommands follow, their usage is prose
		xfp) printf '%s\n' -h --help --pipelines --version | sort >expected && completed xfp - >offered ;;
		cache) printf '%s\n' -h --help --version | sort >expected && completed xfp cache - >offered ;;
		xfp-*) completed "$command" - >offered ;;
		cache-*) completed xfp cache "${command#cache-}" - >offered ;;
		*) completed xfp "$command" - >offered ;;
		esac
		diff expected offered || { echo "$command: --help < > completion"; return 1; }
	done
}

@test "options with a value and switches are distinguished" {
	for command in $(all_commands | grep -vxE 'xfp|cache'); do
		help_of "$command" >help
		while read -r option; do
			value=$(_xfp_value_of "$command" "$option")
			# "--cache DIR", "--mode auto|v2": one blank, and a value that is not a sentence
			if grep -qE -e "(^|[ ,])$option [A-Za-z]+([^a-z ]|[|=])|(^|[ ,])$option [A-Z]" help; then
				[ "$value" != - ] || { echo "$command $option takes a value"; return 1; }
			else
				[ "$value" = - ] || { echo "$command $option takes no value"; return 1; }
			fi
		done < <(options_in_help "$command" | grep -e '^--' | sort -u)
	done
}

@test "the words offered for an option are those that it accepts" {
	make_model m
	for option in mode start lm-head on-miss on-nonfinite bits outlier-sigma; do
		words=$(completed xfp convert "--$option" '')
		[ -n "$words" ]
		for word in $words; do
			xfp convert m -o out.xfp -n "--$option" "$word" >/dev/null 2>&1 || { echo "--$option $word"; return 1; }
		done
		# and all of them, where --help lists them
		listed=$(xfp convert --help | sed -n "s/^ *--$option \([a-z0-9]*|[a-z0-9|]*\) .*/\1/p" | tr '|' '\n' | sort)
		[ -z "$listed" ] || [ "$listed" = "$words" ] || { echo "--$option: $listed"; return 1; }
	done
	xfp convert m -o out.xfp -q
	for dtype in $(completed xfp unpack --dtype ''); do
		xfp unpack out.xfp -o "as-$dtype" --dtype "$dtype"
	done
	for class in $(completed xfp convert --floor ''); do
		# classes that are kept or stored as fp8 have none
		XFP_FORMAT='' xfp convert m -o out.xfp -n --lm-head quant --floor "${class}0.9" >/dev/null || { echo "$class"; return 1; }
	done
	# all classes: the message for a wrong one lists them
	run -2 xfp convert m -o out.xfp --floor x=1
	[ "$(completed xfp convert --floor '' | tr -d =)" = "$(sed 's/.*classes are //; s/, /\n/g' <<<"${lines[0]}" | sort)" ]
}

@test "commands, families, units, models, files by kind" {
	[ "$(completed xfp '')" = "$({ echo help; xfp --help | sed -n 's/^  xfp \([a-z]*\) .*/\1/p'; } | sort)" ]
	[ "$(completed xfp cache '')" = "$(xfp cache --help | sed -n 's/^  xfp cache \([a-z]*\) .*/\1/p' | sort)" ]
	[ "$(completed xfp cache ls --kind f)" = fit ]
	[ "$(completed xfp st)" = status ]
	[ "$(completed xfp help sta)" = status ]
	[ "$(completed xfp convert --family qwen3_m)" = qwen3_moe ]
	mkdir rules
	touch rules/qwen3_mine.family
	[ "$(XFP_FAMILIES=/nowhere:$PWD/rules completed xfp-inspect --family qwen3_m)" = "qwen3_mine
qwen3_moe" ]
	rm -r rules
	make_model 'a model'
	touch one.safetensors two.gguf notes.txt out.xfp
	mkdir out.xfp.work
	[ "$(completed xfp convert '')" = "a model
one.safetensors
out.xfp.work
two.gguf" ]
	mkdir -p hub/models--Qwen--Qwen3-0.6B hub/models--gpt2
	[ "$(HF_HUB_CACHE=hub completed xfp verify --source Q)" = Qwen/Qwen3-0.6B ]
	[ "$(HF_HUB_CACHE=hub completed xfp-inspect gp)" = gpt2 ]
	[ "$(completed xfp info o)" = "out.xfp
out.xfp.work" ]
	[ "$(completed xfp convert a --cache a)" = "a model" ]
	[ "$(completed xfp convert --start = q)" = quantile ]
	[ -z "$(completed xfp convert --balance '')" ]
	xfp prepare 'a model' -o out.xfp -q
	[ "$(XFP_WORK=out.xfp.work completed xfp-pack u00000)" = "$(printf 'u%06d\n' {0..7})" ]
}

# Send KEYS to a shell in a terminal, and print what it shows.
typed() { # KEYS SHELL...
	"$PYTHON" - "$@" <<-'EOF'
	import os, pty, select, sys, time
	pid, fd = pty.fork()
	if not pid:
	    os.environ.update(TERM="dumb", PS1="$ ")
	    os.execvp(sys.argv[2], sys.argv[2:])
	def read(seconds):
	    text, end = b"", time.time() + seconds
	    while time.time() < end:
	        if select.select([fd], [], [], 0.2)[0]:
	            try:
	                text += os.read(fd, 65536)
	            except OSError:
	                break
	    return text
	shown = read(1)
	for part in sys.argv[1].encode().decode("unicode_escape").split("|"):
	    os.write(fd, part.encode())
	    shown += read(1.5)
	os.kill(pid, 9)
	sys.stdout.buffer.write(shown)
	EOF
}

@test "bash: tools that are not in PATH, and variables that commands refuse" {
	PATH=${PATH//"$XFP_TEST_BIN:"/}
	run ! command -v xfp
	[ "$(completed "$XFP_TEST_BIN/xfp" convert --mode '' | xargs)" = "auto v2 v2a v2c" ]
	completed "$XFP_TEST_BIN/xfp" '' | grep -qx convert
	completed "$XFP_TEST_BIN/xfp" convert --profile '' | grep -qx balanced
	completed "$XFP_TEST_BIN/xfp-lloyd-fit" --ext | grep -qx -e --extended
	# shellcheck disable=SC2088 # the script expands it
	HOME=${XFP_TEST_BIN%/*} completed "~/${XFP_TEST_BIN##*/}/xfp" info --un | grep -qx -e --units
	export XFP_JOBS=none XFP_TARGET_SIZ=1 XFP_FLOR=1
	for command in convert plan compare eval info; do
		completed "$XFP_TEST_BIN/xfp" $command --js | grep -qx -e --json || { echo "$command"; return 1; }
		"$XFP_TEST_BIN/xfp" $command --help | grep -q usage
	done
}

@test "bash: typed in a terminal, and found by every tool's name" {
	for tool in "$XFP_TEST_BIN"/xfp*; do
		[ "$(realpath "$(dirname "$bash_file")/${tool##*/}")" = "$(realpath "$bash_file")" ]
	done
	typed "source '$bash_file'\r|xfp inf\t|--vers\t|\r" bash --norc -i >shown
	grep -q "xfp info --version" shown
	grep -Eq "xfp \(?[x0-9]" shown
	typed "source '$bash_file'\r|xfp-lloyd-fit --ext\t" bash --norc -i | grep -q -e "xfp-lloyd-fit --extended "
}

@test "zsh: typed in a terminal" {
	head -n 1 "$zsh_file" | grep -qx "#compdef xfp $(cd "$XFP_TEST_BIN" && echo xfp-*)"
	xfp convert --completions | grep -qx -e "--on-miss keep|best|fail"
	command -v zsh >/dev/null || skip "zsh is not installed; its script was checked as text"
	zsh -n "$zsh_file"
	setup="fpath=('$(dirname "$zsh_file")' \$fpath); autoload -U compinit; compinit -D -u\r"
	typed "$setup|xfp inf\t|--vers\t|\r" zsh -f -i | sed 's/.\x08//g' >shown # zsh moves back over blanks
	grep -q "xfp info --version" shown
	grep -Eq "xfp \(?[x0-9]" shown
	typed "$setup|xfp convert --on-m\t|ke\t" zsh -f -i | grep -q -e "--on-miss=*.*keep"
	typed "$setup|xfp-lloyd-fit --ext\t" zsh -f -i | grep -q -e "xfp-lloyd-fit --extended"
	typed "$setup|PATH=$(dirname "$(command -v sed)")\r|$XFP_TEST_BIN/xfp convert --on-m\t|ke\t" zsh -f -i |
		grep -q -e "--on-miss=*.*keep"
}

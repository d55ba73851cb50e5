# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Completion for bash; `make install` puts it where bash-completion finds it. By hand: source this file.
# Every command prints what there is to complete (base/system/command_line.h lists the values).

_xfp_classes="attention linear_attention dense_mlp shared_expert routed_expert lm_head embedding router norm vision mtp other"

# Run a tool from the folder that the user's command names, or from PATH.
_xfp_run() { # TOOL ARGUMENT...
	local word=${COMP_WORDS[0]-} folder

	folder=${word%"${word##*/}"}
	"${folder/#\~\//$HOME/}$1" "${@:2}" 2>/dev/null
}

# Lines "OPTION VALUE" of a command; "*" are its arguments.
_xfp_table() { # COMMAND
	case $1 in
	xfp) printf '%s\n' '-h -' '--help -' '--pipelines -' '--version -' '* COMMAND' ;;
	cache) printf '%s\n' '-h -' '--help -' '--version -' '* ls|check|rebuild|gc|stats|export|import' ;;
	cache-*) _xfp_run xfp cache "${1#cache-}" --completions ;;
	xfp-*) _xfp_run "$1" --completions ;;
	*) _xfp_run xfp "$1" --completions ;;
	esac
}

_xfp_options_of() { _xfp_table "$1" | sed -n 's/^\(-[^ ]*\) .*/\1/p'; } # COMMAND

_xfp_value_of() { # COMMAND OPTION
	local option value

	while read -r option value; do
		[ "$option" != "$2" ] || echo "$value"
	done < <(_xfp_table "$1")
}

# COMPREPLY of lines, none of which is split.
_xfp_reply() { mapfile -t COMPREPLY; }

_xfp_files() { # PATTERN|PATTERN.. WORD: folders, and files that match one
	local file pattern
	local -a patterns

	IFS='|' read -ra patterns <<<"$1"

	compopt -o filenames 2>/dev/null
	_xfp_reply < <(
		compgen -d -- "$2"
		while read -r file; do
			for pattern in "${patterns[@]}"; do
				# shellcheck disable=SC2254 # a pattern
				case $file in $pattern) [ -d "$file" ] || echo "$file" ;; esac
			done
		done < <(compgen -f -- "$2")
	)
}

# As xfp looks for it; ~ stays what the user wrote.
_xfp_hub() {
	local hub=${HF_HUB_CACHE:-${HF_HOME:+$HF_HOME/hub}}

	hub=${hub:-${XDG_CACHE_HOME:-$HOME/.cache}/huggingface/hub}
	echo "${hub/#\~\//$HOME/}"
}

_xfp_models() { # PATTERN|PATTERN.. WORD
	local name names=()

	for name in "$(_xfp_hub)"/models--*; do
		name=${name##*/models--}
		[ "$name" = '*' ] || names+=("${name/--//}")
	done
	_xfp_files "$1" "$2"
	mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W "${names[*]}" -- "$2")
}

# Names of the files below the make rules' folder.
_xfp_data() { # FOLDER SUFFIX
	local file

	for file in "$(_xfp_run xfp --pipelines)/$1"/*"$2"; do
		file=${file##*/}
		[ "$file" = "*$2" ] || echo "${file%"$2"}"
	done
}

# Those of xfp, and of the folders that the user names.
_xfp_families() {
	local folder file

	_xfp_data families .family
	while read -r -d : folder; do
		for file in "$folder"/*.family; do
			file=${file##*/}
			[ "$file" = '*.family' ] || echo "${file%.family}"
		done
	done <<<"${XFP_FAMILIES-}:"
}

_xfp_units() { sed -n 's/^UNITS [+:]*= *//p' "${XFP_WORK:-.}/units.mk" 2>/dev/null; }

_xfp_words() { # WORD WORDS
	_xfp_reply < <(compgen -W "$2" -- "$1")
}

_xfp_complete_value() { # VALUE WORD
	case $1 in
	- | \? | '') ;;
	COMMAND) _xfp_words "$2" "help $(_xfp_run xfp --help | sed -n 's/^  xfp \([a-z]*\) .*/\1/p')" ;;
	CLASS=)
		compopt -o nospace 2>/dev/null
		_xfp_words "$2" "${_xfp_classes// /= }="
		;;
	FAMILY) _xfp_words "$2" "$(_xfp_families)" ;;
	PROFILE) _xfp_words "$2" "$(_xfp_data profiles .profile)" ;;
	FILE) _xfp_files '*' "$2" ;;
	DIR) _xfp_files '' "$2" ;;
	BUNDLE | RUN) _xfp_files '*.xfp' "$2" ;;
	MODEL) _xfp_models '*.safetensors|*.gguf' "$2" ;;
	'BUNDLE|MODEL') _xfp_models '*.xfp|*.safetensors|*.gguf' "$2" ;;
	UNIT) _xfp_words "$2" "$(_xfp_units)" ;;
	*) _xfp_words "$2" "${1//|/ }" ;;
	esac
}

_xfp() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[0]##*/} value

	COMPREPLY=()
	# bash takes --option=value apart
	if [ "$word" = = ]; then
		word=
	elif [ "$before" = = ]; then
		before=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	if [ "$command" = xfp ] && ((COMP_CWORD > 1)); then
		command=${COMP_WORDS[1]}
		[ "$command" != help ] || { _xfp_complete_value COMMAND "$word"; return; }
		[ "$command" != cache ] || ((COMP_CWORD == 2)) || command=cache-${COMP_WORDS[2]}
	fi
	value=$(_xfp_value_of "$command" "$before")
	if [[ $before == -* && -n $value && $value != - ]]; then
		_xfp_complete_value "$value" "$word"
	elif [[ $word == -* ]]; then
		_xfp_words "$word" "$(_xfp_options_of "$command")"
	else
		_xfp_complete_value "$(_xfp_value_of "$command" '*')" "$word"
	fi
}

complete -F _xfp xfp xfp-autoselect xfp-bundle xfp-calibrate xfp-eval xfp-generate xfp-inspect xfp-kernel-verify xfp-launch xfp-libfit xfp-lloyd-fit xfp-outlier-extract xfp-pack xfp-survey xfp-verify

#compdef xfp xfp-autoselect xfp-bundle xfp-calibrate xfp-eval xfp-generate xfp-inspect xfp-kernel-verify xfp-launch xfp-libfit xfp-lloyd-fit xfp-outlier-extract xfp-pack xfp-survey xfp-verify
# SPDX-License-Identifier: Apache-2.0
#
# Completion for zsh; `make install` puts it among the site functions. Every command prints what there is to complete
# (base/system/command_line.h lists the values).

# Run a tool from the folder that the user's command names, or from PATH.
_xfp_run() { "$_xfp_folder$1" "${@:2}" 2>/dev/null } # TOOL ARGUMENT...

# Lines "OPTION VALUE" of a command; "*" are its arguments.
_xfp_table() { # COMMAND
	case $1 in
	xfp) print -l -- '-h -' '--help -' '--pipelines -' '--version -' '* COMMAND' ;;
	cache) print -l -- '-h -' '--help -' '--version -' '* ls|check|rebuild|gc|stats|export|import' ;;
	cache-*) _xfp_run xfp cache ${1#cache-} --completions ;;
	xfp-*) _xfp_run $1 --completions ;;
	*) _xfp_run xfp $1 --completions ;;
	esac
}

_xfp_classes=(attention linear_attention dense_mlp shared_expert routed_expert lm_head embedding router norm
	vision mtp other)

_xfp_commands() { compadd help ${(f)"$(_call_program commands _xfp_run xfp --help | sed -n 's/^  xfp \([a-z]*\) .*/\1/p')"} }
_xfp_class() { compadd -S = -a _xfp_classes }
_xfp_families() { compadd $(_xfp_run xfp --pipelines)/families/*.family(N:t:r) ${^${(s.:.)XFP_FAMILIES}}/*.family(N:t:r) }
_xfp_profiles() { compadd $(_xfp_run xfp --pipelines)/profiles/*.profile(N:t:r) }
_xfp_units() { compadd $(sed -n 's/^UNITS [+:]*= *//p' ${XFP_WORK:-.}/units.mk 2>/dev/null) }
_xfp_models() {
	local hub=${HF_HUB_CACHE:-${HF_HOME:+$HF_HOME/hub}}
	local -a names

	hub=${hub:-${XDG_CACHE_HOME:-$HOME/.cache}/huggingface/hub}
	names=(${hub/#\~\//$HOME/}/models--*(N:t))
	compadd ${${names#models--}/--//}
	_files -g '*.(safetensors|gguf)'
}
_xfp_models_and_bundles() {
	_xfp_models
	_files -g '*.xfp'
}

# What _arguments calls an action.
_xfp_action() { # VALUE
	case $1 in
	\?) echo ' ' ;;
	COMMAND) echo _xfp_commands ;;
	CLASS=) echo _xfp_class ;;
	FAMILY) echo _xfp_families ;;
	PROFILE) echo _xfp_profiles ;;
	FILE) echo _files ;;
	DIR) echo '_files -/' ;;
	BUNDLE | RUN) echo '_files -g "*.xfp"' ;;
	MODEL) echo _xfp_models ;;
	'BUNDLE|MODEL') echo _xfp_models_and_bundles ;;
	UNIT) echo _xfp_units ;;
	*) echo "(${1//|/ })" ;;
	esac
}

# The specifications of a command for _arguments, a line each.
_xfp_specs() { # COMMAND
	local option value

	while read -r option value; do
		case $option:$value in
		'*':*) echo "*:argument:$(_xfp_action $value)" ;;
		--*:-) echo "*$option" ;;
		-?:-) echo "*$option" ;;
		--*) echo "*$option=:value:$(_xfp_action $value)" ;;
		*) echo "*$option+:value:$(_xfp_action $value)" ;;
		esac
	done < <(_xfp_table $1)
}

_xfp() {
	local command=$service _xfp_folder=${words[1]%${words[1]:t}}
	local -a specs

	_xfp_folder=${_xfp_folder/#\~\//$HOME/}

	if [[ $service == xfp ]] && ((CURRENT > 2)); then
		shift words
		((CURRENT--))
		command=$words[1]
		[[ $command != help ]] || { _xfp_commands; return }
		if [[ $command == cache ]] && ((CURRENT > 2)); then
			shift words
			((CURRENT--))
			command=cache-$words[1]
		fi
	fi
	specs=(${(f)"$(_xfp_specs $command)"})
	((!$#specs)) || _arguments $specs
}

# Autoloaded, this file is the body of _xfp the first time.
[[ $funcstack[1] != _xfp ]] || _xfp "$@"

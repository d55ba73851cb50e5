#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# embed.sh FILE NAME - FILE as the C string NAME, in a header on standard output.
set -eu
[ $# -eq 2 ] || { echo "usage: embed.sh FILE NAME" >&2; exit 2; }
printf '/* Made from %s by embed.sh. */\nstatic const char %s[] =\n' "$(basename "$1")" "$2"
LC_ALL=C sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/?/\\?/g' -e 's/	/\\t/g' -e 's/^.*$/	"&\\n"/' "$1"
printf '\t;\n'

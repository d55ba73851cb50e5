# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Packed checkpoints, their unpacked copies, and bundles of both.

packed() { # FORM OPTION...; makes ./packed and ./plain
	"$PYTHON" "$srcdir/tests/make-packed-checkpoint.py" "$1" packed plain "${@:2}"
}

# Digests of all members but those that differ between bundles of a packed and an unpacked model: config.json,
# which is copied unchanged, and, because of its size, the offsets of what follows.
members() { # BUNDLE
	local folder

	folder=$(mktemp -d "$PWD/members-XXXXXX")
	tar -C "$folder" -xf "$1"
	(cd "$folder" && find . -type f ! -name xfp.idx ! -name xfp.sum ! -name '*config.json' -exec sha256sum {} + | sort)
	rm -r "$folder"
}

# The index, without offsets and file sizes.
index() { # BUNDLE
	xfp info --json "$1" | "$PYTHON" -c 'import json, sys
info = json.load(sys.stdin)
print(json.dumps({key: info[key] for key in ("units", "tensors", "family", "weights", "method")}, indent=1))'
}

alike() { # BUNDLE BUNDLE
	[ "$(members "$1" | wc -l)" -gt 20 ]
	diff <(members "$1") <(members "$2")
	diff <(index "$1") <(index "$2")
}

# Flip a bit of an f32 tensor that matters: in the upper half of a number in the middle.
edit() { # FILE TENSOR
	"$PYTHON" - "$@" <<-'EOF'
	import json, struct, sys
	with open(sys.argv[1], "r+b") as f:
	    size = struct.unpack("<Q", f.read(8))[0]
	    begin, end = json.loads(f.read(size))[sys.argv[2]]["data_offsets"]
	    at = 8 + size + begin + (end - begin) // 8 * 4 + 2
	    f.seek(at)
	    byte = f.read(1)[0]
	    f.seek(at)
	    f.write(bytes([byte ^ 2]))
	EOF
}

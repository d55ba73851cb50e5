#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Bundles with a damaged byte: xfp eval and xfp generate say which member it is in, and nothing of what they compute.

load helpers

setup() {
	setup_folder
	unset XFP_WORK XFP_OUT
	make_model m --vocab 260 --layers 2
	"$PYTHON" "$srcdir/tests/make-tokenizer.py" m
	xfp convert m -o b.xfp -q --bits 2 --on-miss best
	"$PYTHON" -c 'import numpy as np
np.save("t.npy", np.arange(40).reshape(2, 20))'
}

# A copy with one bit of a member flipped, in its middle; the first that begins so and is of TENSOR, or of any.
flipped() { # BUNDLE BEGINNING [TENSOR]
	"$PYTHON" - "$@" <<-'EOF'
	import json, shutil, subprocess, sys, tarfile
	path, beginning, *tensor = sys.argv[1:]
	members = [m for m in tarfile.open(path) if m.name.startswith(beginning) and m.size > 0]
	if tensor:
	    units = json.loads(subprocess.check_output(["xfp", "info", "--json", path]))["units"]
	    number = next(i for i, u in enumerate(units) if u["name"].startswith(tensor[0]))
	    members = [m for m in members if m.name.startswith(f"u/{number:06}.")]
	shutil.copyfile(path, "flipped.xfp")
	with open("flipped.xfp", "r+b") as file:
	    data = tarfile.open(path).extractfile(members[0]).read().rstrip(b"\0")
	    at = members[0].offset_data + len(data) // 2
	    file.seek(at)
	    byte = file.read(1)[0]
	    file.seek(at)
	    file.write(bytes([byte ^ 4]))
	print(members[0].name)
	EOF
}

named() { # MEMBER ARGUMENT...
	run -3 --separate-stderr xfp "${@:2}"
	[ -z "$output" ] || return 1
	# shellcheck disable=SC2154
	[[ ${stderr_lines[-1]} == *"flipped.xfp: damaged: member $1 ("*"): its content fails its SHA-256; "* ]] ||
		{ echo "$stderr"; return 1; }
}

@test "of a unit, behind layers that are sound" {
	member=$(flipped b.xfp u/ model.layers.1.mlp)
	[[ $member == u/* ]]
	named "$member" eval --tokens t.npy flipped.xfp
	named "$member" eval --fast --json --tokens t.npy --source m flipped.xfp
	named "$member" eval --tokens t.npy --source flipped.xfp b.xfp
	named "$member" generate --prompt a -n 2 flipped.xfp
	named "$member" generate --prompt a -n 2 --json flipped.xfp
}

@test "of a tensor that was kept, and of a small file" {
	member=$(flipped b.xfp t/)
	[[ $member == t/* ]]
	named "$member" eval --tokens t.npy flipped.xfp
	named "$member" generate --prompt a -n 2 flipped.xfp
	tar -tf b.xfp >list
	for file in tokenizer.json config.json; do
		member=$(flipped b.xfp "$(grep -E "[/.]$file\$" list)")
		named "$member" generate --prompt a -n 2 flipped.xfp
		named "$member" eval --text t.npy flipped.xfp
	done
}

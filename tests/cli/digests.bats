#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Bundles with a damaged byte: xfp eval and xfp generate name the damaged member, and print no results.

load helpers

setup() {
	setup_folder
	unset XFP_WORK XFP_OUT
	make_text_model 2
	xfp convert m -o b.xfp -q --bits 2 --on-miss best
	"$PYTHON" -c 'import numpy as np
np.save("t.npy", np.arange(40).reshape(2, 20))'
}

# Copy a bundle with one bit flipped in the middle of a member: the first with this prefix, of TENSOR or of any.
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

@test "of a unit, after intact layers" {
	member=$(flipped b.xfp u/ model.layers.1.mlp)
	[[ $member == u/* ]]
	named "$member" eval --tokens t.npy flipped.xfp
	named "$member" eval --fast --json --tokens t.npy --source m flipped.xfp
	named "$member" eval --tokens t.npy --source flipped.xfp b.xfp
	named "$member" generate --prompt a -n 2 flipped.xfp
	named "$member" generate --prompt a -n 2 --json flipped.xfp
}

@test "of a kept tensor, and of a small file" {
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

@test "padding and tar headers, which no digest covers: refused like in xfp verify" {
	"$PYTHON" - <<-'EOF'
	import os, subprocess, tarfile
	members = [m for m in tarfile.open("b.xfp") if m.name[0] in "fut"]
	places = {f"header of {m.name}": m.offset + at for m, at in zip(members[:6] + members[-6:], range(0, 480, 40))}
	for m in members:
	    data = tarfile.open("b.xfp").extractfile(m).read()
	    if m.name[0] in "ut" and data and not data[-1]:
	        places["end of padding"] = m.offset_data + len(data) - 1
	    if m.size % 512:
	        places["padding of a file"] = m.offset_data + m.size
	assert len(places) == 14, places
	file = open("b.xfp", "r+b", buffering=0)
	for what, at in places.items():
	    was = os.pread(file.fileno(), 1, at)
	    os.pwrite(file.fileno(), bytes([was[0] ^ 4]), at)
	    for command in ["verify"], ["eval", "--tokens", "t.npy"], ["generate", "--prompt", "a", "-n", "2"]:
	        run = subprocess.run(["xfp", *command, "b.xfp"], capture_output=True, text=True)
	        assert run.returncode == 3 and not run.stdout, (what, command, run)
	        assert "its padding is not zero; " in run.stderr or "its header is not canonical; " in run.stderr, run
	    os.pwrite(file.fileno(), was, at)
	EOF
	xfp eval --tokens t.npy b.xfp
}

@test "a small file that eval does not need is checked as well" {
	member=$(flipped b.xfp "$(tar -tf b.xfp | grep -E '[/.]tokenizer.json$')")
	named "$member" eval --tokens t.npy flipped.xfp
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# CRC-32 of members of PyTorch files and of zip archives: convert checks them once per file.

load helpers

setup() {
	setup_folder
	unset XFP_WORK XFP_OUT
	checked='^xfp: checked the CRC-32 of [1-9][0-9]* members \([0-9.]* [kM]B in [0-9.]* s.*\); '
}

checkpoint() { # FORM OPTION...; makes ./torch, or torch.zip
	"$PYTHON" "$srcdir/tests/make-pytorch-checkpoint.py" "$1" torch plain "${@:2}"
}

# Flip one bit in the middle of each member that has a CRC-32, in turn, and try to convert. This includes members
# of members.
flips_are_found() { # MODEL FILE...
	"$PYTHON" - "$@" <<-'EOF'
	import io, os, struct, subprocess, sys, zipfile
	model, *files = sys.argv[1:]

	def members(data, base, prefix):
	    for m in zipfile.ZipFile(io.BytesIO(data)).infolist():
	        name, extra = struct.unpack("<HH", data[m.header_offset + 26:m.header_offset + 30])
	        at = m.header_offset + 30 + name + extra
	        if m.file_size and m.CRC:
	            yield prefix + m.filename, base + at, m.file_size
	        if m.file_size and data[at:at + 4] == b"PK\3\4":
	            yield from members(data[at:at + m.file_size], base + at, prefix + m.filename + "/")

	tried = 0
	for path in files:
	    data = open(path, "rb").read()
	    for name, at, size in members(data, 0, ""):
	        if not name.rpartition("/")[2].isdigit() and not name.endswith((".safetensors", ".bin", "id", "alignment")):
	            continue  # what inspect reads and refuses by itself
	        with open(path, "r+b") as file:
	            file.seek(at + size // 2 + (size > 64) * size // 4)
	            byte = file.read(1)[0]
	            file.seek(-1, 1)
	            file.write(bytes([byte ^ 1]))
	        run = subprocess.run(["xfp", "convert", model, "-o", "flip.xfp", "-q", "--cache", "flip-cache"],
	                             capture_output=True, text=True)
	        message = run.stderr.splitlines()[-1] if run.stderr else ""
	        assert run.returncode == 3 and ": its CRC-32 is " in message and "damaged: download it again" in message, (name, run)
	        assert os.path.basename(path) in message and name.split("/")[0] in message, (name, message)
	        assert not os.path.exists("flip.xfp") and not os.path.exists("flip-cache/artifacts/outliers"), name
	        open(path, "wb").write(data)
	        tried += 1
	assert tried >= len(files), tried
	EOF
}

@test "a bit flipped in any member of a .bin, .pth or .pt: status 3 before anything is fitted" {
	checkpoint single
	flips_are_found torch torch/pytorch_model.bin
	cp torch/pytorch_model.bin torch/other.pt
	rm torch/pytorch_model.bin
	flips_are_found torch/other.pt torch/other.pt
	rm -r torch plain
	checkpoint meta-2
	flips_are_found torch torch/consolidated.*.pth
}

@test "a bit flipped in a shard, and in members of a .zip and of archives in it: status 3" {
	checkpoint sharded
	flips_are_found torch torch/*.bin
	rm -r plain
	checkpoint zip-safetensors
	flips_are_found torch.zip torch.zip
	rm -r plain
	checkpoint zip-single
	flips_are_found torch.zip torch.zip
}

@test "a file is read once: again only after it changed, after touch, and with --rehash" {
	checkpoint sharded
	run -0 --separate-stderr xfp convert torch -o a.xfp
	[ "$(grep -cE "$checked" <<<"$stderr")" = 1 ]
	first=$(sha a.xfp)
	# With other settings and another output the files are read again, but no CRC is computed.
	for again in "-o a.xfp" "-o b.xfp" "-o c.xfp --min-cos-strict 0.95"; do
		# shellcheck disable=SC2086
		run -0 --separate-stderr xfp convert torch $again
		[[ $stderr != *CRC-32* ]]
	done
	run -0 --separate-stderr xfp convert torch -o a.xfp --rehash
	grep -qE "$checked" <<<"$stderr"
	touch torch/pytorch_model-00001-of-00002.bin
	run -0 --separate-stderr xfp convert torch -o d.xfp
	[ "$(grep -oE 'CRC-32 of [0-9]+' <<<"$stderr" | grep -oE '[0-9]+$')" -lt 40 ]
	whole=$(stat -c %s torch/pytorch_model-00001-of-00002.bin)
	grep -qF "($("$PYTHON" -c 'import sys; print(f"{int(sys.argv[1]) / 1000:.3g}")' "$whole") kB in " <<<"$stderr"
	[ "$(sha d.xfp)" = "$first" ]
	run -0 --separate-stderr xfp convert torch -o d.xfp
	[[ $stderr != *CRC-32* ]]
}

@test "with all artifacts cached, only the headers of an unchanged archive are read" {
	needs_strace
	checkpoint single
	xfp convert torch -o a.xfp -q
	strace -f -e trace=pread64,openat -o trace -P "$PWD/torch/pytorch_model.bin" xfp convert torch -o a.xfp -q
	read=$(sed -nE 's/.*pread64\(.* = ([0-9]+)$/\1/p' trace | awk '{ n += $1 } END { print n + 0 }')
	[ "$read" -lt $(($(stat -c %s torch/pytorch_model.bin) / 2)) ]
	touch torch/pytorch_model.bin
	strace -f -e trace=pread64,openat -o trace -P "$PWD/torch/pytorch_model.bin" xfp convert torch -o a.xfp -q
	read=$(sed -nE 's/.*pread64\(.* = ([0-9]+)$/\1/p' trace | awk '{ n += $1 } END { print n + 0 }')
	[ "$read" -ge "$(stat -c %s torch/pytorch_model.bin)" ]
}

@test "a damaged file that was downloaded again is converted" {
	checkpoint single
	cp torch/pytorch_model.bin good
	"$PYTHON" - <<-'EOF'
	data = bytearray(open("good", "rb").read())
	data[len(data) // 2] ^= 1
	open("torch/pytorch_model.bin", "wb").write(data)
	EOF
	for _ in 1 2; do
		run -3 --separate-stderr xfp convert torch -o a.xfp
		# shellcheck disable=SC2154
		[[ ${stderr_lines[-1]} == "xfp convert: "*"/pytorch_model.bin: pytorch_model/data/"*": its CRC-32 is "* ]]
		no_output a.xfp
	done
	cp good torch/pytorch_model.bin
	xfp convert torch -o a.xfp
	xfp convert plain -o b.xfp -q --cache other
	xfp verify -q a.xfp --source plain
}

@test "xfp inspect counts members without a CRC-32" {
	checkpoint single --spoil no-crc
	run -0 --separate-stderr xfp inspect torch
	[[ $stderr == *"members of its archive have no CRC-32: damage to them is not noticed"* ]]
	rm -r torch plain
	checkpoint single --spoil some-crc
	run -0 --separate-stderr xfp inspect torch
	[[ $stderr == *"3 of 27 members of its archive have no CRC-32: "* ]]
	rm -r torch plain
	checkpoint single
	run -0 --separate-stderr xfp inspect torch
	[[ $stderr != *CRC-32* ]]
	run -0 --separate-stderr xfp inspect plain
	[[ $stderr != *CRC-32* ]]
}

@test "convert allows members without a CRC-32, counts them and compares the others" {
	checkpoint single --spoil no-crc
	run -0 --separate-stderr xfp convert torch -o a.xfp
	[[ $stderr == *"xfp: checked the CRC-32 of 0 members ("*"; 27 have none); "* ]]
	rm -r torch plain
	checkpoint single --spoil some-crc
	xfp convert torch -o b.xfp 2>&1 | grep -E "checked the CRC-32 of 24 members .*; 3 have none\); "
	flips_are_found torch torch/pytorch_model.bin
}

@test "xfp prepare checks, a dry run and xfp plan do not; safetensors have no CRC-32" {
	checkpoint single
	run -0 --separate-stderr xfp convert -n torch -o a.xfp
	[[ $stderr != *CRC-32* ]]
	run -0 --separate-stderr xfp plan torch
	[[ $stderr != *CRC-32* ]]
	run -0 --separate-stderr xfp prepare torch -o a.xfp
	grep -qE "$checked" <<<"$stderr"
	run -0 --separate-stderr xfp convert torch -o a.xfp
	[[ $stderr != *CRC-32* ]]
	run -0 --separate-stderr xfp convert plain -o b.xfp
	[[ $stderr != *CRC-32* ]]
}

@test "a signal while members are read ends convert; a finished file is not read again" {
	needs_strace
	checkpoint sharded
	second=$PWD/torch/pytorch_model-00002-of-00002.bin
	# Without child processes, all traced reads are convert's own. The signal arrives during the last read
	# before the blocks, and takes effect before the first of them.
	strace -qq -e trace=pread64 -o trace -P "$second" xfp convert torch -o x.xfp -q --cache other
	last=$(grep -c pread64 trace)
	[ "$last" -ge 2 ]
	run -143 --separate-stderr strace -qq -o /dev/null -e trace=pread64 -P "$second" \
		-e inject=pread64:signal=TERM:when=$((last - 1)) xfp convert torch -o a.xfp
	[[ $stderr == *"interrupted; finished work is kept"* ]]
	no_output a.xfp
	run -0 --separate-stderr xfp convert torch -o a.xfp
	whole=$(stat -c %s "$second")
	grep -qF "($("$PYTHON" -c 'import sys; print(f"{int(sys.argv[1]) / 1000:.3g}")' "$whole") kB in " <<<"$stderr"
	[ "$(sha a.xfp)" = "$(sha x.xfp)" ]
}

@test "an unreadable file is not treated as one without CRC-32s" {
	needs_strace
	checkpoint single
	"$PYTHON" - torch/pytorch_model.bin <<-'EOF'
	import struct, sys, zipfile
	member = max(zipfile.ZipFile(sys.argv[1]).infolist(), key=lambda m: m.file_size)
	with open(sys.argv[1], "r+b") as file:
	    file.seek(member.header_offset + 26)
	    at = member.header_offset + 30 + sum(struct.unpack("<HH", file.read(4))) + member.file_size // 2
	    file.seek(at)
	    byte = file.read(1)[0]
	    file.seek(at)
	    file.write(bytes([byte ^ 1]))
	EOF
	file=$PWD/torch/pytorch_model.bin
	run -1 --separate-stderr strace -qq -o /dev/null -e trace=pread64 -P "$file" -e inject=pread64:error=EIO:when=1 \
		xfp convert torch -o a.xfp -q
	[[ $stderr == *"$file: "*"Input/output error"* ]]
	no_output a.xfp
}

@test "eval and generate report that they do not check CRC-32s" {
	checkpoint single
	"$PYTHON" "$srcdir/tests/make-tokenizer.py" torch
	"$PYTHON" -c 'import numpy as np
np.save("t.npy", np.arange(40).reshape(2, 20))'
	said="torch: the CRC-32 of its members is not checked here; xfp convert checks it"
	run -0 --separate-stderr xfp eval --tokens t.npy torch
	[ "$stderr" = "xfp eval: $said" ]
	# Its vocabulary is too small for the tokenizer; the line is still printed first.
	run -3 --separate-stderr xfp generate --prompt a -n 2 torch
	[[ $stderr == *"xfp generate: $said"* ]]
	run -0 --separate-stderr xfp eval --tokens t.npy plain
	[[ $stderr != *CRC-32* ]]
	xfp convert torch -o a.xfp -q
	run -0 --separate-stderr xfp eval --tokens t.npy --source torch a.xfp
	[ "$(grep -c "^xfp eval: $said\$" <<<"$stderr")" = 1 ]
}

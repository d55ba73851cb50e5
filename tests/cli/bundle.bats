#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# What users do with a finished bundle: tar, verify, info and unpack.

load helpers

setup_file() {
	cd "$BATS_FILE_TMPDIR" || return 1
	make_model fused --experts fused
	make_model transposed --experts transposed --dtype f16
	make_model other --experts fused --seed 1
	make_model dense --family llama --seed 1
	for model in fused transposed; do
		xfp convert "$model" -o "$model.xfp" -q
	done
}

setup() {
	cd "$BATS_FILE_TMPDIR" || return 1
	own=$BATS_TEST_TMPDIR
}

refused() { # STATUS COMMAND...; what it says is in $output
	run "-$1" --separate-stderr "${@:2}"
	[ -n "$stderr" ]
}

@test "bsdtar lists a bundle" {
	command -v bsdtar >/dev/null || skip "there is no bsdtar"
	bsdtar -tvf fused.xfp >"$own/list"
	for member in xfp.json xfp.idx files/config.json u/000000.idx u/000000.cb xfp.sum; do
		grep -q " $member$" "$own/list" || { echo "no $member"; return 1; }
	done
}

@test "every data member begins at a multiple of 4096" {
	"$PYTHON" - <<-'EOF'
	import tarfile
	for name in "fused.xfp", "transposed.xfp":
	    data = [m for m in tarfile.open(name) if not m.name.startswith(("xfp.", "files/"))]
	    assert len(data) > 10 and all(m.offset_data % 4096 == 0 for m in data), name
	EOF
}

@test "verify --source accepts the checkpoint, and ends with the verdict that floors are met" {
	for model in fused transposed; do
		run -0 xfp verify --source "$model" "$model.xfp"
		[ "${lines[-3]}" = "$model.xfp: every byte is unchanged;" ]
		[ "${lines[-2]}" = "the weights are those of the checkpoint;" ]
		[ "${lines[-1]}" = "recorded floors are met (7 of 8 units have one)" ]
	done
	run -0 xfp-verify fused.xfp
	[[ ${lines[-1]} == *"recorded floors are met (7 of 8"* ]]
	run -0 xfp verify -q fused.xfp
	[ -z "$output" ]
}

@test "a raised floor: status 4, the units, and the verdict last" {
	run -4 xfp verify --min-cos-strict 0.9999 fused.xfp
	[[ $output == *"q_proj.weight (q): its median cosine is 0.99"*", below its floor 0.9999"* ]]
	[[ ${lines[-1]} == *"floors are not met: 4 of 8 units are below theirs"* ]]
	run -0 --separate-stderr xfp info fused.xfp
	[[ $output != *"below the floor"* ]]
}

@test "a wrong source: status 4 and one verdict" {
	run -4 xfp verify --source other fused.xfp
	[[ ${lines[-1]} == *"other is not the checkpoint that it was made from (8 of 8 units differ)" ]]
	run -4 xfp verify --source dense fused.xfp
	[[ ${lines[-1]} == *"dense is not the checkpoint that it was made from (8 of 8 units differ)" ]]
	[[ $output != *"cos median"* ]]
}

@test "a list of faults is cut: 20 and how many more" {
	"$PYTHON" - "$own/m.xfp" <<-'EOF'
	import sys, tarfile
	data = bytearray(open("fused.xfp", "rb").read())
	hit = [m for m in tarfile.open("fused.xfp") if m.size and not m.name.startswith("xfp.")]
	for member in hit:
	    data[member.offset_data] ^= 1
	open(sys.argv[1], "wb").write(data)
	open(sys.argv[1] + ".count", "w").write(str(len(hit)))
	EOF
	count=$(<"$own/m.xfp.count")
	refused 3 xfp verify "$own/m.xfp"
	[ "$(grep -c ': damaged: member' <<<"$stderr")" = 20 ]
	grep -q "^xfp verify: and $((count - 20)) more$" <<<"$stderr"
	[[ ${stderr_lines[-1]} == *"damaged ($count faults)"* ]]
	xfp verify --json "$own/m.xfp" 2>/dev/null >"$own/json" || true
	"$PYTHON" -c 'import json, sys; assert len(json.load(open(sys.argv[1]))["faults"]) == int(sys.argv[2])' \
		"$own/json" "$count"
}

@test "a byte flipped anywhere is found: at 200 places, and in every tar header" {
	cp fused.xfp "$own/m.xfp"
	"$PYTHON" - "$own/m.xfp" <<-'EOF'
	import os, subprocess, sys, tarfile
	path, size = sys.argv[1], os.path.getsize(sys.argv[1])
	places = [size * i // 200 for i in range(200)] + [m.offset + 100 for m in tarfile.open(path)]
	file = open(path, "r+b", buffering=0)
	for at in places:
	    was = os.pread(file.fileno(), 1, at)
	    os.pwrite(file.fileno(), bytes([was[0] ^ 4]), at)
	    run = subprocess.run(["xfp", "verify", "-q", path], capture_output=True)
	    os.pwrite(file.fileno(), was, at)
	    assert run.returncode == 3 and run.stderr, (at, run)
	assert subprocess.run(["xfp", "verify", "-q", path]).returncode == 0
	EOF
}

@test "a missing bundle, a folder, another file: status 3" {
	for command in "verify" "info" "unpack -o $own/copy"; do
		for bundle in absent.xfp fused fused/config.json; do
			# shellcheck disable=SC2086
			refused 3 xfp $command "$bundle"
			[[ $stderr == *"$bundle: "* ]]
			[ ! -e "$own/copy" ]
		done
	done
}

@test "a bundle of format version 0, before the first release: status 3 and the remedy" {
	"$PYTHON" - "$own/m.xfp" <<-'EOF'
	import sys, tarfile
	data = bytearray(open("fused.xfp", "rb").read())
	at = tarfile.open("fused.xfp").getmember("xfp.idx").offset_data + 8
	assert data[at] == 1
	data[at] = 0
	open(sys.argv[1], "wb").write(data)
	EOF
	for command in "verify" "info" "unpack -o $own/copy" "convert fused -o $own/again.xfp --like"; do
		# shellcheck disable=SC2086
		refused 3 xfp $command "$own/m.xfp"
		[[ $stderr == *"m.xfp: format version 0 is too old"*"convert the checkpoint again"* ]]
		[ ! -e "$own/copy" ]
		[ ! -e "$own/again.xfp" ]
	done
}

# All digests match the changed bytes, so that only the content is wrong.
@test "a list of outliers out of order, or beyond the matrix: status 3, and no tensor is written" {
	xfp convert fused -o "$own/m.xfp" -q --outlier-sigma 3.5
	for lie in order row column none; do
		"$PYTHON" - "$own" "$lie" <<-'EOF'
		import hashlib, struct, sys, tarfile
		own, lie = sys.argv[1:]
		data = bytearray(open(own + "/m.xfp", "rb").read())
		member = {m.name: m for m in tarfile.open(own + "/m.xfp")}
		idx = member["xfp.idx"].offset_data
		table = [struct.unpack_from("<QII", data, idx + 32 + 16 * t)[0] + idx for t in range(3)]
		for number in range(struct.unpack_from("<I", data, idx + 32 + 24)[0]):
		    matrix = table[1] + 104 * number
		    unit = table[0] + 120 * struct.unpack_from("<I", data, matrix)[0]
		    rows, cols = struct.unpack_from("<QQ", data, unit + 32)
		    n, = struct.unpack_from("<Q", data, matrix + 40)
		    if 2 <= n <= rows:
		        break
		else:
		    sys.exit("no list of outliers in this bundle")
		part = table[2] + 56 * struct.unpack_from("<5I", data, unit + 48)[4]
		start, size = struct.unpack_from("<QQ", data, part + 8)
		at = start + struct.unpack_from("<5Q", data, matrix + 48)[4]
		listed = struct.unpack_from(f"<{n}I", data, at)
		assert list(listed) == sorted(listed) and listed[-1] < rows and listed[0] != listed[-1]
		if lie == "order":
		    struct.pack_into(f"<{n}I", data, at, *reversed(listed))
		elif lie == "row":
		    struct.pack_into("<I", data, at + 4 * (n - 1), rows)
		elif lie == "column":
		    struct.pack_into("<H", data, at + 4 * n, cols)
		data[part + 24: part + 56] = hashlib.sha256(data[start: start + size]).digest()
		end = idx + member["xfp.idx"].size
		sums = member["xfp.sum"].offset_data
		json = member["xfp.json"]
		text = "".join(f"{hashlib.sha256(part).hexdigest()}  {name}\n" for name, part in (
		    ("xfp.json", data[json.offset_data: json.offset_data + json.size]), ("xfp.idx", data[idx: end])))
		data[sums: sums + len(text)] = text.encode()
		open(own + "/lie.xfp", "wb").write(data)
		EOF
		if [ "$lie" = none ]; then
			xfp verify -q "$own/lie.xfp"
			continue
		fi
		refused 3 xfp verify "$own/lie.xfp"
		[[ $stderr == *"outliers outside the matrix or out of order"* ]]
		refused 3 xfp unpack --no-check "$own/lie.xfp" -o "$own/copy"
		[[ $stderr == *"outliers outside the matrix or out of order"* ]]
		[ ! -e "$own/copy" ]
	done
}

@test "missing arguments are named" {
	for command in verify info "unpack -o $own/copy"; do
		# shellcheck disable=SC2086
		refused 2 xfp $command
		[[ $stderr == *"missing BUNDLE"* ]]
	done
	refused 2 xfp unpack fused.xfp
	[[ $stderr == *"-o DIR"* ]]
	refused 2 xfp info fused.xfp transposed.xfp
	[[ $stderr == *"'transposed.xfp'"* ]]
}

@test "unpack: the unpacked model has the same tensors and files, and kept ones the same bytes" {
	for model in fused transposed; do
		run -0 --separate-stderr xfp unpack -o "$own/$model" "$model.xfp"
		[ -z "$stderr" ]
		cmp "$model/config.json" "$own/$model/config.json"
		xfp info --json "$model.xfp" >"$own/info"
		"$PYTHON" - "$model" "$own" <<-'EOF'
		import glob, json, struct, sys

		def read(folder):
		    tensors = {}
		    for path in glob.glob(folder + "/*.safetensors"):
		        data = open(path, "rb").read()
		        start = 8 + struct.unpack("<Q", data[:8])[0]
		        for name, t in json.loads(data[8:start]).items():
		            if name != "__metadata__":
		                a, b = t["data_offsets"]
		                tensors[name] = t["dtype"], t["shape"], data[start + a:start + b]
		    return tensors

		def floats(dtype, shape, data):
		    if dtype == "BF16":
		        data = b"".join(b"\0\0" + data[i:i + 2] for i in range(0, len(data), 2))
		    return [v[0] for v in struct.iter_unpack("<f" if dtype == "BF16" else "<e", data)]

		def dot(x, y):
		    return sum(a * b for a, b in zip(x, y))

		model, own = sys.argv[1:]
		before, after = read(model), read(own + "/" + model)
		fates = {t["name"]: t["fate"] for t in json.load(open(own + "/info"))["tensors"]}
		assert set(before) == set(after) == set(fates)
		for name, was in before.items():
		    now = after[name]
		    assert was[:2] == now[:2], name
		    if fates[name] == "quantized":
		        x, y = floats(*was), floats(*now)
		        assert was[2] != now[2] and dot(x, y) ** 2 > 0.97 ** 2 * dot(x, x) * dot(y, y), name
		    else:
		        assert was[2] == now[2], name
		EOF
	done
}

@test "unpack --dtype says when config.json names another type" {
	run -0 --separate-stderr xfp unpack --dtype f32 -o "$own/f32" fused.xfp
	[[ $stderr == *"config.json still says bfloat16"* ]]
	run -0 --separate-stderr xfp unpack --dtype bf16 -o "$own/bf16" fused.xfp
	[ -z "$stderr" ]
}

@test "unpack checks digests first, unless --no-check is given" {
	"$PYTHON" - "$own/m.xfp" <<-'EOF'
	import sys, tarfile
	data = bytearray(open("fused.xfp", "rb").read())
	data[next(m for m in tarfile.open("fused.xfp") if m.name.endswith(".out")).offset_data] ^= 1
	open(sys.argv[1], "wb").write(data)
	EOF
	refused 3 xfp unpack -o "$own/copy" "$own/m.xfp"
	[[ $stderr == *SHA-256*--no-check* ]]
	[ ! -e "$own/copy" ]
	run xfp unpack --no-check -o "$own/copy" "$own/m.xfp"
	[[ $output != *SHA-256* ]]
}

@test "unpack creates DIR, not its parents, and writes nowhere else" {
	refused 1 xfp unpack -o "$own/absent/copy" fused.xfp
	[[ $stderr == *"$own/absent"*"does not exist; create that first"* ]]
	[ ! -e "$own/absent" ]
	touch "$own/file"
	refused 2 xfp unpack -o "$own/file" fused.xfp
	mkdir "$own/full"
	touch "$own/full/x"
	refused 2 xfp unpack -o "$own/full" fused.xfp
	[ "$(ls "$own/full")" = x ]
}

@test "verify: an invalid floor is reported with the reason" {
	refused 2 xfp verify --floor attn=0.99 fused.xfp
	[[ $stderr == "xfp verify: --floor: no class 'attn'; did you mean attention? Classes are attention, "* ]]
	refused 2 xfp verify --floor attention=x fused.xfp
	[[ $stderr == "xfp verify: --floor 'attention=x': expected a cosine from 0 to 1"* ]]
	refused 2 xfp verify --floor attention fused.xfp
	[[ $stderr == *"--floor 'attention': expected CLASS=a cosine from 0 to 1"* ]]
}

@test "info --json has exactly the documented keys" {
	xfp info --json fused.xfp >"$own/info"
	"$PYTHON" - "$own/info" <<-'EOF'
	import json, sys
	root = json.load(open(sys.argv[1]))
	unit = ("name class role mode k group_size library_size rows cols experts weights bytes true_bits paper_bits "
	        "outliers cos_median cos_p5 floor met missed format_by floor_by fixed sampled_experts").split()
	assert set(root) == set("version family weights bytes whole method units tensors".split()), set(root)
	assert len(root["units"]) == 8 and all(list(u) == unit for u in root["units"])
	assert all(list(t) == "name fate reason class dtype shape".split() for t in root["tensors"])
	assert {u["floor"] for u in root["units"]} == {0, 0.98, 0.99}
	assert all(u["format_by"] is u["floor_by"] is None and u["sampled_experts"] == 0 for u in root["units"])
	assert not any(u["fixed"] for u in root["units"])
	EOF
	grep -q '"floor": 0.99,$' "$own/info"
}

@test "info: one line for the method, parameters that are not default, no floor for fp8" {
	COLUMNS=200 run -0 xfp info --units fused.xfp
	[[ $output == *"method v2; "*"format:embedding=keep lm_head=fp8"* ]]
	grep -Eq '^fp8 +- +- +[0-9.]+ .* - +- +0\.9.* lm_head\.weight \(lm_head' <<<"$output"
	xfp convert fused -o "$own/o.xfp" --cache xfp-cache -q --floor attention=0.985 --lloyd-iters 5
	COLUMNS=400 run -0 xfp info "$own/o.xfp"
	[[ $output == *"method v2; "*"floor:attention=0.985 "*"format:embedding=keep lloyd_iterations=5 lm_head=fp8"* ]]
	grep -Eq '^attention .* 0\.985 ' <<<"$output"
}

@test "unpack: file names are refused as folders" {
	for name in x.gguf x.safetensors x.GGUF x.bin x.PT x.xfp; do
		refused 2 xfp unpack -o "$own/$name" fused.xfp
		[[ $stderr == "xfp unpack: -o $own/$name: is a file name, but a checkpoint is a folder; name a folder"* ]]
		[ ! -e "$own/$name" ]
	done
	refused 2 xfp unpack -o - fused.xfp
	[[ $stderr == "xfp unpack: -o -: is a file name"* ]]
	[ ! -e ./- ]
	refused 2 xfp unpack -o "$own/x.GGUF" fused.xfp
	[[ $stderr == *"make a GGUF file of it with llama.cpp's converter"* ]]
	mkdir "$own/folder.gguf"
	xfp unpack -o "$own/folder.gguf" fused.xfp
}

@test "unpack --dtype reports weights that the type cannot represent" {
	run -0 --separate-stderr xfp unpack --dtype f32 -o "$own/f32" fused.xfp
	kept=$(xfp info --json fused.xfp | "$PYTHON" -c '
import json, sys
print(sum(t["fate"] in ("kept", "tied") for t in json.load(sys.stdin)["tensors"]))')
	[ "$kept" -gt 0 ]
	[ "${lines[1]}" = "decoded weights are F32; $kept kept tensors are unchanged" ]
	run -0 --separate-stderr xfp unpack -o "$own/source" fused.xfp
	[ ${#lines[@]} = 1 ]
}

# SPDX-License-Identifier: Apache-2.0
#
# Shared by the tests of conversions. Models are tiny: a mixture of experts of one layer has eight units.

bats_require_minimum_version 1.5.0

# LeakSanitizer of clang 14 crashes at the exit of some programs that have OpenMP threads; unit tests check for leaks.
[ -z "${XFP_TEST_SANITIZERS:-}" ] || export ASAN_OPTIONS=detect_leaks=0

: "${PYTHON:?is to name an interpreter that has numpy, as make check does}"

# Most tests use the simplest mode, and layers only: embeddings are kept, and a head becomes fp8. Tests of other
# modes, of embeddings and of heads set them, and those of the default call by_default.
export XFP_MODE=v2 XFP_FORMAT=embedding=keep XFP_LM_HEAD=fp8 XFP_MIN_COS_STRICT=0.99 XFP_MIN_COS_LAZY=0.98

by_default() {
	unset XFP_MODE XFP_FORMAT XFP_LM_HEAD XFP_MIN_COS_STRICT XFP_MIN_COS_LAZY
}

small=(--layers 1 --hidden 64 --intermediate 48 --heads 4 --kv-heads 2 --num-experts 3 --vocab 96)

setup_folder() {
	cd "$BATS_TEST_TMPDIR" || return 1
}

make_model() { # NAME OPTION...
	"$XFP_TEST_TOOLS/make-checkpoint" "${small[@]}" "${@:2}" "$1"
}

# A generated model m with a tokenizer.
make_text_model() { # LAYERS
	make_model m --layers "$1" --vocab 260
	"$PYTHON" "$srcdir/tests/make-tokenizer.py" m
}

# A generated encoder m with odd sizes and a tokenizer.
make_encoder() {
	"$XFP_TEST_TOOLS/make-checkpoint" --family bert --dtype f32 --layers 3 --hidden 42 --heads 3 --head-dim 14 \
		--intermediate 50 --vocab 61 m
	{
		printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' . , the '##ing'
		printf '%s\n' {a..z} '##'{a..z}
	} >m/vocab.txt
	echo '{"tokenizer_class": "BertTokenizer", "do_lower_case": true}' >m/tokenizer_config.json
}

# A generated model m of a family with a context of 64 tokens, and two sequences of token ids, t.npy.
make_family() { # FAMILY
	"$PYTHON" "$srcdir/tests/families.py" make "$1" m
	"$PYTHON" - <<-'EOF'
	import json
	import numpy as np
	config = json.load(open("m/config.json"))
	config.get("text_config", config)["max_position_embeddings"] = 64
	json.dump(config, open("m/config.json", "w"))
	np.save("t.npy", np.arange(60).reshape(2, 30) ** 2 % 128)
	EOF
}

make_bad() { # KIND FOLDER
	"$PYTHON" "$srcdir/tests/make-bad-checkpoint.py" "$1" "$2"
}

# Wait until a command succeeds; fail after two minutes.
wait_until() { # COMMAND...
	local tries

	for ((tries = 0; tries < 6000; tries++)); do
		if "$@" 2>/dev/null; then return; fi
		sleep .02
	done
	echo "still false: $*"
	return 1
}

sha() { # FILE
	sha256sum <"$1" | cut -d' ' -f1
}

# Convert into OUT, and print the bundle's SHA-256.
converted() { # MODEL OUT OPTION...
	xfp convert "$1" -o "$2" -q "${@:3}" >&2 && sha "$2"
}

# The instruction sets of the encoder that this machine supports.
encoder_sets() {
	xfp-kernel-verify --seed 1 --filter 'encode norm' | sed -n 's/^encode norm \([a-z0-9]*\): .*/\1/p'
}

query() { # SQL [CACHE]
	"$PYTHON" -c 'import sqlite3, sys
for row in sqlite3.connect(sys.argv[2] + "/manifest.sqlite").execute(sys.argv[1]):
    print(*row, sep="|")' "$1" "${2:-xfp-cache}"
}

artifacts() { # [CACHE]
	find "${1:-xfp-cache}/artifacts" -name '*.h5' | sort
}

# Check that no output and no temporary files exist.
no_output() { # OUT
	[ ! -e "$1" ] || { echo "$1 is there"; return 1; }
	[ -z "$(find "$(dirname "$1")" -name '.*.tmp')" ] || { find . -name '.*.tmp'; return 1; }
}

# Replace text in a bundle's xfp.json by text of the same length, and update its digests.
edited() { # FROM TO BEFORE AFTER
	"$PYTHON" - "$@" <<-'EOF'
	import hashlib, sys
	source, target, before, after = sys.argv[1:]
	data = bytearray(open(source, "rb").read())
	size = int(data[124:135], 8)
	json = bytes(data[512:512 + size])
	assert json.count(before.encode()) == 1 and len(before) == len(after), json
	fresh = json.replace(before.encode(), after.encode())
	data[512:512 + size] = fresh
	old, new = (hashlib.sha256(text).hexdigest().encode() for text in (json, fresh))
	assert data.count(old) == 1
	open(target, "wb").write(data.replace(old, new))
	EOF
}

# Write an element's bytes into a tensor, in place.
poke() { # FILE TENSOR ELEMENT HEX
	"$PYTHON" - "$@" <<-'EOF'
	import json, struct, sys
	path, tensor, element, data = sys.argv[1], sys.argv[2], int(sys.argv[3]), bytes.fromhex(sys.argv[4])
	with open(path, "r+b") as f:
	    size = struct.unpack("<Q", f.read(8))[0]
	    begin = json.loads(f.read(size))[tensor]["data_offsets"][0]
	    f.seek(8 + size + begin + len(data) * element)
	    f.write(data)
	EOF
}

# Copy the tools to ./bin, with a script as STAGE; the script finds the real stage in $real.
replace_stage() { # STAGE SCRIPT
	mkdir -p bin share
	cp "$XFP_TEST_BIN"/xfp* bin
	cp -r "$XFP_DATADIR" share/xfp
	unset XFP_DATADIR
	printf '#!/bin/sh\nreal="%s" top="%s"\n%s\n' "$XFP_TEST_BIN/$1" "$PWD" "$2" >"bin/$1"
}

# libxfp-cuda on the stand-in driver, with kernels of compute capability 9.0 in files that a test may change.
stand_in() {
	[ -e "$XFP_TEST_LIB/libxfp-cuda.so" ] || skip "libxfp-cuda is not built: $XFP_TEST_CUDA"
	cp "$XFP_TEST_TOOLS"/../kernels/cuda/*.ptx90 "$XFP_TEST_TOOLS/../kernel-verify/cuda/measure.ptx90" .
	STAND_IN_PTX=$(printf '%s:' "$PWD"/*.ptx90)
	LD_LIBRARY_PATH=$XFP_TEST_TOOLS/cuda:$XFP_TEST_LIB
	export STAND_IN_PTX=${STAND_IN_PTX%:} LD_LIBRARY_PATH
}

# Run a command with FOLDER on a file system of SIZE, or read-only.
needs_mounts() {
	unshare -rm true 2>/dev/null || skip "this machine does not let tests mount anything"
}
on_small_disk() { # SIZE FOLDER COMMAND...
	unshare -rm sh -c 'mount -t tmpfs -o "size=$1" none "$2" && shift 2 && exec "$@"' sh "$@"
}
read_only() { # FOLDER COMMAND...
	unshare -rm sh -c 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"' sh "$@"
}

# Sanitizers cannot check for leaks in a traced process, and would intercept the signals that tests send.
needs_strace() {
	command -v strace >/dev/null || skip "strace is not installed"
	strace -o /dev/null true 2>/dev/null || skip "this machine does not let processes be traced"
	export ASAN_OPTIONS=detect_leaks=0:handle_sigbus=0
}

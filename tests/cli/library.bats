#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# libxfp from the view of an inference engine: headers, pkg-config, and a library without further dependencies.

load helpers

setup() {
	export PKG_CONFIG_SYSROOT_DIR=$XFP_TEST_ROOT
	export PKG_CONFIG_PATH=$XFP_TEST_LIB/pkgconfig
	export LD_LIBRARY_PATH=$XFP_TEST_LIB
	export ASAN_OPTIONS=verify_asan_link_order=0
	library=$XFP_TEST_LIB/libxfp
	cd "$BATS_TEST_TMPDIR" || return 1
	cat >program.c <<-'EOF'
		#include <xfp.h>

		int main(void)
		{
			struct xfp_error err;

			return xfp_fail(&err, XFP_UNMET, "%s", "text") != XFP_UNMET;
		}
	EOF
}

sanitizers() { [ "${XFP_TEST_SANITIZERS:-no}" = no ] || echo -fsanitize=address,undefined; }

# flags are lists of words
# shellcheck disable=SC2046,SC2086
@test "a C program builds with pkg-config and runs" {
	$CC -std=c99 -Wall -Wextra -Werror $(sanitizers) $(pkg-config --cflags xfp) program.c -o program \
		$(pkg-config --libs xfp)
	./program
}

# shellcheck disable=SC2046,SC2086
@test "the header compiles as C++17, and a program multiplies" {
	command -v c++ >/dev/null || skip "there is no C++ compiler"
	make_model model
	xfp convert model -o model.xfp -q
	c++ -std=c++17 -pedantic -Wall -Wextra -Werror $(sanitizers) $(pkg-config --cflags xfp) "$srcdir/tests/example.cc" \
		-o example $(pkg-config --libs xfp)
	name=model.layers.0.self_attn.q_proj.weight
	./example model.xfp $name >y
	"$PYTHON" "$srcdir/tests/read_bundle.py" model.xfp $name q w.npy
	"$PYTHON" -c 'import numpy as np; w = np.load("w.npy")[0].astype(float)
assert np.abs(np.loadtxt("y") - w.sum(1)).max() <= 1e-3 * np.abs(w).sum(1).max()'
	run -2 ./example model.xfp none
	[ "$output" = "model.xfp: has no unit none" ]
}

# shellcheck disable=SC2046,SC2086
@test "the archive links with no other library" {
	$CC $(sanitizers) $(pkg-config --cflags xfp) program.c -o program -Wl,--whole-archive "$library.a" \
		-Wl,--no-whole-archive
	./program
}

# shellcheck disable=SC2046,SC2086
@test "the example multiplies, linked with pkg-config alone" {
	make_model model
	xfp convert model -o model.xfp -q
	$CC -Wall -Wextra -Werror $(sanitizers) $(pkg-config --cflags xfp) "$srcdir/tests/example.c" -o example \
		$(pkg-config --libs xfp)
	name=model.layers.0.self_attn.q_proj.weight
	./example model.xfp $name >y
	"$PYTHON" "$srcdir/tests/read_bundle.py" model.xfp $name q w.npy
	"$PYTHON" -c 'import numpy as np; w = np.load("w.npy")[0].astype(float)
assert np.abs(np.loadtxt("y") - w.sum(1)).max() <= 1e-3 * np.abs(w).sum(1).max()'
	status=0
	./example model.xfp none 2>errors || status=$?
	[ "$status" -eq 2 ]
	grep -q 'model.xfp: has no tensor' errors
}

# shellcheck disable=SC2046,SC2086
@test "the example of README.md compiles unchanged and multiplies" {
	{
		printf '#include <math.h>\n#include <stdio.h>\n#include <xfp.h>\n\n'
		printf 'static int example(const void *x, void *y, size_t tokens, size_t hidden, size_t rows)\n{\n'
		awk '/^    struct xfp_input in/ { inside = 1 } inside && /^[^ ]/ { exit } inside' "$srcdir/README.md"
		printf 'return err.status;\n}\n\nint main(void)\n{\n'
		printf 'static uint16_t x[2 * 64];\nstatic float y[2 * 64];\n'
		printf 'for (int i = 0; i < 2 * 64; i++)\nx[i] = 0x3f80;\n'
		printf 'if (example(x, y, 2, 64, 64))\nreturn 1;\n'
		printf 'for (int i = 0; i < 64; i++)\nprintf("%%.9g\\n", y[64 + i]);\nreturn 0;\n}\n'
	} >readme.c
	$CC -std=c11 -Wall -Wextra -Werror $(sanitizers) $(pkg-config --cflags xfp) readme.c -o readme $(pkg-config --libs xfp)
	make_model model
	xfp convert model -o qwen3-moe-8m.xfp -q
	./readme >y
	"$PYTHON" "$srcdir/tests/read_bundle.py" qwen3-moe-8m.xfp model.layers.0.self_attn.q_proj.weight q w.npy
	"$PYTHON" -c 'import numpy as np; w = np.load("w.npy")[0].astype(float); y = np.loadtxt("y")
assert y.shape == (64,) and np.abs(y - w.sum(1)).max() <= 1e-2 * np.abs(w).sum(1).max()'
	grep -q 'xfp_team_end' readme.c && grep -q 'xfp_linear_close' readme.c && grep -q 'xfp_bundle_close' readme.c
}

# shellcheck disable=SC2046,SC2086
@test "the example looks up rows: of an embedding that is a unit, of the tied head, of a kept tensor" {
	by_default
	"$PYTHON" "$srcdir/tests/families.py" make llama-tied model
	xfp convert model -o quantized.xfp -q
	xfp convert model -o fp8.xfp -q --format embedding=fp8
	xfp convert model -o kept.xfp -q --lm-head keep
	$CC -Wall -Wextra -Werror $(sanitizers) $(pkg-config --cflags xfp) "$srcdir/tests/example.c" -o example \
		$(pkg-config --libs xfp)
	for bundle in quantized fp8 kept; do
		xfp unpack $bundle.xfp -o $bundle
		for row in 0 57 127; do
			./example $bundle.xfp model.embed_tokens.weight $row >words
			./example $bundle.xfp lm_head.weight $row >head
			cmp words head
			"$PYTHON" - "$srcdir" $bundle $row <<-'EOF'
				import sys
				import numpy as np
				sys.path.insert(0, sys.argv[1] + "/tests/models")
				from safetensors_io import Checkpoint
				w = Checkpoint(sys.argv[2]).read("lm_head.weight")[int(sys.argv[3])]
				assert np.abs(np.loadtxt("words") - w).max() <= np.abs(w).max() / 256 # which bf16 rounds to
			EOF
		done
	done
	run -2 ./example quantized.xfp lm_head.weight 128
	[[ $output == *"model.embed_tokens.weight: row 128 does not exist; there are 128"* ]]
}

@test "products of every unit agree with numpy's, in every mode and with every instruction set" {
	[ "${XFP_TEST_SANITIZERS:-no}" = no ] || skip "python cannot load a library with sanitizers"
	make_model model --hidden 320 --intermediate 192
	for mode in v2 v2a v2c; do
		xfp convert model -o $mode.xfp --mode $mode -q
	done
	xfp convert model -o outliers.xfp --mode v2 --outlier-sigma 2 --bits 2 --lm-head keep --balance 0 -q
	xfp convert model -o auto.xfp --mode auto --outlier-sigma auto --bits 5,6 -q
	"$PYTHON" "$srcdir/tests/check_products.py" "$library.so" ./*.xfp
}

@test "the package's version is the tools'" {
	[ "$(xfp --version | sed 's/.* //;1q')" = "$(pkg-config --modversion xfp)" ]
}

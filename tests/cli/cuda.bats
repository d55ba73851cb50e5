#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The parts of libxfp-cuda that need no GPU: plans of bundles for devices by name, and building against the
# installed files.

load helpers

setup() {
	cd "$BATS_TEST_TMPDIR"
	gzip -cd "$srcdir/tests/older/moe.xfp.gz" >moe.xfp
}

# A variable of the installation for tests.
pkg_config() {
	PKG_CONFIG_PATH=$XFP_TEST_LIB/pkgconfig PKG_CONFIG_SYSROOT_DIR=$XFP_TEST_ROOT pkg-config "$@" xfp-cuda
}

@test "info --device: kernels, tiles and their parts, shared memory and bytes of every unit and kept matrix" {
	run -0 env COLUMNS=80 xfp info --device h200 moe.xfp
	[ "${lines[0]}" = 'h200: compute capability 9.0, 132 multiprocessors, 232 kB of shared memory a block' ]
	[[ "$output" =~ q_proj.weight\ \(q\)[[:space:]]+v2c32_k3\ +1\ +32\ +32\ +2\ +1\ +86848\ +159744\ +61760\ +12.3\ kB ]]
	[[ "$output" =~ mlp.experts.\*.down_proj.weight\ \(down\)[[:space:]]+v2c32_k3\ +2\ +32\ +32\ +2 ]]
	[[ "$output" =~ model.embed_tokens.weight[[:space:]]+bf16\ +1\ +48\ +32\ +3\ +1\ +-\ +-\ +61440\ +3.33\ kB ]]
	[ "${lines[-1]}" = 'total device memory: 98.3 kB' ]
	# integer products of several vectors do not fit there
	run -0 env COLUMNS=80 xfp info --device l4 moe.xfp
	[[ "$output" =~ q_proj.weight\ \(q\)[[:space:]]+v2c32_k3\ +1\ +32\ +32\ +2\ +1\ +86848\ +18752\ +61760\ +12.3\ kB ]]
}

@test "info --device --json: the same for units and for the device" {
	xfp info --json --device 'RTX PRO 6000' moe.xfp >it.json
	"$PYTHON" - <<-'END'
		import json
		it = json.load(open("it.json"))
		assert it["device"]["name"] == "rtx-pro-6000" and it["device"]["compute_capability"] == "12.0"
		assert it["device"]["shared_bytes"] == 101376
		units = [unit["device"] for unit in it["units"]]
		assert it["device"]["unit_bytes"] == sum(unit["bytes"] for unit in units)
		names = {kernel for unit in units for kernel in unit["kernels"]}
		assert "xfp_multiply_fp8_m4" in names and "xfp_multiply_v2c32_k3_list" in names, names
		assert "xfp_multiply_v2_k3_i1" in names and "xfp_multiply_v2c32_k3_i4" in names, names
		assert not any(name.startswith("xfp_multiply_fp8_i") for name in names), names
		for unit in units:
		    assert len(unit["kernels"]) == len(unit["shared_bytes"]) and unit["tiles"] >= 1 and unit["parts"] == 1
	END
	xfp info --json moe.xfp >plain.json
	run ! grep -q '"device"' plain.json
}

@test "info --device: an unknown name" {
	run -2 xfp info --device h20 moe.xfp
	[[ "$output" == *'--device h20: unknown device; did you mean h200? (known: a10, a100, '*'rtx-pro-6000)'* ]]
}

@test "the example of xfp_cuda.h builds, in C and in C++" {
	[ -e "$XFP_TEST_LIB/libxfp-cuda.so" ] || skip "libxfp-cuda is not built: $XFP_TEST_CUDA"
	command -v c++ >/dev/null || skip "there is no C++ compiler"
	header=$(find "$XFP_TEST_ROOT" -name xfp_cuda.h)
	sanitizers=
	[ "${XFP_TEST_SANITIZERS:-no}" = no ] || sanitizers=-fsanitize=address,undefined
	{
		echo '#include <xfp_cuda.h>'
		echo 'enum xfp_status example(struct xfp_bundle *bundle, uint32_t unit, uint64_t x, uint64_t y, uint64_t room,'
		echo '	void *stream, enum xfp_status status, struct xfp_error err, uint64_t memory, uint64_t workspace)'
		echo '{'
		# Comments are not code.
		sed -n '/^ \*     struct/,/^ \* (cc/ { s/^ \*     //p }' "$header" | sed 's/ = \.\.\..*/ = 0;/'
		echo '	return status;'
		echo '}'
	} >example.c
	grep -q xfp_cuda_multiply example.c
	cp example.c example.cc
	# shellcheck disable=SC2046
	$CC -std=c99 -Wall -Wextra -Werror -fsyntax-only $(pkg_config --cflags) example.c
	# shellcheck disable=SC2046
	c++ -std=c++20 -Wall -Wextra -Werror -fsyntax-only $(pkg_config --cflags) example.cc
	# declarations have C linkage, so that the program links
	echo 'int main() { struct xfp_cuda *cuda; return xfp_cuda_open(&cuda, nullptr) == XFP_OK; }' |
		cat example.cc - >program.cc
	# shellcheck disable=SC2046
	c++ -std=c++20 $sanitizers program.cc $(pkg_config --cflags --libs) -Wl,-rpath-link,"$XFP_TEST_LIB" -o program
}

@test "a program that uses libxfp-cuda builds, and reports a missing driver" {
	[ -e "$XFP_TEST_LIB/libxfp-cuda.so" ] || skip "libxfp-cuda is not built: $XFP_TEST_CUDA"
	cat >program.c <<-'END'
		#include <stdio.h>
		#include <xfp_cuda.h>
		int main(void)
		{
			struct xfp_error err = { XFP_OK, "" };
			struct xfp_cuda *cuda;
			int status = (int)xfp_cuda_open(&cuda, &err);
			puts(err.text);
			xfp_cuda_close(cuda);
			return status;
		}
	END
	# shellcheck disable=SC2046
	$CC program.c $(pkg_config --cflags --libs) -Wl,-rpath,"$XFP_TEST_LIB" -Wl,-rpath-link,"$XFP_TEST_LIB" -o program
	LD_LIBRARY_PATH=$XFP_TEST_LIB run ./program
	[[ "$output" == *'no CUDA driver found'* && "$status" -eq 1 ]] ||
		[[ "$output" == *'no CUDA context is current'* && "$status" -eq 2 ]] ||
		[[ "$output" == *CUDA* && "$status" -eq 1 ]]
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# What an inference engine sees of libxfp: headers, pkg-config, and a library that needs nothing else.

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
@test "a C++ program takes the header" {
	command -v c++ >/dev/null || skip "there is no C++ compiler"
	cp program.c program.cc
	c++ -Wall -Wextra -Werror $(sanitizers) $(pkg-config --cflags xfp) program.cc -o program $(pkg-config --libs xfp)
	./program
}

# shellcheck disable=SC2046,SC2086
@test "the archive links with no other library" {
	$CC $(sanitizers) $(pkg-config --cflags xfp) program.c -o program -Wl,--whole-archive "$library.a" \
		-Wl,--no-whole-archive
	./program
}

@test "the package's version is the tools'" {
	[ "$(xfp --version | sed 's/.* //;1q')" = "$(pkg-config --modversion xfp)" ]
}

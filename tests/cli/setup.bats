#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# From a clone to installed tools: what bootstrap and quickstart build, and what make install does.

load helpers

setup() {
	setup_folder
	unset NVCC # which configure would take rather than the one on PATH
}

# A tree whose configure and make only log their arguments; every package is installed and nvcc is on PATH.
stub_tree() {
	mkdir tree bin
	cp "$srcdir/bootstrap" "$srcdir/quickstart" tree
	cat >tree/configure <<-'EOF'
	#!/bin/sh
	echo "configure $*" >>../calls
	printf 'TESTS_STATE = yes\nCUDA_STATE = %s\n' "${CUDA_STATE-no (--with-nvcc or more)}" >Makefile
	EOF
	cat >bin/make <<-'EOF'
	#!/bin/sh
	echo "make $*" >>"$CALLS"
	case " $* " in
	*' -q '*) exit 1 ;;
	*' -n '*) for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo "echo \"  CC      \" $i.o;cc $i"; done ;;
	*) for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo "  CC       $i.o"; done
	   [ ! -e "$CALLS.fail" ] || { echo "x.c:1: error: broken" >&2; exit 2; } ;;
	esac
	EOF
	printf '#!/bin/sh\nprintf installed\n' >bin/dpkg-query
	printf '#!/bin/sh\n' | tee bin/apt-get bin/nvcc >bin/xfp
	mkdir -p tree/build/sample/model
	chmod +x tree/configure bin/*
	export PATH=$PWD/bin:$PATH CALLS=$PWD/tree/calls
}

@test "quickstart builds the converter alone, without CUDA, and prints the two install commands" {
	stub_tree
	run -0 tree/quickstart
	grep -qx 'configure CFLAGS=-O2' tree/calls
	grep -qE '^make -C build -j [0-9]+ V=0 converter$' tree/calls
	run ! grep -E 'nvcc|V=0 all' tree/calls
	tree/quickstart >out 2>&1
	grep -qx "  make -C $PWD/tree/build" out
	grep -qx "  sudo make -C $PWD/tree/build install" out
	grep -qx '  sudo ldconfig' out
}

# Times differ; the rest, including SHA-256, is the same everywhere.
@test "the transcript and the members in README.md equal the output of quickstart and tar" {
	by_default
	mkdir -p tree/build/tests
	cp "$srcdir/quickstart" tree
	ln -s "$XFP_TEST_TOOLS/make-checkpoint" tree/build/tests
	ln -s "$XFP_DATADIR/pipelines" tree
	printf '#!/bin/sh\n' >tree/bootstrap
	chmod +x tree/bootstrap
	unset XFP_DATADIR
	run -0 --separate-stderr tree/quickstart
	sed "/^log /,\$d; s,$PWD/tree,/home/me/xfp,; s/, in [0-9.]* s\$/, in N s/" <<<"$output" >printed
	sed -n '/^    \$ .\/quickstart/,/^    30 units/p' "$srcdir/README.md" | sed '1d; s/^    //; s/, in [0-9.]* s$/, in N s/' >documented
	diff documented printed
	(cd tree && tar tf build/sample/sample.xfp) >members
	sed -n '/ is a plain tar archive/,/^$/p' "$srcdir/README.md" | grep -o '`[^`]*`' | tr -d '`' >listed
	[ "$(wc -l <listed)" -ge 10 ]
	diff listed <(grep -xFf listed members)
}

@test "bootstrap configures libxfp-cuda on request alone, also later" {
	stub_tree
	tree/bootstrap 2>/dev/null
	[ "$(grep '^configure' tree/calls)" = 'configure ' ]
	printf '#!/bin/sh\necho "'\''--prefix=/some where'\''"\n' >tree/build/config.status
	chmod +x tree/build/config.status
	tree/bootstrap --tests 2>/dev/null
	[ "$(grep '^configure' tree/calls | tail -n 1)" = 'configure --prefix=/some where --with-nvcc=auto' ]
	CUDA_STATE=yes tree/bootstrap --cuda 2>/dev/null
	[ "$(grep '^configure' tree/calls | tail -n 1)" = 'configure --prefix=/some where --with-nvcc' ]
	tree/bootstrap --tests 2>/dev/null
	tree/bootstrap --cuda 2>/dev/null
	[ "$(grep -c '^configure' tree/calls)" = 3 ]
	run -2 tree/bootstrap --cuda --tests
	run -2 tree/bootstrap --gpu
}

@test "the progress of a build is one line per tenth, one line on a terminal, and errors are printed" {
	stub_tree
	run -0 tree/bootstrap
	[ "$(grep -c 'building in ./build: [0-9]* of 20$' <<<"$output")" = 10 ]
	[[ $output == *"building in ./build: 2 of 20"*"building in ./build: 20 of 20"* ]]
	command -v script >/dev/null || skip "script is not installed"
	script -qec tree/bootstrap /dev/null </dev/null >out
	grep -qaF $'\rbootstrap: building in ./build: 1 of 20 \rbootstrap: building in ./build: 2 of 20 ' out
	[ "$(grep -ac 'of 20' out)" = 1 ]
	touch tree/calls.fail
	run -1 tree/bootstrap
	[[ $output == *"x.c:1: error: broken"* ]]
	[[ $output != *"  CC  "* ]]
}

# libxfp, libxfp-cuda and xfp-kernel-verify, with a fake nvcc that writes empty files.
small_build() {
	[ -x "$srcdir/configure" ] || skip "there is no configure script"
	[ ! -e "$srcdir/config.status" ] || skip "the source folder is configured itself"
	cat >nvcc <<-'EOF'
	#!/bin/sh
	case $* in
	--version) echo 'Cuda compilation tools, release 13.0, V13.0.88' ;;
	esac
	while [ $# -gt 1 ]; do
		[ "$1" != -o ] || echo >"$2"
		shift
	done
	EOF
	chmod +x nvcc
	mkdir build
	cd build || return 1
	unset XFP_DATADIR
	"$srcdir/configure" --quiet --disable-converter "$@" CC="${CC:-cc}" CFLAGS=-O0 >log 2>&1 || { cat log; return 1; }
}

@test "the converter builds in a fresh folder, where no header is generated yet" {
	small_build --enable-converter
	make -n converter >steps
	grep -qF cache/manifest.o steps
	make cache/manifest.o >log 2>&1 || { tail log; return 1; }
}

@test "make install compiles nothing, and installs libxfp-cuda below any prefix" {
	small_build --with-nvcc="$PWD/nvcc"
	run -2 make install prefix="$PWD/early"
	[[ $output == *"make install: not everything is built; run make first"* ]]
	[ ! -e early ] && [ -z "$(find . -name '*.o')" ]
	make -j2 >log 2>&1 || { tail log; return 1; }
	make install prefix="$PWD/../there" >log 2>&1 || { tail log; return 1; }
	run ! grep -E '^  (CC|CCLD|GEN) |--mode=(compile|link)|relinking' log
	there=$PWD/../there
	[ -e "$there/include/xfp/xfp_cuda.h" ] && [ -x "$there/bin/xfp-kernel-verify" ]
	readelf -d "$there/lib/libxfp-cuda.so" >dynamic
	grep -q 'NEEDED.*\[libxfp\.so\.0\]' dynamic
	run ! grep -E 'R(UN)?PATH' dynamic
	echo 'int main(void) { return 0; }' >main.c
	$CC main.c -o main -Wl,--no-as-needed -L"$there/lib" -lxfp-cuda -lxfp
	LD_LIBRARY_PATH=$there/lib ./main
	make install DESTDIR="$PWD/staged" >log 2>&1 || { tail log; return 1; }
	[ -e staged/usr/local/lib/libxfp-cuda.so ]
}

@test "configure builds libxfp-cuda only on request" {
	small_build
	grep -qx 'CUDA_STATE = no (--with-nvcc or ./bootstrap --cuda builds it)' Makefile
	PATH=$BATS_TEST_TMPDIR:$PATH "$srcdir/configure" --quiet --disable-converter --with-nvcc=auto >log 2>&1
	grep -qx 'CUDA_STATE = yes' Makefile
	printf '#!/bin/sh\nexit 1\n' >../nvcc
	PATH=$BATS_TEST_TMPDIR:$PATH "$srcdir/configure" --quiet --disable-converter --with-nvcc=auto >log 2>&1
	grep -q '^CUDA_STATE = no: .* does not compile' Makefile
	PATH=$BATS_TEST_TMPDIR:$PATH run ! "$srcdir/configure" --quiet --disable-converter --with-nvcc
}

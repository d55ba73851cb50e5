#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The Python package, with the installed libxfp. tests/python/ has the tests and make-bundles.

load helpers

setup_file() {
	[ "${XFP_TEST_SANITIZERS:-no}" = no ] || return 0
	cd "$BATS_FILE_TMPDIR" || return 1
	"$srcdir/tests/python/make-bundles" "$XFP_TEST_TOOLS/make-checkpoint"
}

setup() {
	[ "${XFP_TEST_SANITIZERS:-no}" = no ] || skip "python cannot load a library with sanitizers"
	export PYTHONPATH=$srcdir/python PYTHONDONTWRITEBYTECODE=1
	export XFP_LIBRARY=$XFP_TEST_LIB/libxfp.so XFP_TEST_BUNDLES=$BATS_FILE_TMPDIR
	cd "$BATS_TEST_TMPDIR" || return 1
}

needs_wheel() {
	"$PYTHON" -c 'import setuptools, wheel' 2>/dev/null ||
		"$PYTHON" -c 'import setuptools.command.bdist_wheel' 2>/dev/null || skip "setuptools cannot build wheels"
}

needs_transformers() {
	"$PYTHON" -c 'from xfp.hook import need_transformers; need_transformers()' 2>errors || skip "$(tail -n1 errors)"
}

# A tiny model of a family, as NAME.xfp, and as NAME, which is unpacked.
make_tiny() { # NAME
	"$PYTHON" "$srcdir/tests/families.py" make "$1" "$1-plain"
	# transformers' default for Phi-3 is beyond a small vocabulary
	sed -i '1s/{/{"pad_token_id": 0,/' "$1-plain/config.json"
	xfp convert "$1-plain" -o "$1.xfp" -q --bits 3 --on-miss best
	xfp unpack "$1.xfp" -o "$1" --dtype f32
}

python_test() { # NAME ARGUMENT...
	"$PYTHON" -W error "$srcdir/tests/python/$1.py" "${@:2}"
}

@test "python: structs, enums and functions are those of xfp.h, and a change of either is noticed" {
	flags=$(PKG_CONFIG_SYSROOT_DIR=$XFP_TEST_ROOT PKG_CONFIG_PATH=$XFP_TEST_LIB/pkgconfig pkg-config --cflags-only-I xfp)
	read -r folder <<<"${flags#-I}"
	python_test layouts "$folder"
}

@test "python: products are within libxfp's bound, and weights those of xfp unpack" {
	python_test products
}

@test "python: arrays are used in place, or refused" {
	python_test arrays
}

@test "python: contents, lifetimes, damaged and foreign bundles" {
	python_test bundles
}

@test "python: teams, the GIL, fork" {
	python_test threads
}

@test "python: a missing or different libxfp is refused" {
	python_test libraries
}

@test "python: products on a device, uploads, errors of a machine without one" {
	stand_in
	python_test devices
}

@test "python: models of transformers multiply packed weights" {
	needs_transformers
	export XFP_TEST_BUNDLES=$BATS_TEST_TMPDIR
	export XFP_TEST_MODELS="qwen3_moe llama-tied phi3 qwen2 gemma2 gpt_oss-mxfp4"
	for name in $XFP_TEST_MODELS bert; do
		make_tiny "$name"
	done
	"$PYTHON" "$srcdir/tests/python/models.py"
	"$PYTHON" "$srcdir/tests/python/folders.py"
}

@test "python: transformers serve and chat answer" {
	needs_transformers
	"$PYTHON" -c 'import accelerate, fastapi, openai, pydantic, uvicorn' 2>errors ||
		skip "$(tail -n1 errors): pip install 'transformers[serving]' accelerate"
	export XFP_TEST_BUNDLES=$BATS_TEST_TMPDIR
	make_tiny qwen3_moe
	"$PYTHON" "$srcdir/tests/python/serving.py"
}

@test "python: operators of torch" {
	needs_transformers
	python_test operators
}

@test "python: operators, modules and models of torch on a device" {
	needs_transformers
	stand_in
	ln -s "$BATS_FILE_TMPDIR"/*.xfp .
	export XFP_TEST_BUNDLES=$PWD XFP_TEST_MODELS="llama-tied qwen3_moe"
	for name in $XFP_TEST_MODELS; do
		make_tiny "$name"
	done
	python_test torch_devices
}

@test "python: packages have the version of the tools, which ignore the variable" {
	version=$(xfp --version | sed 's/.* //;1q')
	[ "$version" = "$("$PYTHON" -c 'import xfp; print(xfp.__version__)')" ]
	[[ $(head -n1 "$srcdir/debian/changelog") == "xfp ($version) "* ]]
	xfp info "$BATS_FILE_TMPDIR/auto.xfp" >printed 2>errors
	[ ! -s errors ] || { cat errors; return 1; }
}

@test "python: the example of docs/python.md runs" {
	cp "$BATS_FILE_TMPDIR/auto.xfp" model.xfp
	sed -n '/^    import numpy/,/^[^ ]/s/^    //p' "$srcdir/docs/python.md" >example.py
	echo 'print(x.shape, y.shape, y.tobytes() == q.multiply(x).tobytes())' >>example.py
	"$PYTHON" -W error example.py >printed
	[ "$(tail -n1 printed)" = "(3, 64) (3, 64) True" ]
	[ "$(wc -l <printed)" -eq 6 ]
}

@test "python: the example of README.md generates" {
	needs_transformers
	make_text_model 1
	xfp convert m -o qwen3-moe-8m.xfp -q --on-miss best
	sed -n '/^    import xfp/,/^[^ ]/s/^    //p' "$srcdir/README.md" >example.py
	"$PYTHON" example.py >printed
	grep -qa "^Once upon a" printed
}

@test "python: two builds of the wheel are the same bytes" {
	needs_wheel
	"$PYTHON" "$srcdir/python/make_wheel.py" "$XFP_LIBRARY" first
	mkdir copy
	cp -r "$srcdir/python" "$srcdir/LICENSE" "$srcdir/NOTICE" copy
	chmod -R u+w copy
	(umask 077 && TZ=Asia/Tokyo "$PYTHON" copy/python/make_wheel.py "$XFP_LIBRARY" second)
	[ "$(ls first)" = "$(ls second)" ]
	cmp first/*.whl second/*.whl
	"$PYTHON" -m zipfile -l first/*.whl | tail -n +2 >entries
	run ! grep -v ' 1980-01-01 00:00:00 ' entries
	# another time, another wheel: the variable is used
	SOURCE_DATE_EPOCH=1000000000 "$PYTHON" "$srcdir/python/make_wheel.py" "$XFP_LIBRARY" third
	run ! cmp -s first/*.whl third/*.whl
}

@test "python: the wheel multiplies with the libxfp inside it, which is stripped" {
	needs_wheel
	"$PYTHON" "$srcdir/python/make_wheel.py" "$XFP_LIBRARY" .
	wheel=$(echo xfp-*.whl)
	[[ $wheel == xfp-*-py3-none-manylinux_2_*_$(uname -m).whl ]]
	if "$PYTHON" -m pip --version >/dev/null; then
		"$PYTHON" -m pip install --quiet --no-index --no-deps --no-compile --target site "$wheel"
	else
		"$PYTHON" -m zipfile -e "$wheel" site
	fi
	nm site/xfp/libxfp.so 2>&1 | grep -q 'no symbols'
	readelf -S -W site/xfp/libxfp.so >sections
	run ! grep -E 'build-id|debug' sections # which depend on the build folder
	[ -f "$(find site/xfp-*.dist-info -name LICENSE)" ]
	[ -f "$(find site/xfp-*.dist-info -name NOTICE)" ]
	unset XFP_LIBRARY
	PYTHONPATH=$PWD/site python_test products
	PYTHONPATH=$PWD/site python_test arrays
}

@test "python: a wheel is not built of a library that needs others" {
	needs_wheel
	echo 'int xfp;' | $CC -shared -fPIC -x c - -o other.so -Wl,--no-as-needed -lm
	run "$PYTHON" "$srcdir/python/make_wheel.py" other.so .
	[ "$status" -eq 1 ]
	[ "$output" = "make_wheel.py: other.so: uses libm.so.6; a wheel contains libxfp alone" ]
}

@test "python: type hints pass mypy" {
	"$PYTHON" -c 'import importlib.util as u, sys; sys.exit(not (u.find_spec("mypy") and u.find_spec("torch")))' ||
		skip "mypy or torch is not installed"
	cd "$srcdir/python"
	"$PYTHON" -m mypy --config-file pyproject.toml --cache-dir /dev/null xfp
}

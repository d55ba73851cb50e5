# SPDX-License-Identifier: Apache-2.0
#
# python/: the Python package xfp, over libxfp.

EXTRA_DIST += \
	python/make_wheel.py \
	python/pyproject.toml \
	python/setup.py \
	python/xfp/__init__.py \
	python/xfp/__main__.py \
	python/xfp/abi.py \
	python/xfp/bundle.py \
	python/xfp/contents.py \
	python/xfp/cuda.py \
	python/xfp/errors.py \
	python/xfp/folder.py \
	python/xfp/handles.py \
	python/xfp/hook.py \
	python/xfp/library.py \
	python/xfp/linear.py \
	python/xfp/llama4.py \
	python/xfp/model.py \
	python/xfp/ops.py \
	python/xfp/packed.py \
	python/xfp/placing.py \
	python/xfp/py.typed \
	python/xfp/quantizer.py \
	python/xfp/team.py \
	python/xfp/vectors.py

#: wheel         write xfp-VERSION-*.whl, the Python package with libxfp inside
.PHONY: wheel
wheel: runtime/libxfp.la
	@test '$(PYTHON)' != no || { echo 'make wheel: needs python3-numpy; install it and configure again' >&2; exit 1; }
	@STRIP='$(STRIP)' '$(PYTHON)' $(srcdir)/python/make_wheel.py runtime/.libs/libxfp.so .
CLEANFILES += xfp-$(PACKAGE_VERSION)-*.whl

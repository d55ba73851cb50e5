# SPDX-License-Identifier: Apache-2.0
#
# python/: the Python package xfp, over libxfp.

EXTRA_DIST += \
	python/pyproject.toml \
	python/xfp/__init__.py \
	python/xfp/abi.py \
	python/xfp/bundle.py \
	python/xfp/contents.py \
	python/xfp/errors.py \
	python/xfp/handles.py \
	python/xfp/library.py \
	python/xfp/linear.py \
	python/xfp/py.typed \
	python/xfp/team.py \
	python/xfp/vectors.py

# SPDX-License-Identifier: Apache-2.0
#
# debian/: Debian packages, made by dpkg-buildpackage. They are native: a version of xfp is one of the packages.

EXTRA_DIST += \
	debian/changelog \
	debian/clean \
	debian/control \
	debian/copyright \
	debian/libxfp-dev.examples \
	debian/libxfp-dev.install \
	debian/libxfp0.install \
	debian/libxfp0.symbols \
	debian/not-installed \
	debian/python3-xfp.install \
	debian/python3-xfp.links \
	debian/rules \
	debian/source/format \
	debian/xfp.docs \
	debian/xfp.install

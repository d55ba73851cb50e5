# SPDX-License-Identifier: Apache-2.0
#
# runtime/: libxfp, the one reader of bundles. It links no library, so it has flags of its own: no
# OpenMP. Other folders add the sources that a decoder needs. Every object is position-independent and compiled once,
# for libxfp.so, libxfp.a and the tools: libtool would compile each a second time for the archive. Only tools that
# multiply link libmultiply: its kernels take a fifth of the time of a build.

noinst_LTLIBRARIES += runtime/libruntime.la runtime/libmultiply.la
runtime_libruntime_la_SOURCES += \
	runtime/bundle.c \
	runtime/bundle_map.h \
	runtime/bundle_tables.c \
	runtime/check.c \
	runtime/dequantize.c \
	runtime/digest.h \
	runtime/instructions.c \
	runtime/linear.c \
	runtime/linear.h \
	runtime/query.c \
	runtime/rows.c \
	runtime/slice.c \
	runtime/slice.h
runtime_libmultiply_la_SOURCES += \
	runtime/batches.c \
	runtime/batches.h \
	runtime/multiply.c \
	runtime/round.c \
	runtime/round.h \
	runtime/team.c \
	runtime/team.h \
	runtime/tile.c \
	runtime/tile.h
runtime_libruntime_la_CFLAGS = $(RUNTIME_CFLAGS) -pthread
runtime_libruntime_la_LDFLAGS = $(XFP_LDFLAGS) -pthread
runtime_libruntime_la_LIBTOOLFLAGS = --tag=disable-static
runtime_libmultiply_la_CFLAGS = $(runtime_libruntime_la_CFLAGS)
runtime_libmultiply_la_LDFLAGS = $(runtime_libruntime_la_LDFLAGS)
runtime_libmultiply_la_LIBTOOLFLAGS = --tag=disable-static

lib_LTLIBRARIES += runtime/libxfp.la
runtime_libxfp_la_SOURCES =
runtime_libxfp_la_LIBADD = runtime/libmultiply.la runtime/libruntime.la
runtime_libxfp_la_CFLAGS = $(runtime_libruntime_la_CFLAGS)
# CURRENT:REVISION:AGE, see "Updating version info" in the libtool manual.
runtime_libxfp_la_LDFLAGS = $(XFP_LDFLAGS) -pthread -no-undefined -version-info 0:0:0
if VERSION_SCRIPT
runtime_libxfp_la_LDFLAGS += -Wl,--version-script=$(srcdir)/runtime/libxfp.map
EXTRA_runtime_libxfp_la_DEPENDENCIES = $(srcdir)/runtime/libxfp.map
endif

# Installed in the same folder, where each finds the other without a path.
pkginclude_HEADERS += runtime/xfp.h
#: install-headers-alone     install the public headers, as part of install
.PHONY: install-headers-alone
install-headers-alone:
	for header in $(pkginclude_HEADERS); do \
		sed -e 's|^#include "base/|#include "|' -e 's|^#include "runtime/|#include "|' "$(srcdir)/$$header" \
			>'$(DESTDIR)$(pkgincludedir)'/"$${header##*/}" || exit; done
pkgconfig_DATA += runtime/xfp.pc
EXTRA_DIST += \
	runtime/libxfp.map \
	runtime/xfp.pc.in

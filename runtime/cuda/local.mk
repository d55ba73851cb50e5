# SPDX-License-Identifier: Apache-2.0
#
# runtime/cuda/: libxfp-cuda. Its planning is also linked into the tools and tests; only the library has device code,
# which needs nvcc.

noinst_LTLIBRARIES += runtime/cuda/libdevice.la
runtime_cuda_libdevice_la_SOURCES = \
	runtime/cuda/cuda.h \
	runtime/cuda/devices.c \
	runtime/cuda/devices.h \
	runtime/cuda/driver.c \
	runtime/cuda/driver.h \
	runtime/cuda/image.c \
	runtime/cuda/image.h \
	runtime/cuda/integers.c \
	runtime/cuda/integers.h \
	runtime/cuda/kernels.c \
	runtime/cuda/linear.c \
	runtime/cuda/multiply.c \
	runtime/cuda/open.c \
	runtime/cuda/outliers.c \
	runtime/cuda/outliers.h \
	runtime/cuda/plan.c \
	runtime/cuda/plan.h \
	runtime/cuda/queue.c \
	runtime/cuda/split.c \
	runtime/cuda/upload.c
runtime_cuda_libdevice_la_CFLAGS = $(RUNTIME_CFLAGS) -pthread
runtime_cuda_libdevice_la_LDFLAGS = $(XFP_LDFLAGS) -pthread
runtime_cuda_libdevice_la_LIBTOOLFLAGS = --tag=disable-static

EXTRA_DIST += \
	runtime/cuda/fatbins.c \
	runtime/cuda/libxfp-cuda.map \
	runtime/xfp-cuda.pc.in
if CUDA
lib_LTLIBRARIES += runtime/libxfp-cuda.la
pkginclude_HEADERS += runtime/xfp_cuda.h
pkgconfig_DATA += runtime/xfp-cuda.pc
else
EXTRA_DIST += runtime/xfp_cuda.h
endif
# Functions that libxfp also has, but does not export.
runtime_libxfp_cuda_la_SOURCES = \
	base/dtype.c \
	base/printable.c \
	base/utf8.c \
	base/sha256.c \
	base/xfp_error.c \
	kernels/common/lane_index.c \
	kernels/common/number.c \
	kernels/common/scale.c \
	kernels/multiply/outlier_rows.c \
	runtime/cuda/fatbins.c \
	runtime/slice.c
runtime_libxfp_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) -DXFP_CUDA_TOOLKIT=$(CUDA_TOOLKIT)
runtime_libxfp_cuda_la_CFLAGS = $(runtime_cuda_libdevice_la_CFLAGS)
runtime_libxfp_cuda_la_LIBADD = runtime/cuda/libdevice.la $(DLOPEN_LIBS)
runtime_libxfp_cuda_la_LDFLAGS = $(XFP_LDFLAGS) -pthread -no-undefined -version-info 0:0:0
# libxfp is linked by its file name, not as a .la: libtool relinks a library that uses an uninstalled .la during
# `make install`, and refuses to do that for a prefix other than the configured one.
runtime_libxfp_cuda_la_LDFLAGS += -Wl,runtime/.libs/libxfp.so
# There is no archive: it would contain these functions twice.
runtime_libxfp_cuda_la_LIBTOOLFLAGS = --tag=disable-static
EXTRA_runtime_libxfp_cuda_la_DEPENDENCIES = runtime/libxfp.la
if VERSION_SCRIPT
runtime_libxfp_cuda_la_LDFLAGS += -Wl,--version-script=$(srcdir)/runtime/cuda/libxfp-cuda.map
EXTRA_runtime_libxfp_cuda_la_DEPENDENCIES += $(srcdir)/runtime/cuda/libxfp-cuda.map
endif
# (By a variable: automake takes a rule of its own for the object to be wanted where the name itself stands here.)
embedding = runtime/cuda/libxfp_cuda_la-fatbins.lo
$(embedding): $(cuda_fatbins)

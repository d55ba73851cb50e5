# SPDX-License-Identifier: Apache-2.0
#
# kernel-verify/: xfp-kernel-verify, which compares every kernel with a reference.

# The reference, which unit tests call, too.
kernels_libkernels_a_SOURCES += \
	kernel-verify/trial/reference.c \
	kernel-verify/trial/reference.h

bin_PROGRAMS += xfp-kernel-verify
# Links only the kernels and libxfp; --device opens libxfp-cuda. The tests link it with broken kernels, too.
kernel_verify_sources = \
	kernel-verify/bench.c \
	kernel-verify/bundle.c \
	kernel-verify/ceiling.c \
	kernel-verify/cells.c \
	kernel-verify/compact.c \
	kernel-verify/cuda/api.c \
	kernel-verify/cuda/bench.c \
	kernel-verify/cuda/bench.h \
	kernel-verify/cuda/bench_check.c \
	kernel-verify/cuda/bench_products.c \
	kernel-verify/cuda/bench_upload.c \
	kernel-verify/cuda/blas.c \
	kernel-verify/cuda/blas.h \
	kernel-verify/cuda/device.c \
	kernel-verify/cuda/device.h \
	kernel-verify/cuda/expected.c \
	kernel-verify/cuda/expected.h \
	kernel-verify/cuda/product.c \
	kernel-verify/cuda/stack.c \
	kernel-verify/cuda/stack.h \
	kernel-verify/cuda/unit_file.c \
	kernel-verify/cuda/unit_file.h \
	kernel-verify/feedback.c \
	kernel-verify/index.c \
	kernel-verify/kernel_verify.c \
	kernel-verify/kernel_verify.h \
	kernel-verify/matvec.c \
	kernel-verify/panel.c \
	kernel-verify/rows.c \
	kernel-verify/run.c \
	kernel-verify/scaled.c \
	kernel-verify/threads.h \
	kernel-verify/trial/bound.c \
	kernel-verify/trial/bound.h \
	kernel-verify/trial/matrix.c \
	kernel-verify/trial/matrix.h \
	kernel-verify/trial/report.c \
	kernel-verify/trial/sets.c \
	kernel-verify/trial/timing.c \
	kernel-verify/trial/trial.c \
	kernel-verify/trial/trial.h
kernel_verify_libs = \
	kernels/libkernels.a $(X86_LIBS) base/libbase.a runtime/cuda/libdevice.la runtime/libmultiply.la \
	runtime/libruntime.la $(DLOPEN_LIBS) -lm
xfp_kernel_verify_SOURCES = $(kernel_verify_sources) kernel-verify/trial/tables.c
# Device code of the bench.
measure_source = kernel-verify/cuda/measure.cu
EXTRA_DIST += kernel-verify/cuda/code.c $(measure_source) kernel-verify/cuda/no_code.c
CLEANFILES += $(measure_source:.cu=.fatbin) $(measure_source:.cu=.ptx90)
if CUDA
kernel_verify_sources += kernel-verify/cuda/code.c
device_code = kernel-verify/cuda/code.$(OBJEXT)
$(device_code): $(measure_source:.cu=.fatbin)
# libxfp-cuda is loaded at run time.
xfp_kernel_verify_LDFLAGS = $(AM_LDFLAGS) -R $(libdir)
else
kernel_verify_sources += kernel-verify/cuda/no_code.c
endif
xfp_kernel_verify_LDADD = $(kernel_verify_libs)

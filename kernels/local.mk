# SPDX-License-Identifier: Apache-2.0
#
# kernels/: pure computation. What a decoder needs goes into libxfp, the rest into the tools.

noinst_LIBRARIES += kernels/libkernels.a
kernels_libkernels_a_SOURCES = \
	kernels/assign.c \
	kernels/assign.h \
	kernels/companded.h \
	kernels/cosine.c \
	kernels/cosine.h \
	kernels/lloyd.c \
	kernels/lloyd.h \
	kernels/moments.c \
	kernels/moments.h

runtime_libxfp_la_SOURCES += \
	kernels/balance.c \
	kernels/balance.h \
	kernels/decode.c \
	kernels/decode.h \
	kernels/index.c \
	kernels/index.h \
	kernels/number.c \
	kernels/number.h \
	kernels/round.h \
	kernels/scale.c \
	kernels/scale.h

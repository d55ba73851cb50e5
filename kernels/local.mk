# SPDX-License-Identifier: Apache-2.0
#
# kernels/: pure computation. What a decoder needs goes into libxfp, the rest into the tools.

noinst_LIBRARIES += kernels/libkernels.a
kernels_libkernels_a_SOURCES = \
	kernels/assign.c \
	kernels/assign.h \
	kernels/compact.c \
	kernels/compact.h \
	kernels/compact_rows.h \
	kernels/compact_seed.h \
	kernels/compact_train.c \
	kernels/companded.h \
	kernels/cosine.c \
	kernels/cosine.h \
	kernels/encode.c \
	kernels/encode.h \
	kernels/encode_plain.c \
	kernels/encode_rows.h \
	kernels/lanes_avx2.h \
	kernels/lanes_avx512.h \
	kernels/lanes_neon.h \
	kernels/lanes_neon_double.h \
	kernels/lanes_plain.h \
	kernels/lanes_x86.h \
	kernels/lloyd.c \
	kernels/lloyd.h \
	kernels/moments.c \
	kernels/moments.h \
	kernels/optimal.c \
	kernels/optimal.h \
	kernels/peer_blocks.h \
	kernels/peer_int4.c \
	kernels/peer_iq4.c \
	kernels/peer_k_min.c \
	kernels/peer_k_scale.c \
	kernels/peer_min.c \
	kernels/peer_min.h \
	kernels/peer_scale.h \
	kernels/peers.c \
	kernels/peers.h \
	kernels/scaled_groups.c \
	kernels/scaled_groups.h \
	kernels/scaled_groups_rows.h \
	kernels/scaled_library.c \
	kernels/scaled_published.c \
	kernels/scaled_published.h \
	kernels/scaled_seeds.c

# The same loops once for each instruction set, chosen when they run.
if X86
noinst_LIBRARIES += kernels/libavx2.a kernels/libavx512.a
kernels_libavx2_a_SOURCES = kernels/encode_avx2.c
kernels_libavx2_a_CFLAGS = $(AM_CFLAGS) -mavx2 -mfma
kernels_libavx512_a_SOURCES = kernels/encode_avx512.c
kernels_libavx512_a_CFLAGS = $(AM_CFLAGS) -mavx512f -mavx512bw -mavx512dq -mavx512vl
endif

# What the runtime multiplies with, likewise; in libxfp, which has flags of its own.
if X86
vector_libraries = kernels/libmatvec_avx2.la kernels/libmatvec_avx512.la kernels/libmatvec_vbmi.la
kernels_libmatvec_avx2_la_SOURCES = kernels/matvec_avx2.c
kernels_libmatvec_avx2_la_CFLAGS = $(XFP_CFLAGS) $(KERNEL_CFLAGS) -mavx2 -mfma -mf16c
kernels_libmatvec_avx512_la_SOURCES = kernels/matvec_avx512.c
kernels_libmatvec_avx512_la_CFLAGS = $(XFP_CFLAGS) $(KERNEL_CFLAGS) -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl
kernels_libmatvec_vbmi_la_SOURCES = kernels/matvec_vbmi.c kernels/matvec_integers.c kernels/matvec_words.c
kernels_libmatvec_vbmi_la_CFLAGS = $(kernels_libmatvec_avx512_la_CFLAGS) -mavx512vbmi -mavx512vnni
kernels_libmatvec_avx2_la_LDFLAGS = $(XFP_LDFLAGS)
kernels_libmatvec_avx2_la_LIBTOOLFLAGS = --tag=disable-static
kernels_libmatvec_avx512_la_LDFLAGS = $(XFP_LDFLAGS)
kernels_libmatvec_avx512_la_LIBTOOLFLAGS = --tag=disable-static
kernels_libmatvec_vbmi_la_LDFLAGS = $(XFP_LDFLAGS)
kernels_libmatvec_vbmi_la_LIBTOOLFLAGS = --tag=disable-static
noinst_LTLIBRARIES += $(vector_libraries)
runtime_libruntime_la_LIBADD += $(vector_libraries)
endif

runtime_libruntime_la_SOURCES += \
	kernels/balance.c \
	kernels/balance.h \
	kernels/decode.c \
	kernels/decode.h \
	kernels/lane_index.c \
	kernels/lane_index.h \
	kernels/matvec.c \
	kernels/matvec.h \
	kernels/matvec_bytes.h \
	kernels/matvec_decode.h \
	kernels/matvec_lanes_avx2.h \
	kernels/matvec_lanes_avx512.h \
	kernels/matvec_lanes_neon.h \
	kernels/matvec_lanes_plain.h \
	kernels/matvec_lookup.h \
	kernels/matvec_numbers.h \
	kernels/matvec_plain.c \
	kernels/matvec_prepare.c \
	kernels/matvec_reference.c \
	kernels/matvec_rows.h \
	kernels/matvec_tables.h \
	kernels/neon_lookup.h \
	kernels/number.c \
	kernels/number.h \
	kernels/outlier_rows.c \
	kernels/outlier_rows.h \
	kernels/round.h \
	kernels/scale.c \
	kernels/scale.h
# Part of every processor of its kind, so with no flags of their own.
if AARCH64
kernels_libkernels_a_SOURCES += kernels/encode_neon.c
runtime_libruntime_la_SOURCES += kernels/matvec_neon.c
endif

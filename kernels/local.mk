# SPDX-License-Identifier: Apache-2.0
#
# kernels/: pure computation. common/ and multiply/ belong to libxfp, encode/, feedback/, ggml/ and peers/ to the tools.

noinst_LIBRARIES += kernels/libkernels.a
kernels_libkernels_a_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS)
kernels_libkernels_a_SOURCES = \
	kernels/encode/assign.c \
	kernels/encode/assign.h \
	kernels/encode/codebook_rows.h \
	kernels/encode/compact.c \
	kernels/encode/compact.h \
	kernels/encode/compact_rows.h \
	kernels/encode/compact_seed.h \
	kernels/encode/compact_train.c \
	kernels/encode/companded.h \
	kernels/encode/cosine.c \
	kernels/encode/cosine.h \
	kernels/encode/encode.c \
	kernels/encode/encode.h \
	kernels/encode/encode_plain.c \
	kernels/encode/encode_rows.h \
	kernels/encode/lloyd.c \
	kernels/encode/lloyd.h \
	kernels/encode/moments.c \
	kernels/encode/moments.h \
	kernels/encode/optimal.c \
	kernels/encode/optimal.h \
	kernels/encode/scaled.c \
	kernels/encode/scaled.h \
	kernels/encode/scaled_published.c \
	kernels/encode/scaled_published.h \
	kernels/encode/scaled_rows.h \
	kernels/encode/scaled_seeds.c \
	kernels/encode/scaled_train.c \
	kernels/feedback/factor.c \
	kernels/feedback/feedback.c \
	kernels/feedback/feedback.h \
	kernels/feedback/feedback_lanes.h \
	kernels/feedback/feedback_plain.c \
	kernels/feedback/feedback_set.h \
	kernels/feedback/growth.c \
	kernels/feedback/input_moments.c \
	kernels/feedback/outputs.c \
	kernels/feedback/prepare.c \
	kernels/ggml/blocks.h \
	kernels/ggml/iq4.c \
	kernels/ggml/k.c \
	kernels/ggml/number.h \
	kernels/ggml/small.c

# A library of its own: kernels/ggml/ and kernels/peers/ both have an iq4.c.
if CONVERTER
noinst_LIBRARIES += kernels/peers/libpeers.a
endif
kernels_peers_libpeers_a_SOURCES = \
	kernels/peers/blocks.h \
	kernels/peers/fp4.c \
	kernels/peers/fp8.c \
	kernels/peers/int4.c \
	kernels/peers/iq4.c \
	kernels/peers/k_min.c \
	kernels/peers/k_scale.c \
	kernels/peers/min.c \
	kernels/peers/min.h \
	kernels/peers/peers.c \
	kernels/peers/peers.h \
	kernels/peers/scale.h

# The same loops, compiled once per instruction set and selected at run time.
if X86
noinst_LIBRARIES += kernels/libavx2.a kernels/libavx512.a
kernels_libavx2_a_SOURCES = kernels/encode/encode_avx2.c kernels/feedback/feedback_avx2.c
kernels_libavx2_a_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) -mavx2 -mfma
kernels_libavx512_a_SOURCES = kernels/encode/encode_avx512.c kernels/feedback/feedback_avx512.c
kernels_libavx512_a_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) -mavx512f -mavx512bw -mavx512dq -mavx512vl
endif

# Kernels with which the runtime decodes and multiplies, also per instruction set; libxfp has flags of its own.
if X86
decode_libraries = kernels/libdecode_avx2.la kernels/libdecode_avx512.la
kernels_libdecode_avx2_la_SOURCES = kernels/multiply/matvec_decode_avx2.c
kernels_libdecode_avx2_la_CFLAGS = $(kernels_libmatvec_avx2_la_CFLAGS)
kernels_libdecode_avx512_la_SOURCES = kernels/multiply/matvec_decode_avx512.c
kernels_libdecode_avx512_la_CFLAGS = $(kernels_libmatvec_avx512_la_CFLAGS)
kernels_libdecode_avx2_la_LIBTOOLFLAGS = --tag=disable-static
kernels_libdecode_avx512_la_LIBTOOLFLAGS = --tag=disable-static
vector_libraries = kernels/libmatvec_avx2.la kernels/libmatvec_avx512.la kernels/libmatvec_vbmi.la
kernels_libmatvec_avx2_la_SOURCES = kernels/multiply/matvec_avx2.c kernels/multiply/matvec_integers_avx2.c kernels/multiply/matvec_words_avx2.c
kernels_libmatvec_avx2_la_CFLAGS = $(RUNTIME_CFLAGS) $(KERNEL_CFLAGS) -mavx2 -mfma -mf16c
kernels_libmatvec_avx512_la_SOURCES = kernels/multiply/matvec_avx512.c
kernels_libmatvec_avx512_la_CFLAGS = $(RUNTIME_CFLAGS) $(KERNEL_CFLAGS) -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl
kernels_libmatvec_vbmi_la_SOURCES = kernels/multiply/matvec_vbmi.c kernels/multiply/matvec_integers.c kernels/multiply/matvec_narrow.c kernels/multiply/matvec_words.c
kernels_libmatvec_vbmi_la_CFLAGS = $(kernels_libmatvec_avx512_la_CFLAGS) -mavx512vbmi -mavx512vnni
kernels_libmatvec_avx2_la_LIBTOOLFLAGS = --tag=disable-static
kernels_libmatvec_avx512_la_LIBTOOLFLAGS = --tag=disable-static
kernels_libmatvec_vbmi_la_LIBTOOLFLAGS = --tag=disable-static
noinst_LTLIBRARIES += $(decode_libraries) $(vector_libraries)
runtime_libruntime_la_LIBADD += $(decode_libraries)
runtime_libmultiply_la_LIBADD += $(vector_libraries)
endif

runtime_libruntime_la_SOURCES += \
	kernels/common/balance.c \
	kernels/common/balance.h \
	kernels/common/decode.c \
	kernels/common/decode.h \
	kernels/common/instructions.c \
	kernels/common/instructions.h \
	kernels/common/lane_index.c \
	kernels/common/lane_index.h \
	kernels/common/number.c \
	kernels/common/number.h \
	kernels/common/round.h \
	kernels/common/scale.c \
	kernels/common/scale.h \
	kernels/lanes/avx2.h \
	kernels/lanes/avx512.h \
	kernels/lanes/lanes.h \
	kernels/lanes/masks.h \
	kernels/lanes/neon.h \
	kernels/lanes/neon_lookup.h \
	kernels/lanes/plain.h \
	kernels/lanes/registers.h \
	kernels/lanes/x86.h \
	kernels/multiply/matvec_decode.h \
	kernels/multiply/matvec_decode_plain.c \
	kernels/multiply/matvec_lanes.h \
	kernels/multiply/matvec_stored.c \
	kernels/multiply/matvec_table_avx2.h \
	kernels/multiply/matvec_table_avx512.h \
	kernels/multiply/matvec_table_neon.h \
	kernels/multiply/matvec_table_plain.h \
	kernels/multiply/matvec_tables.h \
	kernels/multiply/matvec_unroll.h \
	kernels/multiply/outlier_rows.c \
	kernels/multiply/outlier_rows.h
runtime_libmultiply_la_SOURCES += \
	kernels/multiply/matvec.c \
	kernels/multiply/matvec.h \
	kernels/multiply/matvec_batches.h \
	kernels/multiply/matvec_bytes.h \
	kernels/multiply/matvec_instances.h \
	kernels/multiply/matvec_lookup.h \
	kernels/multiply/matvec_numbers.h \
	kernels/multiply/matvec_outlier_lanes.h \
	kernels/multiply/matvec_outliers.h \
	kernels/multiply/matvec_plain.c \
	kernels/multiply/matvec_prepare.c \
	kernels/multiply/matvec_rows.h \
	kernels/multiply/matvec_v2c.h \
	kernels/multiply/matvec_whole.h \
	kernels/multiply/matvec_words_avx2.h \
	kernels/multiply/panel.c \
	kernels/multiply/panel.h \
	kernels/multiply/panel_rows.h
# Part of every processor of this architecture, so without flags of their own.
if AARCH64
kernels_libkernels_a_SOURCES += kernels/encode/encode_neon.c kernels/feedback/feedback_neon.c
runtime_libruntime_la_SOURCES += kernels/multiply/matvec_decode_neon.c
runtime_libmultiply_la_SOURCES += kernels/multiply/matvec_neon.c
kernels_libmatvec_dotprod_la_SOURCES = kernels/multiply/matvec_dotprod.c kernels/multiply/matvec_integers_dotprod.c
kernels_libmatvec_dotprod_la_CFLAGS = $(RUNTIME_CFLAGS) $(KERNEL_CFLAGS) -march=armv8.2-a+dotprod
kernels_libmatvec_dotprod_la_LIBTOOLFLAGS = --tag=disable-static
noinst_LTLIBRARIES += kernels/libmatvec_dotprod.la
runtime_libmultiply_la_LIBADD += kernels/libmatvec_dotprod.la
endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks.h - blocks of ggml's types, decoded: for checkpoints that have them, and to compare formats.
 *
 * Every decoder takes one block, whose numbers are little-endian, and makes f32 of it bit for bit as llama.cpp's
 * plain decoders do. No order of operations has to be kept for that: a product of a half, a number of a group and a
 * code has 23 bits at most and is exact, so that nothing is rounded but what is left when a minimum is added or
 * subtracted, once, with fused multiply-add or without.
 */
#ifndef XFP_GGML_BLOCKS_H
#define XFP_GGML_BLOCKS_H

#include <stdint.h>

/* 32 weights. */
void xfp_ggml_q4_0(const uint8_t *restrict block, float *restrict x);
void xfp_ggml_q4_1(const uint8_t *restrict block, float *restrict x);
void xfp_ggml_q5_0(const uint8_t *restrict block, float *restrict x);
void xfp_ggml_q5_1(const uint8_t *restrict block, float *restrict x);
void xfp_ggml_q8_0(const uint8_t *restrict block, float *restrict x);
void xfp_ggml_iq4_nl(const uint8_t *restrict block, float *restrict x);
void xfp_ggml_mxfp4(const uint8_t *restrict block, float *restrict x);
/* 64 */
void xfp_ggml_nvfp4(const uint8_t *restrict block, float *restrict x);
/* 256 */
void xfp_ggml_q2_k(const uint8_t *restrict block, float *restrict x);
void xfp_ggml_q3_k(const uint8_t *restrict block, float *restrict x);
void xfp_ggml_q4_k(const uint8_t *restrict block, float *restrict x);
void xfp_ggml_q5_k(const uint8_t *restrict block, float *restrict x);
void xfp_ggml_q6_k(const uint8_t *restrict block, float *restrict x);
void xfp_ggml_iq4_xs(const uint8_t *restrict block, float *restrict x);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks.h - decode blocks of ggml's quantization types, for checkpoints that use them and for comparisons.
 *
 * Every decoder reads one block, whose numbers are little-endian, and writes f32 that equal those of llama.cpp's scalar
 * decoders bit for bit. The order of operations does not matter: a product of an fp16 scale, a group's number and a
 * code has at most 23 bits and is exact. Only adding or subtracting a minimum rounds, once, with or without fused
 * multiply-add.
 */
#ifndef XFP_GGML_BLOCKS_H
#define XFP_GGML_BLOCKS_H

#include <stdint.h>

/* Blocks of 32 weights. */
void xfp_ggml_q4_0(const uint8_t *restrict block, float *restrict x);
void xfp_ggml_q4_1(const uint8_t *restrict block, float *restrict x);
void xfp_ggml_q5_0(const uint8_t *restrict block, float *restrict x);
void xfp_ggml_q5_1(const uint8_t *restrict block, float *restrict x);
void xfp_ggml_q8_0(const uint8_t *restrict block, float *restrict x);
void xfp_ggml_iq4_nl(const uint8_t *restrict block, float *restrict x);
void xfp_ggml_mxfp4(const uint8_t *restrict block, float *restrict x);
/* A block of 64 weights. */
void xfp_ggml_nvfp4(const uint8_t *restrict block, float *restrict x);
/* Blocks of 256 weights. */
void xfp_ggml_q2_k(const uint8_t *restrict block, float *restrict x);
void xfp_ggml_q3_k(const uint8_t *restrict block, float *restrict x);
void xfp_ggml_q4_k(const uint8_t *restrict block, float *restrict x);
void xfp_ggml_q5_k(const uint8_t *restrict block, float *restrict x);
void xfp_ggml_q6_k(const uint8_t *restrict block, float *restrict x);
void xfp_ggml_iq4_xs(const uint8_t *restrict block, float *restrict x);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers.h - common formats, to measure ours beside them.
 *
 * A matrix is a run of blocks, row after row without a break, so a row may end inside a block; the last block is
 * filled up with zeros. All numbers are little-endian, scales are fp16 unless said, and q(i) is the index of weight i:
 *
 *   int4-32, int4-128    w = d q, -8 <= q < 8: d, then q + 8 in halves of bytes, weight i below weight i + G/2. d is
 *                        the weight of largest magnitude divided by -8; rounded to nearest, nothing is searched for
 *   int4z-32, int4z-128  w = d (q - z), 0 <= q, z < 16. A block is two groups: both d, a byte of both z (the first is
 *                        the low half), then the q of the one and of the other as above
 *   Q4_0, Q2_K ... Q6_K, IQ4_XS
 *                        llama.cpp's. Blocks are as there; encoders are our own (scale.h, min.h) and look
 *                        for the least squared error, so as to wrong none of them: it is below that of llama.cpp's
 *                        own, most of which weigh large weights more, by 5 to 15 %, and in Q2_K by 23 to 33 %
 *   NVFP4                modelopt's: 16 codes of E2M1 and an E4M3 scale that puts the largest weight at 6, times an
 *                        f32 of the whole matrix that puts its largest weight at 6 * 448
 *   MXFP4                OCP's: 32 codes of E2M1 and a power of two that gives the largest weight the exponent of 6
 *   FP8-128x128          DeepSeek's: E4M3, times an f32 for each tile of 128 rows and columns that puts its largest
 *                        weight at 448. Tiles at the edges are smaller; a block is one weight
 *
 * The last three round to nearest, too, ties to even, as those who publish them do.
 *
 * Squared errors count alike for all weights: none is told what matters. A NaN counts as 0. What is too large for a
 * format's scales gets the nearest that there is, what is too small for fp16 becomes 0; nothing decodes to NaN or
 * infinity. Plain C, + - * / only.
 */
#ifndef XFP_PEERS_H
#define XFP_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XFP_PEER_WEIGHTS 256 /* of a block, at most */
#define XFP_PEER_BYTES 256   /* that so many weights take, at most */
#define XFP_PEER_TILE 128    /* rows, and columns */

/* An f32 scale of many blocks: the largest magnitude of a weight of theirs, the peak, divided by `top`. */
struct xfp_peer_shared {
	bool tiles; /* one for each tile of the matrix, not one for all of it */
	float top;
	void (*encode)(const float *x, float scale, uint8_t *block);
	void (*decode)(const uint8_t *block, float scale, float *x);
};

struct xfp_peer {
	const char *name;
	unsigned weights, bytes; /* of a block */
	/* One block. Encoding takes finite numbers, |x| <= 2^30. */
	void (*encode)(const float *x, uint8_t *block);
	void (*decode)(const uint8_t *block, float *x);
	const struct xfp_peer_shared *shared; /* which has these two, then; NULL: no such scale */
};

#define XFP_PEERS 14
extern const struct xfp_peer xfp_peers[XFP_PEERS];

/* What the blocks of n weights take, ... */
static inline size_t xfp_peer_size(const struct xfp_peer *peer, size_t n)
{
	return (n / peer->weights + (n % peer->weights != 0)) * peer->bytes;
}
/* ... and a matrix with the scales that they share. */
uint64_t xfp_peer_matrix_size(const struct xfp_peer *peer, uint64_t rows, uint64_t cols);

/* Encode or decode weights that share a scale. `peak` is their largest magnitude; other types ignore it. */
void xfp_peer_encode(const struct xfp_peer *peer, float peak, const float *x, size_t n, uint8_t *out);
void xfp_peer_decode(const struct xfp_peer *peer, float peak, const uint8_t *in, size_t n, float *x);

#endif

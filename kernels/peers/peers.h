/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers.h - common formats, for comparison with ours.
 *
 * A matrix is a sequence of blocks, row after row without gaps, so a row may end inside a block; the last block is
 * padded with zeros. All numbers are little-endian, scales are fp16 unless stated, and q(i) is the index of weight i:
 *
 *   int4-32, int4-128    w = d q, -8 <= q < 8: d, then q + 8 in halves of bytes, weight i below weight i + G/2. d is
 *                        the weight of largest magnitude divided by -8; q is rounded to nearest, without a search
 *   int4z-32, int4z-128  w = d (q - z), 0 <= q, z < 16. A block is two groups: both d, a byte with both z (the first
 *                        in the low half), then the q of each group as above
 *   Q4_0, Q2_K ... Q6_K, IQ4_XS
 *                        llama.cpp's types, with its block layout. The encoders are our own (scale.h, min.h) and
 *                        minimize the squared error, for a fair comparison: it is 5 to 15 % below that of llama.cpp's
 *                        encoders, most of which give large weights more weight, and in Q2_K 23 to 33 % below
 *   NVFP4                modelopt's: 16 codes of E2M1 and an E4M3 scale that maps the largest weight to 6, times an
 *                        f32 of the whole matrix that maps its largest weight to 6 * 448
 *   MXFP4                OCP's: 32 codes of E2M1 and a power of two that gives the largest weight the exponent of 6
 *   FP8-128x128          DeepSeek's: E4M3, times an f32 for each tile of 128 rows and columns that maps its largest
 *                        weight to 448. Tiles at the edges are smaller; a block is one weight
 *
 * The last three also round to nearest, ties to even, as their reference encoders do.
 *
 * All weights count equally in the squared error: there is no importance matrix. A NaN counts as 0. Weights too large
 * for a format's scales become the largest representable number, and scales too small for fp16 become 0, so nothing
 * decodes to NaN or infinity. Plain C, + - * / only.
 */
#ifndef XFP_PEERS_H
#define XFP_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XFP_PEER_WEIGHTS 256 /* maximum weights per block */
#define XFP_PEER_BYTES 256   /* maximum bytes of that many weights */
#define XFP_PEER_TILE 128    /* rows and columns of a tile */

/* An f32 scale that many blocks share: the largest magnitude of their weights, the peak, divided by `top`. */
struct xfp_peer_shared {
	bool tiles; /* one scale per tile of the matrix; otherwise one for the whole matrix */
	float top;
	void (*encode)(const float *x, float scale, uint8_t *block);
	void (*decode)(const uint8_t *block, float scale, float *x);
};

struct xfp_peer {
	const char *name;
	unsigned weights, bytes; /* of a block */
	/* Encode or decode one block. Encoded numbers must be finite, |x| <= 2^30. */
	void (*encode)(const float *x, uint8_t *block);
	void (*decode)(const uint8_t *block, float *x);
	const struct xfp_peer_shared *shared; /* used instead of both if blocks share a scale; otherwise NULL */
};

#define XFP_PEERS 14
extern const struct xfp_peer xfp_peers[XFP_PEERS];

/* The size of the blocks of n weights. */
static inline size_t xfp_peer_size(const struct xfp_peer *peer, size_t n)
{
	return (n / peer->weights + (n % peer->weights != 0)) * peer->bytes;
}
/* The size of a matrix, including the scales that blocks share. */
uint64_t xfp_peer_matrix_size(const struct xfp_peer *peer, uint64_t rows, uint64_t cols);

/* Encode or decode weights that share a scale. `peak` is their largest magnitude; other formats ignore it. */
void xfp_peer_encode(const struct xfp_peer *peer, float peak, const float *x, size_t n, uint8_t *out);
void xfp_peer_decode(const struct xfp_peer *peer, float peak, const uint8_t *in, size_t n, float *x);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * by_peers.c - xfp compare: common formats, measured on the same rows as ours.
 *
 * The sampled rows of a matrix are encoded as one flat array, row after row: as a format does if rows are not a
 * multiple of its blocks. They are processed in stretches that end with a row and with a block, so that memory does not
 * grow with the sample. Scales of tiles and of whole matrices come from all rows of the matrix.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "commands/compare/compare.h"
#include "kernels/encode/cosine.h"
#include "kernels/encode/encode.h"
#include "stages/quantize/scan.h"
#include "stages/quantize/threads.h"

static_assert(XFP_PEER_TILE == XFP_TILE, "formats have the tiles that a scan looks at");

#define STRETCH_WEIGHTS (1u << 18) /* minimum; block sizes divide XFP_PEER_WEIGHTS */

struct stretch {
	uint64_t cols, rows;     /* most in one stretch */
	float *source, *decoded; /* [rows][cols] */
	float *w, *r;            /* [threads] padded rows */
	const float *tile;       /* of the matrix: largest magnitude per tile */
	float peak;              /* and of the whole matrix */
	size_t padded;
	int threads;
	struct xfp_row_error *result[XFP_PEERS]; /* [sampled rows] */
};

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
	return b ? greatest_divisor(b, a % b) : a;
}

static void stretch_free(struct stretch *s)
{
	free(s->source);
	free(s->decoded);
	free(s->w);
	free(s->r);
	for (unsigned p = 0; p < XFP_PEERS; p++)
		free(s->result[p]);
}

static enum xfp_status stretch_init(struct stretch *s, uint64_t cols, uint64_t sampled, struct xfp_error *err)
{
	uint64_t step = XFP_PEER_WEIGHTS / greatest_divisor(cols, XFP_PEER_WEIGHTS);
	size_t bytes;
	bool good;

	s->cols = cols;
	s->rows = (STRETCH_WEIGHTS / cols / step + 1) * step;
	s->rows = s->rows < sampled ? s->rows : sampled;
	s->threads = xfp_threads();
	s->padded = xfp_padded(cols) + XFP_LANES;
	bytes = xfp_align((size_t)s->threads * s->padded * sizeof(float), 64);
	s->source = malloc(s->rows * cols * sizeof *s->source);
	s->decoded = malloc(s->rows * cols * sizeof *s->decoded);
	s->w = aligned_alloc(64, bytes);
	s->r = aligned_alloc(64, bytes);
	good = s->source && s->decoded && s->w && s->r;
	for (unsigned p = 0; p < XFP_PEERS; p++)
		good = (s->result[p] = malloc(sampled * sizeof *s->result[p])) && good;
	if (!good)
		return xfp_no_memory(err);
	memset(s->w, 0, bytes);
	memset(s->r, 0, bytes);
	return XFP_OK;
}

/* Load rows [first, first + count) of a block of the sample. */
static void load(struct stretch *s, const struct xfp_rows *rows, uint64_t first, uint64_t count)
{
#pragma omp parallel for schedule(static)
	for (uint64_t i = 0; i < count; i++) {
		float *w = s->w + (size_t)xfp_thread() * s->padded;

		xfp_rows_load(rows, first + i, w);
		memcpy(s->source + i * s->cols, w, s->cols * sizeof *w);
	}
}

/* Input of one encode call: weights [at, at + count) of the stretch, and the peak of the weights that share their
 * scale. */
struct peer_piece {
	uint64_t at, count;
	float peak;
};

/* The part of a tile that lies in one row. */
static struct peer_piece piece_of_tile(const struct stretch *s, uint64_t number, const uint64_t *row)
{
	uint64_t across = xfp_tiles(s->cols), i = number / across, t = number % across, left = s->cols - t * XFP_TILE;

	return (struct peer_piece){ .at = i * s->cols + t * XFP_TILE,
				    .count = left < XFP_TILE ? left : XFP_TILE,
				    .peak = s->tile[row[i] / XFP_TILE * across + t] };
}

/* Blocks in weight order, across row boundaries. */
static struct peer_piece piece_of_run(const struct stretch *s, uint64_t number, uint64_t weights)
{
	uint64_t at = number * XFP_PEER_WEIGHTS, left = weights - at;

	return (struct peer_piece){ .at = at,
				    .count = left < XFP_PEER_WEIGHTS ? left : XFP_PEER_WEIGHTS,
				    .peak = s->peak };
}

/* `row`: indices of these rows in their matrix. */
static void encode(struct stretch *s, const struct xfp_peer *peer, const uint64_t *row, uint64_t count,
		   struct xfp_row_error *result)
{
	bool tiles = peer->shared && peer->shared->tiles;
	uint64_t weights = count * s->cols;
	uint64_t pieces = tiles ? count * xfp_tiles(s->cols) : (weights + XFP_PEER_WEIGHTS - 1) / XFP_PEER_WEIGHTS;

#pragma omp parallel for schedule(dynamic, 16)
	for (uint64_t p = 0; p < pieces; p++) {
		struct peer_piece piece = tiles ? piece_of_tile(s, p, row) : piece_of_run(s, p, weights);
		uint8_t code[XFP_PEER_BYTES]; /* enough for smaller blocks, too */

		xfp_peer_encode(peer, piece.peak, s->source + piece.at, (size_t)piece.count, code);
		xfp_peer_decode(peer, piece.peak, code, (size_t)piece.count, s->decoded + piece.at);
	}
#pragma omp parallel for schedule(static)
	for (uint64_t i = 0; i < count; i++) {
		float *w = s->w + (size_t)xfp_thread() * s->padded, *r = s->r + (size_t)xfp_thread() * s->padded;

		memcpy(w, s->source + i * s->cols, s->cols * sizeof *w);
		memcpy(r, s->decoded + i * s->cols, s->cols * sizeof *r);
		result[i] = xfp_row_compare(w, r, s->cols);
	}
}

/* Select the matrix of the next rows. */
static void set_matrix(struct stretch *s, const struct xfp_ledger_unit *unit, const float *tile, uint32_t matrix)
{
	uint64_t tiles = xfp_tiles(unit->rows) * xfp_tiles(unit->cols);

	s->tile = tile + matrix * tiles;
	s->peak = 0;
	for (uint64_t t = 0; t < tiles; t++)
		s->peak = s->tile[t] > s->peak ? s->tile[t] : s->peak;
}

static enum xfp_status measure_blocks(struct stretch *s, const struct xfp_ledger_unit *unit,
				      const struct xfp_survey *survey, const float *tile, struct xfp_signals *signals,
				      struct xfp_error *err)
{
	for (uint32_t b = 0; b < survey->block_count; b++) {
		const struct xfp_survey_block *block = &survey->blocks[b];

		set_matrix(s, unit, tile, block->matrix);
		for (uint64_t first = 0; first < block->rows.count; first += s->rows) {
			uint64_t left = block->rows.count - first, count = left < s->rows ? left : s->rows;

			load(s, &block->rows, first, count);
			for (unsigned p = 0; p < XFP_PEERS; p++) {
				if (xfp_signals_arrived(signals))
					return xfp_fail(err, XFP_FAILED, "interrupted");
				encode(s, &xfp_peers[p], block->row + first, count,
				       s->result[p] + block->first + first);
			}
		}
	}
	return XFP_OK;
}

/* Sum errors the way a survey does: sampled rows stand for all others, rows picked individually for themselves. */
static void sum_up(const struct stretch *s, const struct xfp_ledger_unit *unit, const struct xfp_survey *survey,
		   unsigned p, double *cosine, struct xfp_compared *compared, double *norm)
{
	double error = 0;

	*compared = (struct xfp_compared){ .peer = &xfp_peers[p] };
	*norm = 0;
	for (uint64_t r = 0; r < survey->rows + survey->picked; r++) {
		double each = r < survey->rows ? survey->each : 1;

		if (r < survey->rows)
			cosine[r] = s->result[p][r].cosine;
		error += s->result[p][r].error * each;
		*norm += s->result[p][r].norm * each;
	}
	compared->candidate.bytes = unit->experts * xfp_peer_matrix_size(&xfp_peers[p], unit->rows, unit->cols);
	compared->candidate.error = *norm > 0 ? error / *norm : 0;
	xfp_cosine_summary(cosine, survey->rows, &compared->candidate.cos_median, &compared->candidate.cos_p5);
	/* Sources near the f32 maximum, which the format's scales cannot represent. */
	if (!isfinite(compared->candidate.error)) {
		compared->candidate.cos_median = compared->candidate.cos_p5 = -1;
		compared->candidate.error = 1;
	}
}

enum xfp_status xfp_compare_peers(const struct xfp_ledger_unit *unit, const struct xfp_survey *survey,
				  const float *tile, struct xfp_signals *signals, struct xfp_compared list[XFP_PEERS],
				  double *norm, struct xfp_error *err)
{
	struct stretch s = { 0 };
	double *cosine = malloc(survey->rows * sizeof *cosine);
	enum xfp_status status = stretch_init(&s, unit->cols, survey->rows + survey->picked, err);

	if (!status && !cosine)
		status = xfp_no_memory(err);
	if (!status)
		status = measure_blocks(&s, unit, survey, tile, signals, err);
	for (unsigned p = 0; !status && p < XFP_PEERS; p++)
		sum_up(&s, unit, survey, p, cosine, &list[p], norm);
	stretch_free(&s);
	free(cosine);
	return status;
}

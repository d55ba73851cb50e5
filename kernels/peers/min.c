/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/peers/min.h"

#define TURNS 2  /* alternations per group */
#define ROUNDS 3 /* alternations per block */

/* Sums for the least squares fit of a group. */
struct block_sums {
	struct peer_lanes q, qq, xq;
};

static float inverse_of(float scale)
{
	return scale > 0 ? 1 / scale : 0;
}

/* Compute the sums for the indices x * inverse + offset, rounded. */
static struct block_sums measure(const struct peer_groups *groups, const struct peer_min_search *how,
				 const struct peer_lanes *inverse, const struct peer_lanes *offset)
{
	struct block_sums sums = { 0 };

	for (unsigned i = 0; i < groups->length; i++) {
		PEER_EACH
		{
			float x = groups->x[i].v[l], q = peer_round(x * inverse->v[l] + offset->v[l], 0, how->top);

			sums.q.v[l] += q;
			sums.qq.v[l] += q * q;
			sums.xq.v[l] += x * q;
		}
	}
	return sums;
}

static void try_range(const struct peer_groups *groups, const struct peer_min_search *how, const struct peer_lanes *sum,
		      const struct peer_lanes *inverse, const struct peer_lanes *offset, struct peer_min_fit *best)
{
	struct block_sums sums = measure(groups, how, inverse, offset);
	float n = (float)groups->length;

	PEER_EACH
	{
		float q = sums.q.v[l], qq = sums.qq.v[l], xq = sums.xq.v[l], x = sum->v[l];
		float spread = n * qq - q * q, scale = spread > 0 ? (n * xq - x * q) / spread : 0;
		float minimum = (scale * q - x) / n, alone = qq > 0 ? xq / qq : 0, error;
		int bound = minimum < 0 || (spread <= 0 && q > 0), better;

		scale = bound ? alone : scale;
		scale = scale > 0 ? scale : 0;
		minimum = bound ? 0 : minimum;
		error = scale * (scale * qq - 2 * xq) + minimum * (2 * (x - scale * q) + n * minimum);
		better = error < best->error.v[l];
		best->error.v[l] = better ? error : best->error.v[l];
		best->scale.v[l] = better ? scale : best->scale.v[l];
		best->minimum.v[l] = better ? minimum : best->minimum.v[l];
		best->mean.v[l] = better ? q / n : best->mean.v[l];
	}
}

static void search(const struct peer_groups *groups, const struct peer_min_search *how, struct peer_lanes *sum,
		   struct peer_min_fit *fit)
{
	struct peer_lanes low = { 0 }, high = { 0 }, width, inverse, offset;

	memset(fit, 0, sizeof *fit);
	memset(sum, 0, sizeof *sum);
	for (unsigned i = 0; i < groups->length; i++) {
		PEER_EACH
		{
			float x = groups->x[i].v[l];

			low.v[l] = x < low.v[l] ? x : low.v[l];
			high.v[l] = x > high.v[l] ? x : high.v[l];
			sum->v[l] += x;
		}
	}
	PEER_EACH width.v[l] = inverse_of(high.v[l] - low.v[l]);
	for (int n = 0; n < how->tries * how->tries; n++) {
		float below = how->from + (float)(n / how->tries) * how->step;
		float above = how->from + (float)(n % how->tries) * how->step;

		PEER_EACH inverse.v[l] = (how->top + below + above) * width.v[l];
		PEER_EACH offset.v[l] = -low.v[l] * inverse.v[l] - below;
		try_range(groups, how, sum, &inverse, &offset, fit);
	}
	for (int turn = 0; turn < TURNS; turn++) {
		PEER_EACH inverse.v[l] = inverse_of(fit->scale.v[l]);
		PEER_EACH offset.v[l] = fit->minimum.v[l] * inverse.v[l];
		try_range(groups, how, sum, &inverse, &offset, fit);
	}
}

/* Squared errors. */
static struct peer_lanes miss(const struct peer_groups *groups, const struct peer_min_search *how,
			      const struct peer_lanes *scale, const struct peer_lanes *minimum)
{
	struct peer_lanes error = { 0 }, inverse, offset;

	PEER_EACH inverse.v[l] = inverse_of(scale->v[l]);
	PEER_EACH offset.v[l] = minimum->v[l] * inverse.v[l];
	for (unsigned i = 0; i < groups->length; i++) {
		PEER_EACH
		{
			float x = groups->x[i].v[l], q = peer_round(x * inverse.v[l] + offset.v[l], 0, how->top);
			float e = x + minimum->v[l] - scale->v[l] * q;

			error.v[l] += e * e;
		}
	}
	return error;
}

/* Choose the numbers of a set for these d and dmin. Returns the squared error. */
static float place(const struct peer_groups *groups, const struct peer_min_search *how, const struct peer_min_fit *fit,
		   float d, float dmin, struct peer_lanes *number, struct peer_lanes *minimum)
{
	struct peer_lanes best = { 0 };
	float by_d = inverse_of(d), by_dmin = inverse_of(dmin), total = 0;
	int first = 1;

	for (int near = -how->reach; near <= how->reach; near++) {
		struct peer_lanes n, m, scale, middle;

		PEER_EACH n.v[l] =
			peer_round(peer_round(fit->scale.v[l] * by_d, 0, how->limit) + (float)near, 0, how->limit);
		PEER_EACH scale.v[l] = n.v[l] * d;
		/* Other scales pivot on the mean index. */
		PEER_EACH middle.v[l] = peer_round(
			(fit->minimum.v[l] + (scale.v[l] - fit->scale.v[l]) * fit->mean.v[l]) * by_dmin, 0, how->limit);
		for (int by = -how->reach; by <= how->reach; by++) {
			struct peer_lanes value, error;

			PEER_EACH m.v[l] = peer_round(middle.v[l] + (float)by, 0, how->limit);
			PEER_EACH value.v[l] = m.v[l] * dmin;
			error = miss(groups, how, &scale, &value);
			PEER_EACH
			{
				int better = first || error.v[l] < best.v[l];

				best.v[l] = better ? error.v[l] : best.v[l];
				number->v[l] = better ? n.v[l] : number->v[l];
				minimum->v[l] = better ? m.v[l] : minimum->v[l];
			}
			first = 0;
		}
	}
	PEER_EACH total += best.v[l];
	return total;
}

/* Least squares over the whole block: a d^2 - 2 b d dmin + c dmin^2 - 2 u d + 2 v dmin. */
struct normal {
	float a, b, c, u, v;
};

static void add_normal(const struct peer_min_block *block, unsigned s, const struct peer_min_search *how, float d,
		       float dmin, const struct peer_lanes *number, const struct peer_lanes *minimum,
		       struct normal *sums)
{
	struct peer_lanes inverse, offset;
	struct block_sums group;

	PEER_EACH inverse.v[l] = inverse_of(number->v[l] * d);
	PEER_EACH offset.v[l] = minimum->v[l] * dmin * inverse.v[l];
	group = measure(&block->groups[s], how, &inverse, &offset);
	PEER_EACH
	{
		float n = number->v[l], m = minimum->v[l];

		sums->a += n * n * group.qq.v[l];
		sums->b += n * m * group.q.v[l];
		sums->c += m * m * (float)block->groups[s].length;
		sums->u += n * group.xq.v[l];
		sums->v += m * block->sum[s].v[l];
	}
}

static void settle(struct peer_min_block *block, const struct peer_min_search *how)
{
	float scale = 0, minimum = 0, best = -1;

	for (unsigned s = 0; s < block->sets; s++) {
		PEER_EACH scale = block->fit[s].scale.v[l] > scale ? block->fit[s].scale.v[l] : scale;
		PEER_EACH minimum = block->fit[s].minimum.v[l] > minimum ? block->fit[s].minimum.v[l] : minimum;
	}
	for (int start = 0; how->fill[start] > 0; start++) {
		uint16_t d = peer_half(scale / (how->limit * how->fill[start]));
		uint16_t dmin = peer_half(minimum / (how->limit * how->fill[start]));

		for (int round = 0; round < ROUNDS; round++) {
			float step = xfp_half_to_float(d), step_min = xfp_half_to_float(dmin), total = 0, det;
			struct peer_lanes numbers[2], minima[2];
			struct normal sums = { 0 };
			uint16_t next, next_min;

			for (unsigned s = 0; s < block->sets; s++) {
				total += place(&block->groups[s], how, &block->fit[s], step, step_min, &numbers[s],
					       &minima[s]);
				add_normal(block, s, how, step, step_min, &numbers[s], &minima[s], &sums);
			}
			if (best < 0 || total < best) {
				best = total;
				block->d = d;
				block->dmin = dmin;
				memcpy(block->number, numbers, sizeof numbers);
				memcpy(block->minimum, minima, sizeof minima);
			}
			det = sums.a * sums.c - sums.b * sums.b;
			next = det > 0 ? peer_half((sums.u * sums.c - sums.b * sums.v) / det) : d;
			next_min = det > 0 ? peer_half((sums.u * sums.b - sums.a * sums.v) / det) : dmin;
			if ((next == d && next_min == dmin) || next >= 0x8000 || next_min >= 0x8000)
				break;
			d = next;
			dmin = next_min;
		}
	}
}

void xfp_peer_min_fit(struct peer_min_block *block, unsigned length, const float *x, const struct peer_min_search *how)
{
	block->sets = 256 / PEER_LANES / length;
	for (unsigned s = 0; s < block->sets; s++) {
		peer_groups_load(&block->groups[s], length, x + s * PEER_LANES * length);
		search(&block->groups[s], how, &block->sum[s], &block->fit[s]);
	}
	settle(block, how);
}

/* The same indices as in miss(). */
void xfp_peer_min_indices(const struct peer_min_block *block, const float *x, const struct peer_min_search *how,
			  uint8_t *q)
{
	float d = xfp_half_to_float(block->d), dmin = xfp_half_to_float(block->dmin);
	unsigned length = block->groups[0].length;

	for (unsigned i = 0; i < 256; i++) {
		float inverse = inverse_of((float)min_number(block, i / length) * d);
		float offset = (float)min_minimum(block, i / length) * dmin * inverse;

		q[i] = (uint8_t)peer_round(x[i] * inverse + offset, 0, how->top);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/walk/walk.h"

/* Whether the first point worked better: by scores if a command gives them, otherwise by divergence. */
static bool is_better(const struct xfp_walk_probe *a, const struct xfp_walk_probe *b)
{
	if (a->scored && b->scored)
		return a->score > b->score;
	return a->measured && b->measured && a->kl < b->kl;
}

/* Whether a point fits: its bundle, if it was built, otherwise the predicted one. */
static bool does_fit(const struct xfp_walk_point *point)
{
	return point->probe.verdict == XFP_WALK_UNKNOWN ? point->fits : point->probe.verdict != XFP_WALK_TOO_LARGE;
}

/* The last point that fits. */
static uint32_t find_largest(const struct xfp_walk *walk)
{
	uint32_t i = walk->count;

	while (i > 0 && !does_fit(&walk->point[i - 1]))
		i--;
	return i ? i - 1 : XFP_WALK_NONE;
}

/* Find, from the most aggressive point on, where garbage ends. Sets `next` to the first point on the way that is not
 * probed. */
static void find_passed(const struct xfp_walk *walk, struct xfp_walk_boundaries *b)
{
	for (uint32_t i = 0; b->largest != XFP_WALK_NONE && i <= b->largest; i++) {
		enum xfp_walk_verdict verdict = walk->point[i].probe.verdict;

		if (verdict == XFP_WALK_UNKNOWN && walk->point[i].fits)
			b->next = i;
		else if (verdict == XFP_WALK_PASSED)
			b->passed = i;
		else if (verdict == XFP_WALK_GARBAGE)
			b->garbage = i;
		if (b->next != XFP_WALK_NONE || b->passed != XFP_WALK_NONE)
			return;
	}
}

/* The envelope boundary, from the largest point that fits down to one that passes. */
static void find_confirmed(const struct xfp_walk *walk, struct xfp_walk_boundaries *b)
{
	for (uint32_t i = b->largest; i > b->passed; i--) {
		enum xfp_walk_verdict verdict = walk->point[i].probe.verdict;

		if (verdict == XFP_WALK_UNKNOWN && walk->point[i].fits)
			b->next = i;
		if (b->next != XFP_WALK_NONE || verdict == XFP_WALK_PASSED)
			return;
	}
}

struct xfp_walk_boundaries xfp_walk_find_boundaries(const struct xfp_walk *walk, bool probing)
{
	struct xfp_walk_boundaries b = { XFP_WALK_NONE, XFP_WALK_NONE, find_largest(walk), XFP_WALK_NONE,
					 XFP_WALK_NONE };

	if (!probing) {
		if (walk->limit.bytes)
			b.best = b.largest;
		return b;
	}
	find_passed(walk, &b);
	b.best = b.passed;
	if (b.passed == XFP_WALK_NONE || !walk->limit.bytes)
		return b;
	find_confirmed(walk, &b);
	/* Of equal points the larger one has the smaller error. */
	for (uint32_t i = b.passed + 1; i <= b.largest; i++)
		if (walk->point[i].probe.verdict == XFP_WALK_PASSED &&
		    !is_better(&walk->point[b.best].probe, &walk->point[i].probe))
			b.best = i;
	return b;
}

uint32_t xfp_walk_nearest(const struct xfp_walk *walk)
{
	uint32_t largest = find_largest(walk);

	return largest != XFP_WALK_NONE ? largest : walk->count ? 0 : XFP_WALK_NONE;
}

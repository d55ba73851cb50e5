/* SPDX-License-Identifier: Apache-2.0 */
#include "model/generate/memory_bandwidth.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "runtime/team.h"

#define PIECE ((size_t)1 << 18)
#define TIMES 3

struct memory_reading {
	const uint64_t *words;
	uint64_t sums[XFP_BANDWIDTH_BYTES / PIECE];
};

static void read_piece(void *context, unsigned thread, size_t i)
{
	struct memory_reading *reading = context;
	const uint64_t *words = reading->words + i * (PIECE / sizeof *words);
	uint64_t sum[8] = { 0 };

	(void)thread;
	for (size_t w = 0; w < PIECE / sizeof *words; w += 8) {
		for (size_t j = 0; j < 8; j++)
			sum[j] += words[w + j];
	}
	for (size_t j = 0; j < 8; j++)
		reading->sums[i] += sum[j];
}

enum xfp_status xfp_memory_bandwidth(struct xfp_team *team, double *rate, struct xfp_error *err)
{
	struct memory_reading *reading = calloc(1, sizeof *reading);
	uint64_t *words = malloc(XFP_BANDWIDTH_BYTES);
	enum xfp_status status = reading && words ? xfp_team_enter(team, 0, 1, err) : xfp_no_memory(err);
	double min = 0;

	for (unsigned i = 0; !status && i <= TIMES; i++) {
		double began;

		if (!i)
			memset(words, 1, XFP_BANDWIDTH_BYTES);
		reading->words = words;
		began = xfp_now();
		xfp_team_run(team, XFP_BANDWIDTH_BYTES / PIECE, read_piece, reading);
		if (i && (i == 1 || xfp_now() - began < min))
			min = xfp_now() - began;
	}
	if (!status) {
		xfp_team_leave(team);
		*rate = min > 0 ? (double)XFP_BANDWIDTH_BYTES / min : 0;
	}
	free(reading);
	free(words);
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much goes through the models at a time. What comes of it does not depend on that.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/text/size.h"
#include "commands/eval/eval.h"
#include "model/forward/memory.h"
#include "runtime/team.h"

#define MOST_LOGITS ((uint64_t)64 << 20)
#define LEAST_LOGITS ((uint64_t)1 << 20)
#define RESERVE ((uint64_t)8 << 20) /* mapped pages of a bundle, and what else comes and goes */
#define OF_TOKEN 128                /* bytes, of sums over the vocabulary */

/* What this process has now: models' tables, token ids, libraries. */
static uint64_t resident(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	uint64_t pages = 0;

	if (file && fscanf(file, "%*s %" SCNu64, &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Half of what the machine can give without driving other programs out; UINT64_MAX when that cannot be told. */
static uint64_t usual_memory(void)
{
	FILE *file = fopen("/proc/meminfo", "r");
	uint64_t kib = 0;
	char line[128];

	while (file && !kib && fgets(line, sizeof line, file)) {
		if (sscanf(line, "MemAvailable: %" SCNu64, &kib) != 1)
			kib = 0;
	}
	if (file)
		fclose(file);
	return kib ? kib * 512 : UINT64_MAX;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return xfp_add(a, b, &sum) ? sum : UINT64_MAX;
}

static uint64_t activations(const struct xfp_eval *e, uint64_t copies, uint64_t sequences)
{
	uint64_t bytes = copies * e->judged.description->hidden * sizeof(float);

	return xfp_mul(bytes, e->tokens.length, &bytes) && xfp_mul(bytes, sequences, &bytes) ? bytes : UINT64_MAX;
}

/* Everything but activations between layers. */
static uint64_t needed(const struct xfp_eval *e, size_t sequences)
{
	unsigned threads = xfp_team_threads(e->team);
	uint64_t copies = xfp_eval_has_source(e) ? 2 : 1, others = 0;
	uint64_t layer = xfp_forward_bytes(e->judged.forward, copies * sequences, threads), logits;

	if (xfp_eval_has_source(e))
		others = xfp_forward_bytes(e->source.forward, sequences, threads);
	layer = layer > others ? layer : others;
	logits = plus(copies * LEAST_LOGITS, sequences * e->tokens.length * OF_TOKEN);
	return plus(plus(activations(e, copies == 2 ? 3 : 1, sequences), layer), logits);
}

enum xfp_status xfp_eval_find_room(struct xfp_eval *e, struct xfp_error *err)
{
	uint64_t always = resident() + RESERVE + xfp_eval_tokens(e) * (sizeof(struct xfp_foretold) + sizeof(double));
	uint64_t memory = e->memory ? e->memory : usual_memory(), copies = xfp_eval_has_source(e) ? 2 : 1;
	uint64_t streams = activations(e, copies, e->tokens.sequences), all = plus(always, needed(e, 1)), left;
	size_t low = 1, high = e->tokens.sequences;
	char given[32], wanted[32];

	if (e->memory && all > memory)
		return xfp_fail(err, XFP_FAILED,
				"--memory %s: one sequence of %zu tokens and some rows of each matrix take %s; give "
				"that much, or shorter sequences",
				xfp_size_text(memory, e->memory_binary, given), e->tokens.length,
				xfp_size_enough(all, e->memory_binary, wanted));
	e->room.spilled = plus(plus(always, streams), needed(e, high)) > memory;
	/* As many as fit, between one and all. */
	while (low < high) {
		size_t middle = low + (high - low + 1) / 2;

		if (!e->room.spilled || plus(always, needed(e, middle)) <= memory)
			low = middle;
		else
			high = middle - 1;
	}
	e->room.sequences = low;
	all = plus(plus(always, needed(e, low)), e->room.spilled ? 0 : streams);
	left = memory > all ? (memory - all) / copies : 0;
	e->room.logits_bytes = LEAST_LOGITS + (left < MOST_LOGITS ? left : MOST_LOGITS);
	return XFP_OK;
}

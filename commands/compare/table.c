/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c - xfp compare: results as text tables: a line per size, per mode and k, and per common format.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "base/text/size.h"
#include "base/text/table.h"
#include "commands/compare/compare.h"

enum { WITHIN, BEST, BEST_BITS, BEST_ERROR, REPLACES, CHEAPEST, ANSWER_COLUMNS };

static const struct xfp_table_column answer_layout[ANSWER_COLUMNS + 1] = {
	[WITHIN] = { "up to bits", 0, 0, 0 },     [BEST] = { "best setting", 1, 2, 0 },
	[BEST_BITS] = { "bits/weight", 0, 2, 0 }, [BEST_ERROR] = { "error", 0, 2, 0 },
	[REPLACES] = { "replaces", 1, 2, 0 },     [CHEAPEST] = { "llama.cpp needs", 1, 2, 1 },
};

enum { MODE, K, PLAIN_BITS, PLAIN_COSINE, PLAIN_ERROR, SIGMA, BITS, COSINE, ERROR, OURS_COLUMNS };

static const struct xfp_table_column ours_layout[OURS_COLUMNS + 1] = {
	[MODE] = { "mode", 1, 0, 0 },
	[K] = { "k", 0, 2, 0 },
	[PLAIN_BITS] = { "bits/weight", 0, 2, 0 },
	[PLAIN_COSINE] = { "cosine", 0, 2, 0 },
	[PLAIN_ERROR] = { "error", 0, 2, 0 },
	[SIGMA] = { "with outliers", 0, 2, 1 },
	[BITS] = { "bits/weight", 0, 2, 0 },
	[COSINE] = { "cosine", 0, 2, 0 },
	[ERROR] = { "error", 0, 2, 0 },
};

enum { PEER, PEER_BITS, PEER_COSINE, PEER_ERROR, OURS, OURS_BITS, OURS_ERROR, RATIO, EACH, WORST, CLAIM_COLUMNS };

/* For a single unit the last two columns are omitted. */
static const struct xfp_table_column claim_layout[CLAIM_COLUMNS + 1] = {
	[PEER] = { "format", 1, 0, 0 },
	[PEER_BITS] = { "bits/weight", 0, 2, 0 },
	[PEER_COSINE] = { "cosine", 0, 2, 0 },
	[PEER_ERROR] = { "error", 0, 2, 0 },
	[OURS] = { "xfp, no more bits", 1, 2, 1 },
	[OURS_BITS] = { "bits/weight", 0, 2, 0 },
	[OURS_ERROR] = { "error", 0, 2, 0 },
	[RATIO] = { "ratio", 0, 2, 0 },
	[EACH] = { "unit by unit", 0, 2, 1 },
	[WORST] = { "worst unit", 0, 2, 0 },
};

#define SET(cell, ...) snprintf(cell, sizeof(cell), __VA_ARGS__)

static void fill(const struct xfp_compared_unit *unit, const struct xfp_compared *c, char *bits, char *cosine,
		 char *error)
{
	snprintf(bits, XFP_TABLE_CELL, "%.3f", xfp_compared_bits(unit, c));
	if (cosine && c->candidate.cos_median >= 0)
		snprintf(cosine, XFP_TABLE_CELL, "%.5f", c->candidate.cos_median);
	snprintf(error, XFP_TABLE_CELL, "%.3g", c->candidate.error);
}

/* "Q4_K (4.500)" */
static void put_type(const struct xfp_compared_unit *unit, const struct xfp_compared *type, char cell[XFP_TABLE_CELL])
{
	if (type)
		snprintf(cell, XFP_TABLE_CELL, "%s (%.3f)", type->peer->name, xfp_compared_bits(unit, type));
	else
		snprintf(cell, XFP_TABLE_CELL, "none");
}

static void print_answers(const struct xfp_compared_unit *unit)
{
	struct xfp_table table = { .column = answer_layout };
	struct xfp_compare_answer answers[XFP_ANSWERS];

	xfp_compare_answers(unit, answers);
	for (unsigned i = 0; i < XFP_ANSWERS; i++) {
		const struct xfp_compare_answer *a = &answers[i];
		char name[64];
		char(*row)[XFP_TABLE_CELL];

		snprintf(name, sizeof name, "%.1f", a->bits);
		row = xfp_table_row(&table, name);
		if (!a->ours) {
			SET(row[BEST], "nothing is as small");
			continue;
		}
		SET(row[BEST], "%.40s", xfp_compared_name(a->ours, name));
		fill(unit, a->ours, row[BEST_BITS], NULL, row[BEST_ERROR]);
		put_type(unit, a->replaces, row[REPLACES]);
		put_type(unit, a->cheapest, row[CHEAPEST]);
	}
	xfp_table_print(stdout, &table);
	xfp_fold(
		stdout,
		"replaces: the llama.cpp type of least error with no fewer bits and no less error; needs: the smallest "
		"type with no more error",
		0);
	putchar('\n');
}

static void print_ours(const struct xfp_compared_unit *unit)
{
	struct xfp_table table = { .column = ours_layout, .keys = 2 };
	uint32_t end;

	for (uint32_t i = 0; i < unit->count && !unit->list[i].peer; i = end) {
		const struct xfp_compared *first = &unit->list[i], *best;
		char mode[32], sigma[24];
		char(*row)[XFP_TABLE_CELL] = xfp_table_row(&table, xfp_compared_mode(first, mode));
		uint32_t outliers = i + !first->candidate.sigma_milli;

		end = xfp_compared_run_end(unit, i, false);
		SET(row[K], "%u", (unsigned)first->candidate.k);
		if (!first->candidate.sigma_milli)
			fill(unit, first, row[PLAIN_BITS], row[PLAIN_COSINE], row[PLAIN_ERROR]);
		if (outliers == end)
			continue;
		best = xfp_compared_best(unit, outliers, end);
		SET(row[SIGMA], "%s sigma", xfp_sigma_text(best->candidate.sigma_milli, sigma));
		fill(unit, best, row[BITS], row[COSINE], row[ERROR]);
	}
	xfp_table_print(stdout, &table);
}

static void print_claims(const struct xfp_comparison *comparison, const struct xfp_compared_unit *unit)
{
	struct xfp_claim_on claims[XFP_MAX_CLAIMS];
	struct xfp_table_column layout[CLAIM_COLUMNS + 1];
	struct xfp_table table = { .column = layout };
	uint32_t count = xfp_compare_claims(comparison, unit, claims);
	bool allowed = false;

	memcpy(layout, claim_layout, sizeof layout);
	if (!comparison || comparison->count == 1)
		layout[EACH] = (struct xfp_table_column){ 0 };
	for (uint32_t i = 0; i < count; i++) {
		const struct xfp_claim_on *claim = &claims[i];
		char name[64], text[80];
		char(*row)[XFP_TABLE_CELL];

		SET(text, "%s%s", claim->peer->peer ? xfp_compared_name(claim->peer, name) : "published v2a, k ",
		    claim->peer->peer ? "" : (char[2]){ (char)('0' + claim->peer->candidate.k), 0 });
		row = xfp_table_row(&table, text);
		fill(unit, claim->peer, row[PEER_BITS], row[PEER_COSINE], row[PEER_ERROR]);
		if (!claim->ours) {
			SET(row[OURS], "nothing is as small");
			continue;
		}
		SET(row[OURS], "%.40s%s", xfp_compared_name(claim->ours, name), claim->allowed ? " *" : "");
		fill(unit, claim->ours, row[OURS_BITS], NULL, row[OURS_ERROR]);
		SET(row[RATIO], "%.3f", claim->ratio);
		allowed |= claim->allowed;
		if (!comparison)
			continue;
		if (claim->each >= 0) {
			SET(row[EACH], "%.3f", claim->each);
			SET(row[WORST], "%.3f", claim->worst);
		} else {
			SET(row[EACH], "-");
		}
	}
	xfp_table_print(stdout, &table);
	if (allowed)
		puts("* not counting row scales, balance and library");
}

static void print_unit(const struct xfp_comparison *comparison, const struct xfp_compared_unit *unit)
{
	print_ours(unit);
	putchar('\n');
	print_claims(comparison, unit);
}

/* "128 x " for a stack. */
static const char *experts_text(uint32_t experts, char text[32])
{
	*text = '\0';
	if (experts > 1)
		snprintf(text, 32, "%" PRIu32 " x ", experts);
	return text;
}

void xfp_compare_print(const struct xfp_comparison *c)
{
	const struct xfp_compared_unit *all = &c->all;
	char weights[32], stack[32], text[800];

	printf("%" PRIu32 " unit%s, %s weights; ", c->count, c->count == 1 ? "" : "s",
	       xfp_human((double)all->weights, "", weights));
	if (all->sampled == all->rows)
		puts("all rows\n");
	else
		printf("%.1f %% of the rows (--rows all: exact)\n\n", 100 * (double)all->sampled / (double)all->rows);
	print_answers(all);
	for (uint32_t u = 0; c->request.per_unit && u < c->count; u++) {
		const struct xfp_compared_unit *unit = &c->units[u];

		snprintf(text, sizeof text, "%s (%s, %s%" PRIu64 " x %" PRIu64 "), %" PRIu64 " of %" PRIu64 " rows",
			 xfp_printable(unit->unit->name).text, xfp_printable(unit->unit->role).text,
			 experts_text(unit->unit->experts, stack), unit->unit->rows, unit->unit->cols, unit->sampled,
			 unit->rows);
		xfp_fold(stdout, text, 0);
		print_unit(NULL, unit);
		putchar('\n');
	}
	print_unit(c, all);
}

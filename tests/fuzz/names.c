/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.c - the strings of an index: names that occur in checkpoints, and some that do not.
 */
#include <stdio.h>
#include <string.h>

#include "tests/fuzz/recipe.h"

#define LONG 500

static struct xfp_idx_string add_string(struct fuzz_bundle *b, const char *text)
{
	uint32_t *end = &b->count[XFP_TABLE_STRINGS];
	struct xfp_idx_string string = { *end, (uint32_t)strlen(text) };

	memcpy(b->strings + *end, text, string.length + (size_t)1);
	*end += string.length + 1;
	return string;
}

static const char *text_of(const struct fuzz_bundle *b, struct xfp_idx_string string)
{
	return b->strings + string.offset;
}

/* A name by the recipe's number, in no order; the last two are invalid for files. `before`: the previous record's
 * name. */
static void make_name(unsigned which, const char *plain, const char *before, bool file, char name[LONG + 80])
{
	const char *wide = "\xe6\xa8\xa1";

	switch (which % FUZZ_NAMES) {
	case FUZZ_NAME_FOLDER:
		snprintf(name, LONG, "1_Pooling/%s.json", plain);
		break;
	case FUZZ_NAME_WIDE:
		snprintf(name, LONG, "%s $(%s) \xd1\x81\xd0\xbb", wide, plain);
		break;
	case FUZZ_NAME_CONTROL:
		snprintf(name, LONG, "%s\n\x1b[1m\\ \x7f\xc2\x85", plain);
		break;
	case FUZZ_NAME_LONG: /* too long for the archive, or just not; or too long for a message */
		memset(name, 'x', LONG);
		strcpy(name + (which / FUZZ_NAMES % 3 < 2 ? 80 + which / FUZZ_NAMES % 3 - strlen(plain) : LONG), plain);
		break;
	case FUZZ_NAME_EMPTY:
		snprintf(name, LONG, "%s", file ? "a/../b" : "");
		break;
	case FUZZ_NAME_SAME:
		snprintf(name, LONG + 80, "%s", before);
		break;
	default:
		snprintf(name, LONG, "%s", plain);
	}
}

static struct xfp_idx_string add_name(struct fuzz_bundle *b, enum xfp_index_table table, uint32_t number,
				      const char *before, uint64_t *random)
{
	char plain[40], name[LONG + 80];

	snprintf(plain, sizeof plain, "%c.%u", (int)('a' + fuzz_random(random) % 26), (unsigned)number);
	make_name(b->names[table][number], plain, before, table == XFP_TABLE_FILES, name);
	if (table == XFP_TABLE_FILES && (!*name || strstr(name, "..")))
		b->wrong = true;
	return add_string(b, name);
}

/* Whether no two have the same name. */
static void expect_unique(struct fuzz_bundle *b)
{
	for (uint32_t u = 0; u < b->count[XFP_TABLE_UNITS]; u++)
		for (uint32_t v = 0; v < u; v++)
			b->wrong = b->wrong || (!strcmp(text_of(b, b->units[u].name), text_of(b, b->units[v].name)) &&
						!strcmp(text_of(b, b->units[u].role), text_of(b, b->units[v].role)));
	for (uint32_t t = 0; t < b->count[XFP_TABLE_TENSORS]; t++)
		for (uint32_t v = 0; v < t; v++)
			b->wrong = b->wrong || !strcmp(text_of(b, b->tensors[t].name), text_of(b, b->tensors[v].name));
	for (uint32_t f = 0; f < b->count[XFP_TABLE_FILES]; f++)
		for (uint32_t v = 0; v < f; v++)
			b->wrong = b->wrong || !strcmp(text_of(b, b->files[f].name), text_of(b, b->files[v].name));
}

/* Strings are in the order of the records that refer to them. */
void fuzz_add_strings(struct fuzz_bundle *b)
{
	uint64_t random = b->seed;
	const char *before = "";

	b->header.family = add_string(b, "fuzz");
	for (uint32_t u = 0; u < b->count[XFP_TABLE_UNITS]; u++, before = text_of(b, b->units[u - 1].name)) {
		b->units[u].name = add_name(b, XFP_TABLE_UNITS, u, before, &random);
		b->units[u].role = add_string(b, u % 3 ? "" : "q");
	}
	for (uint32_t t = 0; t < b->count[XFP_TABLE_TENSORS]; t++, before = text_of(b, b->tensors[t - 1].name)) {
		b->tensors[t].name = add_name(b, XFP_TABLE_TENSORS, t, before, &random);
		b->tensors[t].reason = add_string(b, "fuzz");
	}
	for (uint32_t f = 0; f < b->count[XFP_TABLE_FILES]; f++, before = text_of(b, b->files[f - 1].name))
		b->files[f].name = add_name(b, XFP_TABLE_FILES, f, before, &random);
	expect_unique(b);
}

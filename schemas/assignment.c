/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/assignment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "schemas/setting.h"

const char *xfp_assignment_text(const struct xfp_assignment *a, char text[XFP_ASSIGNMENT_TEXT])
{
	char sigma[24] = "", group[12] = "";

	if (a->mode == XFP_UNASSIGNED) {
		strcpy(text, "-");
		return text;
	}
	if (a->mode == XFP_MODE_KEEP || a->mode == XFP_MODE_FP8) {
		snprintf(text, XFP_ASSIGNMENT_TEXT, "%s", xfp_mode_name((enum xfp_mode)a->mode));
		return text;
	}
	if (a->group)
		snprintf(group, sizeof group, "-%u", (unsigned)a->group);
	if (a->sigma_milli)
		xfp_decimal_format(a->sigma_milli, 1000, sigma);
	snprintf(text, XFP_ASSIGNMENT_TEXT, "%s%s-%u%s%s", xfp_mode_name((enum xfp_mode)a->mode), group, (unsigned)a->k,
		 *sigma ? "@" : "", sigma);
	return text;
}

static bool parse_candidate(const char *text, struct xfp_assignment *a)
{
	char name[8], *end;
	size_t length = strcspn(text, "-");
	unsigned long number;

	if (length >= sizeof name || text[length] != '-')
		return false;
	memcpy(name, text, length);
	name[length] = 0;
	a->mode = XFP_MODE_V2;
	while (a->mode < XFP_MODES && strcmp(name, xfp_mode_name((enum xfp_mode)a->mode)))
		a->mode++;
	number = strtoul(text + length + 1, &end, 10);
	if (a->mode > XFP_MODE_V2) {
		if (*end != '-' || number > 1024 || !xfp_group_size_fits((uint32_t)number, 1u << a->mode) || !number)
			return false;
		a->group = (uint16_t)number;
		number = strtoul(end + 1, &end, 10);
	}
	if (a->mode == XFP_MODES || number < 2 || number > 6)
		return false;
	a->k = (uint32_t)number;
	a->bits = 1u << a->k;
	return !*end || (*end == '@' && xfp_decimal_parse(end + 1, 1000, &a->sigma_milli) && a->sigma_milli &&
			 a->sigma_milli != XFP_SIGMA_AUTO);
}

bool xfp_assignment_parse(const char *text, struct xfp_assignment *assignment)
{
	struct xfp_assignment a = { .mode = XFP_UNASSIGNED };
	char again[XFP_ASSIGNMENT_TEXT];

	if (!strcmp(text, xfp_mode_name(XFP_MODE_KEEP)))
		a.mode = XFP_MODE_KEEP;
	else if (!strcmp(text, xfp_mode_name(XFP_MODE_FP8)))
		a = (struct xfp_assignment){ .mode = XFP_MODE_FP8, .k = XFP_FP8_BITS, .bits = XFP_FP8_BIT };
	else if (strcmp(text, "-") && !parse_candidate(text, &a))
		return false;
	/* Only the canonical text is accepted, so that the text recorded in a bundle is unique. */
	if (strcmp(text, xfp_assignment_text(&a, again)))
		return false;
	*assignment = a;
	return true;
}

/* ---- lists ------------------------------------------------------------------------------------- */

char *xfp_assignments_text(const struct xfp_assignment *list, uint32_t count)
{
	struct xfp_text text;
	FILE *out = xfp_text_begin(&text);
	uint32_t run;

	for (uint32_t i = 0; out && i < count; i += run) {
		char one[XFP_ASSIGNMENT_TEXT], next[XFP_ASSIGNMENT_TEXT];

		xfp_assignment_text(&list[i], one);
		for (run = 1; i + run < count; run++)
			if (strcmp(one, xfp_assignment_text(&list[i + run], next)))
				break;
		if (i)
			fputc(' ', out);
		if (run > 1)
			fprintf(out, "%" PRIu32 "*", run);
		fputs(one, out);
	}
	if (xfp_text_end(&text))
		return text.bytes;
	free(text.bytes);
	return NULL;
}

static bool append(const struct xfp_assignment *one, uint32_t run, uint32_t max, struct xfp_assignment **list,
		   uint32_t *count)
{
	struct xfp_assignment *grown;

	if (!run || run > max - *count || !(grown = realloc(*list, (*count + (size_t)run) * sizeof *grown)))
		return false;
	*list = grown;
	while (run--)
		grown[(*count)++] = *one;
	return true;
}

bool xfp_assignments_parse(const char *text, uint32_t max, struct xfp_assignment **list, uint32_t *count)
{
	char *copy = strdup(text), *rest = copy, *word;
	bool ok = copy != NULL;

	*list = NULL;
	*count = 0;
	while (ok && (word = strsep(&rest, " "))) {
		size_t digits = strspn(word, "0123456789");
		struct xfp_assignment one;
		uint32_t run = 1;

		if (digits && word[digits] == '*') {
			run = digits < 9 && *word != '0' ? (uint32_t)strtoul(word, NULL, 10) : 0;
			word += digits + 1;
		}
		ok = xfp_assignment_parse(word, &one) && append(&one, run, max, list, count);
	}
	free(copy);
	if (!ok) {
		free(*list);
		*list = NULL;
		*count = 0;
	}
	return ok;
}

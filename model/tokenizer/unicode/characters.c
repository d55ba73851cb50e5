/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/unicode/characters.h"

#include <stdlib.h>
#include <string.h>

#include "model/tokenizer/unicode/category_table.h"
#include "model/tokenizer/unicode/fold_table.h"
#include "model/tokenizer/unicode/growable.h"
#include "model/tokenizer/unicode/property_table.h"
#include "model/tokenizer/unicode/script_table.h"
#include "model/tokenizer/unicode/unicode.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

bool xfp_characters_add(struct xfp_characters *set, uint32_t first, uint32_t last)
{
	if (!xfp_grow(&set->range, sizeof *set->range, set->count, 1, &set->capacity))
		return false;
	set->range[set->count++] = (struct xfp_character_range){ first, last };
	return true;
}

bool xfp_characters_add_all(struct xfp_characters *set, const struct xfp_characters *other)
{
	bool added = true;

	for (size_t i = 0; added && i < other->count; i++)
		added = xfp_characters_add(set, other->range[i].first, other->range[i].last);
	return added;
}

static int by_first(const void *a, const void *b)
{
	const struct xfp_character_range *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

void xfp_characters_sort(struct xfp_characters *set)
{
	size_t count = 0;

	if (!set->count)
		return;
	qsort(set->range, set->count, sizeof *set->range, by_first);
	for (size_t i = 1; i < set->count; i++) {
		struct xfp_character_range *last = &set->range[count], next = set->range[i];

		if (next.first > last->last + 1)
			set->range[++count] = next;
		else if (next.last > last->last)
			last->last = next.last;
	}
	set->count = count + 1;
}

bool xfp_characters_invert(struct xfp_characters *set)
{
	struct xfp_characters inverted = { 0 };
	uint32_t next = 0;
	bool made = true;

	for (size_t i = 0; made && i < set->count; i++) {
		if (set->range[i].first > next)
			made = xfp_characters_add(&inverted, next, set->range[i].first - 1);
		next = set->range[i].last + 1;
	}
	if (made && next <= XFP_LAST_CHARACTER)
		made = xfp_characters_add(&inverted, next, XFP_LAST_CHARACTER);
	free(set->range);
	*set = inverted;
	return made;
}

bool xfp_characters_have(const struct xfp_characters *set, uint32_t character)
{
	size_t low = 0, high = set->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (set->range[middle].last < character)
			low = middle + 1;
		else
			high = middle;
	}
	return low < set->count && set->range[low].first <= character;
}

/* ---- case -------------------------------------------------------------------------------------- */

uint32_t xfp_character_folded(uint32_t character)
{
	for (size_t i = 0; i < COUNT(fold_run) && fold_run[i].first <= character; i++) {
		uint32_t away = character - fold_run[i].first;

		if (away % fold_run[i].step == 0 && away / fold_run[i].step < fold_run[i].count)
			return character + (uint32_t)fold_run[i].delta;
	}
	return character;
}

/* Add the results of characters in the set (`down`), or the characters whose results are in it. */
static bool add_folds(struct xfp_characters *set, const struct xfp_characters *sorted, bool down)
{
	for (size_t i = 0; i < COUNT(fold_run); i++)
		for (uint32_t k = 0; k < fold_run[i].count; k++) {
			uint32_t from = fold_run[i].first + k * fold_run[i].step;
			uint32_t to = from + (uint32_t)fold_run[i].delta, added = down ? to : from;

			if (xfp_characters_have(sorted, down ? from : to) && !xfp_characters_add(set, added, added))
				return false;
		}
	return true;
}

bool xfp_characters_fold(struct xfp_characters *set)
{
	bool folded = true;

	for (int down = 1; folded && down >= 0; down--) {
		struct xfp_characters more = { 0 };

		folded = add_folds(&more, set, down) && xfp_characters_add_all(set, &more);
		xfp_characters_sort(set);
		free(more.range);
	}
	return folded;
}

bool xfp_characters_fold_to_several(const struct xfp_characters *set)
{
	for (size_t i = 0; i < COUNT(several_fold); i += 3)
		if (xfp_characters_have(set, several_fold[i]))
			return true;
	return false;
}

bool xfp_folded_begin_one(uint32_t first, uint32_t second)
{
	for (size_t i = 0; i < COUNT(several_fold); i += 3)
		if (several_fold[i + 1] == first && several_fold[i + 2] == second)
			return true;
	return false;
}

/* ---- properties -------------------------------------------------------------------------------------- */

/* Whether a name is one of `names`, which are separated by =. */
static bool is_named(const char *names, const char *name, size_t size)
{
	for (const char *end; *names; names = end + (*end == '=')) {
		size_t i = 0;

		end = names + strcspn(names, "=");
		for (size_t k = 0; k < size; k++) {
			char c = name[k] >= 'A' && name[k] <= 'Z' ? (char)(name[k] - 'A' + 'a') : name[k];

			if (c == ' ' || c == '-' || c == '_')
				continue;
			if (names + i == end || names[i++] != c) {
				i = SIZE_MAX;
				break;
			}
		}
		if (i != SIZE_MAX && names + i == end)
			return true;
	}
	return false;
}

/* Add the runs of a table whose value is a bit of `bits`, or equals `wanted` if `bits` is 0. */
static bool add_runs(struct xfp_characters *set, const uint32_t *table, size_t count, unsigned shift, uint32_t bits,
		     uint32_t wanted)
{
	bool added = true;

	for (size_t i = 0; added && i < count; i++) {
		uint32_t value = table[i] & ((1u << shift) - 1);
		uint32_t end = i + 1 < count ? table[i + 1] >> shift : XFP_LAST_CHARACTER + 1;

		if (bits ? bits >> value & 1 : value == wanted)
			added = xfp_characters_add(set, table[i] >> shift, end - 1);
	}
	return added;
}

/* Add the characters at which exactly one of two sorted lists of change points is inside a run. */
static bool add_toggled(struct xfp_characters *set, struct xfp_characters *base, const uint32_t *change, size_t count)
{
	size_t i = 0, k = 0;
	bool inside = false;
	uint32_t start = 0;

	xfp_characters_sort(base);
	while (i < 2 * base->count || k < count) {
		uint32_t a = i == 2 * base->count ? UINT32_MAX
			     : i % 2              ? base->range[i / 2].last + 1
						  : base->range[i / 2].first;
		uint32_t b = k == count ? UINT32_MAX : change[k], at = a < b ? a : b;

		i += a == at;
		k += b == at;
		if (a == b)
			continue;
		if (inside && !xfp_characters_add(set, start, at - 1))
			return false;
		inside = !inside;
		start = at;
	}
	return true;
}

bool xfp_characters_add_property(struct xfp_characters *set, const char *name, size_t size, bool *known)
{
	struct xfp_characters base = { 0 };
	bool added;

	*known = true;
	for (size_t i = 0; i < COUNT(property); i++) {
		if (!is_named(property[i].names, name, size))
			continue;
		added = (!property[i].categories ||
			 add_runs(&base, category_change, COUNT(category_change), 5, property[i].categories, 0)) &&
			add_toggled(set, &base, exception_change + property[i].first, property[i].count);
		free(base.range);
		return added;
	}
	for (uint32_t i = 0; i < COUNT(script_names); i++)
		if (is_named(script_names[i], name, size))
			return add_runs(set, script_change, COUNT(script_change), 8, 0, i);
	*known = false;
	return true;
}

/* The number of entries of a sorted table that are not greater than a value. */
static size_t not_greater(const uint32_t *table, size_t count, uint32_t value)
{
	size_t low = 0;

	while (low < count) {
		size_t middle = low + (count - low) / 2;

		if (table[middle] <= value)
			low = middle + 1;
		else
			count = middle;
	}
	return low;
}

static bool has(size_t index, uint32_t c)
{
	size_t at = not_greater(category_change, COUNT(category_change), c << 5 | 31);
	bool inside = property[index].categories >> (category_change[at - 1] & 31) & 1;

	return inside ^ (not_greater(exception_change + property[index].first, property[index].count, c) & 1);
}

bool xfp_is_numeric(uint32_t c)
{
	return c < 0x80 ? c >= '0' && c <= '9' : has(NUMERIC_PROPERTY, c);
}

bool xfp_is_word(uint32_t c)
{
	return has(WORD_PROPERTY, c);
}

bool xfp_is_control(uint32_t c)
{
	return has(CONTROL_PROPERTY, c);
}

bool xfp_is_accent(uint32_t c)
{
	return has(ACCENT_PROPERTY, c);
}

bool xfp_is_chinese(uint32_t c)
{
	return has(CHINESE_PROPERTY, c);
}

bool xfp_is_punctuation(uint32_t c)
{
	return has(PUNCTUATION_PROPERTY, c);
}

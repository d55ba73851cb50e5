/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Normal forms, and lower case. Most characters are stable in NFC and NFKC: no context changes them. Only a stable
 * character followed by unstable ones is decomposed, sorted and composed. In NFD and NFKD, only the characters before
 * U+00A0 count as stable.
 */
#include <stdlib.h>

#include "model/tokenizer/unicode/compatible_table.h"
#include "model/tokenizer/unicode/compatible_text.h"
#include "model/tokenizer/unicode/lower_table.h"
#include "model/tokenizer/unicode/normal_table.h"
#include "model/tokenizer/unicode/stable_table.h"
#include "model/tokenizer/unicode/unicode.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* Hangul syllables are composed by arithmetic. */
enum { SYLLABLE = 0xac00, LEAD = 0x1100, VOWEL = 0x1161, TAIL = 0x11a7, LEADS = 19, VOWELS = 21, TAILS = 28 };

struct character {
	uint32_t code;
	uint8_t order; /* canonical combining class */
	size_t at;     /* makes the sort stable */
};

struct characters {
	struct character *item;
	size_t count, capacity;
};

/* The last row of a sorted table, with `width` numbers each, whose first number, shifted, is at most c, or SIZE_MAX. */
static size_t row_of(const uint32_t *table, size_t count, size_t width, unsigned shift, uint32_t c)
{
	size_t low = 0, high = count / width;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table[middle * width] >> shift <= c)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? (low - 1) * width : SIZE_MAX;
}

static uint8_t order_of(uint32_t c)
{
	return (uint8_t)class_change[row_of(class_change, COUNT(class_change), 1, 8, c)];
}

static bool put(struct characters *to, uint32_t c)
{
	if (!xfp_grow(&to->item, sizeof *to->item, to->count, 1, &to->capacity))
		return false;
	to->item[to->count] = (struct character){ c, order_of(c), to->count };
	to->count++;
	return true;
}

static bool decompose_compatible(struct characters *to, uint32_t c)
{
	size_t row = row_of(compatible_run, COUNT(compatible_run), 3, 0, c);
	bool made = true;

	if (row != SIZE_MAX && c - compatible_run[row] < compatible_run[row + 1])
		return put(to, compatible_run[row + 2] + (c - compatible_run[row]));
	row = row_of(compatible_key, COUNT(compatible_key) - 1, 1, 14, c);
	if (row == SIZE_MAX || compatible_key[row] >> 14 != c)
		return put(to, c);
	for (size_t i = compatible_key[row] & 0x3fff; made && i < (compatible_key[row + 1] & 0x3fff); i++)
		made = put(to, compatible_text[i]);
	return made;
}

/* The first character of a pair may decompose to a pair, too. */
static bool decompose(struct characters *to, uint32_t c, bool compatible)
{
	uint32_t marks[8];
	unsigned count = 0;
	bool made;
	size_t row;

	if (c >= SYLLABLE && c < SYLLABLE + LEADS * VOWELS * TAILS) {
		uint32_t s = c - SYLLABLE, tail = s % TAILS;

		return put(to, LEAD + s / (VOWELS * TAILS)) && put(to, VOWEL + s % (VOWELS * TAILS) / TAILS) &&
		       (!tail || put(to, TAIL + tail));
	}
	while ((row = row_of(pair, COUNT(pair), 3, 1, c)) != SIZE_MAX && pair[row] >> 1 == c && count < COUNT(marks)) {
		marks[count++] = pair[row + 2];
		c = pair[row + 1];
	}
	row = row_of(single, COUNT(single), 2, 0, c);
	if (row != SIZE_MAX && single[row] == c)
		c = single[row + 1];
	made = compatible ? decompose_compatible(to, c) : put(to, c);
	while (made && count)
		made = compatible ? decompose_compatible(to, marks[--count]) : put(to, marks[--count]);
	return made;
}

static int by_order(const void *a, const void *b)
{
	const struct character *x = a, *y = b;

	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* Sort each run of marks by combining class. A run may be as long as the text. */
static void sort(struct characters *all)
{
	for (size_t at = 0, end; at < all->count; at = end) {
		bool sorted = true;

		for (end = at; end < all->count && all->item[end].order; end++)
			sorted = sorted && (end == at || all->item[end - 1].order <= all->item[end].order);
		if (!sorted)
			qsort(all->item + at, end - at, sizeof *all->item, by_order);
		end += end == at;
	}
}

/* The composition of two characters; 0: they do not compose. */
static uint32_t composed(uint32_t first, uint32_t second)
{
	if (first >= LEAD && first < LEAD + LEADS && second >= VOWEL && second < VOWEL + VOWELS)
		return SYLLABLE + ((first - LEAD) * VOWELS + second - VOWEL) * TAILS;
	if (first >= SYLLABLE && first < SYLLABLE + LEADS * VOWELS * TAILS && (first - SYLLABLE) % TAILS == 0 &&
	    second > TAIL && second < TAIL + TAILS)
		return first + second - TAIL;
	for (size_t low = 0, high = COUNT(composition); low < high;) {
		size_t middle = low + (high - low) / 2;
		const uint32_t *p = &pair[composition[middle]];

		if (p[1] == first && p[2] == second)
			return p[0] >> 1;
		if (p[1] < first || (p[1] == first && p[2] < second))
			low = middle + 1;
		else
			high = middle;
	}
	return 0;
}

/* Compose each character with the last starter (class 0) unless a character between has the same or a higher class. */
static void compose(struct characters *all)
{
	size_t count = 0, starter = SIZE_MAX;

	for (size_t i = 0; i < all->count; i++) {
		struct character c = all->item[i];
		bool blocked = starter == SIZE_MAX || (count > starter + 1 && all->item[count - 1].order >= c.order);
		uint32_t both = blocked ? 0 : composed(all->item[starter].code, c.code);

		if (both) {
			all->item[starter].code = both;
			continue;
		}
		if (!c.order)
			starter = count;
		all->item[count++] = c;
	}
	all->count = count;
}

struct stability {
	const uint32_t *change;
	size_t count;
	uint32_t low, high; /* the run of the last lookup */
	bool stable;
};

static bool is_stable(struct stability *s, uint32_t c)
{
	size_t row;

	if (c >= s->low && c <= s->high)
		return s->stable;
	row = row_of(s->change, s->count, 1, 0, c);
	s->stable = row == SIZE_MAX || row % 2;
	s->low = row == SIZE_MAX ? 0 : s->change[row];
	s->high = row == SIZE_MAX ? s->change[0] - 1 : row + 1 < s->count ? s->change[row + 1] - 1 : UINT32_MAX;
	return s->stable;
}

static bool add_part(struct xfp_growable *out, const char *text, size_t size, enum xfp_unicode_form form,
		     struct characters *work)
{
	uint32_t character;
	bool made = true;
	char bytes[4];

	work->count = 0;
	for (size_t at = 0; made && at < size;) {
		at += xfp_utf8_decode(text + at, &character);
		made = decompose(work, character, form == XFP_NFKC || form == XFP_NFKD);
	}
	if (!made)
		return false;
	sort(work);
	if (form == XFP_NFC || form == XFP_NFKC)
		compose(work);
	for (size_t i = 0; made && i < work->count; i++)
		made = xfp_growable_add(out, bytes, xfp_utf8_put(work->item[i].code, bytes));
	return made;
}

enum xfp_status xfp_normal_form(const char *text, size_t size, enum xfp_unicode_form form, struct xfp_growable *out,
				struct xfp_error *err)
{
	static const uint32_t decomposed_unstable_change[] = { 0xa0 };
	static const struct stability stabilities[] = {
		[XFP_NFC] = { unstable_change, COUNT(unstable_change), 1, 0, false },
		[XFP_NFKC] = { compatible_unstable_change, COUNT(compatible_unstable_change), 1, 0, false },
		[XFP_NFD] = { decomposed_unstable_change, 1, 1, 0, false },
		[XFP_NFKD] = { decomposed_unstable_change, 1, 1, 0, false }
	};
	struct stability s = stabilities[form];
	size_t done = 0, last = 0; /* last: offset of the latest stable character */
	struct characters work = { 0 };
	bool unstable = false, made = true;

	for (size_t at = 0, next; made && at <= size; at = next) {
		uint32_t character = 0;

		next = at + (at == size ? 1 : xfp_utf8_decode(text + at, &character));
		if (at < size && !is_stable(&s, character)) {
			unstable = true;
			continue;
		}
		if (unstable) {
			made = xfp_growable_add(out, text + done, last - done) &&
			       add_part(out, text + last, at - last, form, &work);
			done = at;
		}
		unstable = false;
		last = at;
	}
	if (made)
		made = xfp_growable_add(out, text + done, size - done);
	free(work.item);
	return made ? XFP_OK : xfp_no_memory(err);
}

bool xfp_lower(uint32_t character, struct xfp_growable *out)
{
	size_t row = row_of(lower_run, COUNT(lower_run), 4, 0, character);
	char bytes[4];

	if (character == 0x130)
		return xfp_growable_add(out, "i\xcc\x87", 3);
	if (row != SIZE_MAX) {
		uint32_t away = character - lower_run[row];

		if (away % lower_run[row + 2] == 0 && away / lower_run[row + 2] < lower_run[row + 1])
			character = lower_run[row + 3] + away;
	}
	return xfp_growable_add(out, bytes, xfp_utf8_put(character, bytes));
}

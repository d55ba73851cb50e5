/* SPDX-License-Identifier: Apache-2.0 */
/*
 * characters.h - sets of characters, and the Unicode properties that define them.
 *
 * The tables are committed (make-tables.py), so a set is the same on every machine.
 */
#ifndef XFP_TOKENIZER_CHARACTERS_H
#define XFP_TOKENIZER_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XFP_LAST_CHARACTER 0x10ffff

struct xfp_character_range {
	uint32_t first, last;
};

/* Ranges in any order, which may overlap. Zeroed, it is empty; its owner frees `range`. */
struct xfp_characters {
	struct xfp_character_range *range;
	size_t count, capacity;
};

/* All functions that return bool return false when out of memory. */
bool xfp_characters_add(struct xfp_characters *set, uint32_t first, uint32_t last);
bool xfp_characters_add_all(struct xfp_characters *set, const struct xfp_characters *other);
/* Sort the ranges and join those that touch. */
void xfp_characters_sort(struct xfp_characters *set);
/* Replace a sorted set by its complement, sorted. */
bool xfp_characters_invert(struct xfp_characters *set);
/* Add all characters that equal a member of a sorted set without case, and sort. */
bool xfp_characters_fold(struct xfp_characters *set);
/* Whether a character is in a sorted set. */
bool xfp_characters_have(const struct xfp_characters *set, uint32_t character);
/* Whether a sorted set contains a character that equals a sequence without case, as U+00DF equals "ss". */
bool xfp_characters_fold_to_several(const struct xfp_characters *set);

/* Add the characters that have a property: a general category, a script, a property such as Alphabetic, or an escape
 * such as \w. Case, blanks, - and _ in the name are ignored. `known`: whether the property exists. */
bool xfp_characters_add_property(struct xfp_characters *set, const char *name, size_t size, bool *known);

/* The representative of all characters that equal this one without case. */
uint32_t xfp_character_folded(uint32_t character);
/* Whether two folded characters begin a sequence that equals one character without case, as "ss" equals U+00DF. */
bool xfp_folded_begin_one(uint32_t first, uint32_t second);

#endif

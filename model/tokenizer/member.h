/* SPDX-License-Identifier: Apache-2.0 */
/*
 * member.h - members of the objects of a tokenizer.json, each of which must be known.
 */
#ifndef XFP_TOKENIZER_MEMBER_H
#define XFP_TOKENIZER_MEMBER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/xfp_error.h"

/* A callback that can end the encoding of a text: it returns false, and encoding fails with XFP_FAILED. */
struct xfp_tokenizer_watch {
	bool (*goes_on)(void *context); /* may be NULL */
	void *context;
};

/* Steps that searches by regular expressions in a text may still take, all together, since a limit for each search does
 * not bound the time of a text of many pieces. Starts as XFP_PATTERN_BUDGET; each search adds XFP_STEPS_PER_CHARACTER
 * for each character of its piece. */
struct xfp_pattern_budget {
	uint64_t steps; /* without `fuel` */
	uint32_t fuel;  /* steps until the watch is asked again */
};
#define XFP_FUEL (1 << 20)
#define XFP_BASE_STEPS 50000000
#define XFP_PATTERN_BUDGET ((struct xfp_pattern_budget){ XFP_BASE_STEPS - XFP_FUEL, XFP_FUEL })
#define XFP_STEPS_PER_CHARACTER 1000

/* Whether the watch ends the work at this item of a list. It is asked at every 4096th item. */
static inline bool xfp_tokenizer_stopped(const struct xfp_tokenizer_watch *watch, size_t item)
{
	return item % 4096 == 4095 && watch->goes_on && !watch->goes_on(watch->context);
}

/* A part of the file, such as "pre_tokenizer", and what it is made of. The first failure stands, and whatever is asked
 * for after it is answered with nothing. */
struct xfp_part_reader {
	const char *file;
	enum xfp_status status;
	struct xfp_error *err;
	const struct xfp_tokenizer_watch *watch; /* for patterns; may be NULL */
	unsigned classes;                        /* classes and caseless sets of the regular expressions so far */
};

/* XFP_BAD_INPUT, in a part of the file. */
void xfp_part_refuse(struct xfp_part_reader *r, const char *where, const char *format, ...) XFP_PRINTF(3, 4);
/* What the text of type says it is; "" after a failure. */
const char *xfp_part_type(struct xfp_part_reader *r, const char *where, const json_t *object);
/* Refuse an object that has another member than these, up to a NULL. */
void xfp_part_only(struct xfp_part_reader *r, const char *where, const json_t *object, const char *const *names);
/* Members; where they are missing or null, what is given for that. A text that is missing and NULL is refused. */
bool xfp_part_bool(struct xfp_part_reader *r, const char *where, const json_t *object, const char *name, bool missing);
const char *xfp_part_text(struct xfp_part_reader *r, const char *where, const json_t *object, const char *name,
			  const char *missing);
/* An id, or a number of tokens or characters. */
uint32_t xfp_part_number(struct xfp_part_reader *r, const char *where, const json_t *object, const char *name);
/* A list, which must be there. */
const json_t *xfp_part_list(struct xfp_part_reader *r, const char *where, const json_t *object, const char *name);

/* What takes a part, at so many Sequences' depth. */
typedef void xfp_part_taker(struct xfp_part_reader *r, const char *where, const json_t *value, void *to, int depth);
/* Each part of a Sequence that has them in the list `name`, as "decoder[1]". */
void xfp_part_sequence(struct xfp_part_reader *r, const char *where, const json_t *object, const char *name,
		       xfp_part_taker *take, void *to, int depth);

#endif

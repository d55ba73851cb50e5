/* SPDX-License-Identifier: Apache-2.0 */
/*
 * member.h - validated members of the objects in a tokenizer.json. Unknown members are refused.
 */
#ifndef XFP_TOKENIZER_MEMBER_H
#define XFP_TOKENIZER_MEMBER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/xfp_error.h"

/* A callback that can end the encoding of a text: it returns false, and encoding fails with XFP_FAILED. */
struct xfp_tokenizer_watch {
	bool (*should_continue)(void *context); /* may be NULL */
	void *context;
};

/* The steps left for all regular expression searches in a text, since a limit for each search does not bound the time
 * of a text of many pieces. Starts as XFP_PATTERN_BUDGET; each search adds XFP_STEPS_PER_CHARACTER for each character
 * of its piece. */
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
	return item % 4096 == 4095 && watch->should_continue && !watch->should_continue(watch->context);
}

/* A part of the file, such as "pre_tokenizer", while it is parsed. After the first failure, functions return empty
 * values. */
struct xfp_part_reader {
	const char *file;
	enum xfp_status status;
	struct xfp_error *err;
	const struct xfp_tokenizer_watch *watch; /* for patterns; may be NULL */
	unsigned classes;                        /* classes and caseless sets of the regular expressions so far */
	bool tiktoken; /* BPE merges two tokens whose text is a token, smallest id first; texts are encoded in parts */
};

/* Fail with XFP_BAD_INPUT in a part of the file. */
void xfp_part_refuse(struct xfp_part_reader *r, const char *where, const char *format, ...) XFP_PRINTF(3, 4);
/* The "type" of a part; "" after a failure. */
const char *xfp_part_type(struct xfp_part_reader *r, const char *where, const json_t *object);
/* Refuse an object with members other than these, up to a NULL. */
void xfp_part_only(struct xfp_part_reader *r, const char *where, const json_t *object, const char *const *names);
/* Members, with defaults if they are missing or null. A missing text whose default is NULL is refused. */
bool xfp_part_bool(struct xfp_part_reader *r, const char *where, const json_t *object, const char *name, bool missing);
const char *xfp_part_text(struct xfp_part_reader *r, const char *where, const json_t *object, const char *name,
			  const char *missing);
/* An id, or a count of tokens or characters. */
uint32_t xfp_part_number(struct xfp_part_reader *r, const char *where, const json_t *object, const char *name);
/* A list, which is required. */
const json_t *xfp_part_list(struct xfp_part_reader *r, const char *where, const json_t *object, const char *name);

/* A function that parses a part, nested in that many Sequences. */
typedef void xfp_part_parser(struct xfp_part_reader *r, const char *where, const json_t *value, void *to, int depth);
/* Parse each part in the list `name` of a Sequence, as "decoder[1]". */
void xfp_part_sequence(struct xfp_part_reader *r, const char *where, const json_t *object, const char *name,
		       xfp_part_parser *parse, void *to, int depth);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h - a regular expression as instructions for a backtracking matcher.
 *
 * The sets of an expression partition all characters into at most 256 kinds: characters of one kind are in the same
 * sets. To the matcher a text is one kind per character, and a set a table of kinds. Only the parser needs Unicode.
 */
#ifndef XFP_TOKENIZER_PROGRAM_H
#define XFP_TOKENIZER_PROGRAM_H

#include "base/xfp_error.h"
#include "model/tokenizer/member.h"
#include "model/tokenizer/unicode/characters.h"
#include "model/tokenizer/unicode/growable.h"

#define XFP_KINDS 256

enum xfp_operation {
	XFP_MATCHED,    /* end of the expression, or of the body of an atomic group or look-around */
	XFP_SET,        /* one character of `set` */
	XFP_RUN,        /* `low` to `high` characters of `set` */
	XFP_JUMP,       /* continue at `to` */
	XFP_SPLIT,      /* next, or else `to`; `lazy`: `to`, or else next */
	XFP_MARK,       /* store the position in register `low` */
	XFP_CHECK,      /* continue at `to` if the position is that of register `low` */
	XFP_LINE_START, /* the anchors ^ $ \A \z */
	XFP_LINE_END,
	XFP_TEXT_START,
	XFP_TEXT_END,
	XFP_ATOMIC, /* a body follows and ends before `to`, as in look-arounds */
	XFP_LOOKAHEAD,
	XFP_NEGATIVE_LOOKAHEAD,
	XFP_LOOKBEHIND, /* the body matches `low` to `high` characters */
	XFP_NEGATIVE_LOOKBEHIND
};

struct xfp_instruction {
	uint8_t operation; /* enum xfp_operation */
	bool lazy, possessive;
	uint16_t set;
	int32_t to; /* relative to this instruction */
	uint32_t low, high;
};

struct xfp_program {
	struct xfp_instruction *code;
	size_t count, capacity;
	struct xfp_characters *set; /* sorted */
	size_t sets, set_capacity;
	uint32_t registers;
	bool (*in_set)[XFP_KINDS]; /* indexed by set */
	uint8_t ascii[128];        /* kinds */
	uint32_t *first;           /* the first character of each run of one kind, ascending */
	uint8_t *kind;
	size_t runs;
	uint16_t newline; /* the set of the newline alone */
};

/* Parse an expression into a zeroed program. Returns NULL, an unsupported construct's name, or "": out of memory.
 * `classes` counts what is built from tables of Unicode, which takes time: a limit applies to all expressions together.
 */
const char *xfp_program_read(struct xfp_program *program, const char *expression, unsigned *classes);
/* Partition the characters into kinds, after xfp_program_read. Same return values. */
const char *xfp_program_classify(struct xfp_program *program);
void xfp_program_free(struct xfp_program *program);

/* Add a sorted set, whose ownership passes to the program. Returns its number; -1: out of memory; -2: too many sets. */
int xfp_program_add_set(struct xfp_program *program, struct xfp_characters *set);

/* A text as kinds, one per character. The caller frees `kind`. */
struct xfp_kinds {
	uint8_t *kind;
	size_t count;
};
bool xfp_program_kinds(const struct xfp_program *program, const char *text, size_t size, struct xfp_kinds *kinds);

/* How a search ended. */
enum xfp_search { XFP_FOUND, XFP_NOT_FOUND, XFP_TOO_MANY_STEPS, XFP_STOPPED, XFP_NO_ROOM };

/* A search for all matches in a text. The caller sets `program`, `kinds`, `watch` and `budget`; the rest starts as
 * zeros. */
struct xfp_matching {
	const struct xfp_program *program;
	struct xfp_kinds kinds;
	const struct xfp_tokenizer_watch *watch;
	struct xfp_pattern_budget budget;
	uint64_t begun; /* the budget's steps and fuel when the attempt at the current position began */
	size_t end;     /* matches end here at the latest; lower inside a look-behind */
	size_t *registers;
	struct xfp_frame *stack;
	size_t depth, capacity;
};

/* Step limit of an attempt at one position: XFP_BASE_STEPS plus this for each character, enough to pass over the whole
 * text several times. With it, an exponential expression fails almost as soon in a long text as in a short one. */
#define XFP_STEPS_AT_POSITION 16
/* Find the first match at `at` or after it. */
enum xfp_search xfp_match(struct xfp_matching *m, size_t at, size_t *start, size_t *end);
void xfp_matching_free(struct xfp_matching *m);

#endif

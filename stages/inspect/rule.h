/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rule.h - one rule of a family: the tensors that it matches and their interpretation as matrices.
 *
 * The language is described in xfp-family(5).
 */
#ifndef XFP_RULE_H
#define XFP_RULE_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/xfp_error.h"
#include "schemas/layout/classes.h"

enum xfp_rule_action { XFP_RULE_QUANTIZE, XFP_RULE_KEEP, XFP_RULE_DROP };

/* One projection of the tensor: "gate", or "q:num_attention_heads*head_dim". */
struct xfp_rule_part {
	char *role;
	char *rows; /* product of config fields; NULL: an equal share */
};

#define XFP_LAYOUT_RANK 3

/* One interpretation of the tensor's dimensions, outermost first: "E,N,K=hidden_size". */
struct xfp_rule_layout {
	uint32_t rank;
	char dim[XFP_LAYOUT_RANK];     /* E expert, N row, K column */
	char *equals[XFP_LAYOUT_RANK]; /* product that the dimension must equal, or NULL */
};

struct xfp_rule {
	unsigned line;
	bool optional; /* no note if it matches no tensor */
	enum xfp_rule_action action;
	enum xfp_class class_;
	struct xfp_rule_part *parts; /* parts and layouts: only for QUANTIZE */
	uint32_t part_count;
	bool interleaved; /* parts alternate row by row */
	struct xfp_rule_layout *layouts;
	uint32_t layout_count;
	char *pattern; /* text in the file, for messages */
	regex_t regex;
	bool compiled;
	char *literals;                     /* strings that a match contains in this order, each NUL-terminated, */
	size_t literals_size;               /* their total size in bytes */
	size_t tail;                        /* where the last of them begins, */
	bool ends;                          /* whether it must be the end of the name */
	unsigned layer_group, expert_group; /* 0: the pattern has none */
	bool numbers_plain;                 /* in a matching name, only the marks match digits */
	bool extra_layer;                   /* only layers from num_hidden_layers on */
};

/* The numbers that a rule found in a name. */
struct xfp_rule_match {
	int64_t layer; /* -1: none */
	uint32_t expert;
	size_t expert_at, expert_end; /* position of the expert number in the name; equal: none */
};

/* Parse the text after the action's word; rule->action, line and optional must be set. The message of a failure has no
 * file and line; the caller adds them. */
enum xfp_status xfp_rule_parse(struct xfp_rule *rule, const char *text, struct xfp_error *err);
void xfp_rule_clear(struct xfp_rule *rule);

/* Whether the rule matches the tensor of this name. `layers` is num_hidden_layers, UINT64_MAX if unknown. XFP_FAILED:
 * memory ran out. */
enum xfp_status xfp_rule_matches(const struct xfp_rule *rule, const char *name, uint64_t layers, bool *matches,
				 struct xfp_rule_match *match, struct xfp_error *err);

#endif

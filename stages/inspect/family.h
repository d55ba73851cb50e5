/* SPDX-License-Identifier: Apache-2.0 */
/*
 * family.h - rule files: the classes and fates of the tensors of a model family.
 *
 * One text file a family, NAME.family, in the language of xfp-family(5): data only, so that a model is added without a
 * compiler. The first rule whose pattern matches a tensor's name applies.
 */
#ifndef XFP_FAMILY_H
#define XFP_FAMILY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/xfp_error.h"
#include "stages/inspect/model_config.h"
#include "stages/inspect/rule.h"

#define XFP_FAMILY_SUFFIX ".family"
#define XFP_FAMILY_GENERAL "general" /* used if no family claims a model */

struct xfp_family {
	char *name;  /* the file's, without its suffix */
	char *about; /* one line, may be NULL */
	char **model_types, **architectures;
	uint32_t model_type_count, architecture_count;
	bool tied; /* default of a missing tie_word_embeddings */
	struct xfp_rule *rules;
	uint32_t rule_count;
};

/* Read a family. XFP_BAD_INPUT: a line is invalid; the message names file and line. With `header_only`, the rules are
 * not read. */
enum xfp_status xfp_family_load(const char *path, bool header_only, struct xfp_family **out, struct xfp_error *err);
/* xfp_family_load from a text; `path` gives the name and is used in messages. */
enum xfp_status xfp_family_parse(const char *text, const char *path, bool header_only, struct xfp_family **out,
				 struct xfp_error *err);
void xfp_family_free(struct xfp_family *family); /* NULL is accepted */

/* Find the rule that matches a tensor of this name; *rule is NULL if there is none. For `layers` and failures see
 * xfp_rule_matches. */
enum xfp_status xfp_family_match(const struct xfp_family *family, const char *name, uint64_t layers,
				 const struct xfp_rule **rule, struct xfp_rule_match *match, struct xfp_error *err);

#endif

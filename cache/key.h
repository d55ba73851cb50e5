/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key.h - what decides an artifact's content, and nothing else.
 *
 * A key is the XXH3-128 of a key text, 32 lower-case hex digits. The text is kept in the artifact and
 * can be printed: one "name value" line an ingredient, in a fixed order, beginning with the kind and
 * the version of the algorithm that makes it. A source path, a file's time, a thread count, a host
 * or a floor that does not matter to the content is never an ingredient.
 *
 *   digest of a matrix  XXH3-128 of its rows in the source dtype, row-major, as readers normalise them:
 *                       re-sharding, fusing, transposing or renaming changes none
 *   survey              dtype, shape, digest of every matrix; sigma, where it is given; cap, balance; modes, bits;
 *                       start and iterations, or "fit optimal"; group, library and libfit as of a fit of libraries
 *   outliers            dtype, shape, digest of every matrix; sigma, cap, balance
 *   fit                 of codebooks: key of the outliers; bits; start and iterations, or "fit optimal"
 *                       of libraries: key of the outliers; modes, v2a and v2c; bits; where they are not as usual
 *                       the size of groups and, for v2a, that of the library and libfit: "libfit published", and
 *                       with it iterations
 *   choice              keys of the fits that it was made from, one to four, and with each the seal of the candidates
 *                       that were read from it (cache/seal.h), so that a choice among wrong ones is not found under
 *                       the key of a right one; key of the survey, if there was one;
 *                       floor, mode, the bits that may be chosen, on-miss (where the bits are not fixed; "fixed 1"
 *                       where they are; "assigned" with what a goal was solved to, where one decides), on-nonfinite;
 *                       dtype; the sample, where it is not the whole stack
 *   packed              the chosen candidate (mode, k, sigma and, with a library, its group size) and the key of the
 *                       fit that measured it; for KEEP and FP8, chosen or asked for, dtype, shape and digest of every
 *                       matrix (FP8: and on-nonfinite)
 *
 *   receipt             of a unit, whatever it came to: dtype, shape, digest of every matrix; what the pipeline does
 *                       with it; its policy; all parameters but what others say of other units; every algorithm and
 *                       layout that has a say. It keys no artifact of the cache, but a file of the work folder
 *                       (schemas/receipt.h), and is the stricter for that: what it leaves out is what cannot matter.
 *
 * Digests of up to 16 matrices are listed, "source HEX" each; a larger stack has one line, "sources
 * HEX": the XXH3-128 of its matrices' digests, 16 bytes each, by expert number. The cap is left out
 * where no outliers are marked. An ingredient that is itself a key has the line name of its kind
 * ("outliers", "fit"); in a choice there are "fit" and "extended" of lloyd-fit, "library" and "extended-library" of
 * libfit, and "survey".
 *
 * Algorithm versions: bump one when the same input would give other bytes. That of the survey stands for what is made
 * of it too (stages/quantize/aim.h).
 */
#ifndef XFP_KEY_H
#define XFP_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/xfp_error.h"
#include "schemas/choice.h"
#include "schemas/digest.h"
#include "schemas/fit.h"
#include "schemas/ledger.h"
#include "schemas/parameters.h"
#include "schemas/policy.h"

#define XFP_ALGORITHM_SURVEY 2
#define XFP_ALGORITHM_OUTLIERS 1
#define XFP_ALGORITHM_FIT 4
#define XFP_ALGORITHM_LIBRARY 2
#define XFP_ALGORITHM_CHOICE 1
#define XFP_ALGORITHM_PACKED 2
#define XFP_ALGORITHM_FP8 3
#define XFP_ALGORITHM_GGUF 1
#define XFP_ALGORITHM_PYTORCH 1

/* They are recorded in bundles, for xfp convert --like, in this order. One that is not recorded is 1. */
struct xfp_algorithm {
	const char *name;
	unsigned version;
};
#define XFP_ALGORITHMS 7
/* What made files that a checkpoint has none of, by the name of its format: a GGUF's config and tokenizer
 * (checkpoints/gguf/made.h), the config of Meta's shards (checkpoints/pytorch/meta_config.c). It has no say in units,
 * and is recorded where such a file was made. */
#define XFP_MAKERS 2
extern const struct xfp_algorithm xfp_algorithms[XFP_ALGORITHMS], xfp_makers[XFP_MAKERS];
/* Whether it has a say at all where these are the parameters: one that has none is not recorded, so that another
 * version of it makes no other bytes. */
bool xfp_algorithm_decides(const struct xfp_algorithm *algorithm, const struct xfp_parameters *parameters);

struct xfp_key {
	char hex[33];
	char *text; /* allocated; xfp_key_free */
};
void xfp_key_free(struct xfp_key *key);
/* The key that follows from a key text. */
void xfp_key_of_text(const char *text, char hex[33]);

/* What a unit's keys begin with. `source` is [matrices][16]. */
struct xfp_key_source {
	enum xfp_dtype dtype;
	uint32_t matrices;
	uint64_t rows, cols;
	const uint8_t (*source)[16];
};

struct xfp_key_source xfp_key_source_of(const struct xfp_ledger_unit *unit, uint8_t (*source)[16]);

/* Whether a key text begins with just these, whatever its kind and whatever follows. */
bool xfp_key_is_of(const char *text, const struct xfp_key_source *source);

enum xfp_status xfp_key_survey(const struct xfp_key_source *source, const struct xfp_parameters *parameters,
			       struct xfp_key *key, struct xfp_error *err);
enum xfp_status xfp_key_outliers(const struct xfp_key_source *source, const struct xfp_parameters *parameters,
				 struct xfp_key *key, struct xfp_error *err);
/* `bits`: the set that this fit measures. */
enum xfp_status xfp_key_fit(const char *outliers, const struct xfp_parameters *parameters, uint32_t bits,
			    struct xfp_key *key, struct xfp_error *err);
enum xfp_status xfp_key_library(const char *outliers, const struct xfp_parameters *parameters, uint32_t bits,
				struct xfp_key *key, struct xfp_error *err);

/* Of one of them, which measures `bits`. */
enum xfp_status xfp_key_fit_kind(enum xfp_fit_kind kind, const char *outliers, const struct xfp_parameters *parameters,
				 struct xfp_key *key, struct xfp_error *err);
/* `fits` that it is made from, as they were read, in the order of enum xfp_fit_kind. `survey`: of the unit, where that
 * said which threshold to fit with; otherwise NULL or "". */
enum xfp_status xfp_key_choice(const struct xfp_fit_set fits[XFP_FIT_KINDS], const char *survey,
			       const struct xfp_policy *policy, enum xfp_dtype dtype, uint32_t experts,
			       const struct xfp_parameters *parameters, struct xfp_key *key, struct xfp_error *err);
/* `source` decides where the choice is KEEP or FP8; with FP8 it is xfp_key_fp8. */
enum xfp_status xfp_key_packed(const struct xfp_choice *choice, const struct xfp_key_source *source,
			       const struct xfp_parameters *parameters, struct xfp_key *key, struct xfp_error *err);
enum xfp_status xfp_key_fp8(const struct xfp_key_source *source, const struct xfp_parameters *parameters,
			    struct xfp_key *key, struct xfp_error *err);
/* Of all that a unit can come to: `parameters` as its fits see them before its survey has a say. */
enum xfp_status xfp_key_receipt(const struct xfp_key_source *source, enum xfp_plan plan,
				const struct xfp_policy *policy, const struct xfp_parameters *parameters,
				struct xfp_key *key, struct xfp_error *err);
/* Of a unit that is packed without a choice: as fp8, or as it is. */
enum xfp_status xfp_key_alone(enum xfp_plan plan, const struct xfp_key_source *source,
			      const struct xfp_parameters *parameters, struct xfp_key *key, struct xfp_error *err);

#endif

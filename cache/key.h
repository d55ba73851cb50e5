/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key.h - the cache key of an artifact: a digest of exactly the inputs that determine its content.
 *
 * A key is the XXH3-128 of a key text, 32 lower-case hex digits. The text is kept in the artifact and
 * can be printed: one "name value" line per ingredient, in a fixed order, beginning with the kind and
 * the version of the algorithm that makes it. A source path, a file's time, a thread count, a host, or a floor without
 * effect on the content is never an ingredient.
 *
 *   digest of a matrix  XXH3-128 of its rows in the source dtype, row-major, as normalized by readers:
 *                       independent of sharding, fusing, transposing and names
 *   survey              dtype, shape, digest of every matrix; sigma, if it is given; cap, balance; modes, bits;
 *                       start and iterations, or "fit optimal"; group, library and libfit as for a fit of libraries
 *   outliers            dtype, shape, digest of every matrix; sigma, cap, balance
 *   fit                 of codebooks: key of the outliers; bits; start and iterations, or "fit optimal"
 *                       of libraries: key of the outliers; with error feedback: key of the inputs, and its version;
 *                       modes, v2a and v2c; bits; if not default:
 *                       the size of groups and, for v2a, that of the library and libfit: "libfit published", and
 *                       with it iterations
 *   choice              keys of the fits that it was made from, one to four, each with the seal of the candidates
 *                       that were read from it (cache/seal.h), so that a choice among damaged candidates is never
 *                       found under the key of a valid one; if they measured outputs, "outputs" with the version of
 *                       choices by outputs; keys of the survey and of its scales, if there were any;
 *                       floor, mode, the allowed bits, on-miss (if the bits are not fixed; "fixed 1" if they are;
 *                       "assigned" with the unit's assignment if a goal decides), on-nonfinite;
 *                       dtype; the sample, unless it is the whole stack
 *   packed              the chosen candidate (mode, k, sigma and, with a library, its group size) and the key of the
 *                       fit that measured it; for KEEP and FP8, chosen or requested, dtype, shape and digest of every
 *                       matrix (FP8: and on-nonfinite)
 *   inputs              of a layer: key of the layer before, or "tokens" with the SHA-256 of calibration.h5; digest
 *                       of the model description; number of the layer; digest of names and digests of all tensors
 *                       that determine it (schemas/calibration.h)
 *   scales              key of the survey and of the inputs; version of feedback
 *
 *   receipt             of a unit, for any result: dtype, shape, digest of every matrix; its plan in the pipeline; its
 *                       policy; all parameters except those for other units; every algorithm and layout with an effect.
 *                       It is the key of a file of the work folder (schemas/receipt.h), not of a cached artifact, and
 *                       is stricter: it leaves out only what cannot matter.
 *
 * Digests of up to 16 matrices are listed, "source HEX" each; a larger stack has one line, "sources
 * HEX": the XXH3-128 of its matrices' digests, 16 bytes each, by expert number. The cap is left out
 * if no outliers are marked. An ingredient that is itself a key is named after its kind
 * ("outliers", "fit"); a choice has "fit" and "extended" of lloyd-fit, "library" and "extended-library" of
 * libfit, and "survey".
 *
 * Algorithm versions: bump one if the same input would give other bytes. The version of the survey also covers the
 * selection based on it (stages/quantize/target.h).
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
#define XFP_ALGORITHM_FEEDBACK 3 /* of the kernels, too: tests/unit/test_key.c has a digest of their results */
#define XFP_ALGORITHM_OUTPUTS 1  /* of choices of calibrated units: the floor applies to their outputs */
#define XFP_ALGORITHM_CHOICE 1
#define XFP_ALGORITHM_PACKED 2
#define XFP_ALGORITHM_FP8 3
#define XFP_ALGORITHM_SCALES 1
#define XFP_ALGORITHM_INPUTS 1 /* of model/forward, too: tests/unit/test_forward.c has a digest of its outputs */
#define XFP_ALGORITHM_GGUF 1
#define XFP_ALGORITHM_PYTORCH 1

/* Recorded in bundles in this order, for xfp convert --like. A missing entry means version 1. */
struct xfp_algorithm {
	const char *name;
	unsigned version;
};
#define XFP_ALGORITHMS 11
/* Makers synthesize files that a checkpoint lacks, and are named after its format: a GGUF's config and tokenizer
 * (checkpoints/gguf/synthesized.h), the config of Meta's shards (checkpoints/pytorch/meta_config.c). They do not affect
 * units, and are recorded only if they made such a file. */
#define XFP_MAKERS 2
extern const struct xfp_algorithm xfp_algorithms[XFP_ALGORITHMS], xfp_makers[XFP_MAKERS];
/* Whether an algorithm affects the output at all with these parameters. One that does not is not recorded, so that a
 * new version of it does not change the bundle. */
bool xfp_algorithm_decides(const struct xfp_algorithm *algorithm, const struct xfp_parameters *parameters);

struct xfp_key {
	char hex[33];
	char *text; /* allocated; xfp_key_free */
};
void xfp_key_free(struct xfp_key *key);
/* Compute the key of a key text. */
void xfp_key_of_text(const char *text, char hex[33]);

/* The first lines of all key texts of a unit. `source` is [matrices][16], the digest of each matrix. */
struct xfp_key_source {
	enum xfp_dtype dtype;
	uint32_t matrices;
	uint64_t rows, cols;
	const uint8_t (*source)[16];
};

struct xfp_key_source xfp_key_source_of(const struct xfp_ledger_unit *unit, uint8_t (*source)[16]);

/* Whether a key text of any kind begins with the ingredients of `source`. */
enum xfp_status xfp_key_is_of(const char *text, const struct xfp_key_source *source, bool *is, struct xfp_error *err);

enum xfp_status xfp_key_survey(const struct xfp_key_source *source, const struct xfp_parameters *parameters,
			       struct xfp_key *key, struct xfp_error *err);
/* `survey` and `inputs` are keys. */
enum xfp_status xfp_key_scales(const char *survey, const char *inputs, struct xfp_key *key, struct xfp_error *err);
enum xfp_status xfp_key_outliers(const struct xfp_key_source *source, const struct xfp_parameters *parameters,
				 struct xfp_key *key, struct xfp_error *err);
/* `bits`: the set of widths that this fit measures. `inputs`: key of the inputs of the unit's layer; "" without. */
enum xfp_status xfp_key_fit(const char *outliers, const struct xfp_parameters *parameters, uint32_t bits,
			    struct xfp_key *key, struct xfp_error *err);
enum xfp_status xfp_key_library(const char *outliers, const char *inputs, const struct xfp_parameters *parameters,
				uint32_t bits, struct xfp_key *key, struct xfp_error *err);

/* The key of a fit of any kind; `parameters` holds the bits that it measures. `inputs` only matters for libraries. */
enum xfp_status xfp_key_fit_kind(enum xfp_fit_kind kind, const char *outliers, const char *inputs,
				 const struct xfp_parameters *parameters, struct xfp_key *key, struct xfp_error *err);
/* `fits`: the fits that were read for the choice, indexed by enum xfp_fit_kind. `survey`: key of the unit's survey if
 * it selected the outlier threshold, and `scales`: key of its scales if the unit has inputs, too; otherwise NULL
 * or "". */
enum xfp_status xfp_key_choice(const struct xfp_fit_set fits[XFP_FIT_KINDS], const char *survey, const char *scales,
			       const struct xfp_policy *policy, enum xfp_dtype dtype, uint32_t experts,
			       const struct xfp_parameters *parameters, struct xfp_key *key, struct xfp_error *err);
/* `source` is an ingredient if the choice is KEEP or FP8; for FP8 the key is that of xfp_key_fp8. */
enum xfp_status xfp_key_packed(const struct xfp_choice *choice, const struct xfp_key_source *source,
			       const struct xfp_parameters *parameters, struct xfp_key *key, struct xfp_error *err);
enum xfp_status xfp_key_fp8(const struct xfp_key_source *source, const struct xfp_parameters *parameters,
			    struct xfp_key *key, struct xfp_error *err);
/* What determines the inputs of a layer. */
struct xfp_key_layer {
	const char *previous;    /* key of the layer before; NULL: the first layer, */
	const char *tokens;      /* whose input is these tokens: SHA-256, hex */
	const char *description; /* xfp_calibration's */
	uint32_t layer;
	const uint8_t *digest; /* [16] by xfp_inputs_digest */
};
enum xfp_status xfp_key_inputs(const struct xfp_key_layer *layer, struct xfp_key *key, struct xfp_error *err);
/* The key of a unit's receipt, which covers every possible result. `parameters` are those of its fits before its survey
 * narrows them; `inputs` is the key of its layer's inputs, NULL: none. */
enum xfp_status xfp_key_receipt(const struct xfp_key_source *source, enum xfp_plan plan, const char *inputs,
				const struct xfp_policy *policy, const struct xfp_parameters *parameters,
				struct xfp_key *key, struct xfp_error *err);
/* The key of a unit that is packed without a choice: as fp8, or kept in source precision. */
enum xfp_status xfp_key_direct(enum xfp_plan plan, const struct xfp_key_source *source,
			       const struct xfp_parameters *parameters, struct xfp_key *key, struct xfp_error *err);

#endif

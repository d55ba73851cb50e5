/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parameters.h - all user settings that affect the output, as one value.
 *
 * Fractions are integers in billionths (XFP_NANO is 1), so that text, keys and bundles never depend on the formatting
 * of floats or the locale. They are stored as parameters.json in the work folder and inside xfp.json of a bundle: an
 * object with one member per field; setting.h describes them. Optional members are omitted at their defaults, so that
 * bundles without them have the same bytes as before these parameters existed. Members missing from an older bundle
 * keep their meaning of that time: "bits" without 8 excludes fp8 as a candidate, and without "embeddings" (now "units")
 * the rules of families keep all embeddings.
 *
 * policy.h derives the settings of one unit.
 */
#ifndef XFP_PARAMETERS_H
#define XFP_PARAMETERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/xfp_error.h"
#include "schemas/assignment.h"
#include "schemas/layout/classes.h"

#define XFP_NANO 1000000000u

enum xfp_start { XFP_START_COMPANDED, XFP_START_QUANTILE, XFP_START_MINMAX };
enum xfp_fit_method { XFP_FIT_LLOYD, XFP_FIT_OPTIMAL };
enum xfp_libfit { XFP_LIBFIT_REFINED, XFP_LIBFIT_PUBLISHED };
enum xfp_on_miss { XFP_MISS_KEEP, XFP_MISS_BEST, XFP_MISS_FAIL };
enum xfp_on_nonfinite { XFP_NONFINITE_FAIL, XFP_NONFINITE_KEEP };
enum xfp_lm_head { XFP_LM_HEAD_FP8, XFP_LM_HEAD_KEEP, XFP_LM_HEAD_QUANT };

/* The storage form of weights, if one is requested. */
enum xfp_form {
	XFP_FORM_AUTO, /* default: the fewest bits that meet the floor */
	XFP_FORM_KEEP, /* at source precision */
	XFP_FORM_FP8,  /* e4m3 with one scale per row */
	XFP_FORM_BITS  /* one of `bits`, in any mode; a single number of bits is fixed, and the floor does not apply */
};
struct xfp_format {
	enum xfp_form form;
	uint32_t bits; /* for BITS: bit k set as below; otherwise 0 */
};

/* The member of bit sets for fp8 as one candidate among others: 8-bit floats (e4m3) with a scale a row. It needs no
 * fitting and has no outliers; its mode is XFP_MODE_FP8, whatever the modes are. */
#define XFP_FP8_BITS 8u
#define XFP_FP8_BIT (1u << XFP_FP8_BITS)

/* Prefixes of override patterns that are not globs for names. */
#define XFP_ROLE_PREFIX "role:"
#define XFP_CLASS_PREFIX "class:"
/* The rest of `text` after `prefix`, or NULL. */
const char *xfp_after_prefix(const char *text, const char *prefix);

/* An exception for the units that match `pattern`: their format or their floor. See policy.h. */
struct xfp_override {
	char *pattern; /* allocated: a glob for names, "role:GLOB" or "class:NAME" */
	bool is_floor;
	struct xfp_format format; /* if !is_floor */
	uint32_t floor;           /* if is_floor */
};

/* The experts of a stack that decide for all of its experts. */
struct xfp_moe_sample {
	uint32_t experts; /* number of experts; 0: all */
	bool first;       /* the first ones; otherwise evenly spread */
};

/* The token ids whose activations units are quantized with. */
struct xfp_calibrated {
	char sha256[65]; /* of the ids (schemas/calibration.h), in hex; "": not calibrated */
	uint64_t tokens;
	char source[80]; /* the origin of the ids: printable ASCII */
};

struct xfp_parameters {
	uint32_t modes;                        /* bit m set: mode m, V2 to V2C, is a candidate */
	uint32_t bits;                         /* bit k set: k bits per index are a candidate; k = 2..6, or 8: fp8 */
	uint32_t floor[XFP_CLASSES];           /* minimum median cosine, billionths */
	struct xfp_format format[XFP_CLASSES]; /* for lm_head only AUTO or BITS; `lm_head` has the rest */
	struct xfp_override *overrides;        /* allocated; the last match applies */
	uint32_t override_count;
	uint32_t outlier_sigma;  /* c in thousandths: 4 sigma is 4000; 0: no outliers; or XFP_SIGMA_AUTO */
	uint32_t outlier_cap;    /* maximum share of outliers among a matrix's weights, billionths */
	uint32_t balance;        /* exponent of the column rms, billionths; 0: no balance */
	enum xfp_fit_method fit; /* how v2 codebooks are fitted; OPTIMAL has no start and no iterations */
	uint32_t lloyd_iterations;
	uint32_t moe_lloyd_iterations; /* rounds for routed experts; 0: as for all */
	enum xfp_start start;
	enum xfp_lm_head lm_head;
	bool keep_embeddings; /* rules of families decide about embeddings, as in older bundles (policy.h) */
	enum xfp_on_miss on_miss;
	enum xfp_on_nonfinite on_nonfinite;
	struct xfp_moe_sample moe_sample;
	uint32_t group_size;    /* columns of a group, a power of two; 0: default, 128 for v2a, 16 and 32 for v2c */
	uint32_t library_size;  /* entries of a v2a library, a power of two; 0: default, 32 */
	enum xfp_libfit libfit; /* how v2a libraries are fitted */
	struct xfp_calibrated calibration;
	/* The solution of a size goal, for each unit in the ledger's order; allocated. NULL: floors decide. */
	struct xfp_assignment *assigned;
	uint32_t assigned_count;
};
#define XFP_ALL_MODES (1u << XFP_MODE_V2 | 1u << XFP_MODE_V2A | 1u << XFP_MODE_V2C)
/* The modes of auto. A v2a candidate has more bits than the v2c one with the same bits per index, and a larger
 * error. */
#define XFP_AUTO_MODES (1u << XFP_MODE_V2 | 1u << XFP_MODE_V2C)
#define XFP_LIBRARY_MODES (1u << XFP_MODE_V2A | 1u << XFP_MODE_V2C)

/* The threshold is chosen per unit: the cheapest for the floor according to its survey (stages/quantize/target.h). */
#define XFP_SIGMA_AUTO UINT32_MAX
/* The default cap with thresholds per unit: an outlier costs four bytes, so more of them never pay off. */
#define XFP_CAP_AUTO (XFP_NANO / 16)
#define XFP_SIGMA_DEFAULT 4000u /* threshold in the other modes */
#define XFP_CAP_DEFAULT (XFP_NANO / 50)
/* Defaults: the bits of these modes, their threshold, the cap of that threshold. */
uint32_t xfp_default_bits(uint32_t modes);
static inline uint32_t xfp_default_sigma(uint32_t modes)
{
	return modes == XFP_AUTO_MODES ? XFP_SIGMA_AUTO : XFP_SIGMA_DEFAULT;
}
static inline uint32_t xfp_default_cap(uint32_t sigma)
{
	return sigma == XFP_SIGMA_AUTO ? XFP_CAP_AUTO : XFP_CAP_DEFAULT;
}

/* "no class 'attn'; did you mean attention? Classes are ..." */
#define XFP_NO_CLASS (XFP_CLASS_LIST + 700)
const char *xfp_no_such_class(const char *name, char text[XFP_NO_CLASS]);

/* The defaults: auto, bits 2..6 and 8, floors as in balanced.profile, thresholds auto, cap 1/16, balance 0.5, 20 rounds
 * from companded starts, lm_head quant, on-miss keep, on-nonfinite fail; every format auto, no override, all experts
 * decide. */
struct xfp_parameters xfp_parameters_default(void);
void xfp_parameters_free(struct xfp_parameters *parameters); /* frees its overrides and assignments */

/* Set the format of a class. For lm_head this sets `lm_head` as well; use it instead of setting that directly. */
void xfp_parameters_set_format(struct xfp_parameters *parameters, enum xfp_class class_, struct xfp_format format);
/* Append an override, taking ownership of its pattern. False: out of memory, and the caller keeps the pattern. */
bool xfp_parameters_add_override(struct xfp_parameters *parameters, const struct xfp_override *override);

/* The bits measured first, and those measured only if no candidate of the first meets the floor with less space than
 * fp8. */
uint32_t xfp_parameters_base_bits(const struct xfp_parameters *parameters);     /* those among 2, 3, 4 */
uint32_t xfp_parameters_extended_bits(const struct xfp_parameters *parameters); /* those among 5, 6; and fp8 */
/* Without any of 2, 3, 4, the base set is those of 5 and 6; without these either, it is fp8. */

/* Parse or format a decimal such as "0.985" as an integer in units of 1/scale (scale is a power of ten, at most
 * XFP_NANO). False for too many digits, signs, exponents and blanks. */
bool xfp_decimal_parse(const char *text, uint32_t scale, uint32_t *value);
/* Parse a decimal from 0 to 1, in billionths. */
bool xfp_fraction_parse(const char *text, uint32_t *fraction);
/* Format the shortest text, always with a point: "0.985", "1.0". `buf` has at least 24 bytes. */
const char *xfp_decimal_format(uint32_t value, uint32_t scale, char buf[24]);

/* Parse or format an outlier threshold: "4.0", "none" or "auto". */
bool xfp_sigma_parse(const char *text, uint32_t *sigma);
const char *xfp_sigma_text(uint32_t sigma, char buf[24]);

/* Parse or format a bit set: "2,3,4" or "2-6,8". */
bool xfp_bits_parse(const char *text, uint32_t *bits);
const char *xfp_bits_format(uint32_t bits, char buf[24]);

/* Parse or format a format: "auto", "keep", "fp8" (or "8", which is the same) or bits. */
bool xfp_format_parse(const char *text, struct xfp_format *format);
const char *xfp_format_text(struct xfp_format format, char buf[24]);
static inline bool xfp_format_is_fixed(struct xfp_format format)
{
	return format.form == XFP_FORM_BITS && !(format.bits & (format.bits - 1));
}

/* Parse or format an override: "PATTERN=FORMAT" or "PATTERN=floor:X"; the pattern ends at the last "=". XFP_USAGE:
 * invalid; the message lacks the option's name. The caller frees the pattern, and the text, which is NULL if memory
 * runs out. */
enum xfp_status xfp_override_parse(const char *text, struct xfp_override *override, struct xfp_error *err);
char *xfp_override_text(const struct xfp_override *override);

/* Parse or format a sample: "4" or "first:4"; "0" is all. */
bool xfp_moe_sample_parse(const char *text, struct xfp_moe_sample *sample);
const char *xfp_moe_sample_text(struct xfp_moe_sample sample, char buf[24]);

/* Convert the parameters to JSON text (the caller frees it; NULL if memory runs out), and back, to be freed with
 * xfp_parameters_free. XFP_BAD_INPUT: unknown, missing or invalid members, or assignments of more than `units` units;
 * the message names `where`. */
char *xfp_parameters_to_json(const struct xfp_parameters *parameters);
enum xfp_status xfp_parameters_from_json(const char *text, const char *where, uint32_t units,
					 struct xfp_parameters *out, struct xfp_error *err);

/* Parse or format a set of modes: "auto" (XFP_AUTO_MODES), "v2", "v2a" or "v2c". */
bool xfp_modes_parse(const char *text, uint32_t *modes);
const char *xfp_modes_name(uint32_t modes);

#endif

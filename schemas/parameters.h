/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parameters.h - everything an operator can choose that decides bytes, as one value.
 *
 * Fractions are integers in billionths (XFP_NANO is 1), so that text, keys and bundles never
 * depend on the formatting of floats or the locale. They are stored as parameters.json in the work folder
 * and inside xfp.json of a bundle: an object with one member per field, in the order below. The members
 * "formats", "overrides", "moe_sample", "group_size", "library_size", "libfit", "fit", "moe_lloyd_iterations" and
 * "assigned" are left out where nothing is asked for: bundles made without them have the bytes that they had before
 * there were such parameters. So does what an older bundle leaves out mean what it meant then: "bits" without 8 is
 * without fp8 as a candidate, and without "embeddings", which is "units" since, the rules of families keep them all.
 *
 * What these come to for one unit is in policy.h.
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

/* How weights are to be stored, where that is said. */
enum xfp_form {
	XFP_FORM_AUTO, /* as usual: the fewest bits that meet the floor */
	XFP_FORM_KEEP, /* at source precision */
	XFP_FORM_FP8,  /* e4m3 with one scale per row */
	XFP_FORM_BITS  /* of `bits`, in any mode; a single number of bits is fixed, and the floor no condition */
};
struct xfp_format {
	enum xfp_form form;
	uint32_t bits; /* of BITS: bit k set as below; otherwise 0 */
};

/* fp8 as one candidate among others, in sets of bits: 8-bit floats (e4m3), with a scale a row. Nothing is fitted for
 * it, and no outlier is left out; its mode is XFP_MODE_FP8, whatever the modes are. */
#define XFP_FP8_BITS 8u
#define XFP_FP8_BIT (1u << XFP_FP8_BITS)

/* How the pattern of an override begins that is not a glob for names. */
#define XFP_ROLE_PREFIX "role:"
#define XFP_CLASS_PREFIX "class:"
/* What follows `prefix` in `text`, or NULL. */
const char *xfp_after(const char *text, const char *prefix);

/* An exception for the units that `pattern` names: their format or their floor. See policy.h. */
struct xfp_override {
	char *pattern; /* allocated: a glob for names, "role:GLOB" or "class:NAME" */
	bool is_floor;
	struct xfp_format format; /* where !is_floor */
	uint32_t floor;           /* where is_floor */
};

/* Which experts of a stack decide for all. */
struct xfp_moe_sample {
	uint32_t experts; /* 0: all of them */
	bool first;       /* the first ones; otherwise evenly spread */
};

struct xfp_parameters {
	uint32_t modes;                        /* bit m set: mode m, V2 to V2C, is a candidate */
	uint32_t bits;                         /* bit k set: k bits per index are a candidate; k = 2..6, or 8: fp8 */
	uint32_t floor[XFP_CLASSES];           /* least median cosine, billionths */
	struct xfp_format format[XFP_CLASSES]; /* of lm_head AUTO or BITS, the rest is in `lm_head` */
	struct xfp_override *overrides;        /* allocated; the last one that matches counts */
	uint32_t override_count;
	uint32_t outlier_sigma;  /* c in thousandths: 4 sigma is 4000; 0: no outliers; or XFP_SIGMA_AUTO */
	uint32_t outlier_cap;    /* most outliers, share of a matrix's weights, billionths */
	uint32_t balance;        /* exponent of the column rms, billionths; 0: no balance */
	enum xfp_fit_method fit; /* how v2 codebooks are made; OPTIMAL has no start and no iterations */
	uint32_t lloyd_iterations;
	uint32_t moe_lloyd_iterations; /* of routed experts; 0: as of all */
	enum xfp_start start;
	enum xfp_lm_head lm_head;
	bool keep_embeddings; /* embeddings are left to the families' rules as older bundles had them: policy.h */
	enum xfp_on_miss on_miss;
	enum xfp_on_nonfinite on_nonfinite;
	struct xfp_moe_sample moe_sample;
	uint32_t group_size;    /* columns of a group, a power of two; 0: as usual, 128 of v2a, 16 and 32 of v2c */
	uint32_t library_size;  /* entries of a v2a library, a power of two; 0: as usual, 32 */
	enum xfp_libfit libfit; /* how v2a libraries are made */
	/* What a goal was solved to, of each unit in the ledger's order; allocated. NULL: floors decide. */
	struct xfp_assignment *assigned;
	uint32_t assigned_count;
};
#define XFP_ALL_MODES (1u << XFP_MODE_V2 | 1u << XFP_MODE_V2A | 1u << XFP_MODE_V2C)
/* Those of auto. A v2a candidate takes more bits than the v2c one with as many bits per index, and has more error. */
#define XFP_AUTO_MODES (1u << XFP_MODE_V2 | 1u << XFP_MODE_V2C)
#define XFP_LIBRARY_MODES (1u << XFP_MODE_V2A | 1u << XFP_MODE_V2C)

/* Each unit's own: what its survey finds cheapest for the floor (stages/quantize/aim.h). */
#define XFP_SIGMA_AUTO UINT32_MAX
/* The cap where the thresholds are a unit's own, and none is asked for: an outlier takes four bytes, so that more of
 * them never pay. */
#define XFP_CAP_AUTO (XFP_NANO / 16)
#define XFP_SIGMA_USUAL 4000u /* in the other modes */
#define XFP_CAP_USUAL (XFP_NANO / 50)
/* What is meant where nothing is asked for: the bits of these modes, their threshold, the cap of that threshold. */
uint32_t xfp_bits_usual(uint32_t modes);
static inline uint32_t xfp_sigma_usual(uint32_t modes)
{
	return modes == XFP_AUTO_MODES ? XFP_SIGMA_AUTO : XFP_SIGMA_USUAL;
}
static inline uint32_t xfp_cap_usual(uint32_t sigma)
{
	return sigma == XFP_SIGMA_AUTO ? XFP_CAP_AUTO : XFP_CAP_USUAL;
}

/* "no class 'attn'; did you mean attention? Classes are ..." */
#define XFP_NO_CLASS (XFP_CLASS_LIST + 700)
const char *xfp_no_such_class(const char *name, char text[XFP_NO_CLASS]);

/* The defaults: auto, bits 2..6 and 8, floors as in balanced.profile, thresholds auto,
 * cap 1/16, balance 0.5, 20 rounds from companded starts, lm_head quant, on-miss keep, on-nonfinite fail; every format
 * auto, no override, all experts decide. */
struct xfp_parameters xfp_parameters_default(void);
void xfp_parameters_free(struct xfp_parameters *parameters); /* its overrides and assignments */

/* Give a class a format. For lm_head this sets `lm_head` too, and is the way to set that. */
void xfp_parameters_set_format(struct xfp_parameters *parameters, enum xfp_class class_, struct xfp_format format);
/* Append an override, whose pattern is then the parameters'. False: no memory, and it is still the caller's. */
bool xfp_parameters_add_override(struct xfp_parameters *parameters, const struct xfp_override *override);

/* Bits measured first, and those measured only when none of the first meets the floor with less than fp8 takes. */
uint32_t xfp_parameters_base_bits(const struct xfp_parameters *parameters);     /* of 2, 3, 4 */
uint32_t xfp_parameters_extended_bits(const struct xfp_parameters *parameters); /* of 5, 6; and fp8 */
/* Where there is none of 2, 3, 4, those of 5 and 6 are the base set; where there is none of these either, fp8 is. */

/* "0.985" or "1e-3"-free decimal text <-> integer in units of 1/scale (scale a power of ten, at most
 * XFP_NANO); more digits than fit, signs, exponents, blanks: false. */
bool xfp_decimal_parse(const char *text, uint32_t scale, uint32_t *value);
/* Shortest text, always with a point: "0.985", "1.0". `buf` holds at least 24 bytes. */
const char *xfp_decimal_format(uint32_t value, uint32_t scale, char buf[24]);

/* "4.0", "none" or "auto" <-> an outlier threshold. */
bool xfp_sigma_parse(const char *text, uint32_t *sigma);
const char *xfp_sigma_text(uint32_t sigma, char buf[24]);

/* "2,3,4" or "2-6,8" <-> bit set. */
bool xfp_bits_parse(const char *text, uint32_t *bits);
const char *xfp_bits_format(uint32_t bits, char buf[24]);

/* "auto", "keep", "fp8" (or "8", which is the same) or bits <-> a format. */
bool xfp_format_parse(const char *text, struct xfp_format *format);
const char *xfp_format_text(struct xfp_format format, char buf[24]);
static inline bool xfp_format_is_fixed(struct xfp_format format)
{
	return format.form == XFP_FORM_BITS && !(format.bits & (format.bits - 1));
}

/* "PATTERN=FORMAT" or "PATTERN=floor:X" <-> an override; the pattern ends at the last "=". What is wrong is
 * XFP_USAGE without a place; the pattern (the text) is allocated, the text NULL without memory. */
enum xfp_status xfp_override_parse(const char *text, struct xfp_override *override, struct xfp_error *err);
char *xfp_override_text(const struct xfp_override *override);

/* "4" or "first:4"; "0" is all. */
bool xfp_moe_sample_parse(const char *text, struct xfp_moe_sample *sample);
const char *xfp_moe_sample_text(struct xfp_moe_sample sample, char buf[24]);

/* JSON text of the parameters (the caller frees it; NULL when out of memory), and back, to be freed with
 * xfp_parameters_free. Unknown, missing or impossible members are XFP_BAD_INPUT naming `where`, and so are assignments
 * of more than `units` units. */
char *xfp_parameters_to_json(const struct xfp_parameters *parameters);
enum xfp_status xfp_parameters_from_json(const char *text, const char *where, uint32_t units,
					 struct xfp_parameters *out, struct xfp_error *err);

/* Whether the modes can have groups of so many columns, and a library so many entries; 0 is as usual. */
bool xfp_group_size_fits(uint32_t columns, uint32_t modes);
bool xfp_library_size_fits(uint32_t entries);

/* "auto" (XFP_AUTO_MODES), "v2", "v2a" or "v2c" <-> a set of modes. */
bool xfp_modes_parse(const char *text, uint32_t *modes);
const char *xfp_modes_name(uint32_t modes);

const char *xfp_start_name(enum xfp_start value);
const char *xfp_fit_method_name(enum xfp_fit_method value);
bool xfp_fit_method_parse(const char *name, enum xfp_fit_method *value);
const char *xfp_libfit_name(enum xfp_libfit value);
bool xfp_libfit_parse(const char *name, enum xfp_libfit *value);
const char *xfp_on_miss_name(enum xfp_on_miss value);
const char *xfp_on_nonfinite_name(enum xfp_on_nonfinite value);
const char *xfp_lm_head_name(enum xfp_lm_head value);
bool xfp_start_parse(const char *name, enum xfp_start *value);
bool xfp_on_miss_parse(const char *name, enum xfp_on_miss *value);
bool xfp_on_nonfinite_parse(const char *name, enum xfp_on_nonfinite *value);
bool xfp_lm_head_parse(const char *name, enum xfp_lm_head *value);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/parameters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIN_BITS 2
#define MAX_BITS 6
#define BASE_BITS (1u << 2 | 1u << 3 | 1u << 4)
#define ALL_BITS (BASE_BITS | 1u << 5 | 1u << 6)

#define TEN_THOUSANDTH (XFP_NANO / 10000)

/* Default floors: four bits for most weights in groups of 16, and five for few but important weights: attention,
 * embeddings, whose rows are looked up one at a time, and the output head, whose errors directly affect the logits.
 * Each expert sees only some tokens. Measured in docs/results.md; pipelines/profiles/balanced.profile has the same
 * floors. */
#define DEFAULT_FLOOR (9980 * TEN_THOUSANDTH)
static const uint32_t default_floor[XFP_CLASSES] = {
	[XFP_CLASS_ATTENTION] = 9995 * TEN_THOUSANDTH,     [XFP_CLASS_LINEAR_ATTENTION] = 9995 * TEN_THOUSANDTH,
	[XFP_CLASS_ROUTED_EXPERT] = 9950 * TEN_THOUSANDTH, [XFP_CLASS_EMBEDDING] = 9990 * TEN_THOUSANDTH,
	[XFP_CLASS_LM_HEAD] = 9995 * TEN_THOUSANDTH,
};

struct xfp_parameters xfp_parameters_default(void)
{
	struct xfp_parameters p = {
		.modes = XFP_AUTO_MODES,
		.bits = xfp_default_bits(XFP_AUTO_MODES),
		.outlier_sigma = XFP_SIGMA_AUTO,
		.outlier_cap = XFP_CAP_AUTO,
		.balance = XFP_NANO / 2,
		.lloyd_iterations = 20,
		.start = XFP_START_COMPANDED,
		.lm_head = XFP_LM_HEAD_QUANT,
		.on_miss = XFP_MISS_KEEP,
		.on_nonfinite = XFP_NONFINITE_FAIL,
	};

	for (unsigned i = 0; i < XFP_CLASSES; i++)
		p.floor[i] = default_floor[i] ? default_floor[i] : DEFAULT_FLOOR;
	return p;
}

uint32_t xfp_default_bits(uint32_t modes)
{
	return modes == XFP_AUTO_MODES ? ALL_BITS | XFP_FP8_BIT : ALL_BITS;
}

uint32_t xfp_parameters_base_bits(const struct xfp_parameters *parameters)
{
	uint32_t fitted = parameters->bits & ~XFP_FP8_BIT;

	if (fitted & BASE_BITS)
		return fitted & BASE_BITS;
	return fitted ? fitted : parameters->bits;
}

uint32_t xfp_parameters_extended_bits(const struct xfp_parameters *parameters)
{
	return parameters->bits & ~xfp_parameters_base_bits(parameters);
}

/* ---- decimals ---------------------------------------------------------------------------------- */

bool xfp_decimal_parse(const char *text, uint32_t scale, uint32_t *value)
{
	uint64_t number = 0;
	uint32_t unit = scale; /* value of the current digit, in units of 1/scale */
	bool digits = false;

	for (; *text >= '0' && *text <= '9'; text++, digits = true)
		if ((number = number * 10 + (uint64_t)(*text - '0') * scale) > UINT32_MAX)
			return false;
	if (*text == '.')
		for (text++; *text >= '0' && *text <= '9'; text++, digits = true) {
			if ((unit /= 10) == 0)
				return false;
			number += (uint64_t)(*text - '0') * unit;
		}
	if (*text || !digits || number > UINT32_MAX)
		return false;
	*value = (uint32_t)number;
	return true;
}

bool xfp_fraction_parse(const char *text, uint32_t *fraction)
{
	uint32_t value;

	if (!xfp_decimal_parse(text, XFP_NANO, &value) || value > XFP_NANO)
		return false;
	*fraction = value;
	return true;
}

const char *xfp_decimal_format(uint32_t value, uint32_t scale, char buf[24])
{
	uint32_t rest = value % scale, unit = scale / 10;
	char *out = buf + snprintf(buf, 24, "%u.", value / scale);

	do {
		*out++ = (char)('0' + (unit ? rest / unit : 0));
		rest = unit ? rest % unit : 0;
		unit /= 10;
	} while (rest);
	*out = 0;
	return buf;
}

/* ---- bit sets ---------------------------------------------------------------------------------- */

bool xfp_sigma_parse(const char *text, uint32_t *sigma)
{
	uint32_t value = XFP_SIGMA_AUTO;

	if (!strcmp(text, "none"))
		value = 0;
	else if (strcmp(text, "auto") && (!xfp_decimal_parse(text, 1000, &value) || value == XFP_SIGMA_AUTO))
		return false;
	*sigma = value;
	return true;
}

const char *xfp_sigma_text(uint32_t sigma, char buf[24])
{
	return sigma == XFP_SIGMA_AUTO ? "auto" : xfp_decimal_format(sigma, 1000, buf);
}

bool xfp_bits_parse(const char *text, uint32_t *bits)
{
	uint32_t set = 0;

	for (;;) {
		int from = *text++ - '0', to = from;

		if ((from < MIN_BITS || from > MAX_BITS) && from != (int)XFP_FP8_BITS)
			return false;
		if (*text == '-') {
			to = text[1] - '0';
			if (to < from || to > MAX_BITS)
				return false;
			text += 2;
		}
		for (int k = from; k <= to; k++)
			set |= 1u << k;
		if (!*text)
			break;
		if (*text++ != ',')
			return false;
	}
	*bits = set;
	return true;
}

const char *xfp_bits_format(uint32_t bits, char buf[24])
{
	char *out = buf;

	for (unsigned k = MIN_BITS; k <= XFP_FP8_BITS; k++)
		if (bits & 1u << k) {
			if (out != buf)
				*out++ = ',';
			*out++ = (char)('0' + k);
		}
	*out = 0;
	return buf;
}

/* ---- names ------------------------------------------------------------------------------------- */

bool xfp_modes_parse(const char *text, uint32_t *modes)
{
	enum xfp_mode mode;

	if (!strcmp(text, "auto"))
		*modes = XFP_AUTO_MODES;
	else if (xfp_mode_parse(text, &mode) && XFP_ALL_MODES >> mode & 1)
		*modes = 1u << mode;
	else
		return false;
	return true;
}

const char *xfp_modes_name(uint32_t modes)
{
	for (int mode = XFP_MODE_V2; mode < XFP_MODES; mode++)
		if (modes == 1u << mode)
			return xfp_mode_name((enum xfp_mode)mode);
	return "auto";
}

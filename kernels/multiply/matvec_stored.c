/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_stored.c - what decoding a stored matrix needs: its layout, the look-up tables of its library, and the choice
 * of an instruction set.
 */
#include <string.h>

#include "kernels/common/instructions.h"
#include "kernels/common/number.h"
#include "kernels/common/round.h"
#include "kernels/multiply/matvec.h"
#include "kernels/multiply/matvec_tables.h"

size_t xfp_matvec_row_bytes(enum xfp_matvec_mode mode, unsigned k, size_t cols)
{
	switch (mode) {
	case XFP_MATVEC_F32:
		return cols * 4;
	case XFP_MATVEC_F16:
	case XFP_MATVEC_BF16:
		return cols * 2;
	case XFP_MATVEC_FP8:
		return cols;
	default:
		return ((cols + 31) / 32 * 4 * k + 15) / 16 * 16;
	}
}

void xfp_matvec_set_row_layout(struct xfp_matvec *w)
{
	w->row_bytes = xfp_matvec_row_bytes(w->mode, w->k, w->cols);
	w->row_groups = (w->cols + ((size_t)1 << w->group) - 1) >> w->group;
}

bool xfp_matvec_codebooks_exist(const struct xfp_matvec *w, unsigned codebooks, size_t first, size_t rows)
{
	size_t groups = (w->cols + ((size_t)1 << w->group) - 1) >> w->group;
	uint64_t beyond = (256 - codebooks) * UINT64_C(0x0101010101010101), any = 0, eight;

	if (w->mode != XFP_MATVEC_V2A || codebooks == 256)
		return true;
	for (size_t r = first; r < first + rows; r++) {
		const uint8_t *byte = w->byte + r * w->row_groups;
		size_t g = 0;

		for (; g + 8 <= groups; g += 8) {
			memcpy(&eight, byte + g, sizeof eight);
			any |= eight;
		}
		for (; g < groups; g++)
			any |= byte[g];
	}
	return !(any & beyond);
}

void xfp_matvec_decode(const struct xfp_matvec *w, size_t row, float *x)
{
	static xfp_matvec_decode_fn *const decode[XFP_INSTRUCTION_SETS] = {
		[XFP_PLAIN] = xfp_matvec_decode_plain,
#ifdef XFP_X86
		[XFP_AVX2] = xfp_matvec_decode_avx2,   [XFP_AVX512] = xfp_matvec_decode_avx512,
		[XFP_VBMI] = xfp_matvec_decode_avx512,
#endif
#ifdef XFP_AARCH64
		[XFP_NEON] = xfp_matvec_decode_neon,   [XFP_DOTPROD] = xfp_matvec_decode_neon,
#endif
	};

	decode[xfp_instruction_set()](w, row, x);
}

/* ---- libraries --------------------------------------------------------------------------------- */

size_t xfp_matvec_tables_bytes(unsigned k)
{
	size_t third = k > XFP_MAX_NARROW_K ? xfp_table_bytes(k) : XFP_NARROW_BYTES;

	return sizeof(struct xfp_tables_head) +
	       XFP_TABLES_ALL * ((sizeof(float) << k) + 2 * xfp_table_bytes(k) + third);
}

#define TOO_LARGE 0x1p120f
#ifdef XFP_AARCH64 /* signed high and low bytes */
#define MAX_BYTES XFP_BYTES_LIMIT
#define BYTES_OFFSET 128
#define BYTES_FLIP 128
#else
#define MAX_BYTES XFP_ENTRY_LIMIT
#define BYTES_OFFSET 32768
#define BYTES_FLIP 0
#endif

/* Return the larger magnitude; TOO_LARGE if it is larger or NaN. */
static float larger(float most, float value)
{
	value = value < 0 ? -value : value;
	return !(value < TOO_LARGE) ? TOO_LARGE : value > most ? value : most;
}

/* Convert every entry to steps of `most` / `steps`, and add `offset`; flip bits of the low bytes. */
static void tables_of(unsigned k, unsigned made, const float *value, double most, double steps, int offset,
		      unsigned flip, uint8_t *bytes)
{
	size_t half = xfp_table_half(k);

	for (unsigned t = 0; t < made; t++)
		for (size_t i = 0; i < half; i++) {
			double exact = most > 0 ? value[(t << k) + i % ((size_t)1 << k)] * steps / most : 0;
			unsigned q = (unsigned)(offset + (int)xfp_round_even(exact));

			bytes[2 * half * t + i] = (uint8_t)(q >> 8);
			bytes[2 * half * t + half + i] = (uint8_t)(q ^ flip);
		}
}

static void shuffled_tables(unsigned k, const uint8_t *words, uint8_t *out)
{
	size_t half = xfp_table_half(k);

	for (size_t i = 0; i < XFP_TABLES_ALL * xfp_table_bytes(k); i++)
		out[i] = i % half < 16 ? words[i] : words[i] ^ words[i - 16];
}

#define MAX_NARROW 127
#define MAX_ROUNDING .01 /* of the quantization error */

static void sort(double *value, unsigned count)
{
	for (unsigned i = 1; i < count; i++) {
		double next = value[i];
		unsigned at = i;

		for (; at && value[at - 1] > next; at--)
			value[at] = value[at - 1];
		value[at] = next;
	}
}

/* Return the mean of gap^2 / 12 over the gaps between adjacent entries of a table: the error of a weight that is
 * uniformly distributed in its gap. */
static double step_energy(unsigned k, const float *value)
{
	double sorted[1 << XFP_MAX_NARROW_K], sum = 0;

	for (unsigned i = 0; i < 1u << k; i++)
		sorted[i] = value[i];
	sort(sorted, 1u << k);
	for (unsigned i = 1; i < 1u << k; i++)
		sum += (sorted[i] - sorted[i - 1]) * (sorted[i] - sorted[i - 1]);
	return sum / 12 / ((1u << k) - 1);
}

/* Round every entry to 8 bits. Returns whether that is accurate enough; see struct xfp_tables_head. */
static bool narrow_tables(unsigned k, unsigned made, const float *value, double most, uint8_t *bytes)
{
	double step = most / MAX_NARROW, own[XFP_TABLES_ALL], added = 0;

	for (unsigned t = 0; t < made; t++, value += 1u << k) {
		for (unsigned i = 0; i < XFP_NARROW_BYTES; i++) {
			double entry = value[i % (1u << k)];
			int64_t q = most > 0 ? xfp_round_even(entry / step) : 0;

			*bytes++ = (uint8_t)(128 + q);
			added += (entry - step * (double)q) * (entry - step * (double)q);
		}
		own[t] = step_energy(k, value);
	}
	sort(own, made);
	return added / made / XFP_NARROW_BYTES <= MAX_ROUNDING * own[made / 2];
}

void xfp_matvec_tables(unsigned k, unsigned codebooks, const uint16_t *entry, const uint16_t *ratio, void *buffer)
{
	struct xfp_tables_head *head = buffer;
	float *value = (float *)(void *)(head + 1), most = 0;
	uint8_t *bytes = (uint8_t *)(value + ((size_t)XFP_TABLES_ALL << k));
	unsigned ratios = ratio ? 256 / codebooks : 1, entries = 1u << k, made = codebooks * ratios;

	memset(buffer, 0, xfp_matvec_tables_bytes(k));
	for (unsigned i = 0; i < (unsigned)XFP_TABLES_ALL << k; i++) {
		unsigned table = i >> k;
		/* Exact: both have 11 bits. */
		value[i] = table >= made ? __builtin_nanf("")
					 : xfp_half_to_float(entry[(table / ratios << k) + i % entries]) *
						   (ratio ? xfp_half_to_float(ratio[table % ratios]) : 1);
		if (table < made)
			most = larger(most, value[i]);
	}
	head->codebooks = codebooks;
	head->step = most / MAX_BYTES;
	head->word_step = most / XFP_WORD_LIMIT;
	head->bytes_fit = most < TOO_LARGE;
	if (!head->bytes_fit)
		return;
	tables_of(k, made, value, most, MAX_BYTES, BYTES_OFFSET, BYTES_FLIP, bytes);
	tables_of(k, made, value, most, XFP_WORD_LIMIT, 0, 0, bytes + XFP_TABLES_ALL * xfp_table_bytes(k));
	bytes += 2 * XFP_TABLES_ALL * xfp_table_bytes(k);
	if (k > XFP_MAX_NARROW_K) {
		shuffled_tables(k, xfp_tables_words(buffer, k), bytes);
		return;
	}
	head->narrow_step = most / MAX_NARROW / 256;
	head->narrow_fit = narrow_tables(k, made, value, most, bytes);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rope.c - scaling of rotary frequencies, rope_scaling in config.json.
 *
 * llama.cpp's converter writes linear and YaRN scaling as metadata, and others as tensors of factors, one per
 * frequency: rope_freqs (Llama 3.1) and rope_factors_short and _long (Phi-3). Those of Phi-3 are the parameters
 * themselves. Those of Llama 3.1 are computed from four parameters, which are searched among the values of published
 * models:
 *
 *   wavelength w = 2 pi theta^(2 i / d)     1 if w < original / high     factor if w > original / low
 *   else 1 / ((1 - s) / factor + s) with s = (original / w - low) / (high - low)
 *
 * They match if all factors agree within 2^-18, the accuracy of single precision.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "checkpoints/gguf/config.h"
#include "checkpoints/note.h"
#include "checkpoints/packed/elementary.h"

#define MAX_FACTORS 1024
#define NEAR 0x1p-18

void xfp_gguf_print_real(FILE *out, double number)
{
	bool single = (double)(float)number == number;
	char text[40];

	for (int digits = single ? 6 : 15; digits <= 17; digits++) {
		double back;

		snprintf(text, sizeof text, "%.*g", digits, number);
		back = strtod(text, NULL);
		if (single ? (float)back == (float)number : back == number)
			break;
	}
	fprintf(out, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

/* ---- factors ------------------------------------------------------------------------------------ */

/* Read a whole F32 tensor, allocated; *count is 0 if it is missing or cannot be read here. */
static enum xfp_status read_factors(struct xfp_gguf_model *m, const char *name, struct xfp_gguf_stored **stored,
				    float **factors, uint64_t *count)
{
	const struct xfp_gguf_tensor *t;
	enum xfp_status status;
	const char *path;
	struct stat st;
	int fd = -1;

	*count = 0;
	*factors = NULL;
	if (!(*stored = xfp_gguf_stored(m, name)))
		return XFP_OK;
	t = (*stored)->tensor;
	path = m->checkpoint->files[m->files[(*stored)->file].number].path;
	if (t->number != XFP_GGML_F32 || !t->bytes || t->bytes > MAX_FACTORS * sizeof **factors)
		return XFP_OK;
	if (!(*factors = malloc(t->bytes)))
		return xfp_no_memory_for(m->err, path);
	if (!(status = xfp_open_regular(path, &fd, &st, m->err)))
		status = xfp_pread(fd, *factors, t->bytes, t->offset, path, m->err);
	if (fd >= 0)
		close(fd);
	if (status) {
		free(*factors);
		*factors = NULL;
		return status;
	}
	*count = t->bytes / sizeof **factors;
	for (uint64_t i = 0; i < *count; i++)
		if (!isfinite((*factors)[i]) || (*factors)[i] <= 0)
			*count = 0;
	return XFP_OK;
}

static bool follows(const float *factors, uint64_t count, double theta, double factor, double low, double high,
		    double original)
{
	static const double pi = 3.14159265358979323846;
	double log_theta = xfp_ln(theta);

	for (uint64_t i = 0; i < count; i++) {
		double wave = 2 * pi * xfp_exp(log_theta * (double)i / (double)count), want;

		if (wave < original / high) {
			want = 1;
		} else if (wave > original / low) {
			want = factor;
		} else {
			double s = (original / wave - low) / (high - low);

			want = 1 / ((1 - s) / factor + s);
		}
		if (fabs((double)factors[i] - want) > NEAR * want)
			return false;
	}
	return true;
}

/* Write rope_scaling of Llama 3.1. */
static enum xfp_status put_llama3(struct xfp_gguf_model *m, double theta, FILE *out)
{
	static const double lows[] = { 1, 2 }, highs[] = { 4, 8, 32 };
	struct xfp_gguf_stored *stored;
	enum xfp_status status;
	uint64_t count;
	float *factors;

	if ((status = read_factors(m, "rope_freqs.weight", &stored, &factors, &count)) || !stored)
		return status;
	/* The lowest frequency has the factor itself. */
	for (uint64_t original = 1024; count && theta > 1 && theta < 1e12 && !stored->used && original <= 1u << 20;
	     original *= 2)
		for (int k = 0; k < 6; k++) {
			double factor = (double)factors[count - 1], low = lows[k % 2], high = highs[k / 2];

			if (!follows(factors, count, theta, factor, low, high, (double)original))
				continue;
			stored->used = true;
			/* Factors of 1 change nothing. */
			if (factor == 1)
				break;
			fputs(",\n  \"rope_scaling\": {\n    \"rope_type\": \"llama3\",\n    \"factor\": ", out);
			xfp_gguf_print_real(out, factor);
			fprintf(out,
				",\n    \"low_freq_factor\": %.1f,\n    \"high_freq_factor\": %.1f,\n"
				"    \"original_max_position_embeddings\": %" PRIu64 "\n  }",
				low, high, original);
			break;
		}
	free(factors);
	return XFP_OK;
}

static void put_list(FILE *out, const char *name, const float *factors, uint64_t count)
{
	fprintf(out, ",\n    \"%s\": [", name);
	for (uint64_t i = 0; i < count; i++) {
		fputs(i ? ", " : "", out);
		xfp_gguf_print_real(out, (double)factors[i]);
	}
	fputc(']', out);
}

/* Write rope_scaling of Phi-3. */
static enum xfp_status put_longrope(struct xfp_gguf_model *m, FILE *out)
{
	struct xfp_gguf_stored *near = NULL, *far = NULL;
	float *shorts = NULL, *longs = NULL;
	uint64_t short_count, long_count;
	enum xfp_status status;

	if (!(status = read_factors(m, "rope_factors_short.weight", &near, &shorts, &short_count)) &&
	    !(status = read_factors(m, "rope_factors_long.weight", &far, &longs, &long_count)) && short_count &&
	    short_count == long_count) {
		near->used = far->used = true;
		fputs(",\n  \"rope_scaling\": {\n    \"type\": \"longrope\"", out);
		put_list(out, "short_factor", shorts, short_count);
		put_list(out, "long_factor", longs, long_count);
		fputs("\n  }", out);
	}
	free(shorts);
	free(longs);
	return status;
}

/* ---- metadata ----------------------------------------------------------------------------------- */

static const struct xfp_gguf_value *scaling(const struct xfp_gguf_model *m, const char *name)
{
	char key[64];

	snprintf(key, sizeof key, "rope.scaling.%s", name);
	return xfp_gguf_find_in(&m->files[0].metadata, m->prefix, key);
}

static void put_yarn(const struct xfp_gguf_model *m, FILE *out)
{
	static const struct {
		const char *theirs, *ours;
	} reals[] = {
		{ "yarn_attn_factor", "attention_factor" },
		{ "yarn_beta_fast", "beta_fast" },
		{ "yarn_beta_slow", "beta_slow" },
	};
	uint64_t original;
	double number;

	if (xfp_gguf_integer(scaling(m, "original_context_length"), 0, &original))
		fprintf(out, ",\n    \"original_max_position_embeddings\": %" PRIu64, original);
	for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
		if (xfp_gguf_real(scaling(m, reals[i].theirs), 0, &number) && isfinite(number)) {
			fprintf(out, ",\n    \"%s\": ", reals[i].ours);
			xfp_gguf_print_real(out, number);
		}
	/* gpt-oss has this value; no key contains it. */
	if (m->architecture == XFP_GGUF_GPT_OSS)
		fputs(",\n    \"truncate\": false", out);
}

enum xfp_status xfp_gguf_rope_scaling(struct xfp_gguf_model *m, double theta, FILE *out)
{
	static const char *const names[] = { "rope_freqs.weight", "rope_factors_short.weight",
					     "rope_factors_long.weight" };
	const struct xfp_gguf_value *type = scaling(m, "type");
	bool linear = xfp_gguf_text_is(type, "linear"), yarn = xfp_gguf_text_is(type, "yarn");
	enum xfp_status status = XFP_OK;
	double factor;

	if ((linear || yarn) && xfp_gguf_real(scaling(m, "factor"), 0, &factor) && isfinite(factor)) {
		fprintf(out, ",\n  \"rope_scaling\": {\n    \"rope_type\": \"%s\",\n    \"factor\": ",
			linear ? "linear" : "yarn");
		xfp_gguf_print_real(out, factor);
		if (yarn)
			put_yarn(m, out);
		fputs("\n  }", out);
	} else if (m->architecture == XFP_GGUF_PHI3) {
		status = put_longrope(m, out);
	} else {
		status = put_llama3(m, theta, out);
	}
	for (size_t i = 0; !status && i < sizeof names / sizeof *names; i++) {
		const struct xfp_gguf_stored *stored = xfp_gguf_stored(m, names[i]);

		if (stored && !stored->used)
			xfp_checkpoint_note(m->checkpoint,
					    "%s: its frequency factors match no known parameters: config.json is "
					    "without rope_scaling, and the tensor is kept",
					    names[i]);
	}
	return status;
}

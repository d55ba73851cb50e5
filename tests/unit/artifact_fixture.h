/* SPDX-License-Identifier: Apache-2.0 */
/*
 * artifact_fixture.h - small artifacts of every kind, with recognizable content.
 */
#ifndef XFP_TEST_ARTIFACT_FIXTURE_H
#define XFP_TEST_ARTIFACT_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "schemas/choice.h"
#include "schemas/fit.h"
#include "schemas/outliers.h"
#include "schemas/packed.h"
#include "tests/unit/unit.h"

#define FIXTURE_MATRICES_OF_UNIT 3u
#define FIXTURE_ROWS 4u
#define FIXTURE_COLS 5u
#define FIXTURE_BITS (1u << 2 | 1u << 3)
#define FIXTURE_ALL (FIXTURE_MATRICES_OF_UNIT * FIXTURE_ROWS)
#define FIXTURE_INDEX_BYTES 16 /* of a row of a calibrated fit */

static inline struct xfp_artifact_label fixture_label(const char *kind, uint32_t version, const char *key)
{
	return (struct xfp_artifact_label){ kind, version, key, "kind test\nalgorithm 1\n", "layers.0.\"q\"\n.weight",
					    0.25 };
}

#define KEY "0123456789abcdef0123456789abcdef"
#define OTHER "ffffffffffffffffffffffffffffffff"

/* A label of the current version of a kind. */
static inline struct xfp_artifact_label label_of(const char *kind)
{
	uint32_t version = !strcmp(kind, XFP_FIT_KIND)      ? XFP_FIT_VERSION
			   : !strcmp(kind, XFP_CHOICE_KIND) ? XFP_CHOICE_VERSION
							    : 1;

	return fixture_label(kind, version, KEY);
}

static inline uint8_t *slurp(const char *path, size_t *size)
{
	char *bytes;

	OK(xfp_slurp(path, 1 << 24, &bytes, size, &err));
	return (uint8_t *)bytes;
}

/* Matrix m has m outliers: positions 0, 3, ... */
static inline void fixture_outliers(const char *path, const struct xfp_artifact_label *label)
{
	struct xfp_outliers o = { 0 };
	struct xfp_artifact a;

	OK(xfp_outliers_init(&o, FIXTURE_MATRICES_OF_UNIT, FIXTURE_ROWS, FIXTURE_COLS, &err));
	o.sigma_milli = 4000;
	OK(xfp_artifact_create(path, &a, &err));
	OK(xfp_outliers_begin(&a, &err));
	for (uint32_t m = 0; m < o.matrices; m++) {
		uint64_t position[] = { 3 * m, 0, 19 };

		memset(o.source[m], (int)(m + 1), 16);
		o.exponent[m] = (int16_t)(10 - 20 * (int)m);
		o.mean[m] = m / 3.0;
		o.sigma[m] = 1 + m;
		OK(xfp_outliers_append(&a, &o, m, position, m, &err));
	}
	for (uint64_t c = 0; c < o.cols; c++)
		o.balance[c] = (uint8_t)(c * 50);
	OK(xfp_outliers_end(&a, &o, &err));
	OK(xfp_artifact_finish(&a, label, &err));
	xfp_outliers_free(&o);
}

static inline struct xfp_fit fixture_fit_table(void)
{
	return (struct xfp_fit){
		.matrices = FIXTURE_MATRICES_OF_UNIT,
		.rows = FIXTURE_ROWS,
		.cols = FIXTURE_COLS,
		.outliers = "00112233445566778899aabbccddeeff",
		.candidate_count = 2,
		.candidates = { { XFP_MODE_V2, 2, 4000, 0, 0, 100, 3, 0.95, 0.9, 0.1 },
				{ XFP_MODE_V2, 3, 4000, 0, 0, 150, 3, 0.99, 0.97, 0.03 } },
	};
}

/* Entry e of row r is 100 r + e, its cosine 1 / (1 + r). */
static inline void fixture_fit(const char *path, const struct xfp_artifact_label *label)
{
	const uint64_t rows = FIXTURE_MATRICES_OF_UNIT * FIXTURE_ROWS;
	struct xfp_fit fit = fixture_fit_table();
	struct xfp_artifact a;

	OK(xfp_artifact_create(path, &a, &err));
	OK(xfp_fit_begin(&a, rows, FIXTURE_COLS, fit.candidates, 2, &err));
	for (unsigned k = 2; k <= 3; k++)
		for (uint64_t r = rows; r-- > 0;) { /* the order does not matter */
			double cosine = 1.0 / (1.0 + (double)r);
			uint16_t codebook[8];

			for (unsigned e = 0; e < 1u << k; e++)
				codebook[e] = (uint16_t)(100 * r + e);
			OK(xfp_fit_write_rows(&a, &fit.candidates[k - 2], r, 1, codebook, &cosine, &err));
		}
	OK(xfp_fit_end(&a, &fit, &err));
	OK(xfp_artifact_finish(&a, label, &err));
}

/* A candidate with codes, one group a row; and fp8. Byte i of each kind of codes is i plus its number. */
static inline void fixture_calibrated_fit(const char *path, const struct xfp_artifact_label *label)
{
	const struct xfp_artifact_label usual = label_of(XFP_FIT_KIND);
	struct xfp_fit fit = { .matrices = FIXTURE_MATRICES_OF_UNIT,
			       .rows = FIXTURE_ROWS,
			       .cols = FIXTURE_COLS,
			       .candidate_count = 2,
			       .candidates = { { XFP_MODE_V2C, 2, 4000, 16, 16, 100, 3, 0.95, 0.9, 0.1 },
					       { XFP_MODE_FP8, 8, 0, 0, 0, 150, 0, 0.99, 0.97, 0.03 } },
			       .calibrated = true,
			       .unreached = 1,
			       .outputs = { { 0.98, 0.96, 0.04 }, { 0.999, 0.998, 0.001 } } };
	uint8_t data[3][FIXTURE_ALL * FIXTURE_INDEX_BYTES];
	const struct xfp_fit_codes codes = { data[0], data[1], data[2] };
	const uint16_t residual[] = { 7, 8, 9 };
	const double cosine[FIXTURE_ALL] = { 0 };
	const uint16_t library[80] = { 0 };
	struct xfp_artifact a;

	for (size_t i = 0; i < sizeof data; i++)
		data[i / sizeof data[0]][i % sizeof data[0]] = (uint8_t)(i % sizeof data[0] + i / sizeof data[0]);
	OK(xfp_artifact_create(path, &a, &err));
	OK(xfp_fit_begin(&a, FIXTURE_ALL, 0, fit.candidates, 2, &err));
	OK(xfp_fit_begin_codes(&a, FIXTURE_ALL, FIXTURE_COLS, 3, fit.candidates, 2, &err));
	OK(xfp_fit_write_library(&a, &fit.candidates[0], library, NULL, &err));
	for (uint32_t i = 0; i < 2; i++)
		OK(xfp_fit_write_rows(&a, &fit.candidates[i], 0, FIXTURE_ALL, NULL, cosine, &err));
	OK(xfp_fit_write_codes(&a, &fit.candidates[0], FIXTURE_COLS, 0, FIXTURE_ALL, &codes, &err));
	OK(xfp_fit_write_residuals(&a, &fit.candidates[0], 0, 3, residual, &err));
	OK(xfp_fit_end(&a, &fit, &err));
	OK(xfp_artifact_finish(&a, label ? label : &usual, &err));
}

static inline void fixture_choice(const char *path, const struct xfp_artifact_label *label,
				  const struct xfp_choice *choice)
{
	struct xfp_artifact a;

	OK(xfp_artifact_create(path, &a, &err));
	OK(xfp_choice_write(&a, choice, &err));
	OK(xfp_artifact_finish(&a, label, &err));
}

/* Parts of 30, 20, 0, 0 and 10 bytes: byte i of part p is 64 p + i. */
static inline void fixture_packed(const char *path, const struct xfp_artifact_label *label)
{
	struct xfp_packed_matrix matrices[2] = {
		{ XFP_MODE_V2, 3, -7, 0, 2, { 0 }, { 1, 2, 3 } },
		{ XFP_MODE_V2, 3, 300, 0, 1, { 15, 10, 0, 0, 5 }, { 4, 5, 6 } },
	};
	struct xfp_packed p = {
		.mode = XFP_MODE_V2,
		.k = 3,
		.matrices = 2,
		.rows = FIXTURE_ROWS,
		.cols = FIXTURE_COLS,
		.outliers = 3,
		.cos_median = 0.99,
		.cos_p5 = 0.97,
		.error = 0.03,
		.bytes = { 30, 20, 0, 0, 10 },
		.matrix = matrices,
	};
	struct xfp_artifact a;

	OK(xfp_artifact_create(path, &a, &err));
	OK(xfp_packed_begin(&a, &p, &err));
	for (unsigned part = 0; part < XFP_PARTS; part++) {
		uint8_t data[64];

		for (unsigned i = 0; i < sizeof data; i++)
			data[i] = (uint8_t)(64 * part + i);
		memset(&p.digest[part], p.bytes[part] ? (int)part + 1 : 0, sizeof p.digest[part]);
		if (!p.bytes[part])
			continue;
		OK(xfp_packed_write(&a, part, 4, p.bytes[part] - 4, data + 4, &err));
		OK(xfp_packed_write(&a, part, 0, 4, data, &err));
	}
	OK(xfp_packed_end(&a, &p, &err));
	OK(xfp_artifact_finish(&a, label, &err));
}

#endif

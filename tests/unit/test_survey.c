/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A survey of some rows compared with the fits of all rows.
 */
#include "stages/quantize/survey.h"

#include <math.h>

#include "kernels/common/decode.h"
#include "kernels/encode/assign.h"
#include "stages/fit_unit.h"
#include "stages/quantize/candidates.h"
#include "stages/quantize/scan.h"
#include "stages/quantize/target.h"
#include "tests/unit/survey_fixture.h"
#include "tests/unit/watching.h"

/* ---- watchers ---------------------------------------------------------------------------------- */

/* Rows of each walk, and trained libraries; the total is the predicted one, except for rows measured for their
 * peaks. */
static void who_watches_is_told_throughout(void **state)
{
	static const struct xfp_thresholds thresholds = { 3, { 0, 4000, 6000 } };
	struct counter counter = { .watcher = { count_more, count_done } };
	struct xfp_candidate list[6 * XFP_MAX_CANDIDATES];
	uint64_t work, rows;
	struct subject s;

	begin(&s, state, 2, 96, 256, NULL);
	rows = xfp_survey_rows(&s.unit);
	assert_int_equal(rows, 192); /* all rows, so that there are no additional peaks */
	s.job.parameters.modes = 1u << XFP_MODE_V2 | XFP_LIBRARY_MODES;
	work = xfp_survey_work(&s.unit, &s.job.parameters, s.job.parameters.bits, &thresholds);
	s.ledger.watcher = &counter.watcher;
	surveyed(&s, rows, &thresholds, list);
	/* Each row of either kind in each walk, and 256 rows, or all, for a library and its rounds. */
	assert_true(counter.calls >= 2 * 3 * rows + rows);
	assert_true(counter.done <= work && counter.done >= work - work / 100);
	assert_int_equal(counter.more, 0);
	done_with(&s);
}

/* ---- thresholds ---------------------------------------------------------------------------------- */

static void with_tails(float *weights, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		weights[i] *= i % 31 ? 1 : i / 31 % 5 * 0.7f;
}

/* Whether all candidates of `alone` have the same measurements in the list; returns their number. */
static uint32_t compare(const struct xfp_candidate *list, uint32_t count, const struct xfp_candidate *alone,
			uint32_t alone_count)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < alone_count; i++)
		for (uint32_t j = 0; j < count; j++) {
			if (list[j].mode != alone[i].mode || list[j].group != alone[i].group ||
			    list[j].k != alone[i].k || list[j].sigma_milli != alone[i].sigma_milli)
				continue;
			assert_memory_equal(&list[j], &alone[i], sizeof *list);
			found++;
		}
	return found;
}

/* Rows and groups whose marks are those of the last threshold are not searched again. Libraries are trained with the
 * threshold in the middle. */
static void thresholds_are_measured_as_if_alone(void **state)
{
	static const struct xfp_thresholds all = { 4, { 0, 6000, 3000, 2000 } }, one = { 1, { 3000 } },
					   last_first = { 3, { 2000, 3000, 0 } };
	static const uint64_t shapes[][2] = { { 64, 512 }, { 20, 1000 }, { 300, 40 } };

	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		struct xfp_candidate list[8 * XFP_MAX_CANDIDATES], alone[6 * XFP_MAX_CANDIDATES];
		struct subject s;
		uint32_t count, one_count;

		begin(&s, state, 2, shapes[i][0], shapes[i][1], with_tails);
		s.job.parameters.modes = 1u << XFP_MODE_V2 | XFP_LIBRARY_MODES;
		count = surveyed(&s, xfp_survey_rows(&s.unit), &all, list);
		one_count = surveyed(&s, xfp_survey_rows(&s.unit), &one, alone);
		assert_int_equal(count, 4 * one_count);
		assert_int_equal(compare(list, count, alone, one_count), one_count);
		assert_int_equal(surveyed(&s, xfp_survey_rows(&s.unit), &last_first, alone), 3 * one_count);
		assert_int_equal(compare(list, count, alone, 3 * one_count), 3 * one_count);
		done_with(&s);
	}
}

/* ---- against a fit ----------------------------------------------------------------------------- */

/* An outliers artifact without outliers, as outlier-extract makes it for threshold none. */
static enum xfp_status fill_nothing(void *own, struct xfp_artifact *artifact, struct xfp_error *err)
{
	struct subject *s = own;

	expect(xfp_outliers_begin(artifact, err), err);
	for (uint32_t m = 0; m < s->unit.experts; m++)
		expect(xfp_outliers_append(artifact, &s->known, m, NULL, 0, err), err);
	return xfp_outliers_end(artifact, &s->known, err);
}

static void extract_nothing(struct subject *s)
{
	const struct xfp_key_source source = xfp_key_source_of(&s->unit, s->known.source);
	struct xfp_error err = { 0 };
	struct xfp_key key;

	s->job.parameters.outlier_sigma = 0;
	expect(xfp_key_outliers(&source, &s->job.parameters, &key, &err), &err);
	expect(xfp_job_make(&s->job, XFP_STAMP_OUTLIERS, &key, fill_nothing, s, &err), &err);
	expect(xfp_stamp_write(*s->state, 0, XFP_STAMP_OUTLIERS, key.hex, &err), &err);
	xfp_key_free(&key);
}

static uint32_t fitted(struct subject *s, enum xfp_fit_kind kind, struct xfp_candidate *list)
{
	struct xfp_artifact artifact = { 0 };
	struct xfp_error err = { 0 };
	struct xfp_fit fit;
	char key[33];

	expect(xfp_fit_unit(&s->job, kind, kind == XFP_FIT_BASE ? &xfp_fit_codebooks : &xfp_fit_libraries, NULL, &err),
	       &err);
	expect(xfp_job_open(&s->job, xfp_fit_stamp(kind), &artifact, key, &err), &err);
	expect(xfp_fit_read(&artifact, &fit, &err), &err);
	xfp_artifact_close(&artifact);
	for (uint32_t i = 0; i < fit.candidate_count; i++)
		list[i] = fit.candidates[i];
	return fit.candidate_count;
}

/* A unit that is no larger than its sample: identical to the measurements of its fits, except that errors of a stack
 * are added in another order. */
static void all_rows_are_as_the_fits_have_them(void **state)
{
	static const struct {
		uint32_t experts;
		uint64_t rows, cols;
	} shapes[] = { { 1, 40, 300 }, { 3, 20, 64 }, { 1, 9, 40 }, { 2, 8, 10 } };
	const struct xfp_thresholds none = { 1, { 0 } };
	char *folder = scratch_path(state, "cache");

	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
		struct xfp_candidate list[2 * XFP_MAX_CANDIDATES], measured[2 * XFP_MAX_CANDIDATES];
		struct xfp_error err = { 0 };
		struct subject s;
		uint32_t count, first;

		begin(&s, state, shapes[i].experts, shapes[i].rows, shapes[i].cols, NULL);
		expect(xfp_store_open(folder, &s.job.store, &err), &err);
		assert_int_equal(xfp_survey_rows(&s.unit), shapes[i].experts * shapes[i].rows);
		s.job.parameters.bits |= XFP_FP8_BIT;
		count = surveyed(&s, xfp_survey_rows(&s.unit), &none, list);
		assert_int_equal(count, 10); /* fp8 is the last */
		extract_nothing(&s);
		first = fitted(&s, XFP_FIT_BASE, measured);
		first += fitted(&s, XFP_FIT_LIBRARY, measured + first);
		assert_int_equal(first + fitted(&s, XFP_FIT_EXTENDED_LIBRARY, measured + first), count);
		for (uint32_t c = 0; c < count; c++) {
			assert_int_equal(list[c].mode, measured[c].mode);
			assert_int_equal(list[c].k, measured[c].k);
			assert_int_equal(list[c].group, measured[c].group);
			assert_int_equal(list[c].library, measured[c].library);
			assert_int_equal(list[c].bytes, measured[c].bytes);
			assert_int_equal(list[c].outliers, 0);
			assert_int_equal(list[c].sigma_milli, 0);
			assert_true(list[c].cos_median == measured[c].cos_median);
			assert_true(list[c].cos_p5 == measured[c].cos_p5);
			assert_true(fabs(list[c].error - measured[c].error) <= 1e-12 * measured[c].error);
		}
		xfp_store_close(&s.job.store);
		done_with(&s);
	}
	free(folder);
}

/* The measurement of fp8 agrees bit for bit with what is packed: near every number of e4m3, at every step between two
 * of them, and for scales that are not normal. */
static void fp8_as_it_is_packed(void **state)
{
	enum { COLS = 4096 };
	float *w = xfp_row_new(COLS), *decoded = xfp_row_new(COLS), *packed = xfp_row_new(COLS);
	static const float largest[] = { 448, 1, 3e38f, 0.3f, 1e-38f, 1e-40f, 1e-42f, 5e-45f, 0 };
	uint8_t code[COLS];
	uint64_t random = 5;

	(void)state;
	for (size_t i = 0; i < sizeof largest / sizeof *largest; i++)
		for (int spread = 0; spread < 12; spread++) {
			for (size_t c = 0; c < COLS; c++) /* halves and eighths between them are ties */
				w[c] = spread < 6 ? largest[i] * ldexpf((float)(c % 256) / 256, -3 * spread) *
							    (c & 256 ? -1 : 1)
						  : largest[i] * test_gaussian(&random) / (float)(1 << spread);
			for (size_t c = 0; c < COLS; c++)
				w[c] = fabsf(w[c]) > largest[i] ? 0 : w[c];
			w[COLS / 2] = largest[i];
			float scale = xfp_encode_fp8(w, COLS, code);

			assert_true(xfp_fp8_row(w, COLS, decoded) == scale);
			xfp_decode_fp8(code, scale, COLS, packed);
			for (size_t c = 0; c < COLS; c++)
				if (!(decoded[c] == packed[c]))
					fail_msg("%a of %a: %a, not %a", w[c], largest[i], decoded[c], packed[c]);
		}
	free(w);
	free(decoded);
	free(packed);
}

/* ---- the sample -------------------------------------------------------------------------------- */

static void how_many_rows(void **state)
{
	static const struct {
		uint32_t experts;
		uint64_t rows, cols;
		enum xfp_dtype dtype;
		uint64_t want;
	} cases[] = {
		{ 1, 10, 10, XFP_BF16, 10 },      { 1, 4096, 4096, XFP_BF16, 64 },
		{ 1, 4096, 256, XFP_BF16, 256 },  { 128, 768, 2048, XFP_BF16, 64 },
		{ 1, 4096, 65536, XFP_BF16, 64 }, { 1, 4096, 100000, XFP_BF16, 41 },
		{ 1, 4096, 100000, XFP_F32, 20 }, { 1, 4096, 500000, XFP_F64, 16 },
		{ 1, 12, 500000, XFP_F64, 12 },   { 1, 100000, 1, XFP_BF16, 1 << 16 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct xfp_ledger_unit unit = { .dtype = cases[i].dtype,
						.experts = cases[i].experts,
						.rows = cases[i].rows,
						.cols = cases[i].cols };

		assert_int_equal(xfp_survey_rows(&unit), cases[i].want);
	}
}

/* Evenly spread over all matrices, each row from its own matrix. */
static void rows_of_several_matrices(void **state)
{
	struct xfp_survey survey;
	struct xfp_error err = { 0 };
	struct subject s;

	begin(&s, state, 5, 7, 20, NULL);
	for (uint64_t wanted = 1; wanted <= 40; wanted++) {
		uint64_t number = 0, have = wanted < 35 ? wanted : 35;

		expect(xfp_survey_load(&s.ledger, &s.unit, &s.known, NULL, wanted, &survey, &err), &err);
		assert_int_equal(survey.rows, have);
		for (uint32_t b = 0; b < survey.block_count; b++) {
			const struct xfp_survey_block *block = &survey.blocks[b];

			assert_int_equal(block->first, number);
			assert_true(block->rows.count > 0);
			assert_true(!b || block->matrix > survey.blocks[b - 1].matrix);
			for (uint64_t r = 0; r < block->rows.count; r++, number++) {
				uint64_t row = number * 35 / have;

				assert_int_equal(row / 7, block->matrix);
				assert_memory_equal((float *)block->rows.raw + r * 20, s.weights + row * 20,
						    20 * sizeof(float));
			}
		}
		assert_int_equal(number, have);
		xfp_survey_free(&survey);
	}
	done_with(&s);
}

/* Mean and deviation are those of the weights, independent of the exponents of their matrices. */
static void uneven(float *weights, uint64_t count)
{
	for (uint64_t i = 0; i < count / 2; i++)
		weights[i] *= 0x1p-20f;
	for (uint64_t i = count / 2; i < count; i++)
		weights[i] += 0.5f;
}

static void moments(void **state)
{
	struct xfp_survey survey;
	struct xfp_error err = { 0 };
	struct subject s;
	double sum = 0, square = 0, n = 4 * 16 * 64;

	begin(&s, state, 4, 16, 64, uneven);
	memset(s.known.balance, 0, 64);
	for (uint64_t i = 0; i < (uint64_t)n; i++) {
		sum += s.weights[i];
		square += (double)s.weights[i] * s.weights[i];
	}
	expect(xfp_survey_load(&s.ledger, &s.unit, &s.known, NULL, 64, &survey, &err), &err);
	assert_int_equal(survey.rows, 64);
	assert_true(fabs(survey.mean - sum / n) < 1e-6);
	assert_true(fabs(survey.sigma - sqrt(square / n - sum / n * (sum / n))) < 1e-6);
	xfp_survey_free(&survey);
	done_with(&s);
}

/* ---- outliers ---------------------------------------------------------------------------------- */

/* One weight in a hundred is an outlier, to either side. */
static void heavy(float *weights, uint64_t count)
{
	for (uint64_t i = 0; i < count; i += 100)
		weights[i] = (i / 100 & 1 ? -1 : 1) * (0.25f + 0.0005f * (float)(i / 100 % 640));
}

/* Find the candidates of a threshold. */
static const struct xfp_candidate *find(const struct xfp_candidate *list, uint32_t count, uint32_t sigma_milli,
					enum xfp_mode mode, uint32_t k)
{
	for (uint32_t i = 0; i < count; i++)
		if (list[i].sigma_milli == sigma_milli && list[i].mode == mode && list[i].k == k)
			return &list[i];
	fail_msg("no candidate of %u", sigma_milli);
	return NULL;
}

static void lower_thresholds_have_more_outliers(void **state)
{
	static struct xfp_candidate list[8 * 2 * XFP_MAX_CANDIDATES];
	const struct xfp_candidate *none, *five, *min;
	struct subject s;
	uint64_t before = 0;
	uint32_t count;

	begin(&s, state, 1, 128, 500, heavy);
	memset(s.known.balance, 0, 500);
	count = surveyed(&s, 128, &xfp_target_thresholds, list);
	assert_int_equal(count, 7 * 9);
	for (uint32_t i = 0; i < xfp_target_thresholds.count; i++) {
		const struct xfp_candidate *c = find(list, count, xfp_target_thresholds.sigma_milli[i], XFP_MODE_V2, 3);

		assert_true(c->outliers >= before);
		before = c->outliers;
	}
	none = find(list, count, 0, XFP_MODE_V2, 3);
	five = find(list, count, 5000, XFP_MODE_V2, 3);
	min = find(list, count, 2500, XFP_MODE_V2, 3);
	/* Exactly the outliers that were created; four bytes each and four per row. */
	assert_int_equal(none->outliers, 0);
	assert_int_equal(five->outliers, 640);
	assert_true(five->bytes >= none->bytes + 4 * 640 + 4 * 129 && five->bytes <= none->bytes + 4 * 640 + 4 * 133);
	assert_true(five->error < 0.7 * none->error && five->cos_median > none->cos_median);
	/* The other weights barely reach 2.5 of these deviations. */
	assert_true(min->outliers < 2 * 640);
	done_with(&s);
}

/* Half of the unit sampled has half of its outliers; the estimate is all of them. */
static void what_a_sample_has_all_rows_have(void **state)
{
	static struct xfp_candidate all[2 * XFP_MAX_CANDIDATES], half[2 * XFP_MAX_CANDIDATES];
	const struct xfp_thresholds four = { 1, { 4000 } };
	struct subject s;
	uint32_t count;

	begin(&s, state, 2, 64, 500, heavy);
	count = surveyed(&s, 128, &four, all);
	assert_int_equal(surveyed(&s, 64, &four, half), count);
	for (uint32_t i = 0; i < count; i++) {
		assert_in_range(half[i].outliers, all[i].outliers * 19 / 20, all[i].outliers * 21 / 20);
		assert_true(fabs((double)half[i].bytes / (double)all[i].bytes - 1) < 0.01);
		assert_true(fabs(half[i].cos_median - all[i].cos_median) < 0.2 * (1 - all[i].cos_median));
	}
	done_with(&s);
}

/* No more than the cap allows, and the furthest ones. */
static void capped(void **state)
{
	static const uint32_t caps[] = { 0, XFP_NANO / 1000, XFP_NANO / 200, XFP_NANO / 100, XFP_NANO / 16, XFP_NANO };
	const struct xfp_thresholds two = { 1, { 2000 } };
	struct xfp_candidate list[2 * XFP_MAX_CANDIDATES];
	uint64_t free_count = 0;
	struct subject s;

	begin(&s, state, 1, 100, 640, heavy);
	for (size_t i = sizeof caps / sizeof caps[0]; i-- > 0;) {
		uint64_t max = (uint64_t)(64000.0 * caps[i] / XFP_NANO);

		s.job.parameters.outlier_cap = caps[i];
		surveyed(&s, 100, &two, list);
		if (caps[i] == XFP_NANO)
			free_count = list[0].outliers;
		/* Selected by distance, so that equal ones are treated alike. */
		max = max < free_count ? max : free_count;
		assert_in_range(list[0].outliers, max - max / 50 - (max > 0), max + max / 50);
	}
	assert_true(free_count > 640 && free_count < 64000 / 10);
	done_with(&s);
}

/* Matrices so different that the mean is beyond all weights of the smaller ones: each of these is an outlier. */
static void constant_and_tiny(float *weights, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		weights[i] = i < count / 16 ? weights[i] * 0x1p-40f : 1000 + weights[i];
}

static void far_from_the_mean(void **state)
{
	const struct xfp_thresholds two = { 1, { 2500 } };
	struct xfp_candidate list[2 * XFP_MAX_CANDIDATES];
	struct subject s;
	uint32_t count;

	begin(&s, state, 16, 16, 64, constant_and_tiny);
	memset(s.known.balance, 0, 64);
	s.job.parameters.outlier_cap = XFP_NANO;
	count = surveyed(&s, 256, &two, list);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(list[i].outliers, 16 * 64);
	done_with(&s);
}

/* A unit with a constant value, and one with zeros only. */
static void flat(float *weights, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		weights[i] = 0.25f;
}

static void zeros(float *weights, uint64_t count)
{
	memset(weights, 0, count * sizeof *weights);
}

static void units_of_one_value(void **state)
{
	static struct xfp_candidate list[8 * 2 * XFP_MAX_CANDIDATES];
	struct subject s;

	for (int zero = 0; zero < 2; zero++) {
		uint32_t count;

		begin(&s, state, 2, 8, 32, zero ? zeros : flat);
		count = surveyed(&s, 16, &xfp_target_thresholds, list);
		assert_int_equal(count, 7 * 9);
		for (uint32_t i = 0; i < count; i++) {
			assert_int_equal(list[i].outliers, 0);
			assert_true(list[i].cos_median > 0.999);
			assert_true(list[i].error >= 0 && list[i].error < 1e-3);
		}
		done_with(&s);
	}
}

/* Rows with the largest weights are measured in addition to any sample, and count for themselves. */
static void peaks_are_picked(void **state)
{
	const struct xfp_thresholds none = { 1, { 0 } };
	struct xfp_candidate with[2 * XFP_MAX_CANDIDATES], without[2 * XFP_MAX_CANDIDATES];
	struct xfp_error err = { 0 };
	struct xfp_outliers known;
	struct xfp_survey survey;
	struct xfp_peaks peaks = { .sample = NULL };
	struct subject s;
	uint32_t count;

	begin(&s, state, 1, 1000, 64, NULL);
	expect(xfp_scan_unit(&s.ledger, &s.unit, &s.job.parameters, &known, &peaks, &err), &err);
	assert_int_equal(peaks.count, XFP_PEAKS);
	for (uint32_t i = 0; i < XFP_PEAKS; i++) {
		uint64_t higher = 0;

		for (uint64_t r = 0; r < 1000; r++) {
			float largest = 0;

			for (uint64_t c = 0; c < 64; c++)
				largest = fmaxf(largest, fabsf(s.weights[r * 64 + c]));
			higher += largest > peaks.largest[i] || (largest == peaks.largest[i] && r < peaks.row[i]);
			if (r == peaks.row[i])
				assert_true(largest == peaks.largest[i]);
		}
		assert_int_equal(higher, i);
	}
	surveyed(&s, 40, &none, without);
	expect(xfp_survey_load(&s.ledger, &s.unit, &known, &peaks, 40, &survey, &err), &err);
	assert_int_equal(survey.rows, 40);
	assert_true(survey.picked <= XFP_PEAKS && survey.picked >= XFP_PEAKS - 4);
	assert_true(survey.each == (1000 - (double)survey.picked) / 40);
	for (uint32_t b = survey.block_count - (uint32_t)survey.picked; b < survey.block_count; b++)
		assert_int_equal(survey.blocks[b].rows.count, 1);
	expect(xfp_survey_measure(&survey, &s.job.parameters, 0x1c, &none, with, &count, &err), &err);
	for (uint32_t i = 0; i < count; i++) {
		assert_true(with[i].cos_median == without[i].cos_median);
		assert_true(with[i].error != without[i].error);
	}
	xfp_survey_free(&survey);
	/* All rows are in the sample: no peaks are left. */
	expect(xfp_survey_load(&s.ledger, &s.unit, &known, &peaks, 1000, &survey, &err), &err);
	assert_int_equal(survey.picked, 0);
	xfp_survey_free(&survey);
	xfp_outliers_free(&known);
	done_with(&s);
}

/* Changed between the scan and the sample, in place, so that only the bytes differ. */
static void rows_that_change_before_they_are_sampled(void **state)
{
	static const uint64_t places[] = { 0, 999 * 64 }; /* sampled, and a peak */
	struct xfp_peaks peaks = { .samples = 40, .sample = malloc(40 * sizeof *peaks.sample) };
	struct xfp_error err = { 0 };
	struct xfp_survey survey;
	struct subject s;
	struct stat st;

	begin(&s, state, 1, 1000, 64, NULL);
	s.weights[999 * 64] = 9;
	for (size_t i = 0; i < 2; i++) {
		struct xfp_outliers known;

		for (int changed = 0; changed < 2; changed++) {
			scratch_write(state, "weights", s.weights, 64000 * sizeof *s.weights);
			assert_int_equal(stat(s.file.path, &st), 0);
			s.file.identity = xfp_identity_of(&st);
			expect(xfp_scan_unit(&s.ledger, &s.unit, &s.job.parameters, &known, &peaks, &err), &err);
			if (changed) {
				float kept = s.weights[places[i]];

				s.weights[places[i]] = -kept;
				scratch_write(state, "weights", s.weights, 64000 * sizeof *s.weights);
				s.weights[places[i]] = kept;
				assert_int_equal(stat(s.file.path, &st), 0);
				s.file.identity = xfp_identity_of(&st);
			}
			assert_int_equal(xfp_survey_load(&s.ledger, &s.unit, &known, &peaks, 40, &survey, &err),
					 changed ? XFP_CHANGED : XFP_OK);
			xfp_survey_free(&survey);
			xfp_outliers_free(&known);
		}
		assert_non_null(strstr(err.text, "tensor w"));
	}
	free(peaks.sample);
	done_with(&s);
}

PROGRAM("test_survey")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fp8_as_it_is_packed),
		scratch_test(who_watches_is_told_throughout),
		scratch_test(thresholds_are_measured_as_if_alone),
		scratch_test(all_rows_are_as_the_fits_have_them),
		cmocka_unit_test(how_many_rows),
		scratch_test(rows_of_several_matrices),
		scratch_test(moments),
		scratch_test(lower_thresholds_have_more_outliers),
		scratch_test(what_a_sample_has_all_rows_have),
		scratch_test(capped),
		scratch_test(peaks_are_picked),
		scratch_test(far_from_the_mean),
		scratch_test(units_of_one_value),
		scratch_test(rows_that_change_before_they_are_sampled),
	};

	return cmocka_run_group_tests_name("survey", tests, NULL, NULL);
}

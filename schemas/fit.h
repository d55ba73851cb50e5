/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit.h - the artifact of lloyd-fit and libfit: codebooks or libraries, and measurements of every candidate of a unit.
 *
 * R = matrices * rows of the whole stack. Candidates ascend by mode, then group, then k, and fp8 is the last; NAME is
 * MODE-K for v2 and fp8, as in v2-3 and fp8-8, and MODE-GROUP-K for the others, as in v2c-32-3.
 *   attributes      matrices, rows, cols, candidates, outliers (key of the artifact that it was made from)
 *   /candidate      compound [candidates], struct xfp_candidate
 *   /codebook-NAME  v2: uint16 [R * 2^K] fp16 entries, ascending within a row; v2a, v2c: the unit's library as the
 *                   bundle has it (schemas/layout/bundle_layout.h, part CODE)
 *   /hints-NAME     v2a: float32 [2 * L], the starting point for searching a group's entry (kernels/encode/scaled.h):
 *                   mean and deviation of each entry
 *   /cosine-NAME    float64 [R] between the source row and its reconstruction as stored
 *   /byte-NAME      v2c: uint8 [R * groups] bytes of groups, as the bundle has them
 *   /row-NAME       v2c: uint8 [R] bytes of rows
 *
 * Bytes spare xfp-pack the search. A fit of many candidates, which would take too much space, has none
 * (xfp_fit_keeps_bytes).
 *
 * A calibrated fit, made with the inputs of the unit's matrices, also has
 *   attributes      unreached (matrices that no training input reached)
 *   /output         compound [candidates], struct xfp_output_measure
 * and, for every candidate but fp8, all that the bundle stores (schemas/layout/bundle_layout.h), which depends on
 * inputs: bytes of groups and rows, and
 *   /index-NAME     uint8 [R * xfp_index_row_bytes(cols, k)] packed indices
 *   /residual-NAME  uint16 [outliers] fp16 residuals, by matrix, row and column
 *
 * Codes of candidates that are not chosen stay until the fit is removed (`--drop-cache`: once the unit is packed), so
 * that another floor, or another round of a goal, chooses them without a search, and without the inputs, which have
 * been removed by then.
 */
#ifndef XFP_FIT_H
#define XFP_FIT_H

#include <stddef.h>

#include "schemas/artifact.h"
#include "schemas/layout/classes.h"
#include "schemas/parameters.h"

#define XFP_FIT_KIND "fit"
#define XFP_FIT_VERSION 4

/* One way to store a unit, measured. */
struct xfp_candidate {
	uint32_t mode;        /* enum xfp_mode */
	uint32_t k;           /* bits an index; XFP_FP8_BITS for fp8 */
	uint32_t sigma_milli; /* outlier threshold in thousandths; 0: none */
	uint16_t group;       /* columns of a group, 0 without groups */
	uint16_t library;     /* entries of the library, 0 without one */
	uint64_t bytes;       /* stored size of the unit in this form */
	uint64_t outliers;
	double cos_median; /* lower median over all rows of the unit; -1: some row decodes to NaN or infinity, and the
			    * candidate must not be chosen */
	double cos_p5;     /* 5th percentile, nearest rank */
	double error;      /* squared error / squared norm of the whole unit */
};

/* The outputs of a candidate for inputs that it was not fitted to: w' x compared with w x. */
struct xfp_output_measure {
	double median, p5; /* of the cosines of rows, over these inputs; defined as cos_median and cos_p5 */
	double error;      /* squared error / squared norm of the outputs of the whole unit */
};

#define XFP_MAX_CANDIDATES 16
struct xfp_fit {
	uint32_t matrices;
	uint64_t rows, cols;
	char outliers[33];
	uint32_t candidate_count;
	struct xfp_candidate candidates[XFP_MAX_CANDIDATES];
	bool calibrated;
	uint32_t unreached;
	struct xfp_output_measure outputs[XFP_MAX_CANDIDATES];
	bool bytes; /* has bytes of groups and rows; set by xfp_fit_read */
};

/* The number of elements of a row's codebook or a unit's library (uint16), and of its hints (float); 0: it has none. */
uint64_t xfp_candidate_code(const struct xfp_candidate *candidate);
uint64_t xfp_candidate_hints(const struct xfp_candidate *candidate);
/* The groups of a row; the candidate must have groups. */
static inline uint64_t xfp_candidate_groups(const struct xfp_candidate *candidate, uint64_t cols)
{
	return (cols + candidate->group - 1) / candidate->group;
}

/* Read or write only the table, "candidate" and "candidates", of any artifact that has one. Reading checks each
 * candidate, and that there are at most `max`. */
enum xfp_status xfp_candidates_write(struct xfp_artifact *a, const struct xfp_candidate *list, uint32_t count,
				     struct xfp_error *err);
enum xfp_status xfp_candidates_read(struct xfp_artifact *a, uint32_t max, struct xfp_candidate *list, uint32_t *count,
				    struct xfp_error *err);

/* Write or read only /output, of an artifact with `count` candidates. Without it, *calibrated is false. */
enum xfp_status xfp_outputs_write(struct xfp_artifact *a, const struct xfp_output_measure *outputs, uint32_t count,
				  struct xfp_error *err);
enum xfp_status xfp_outputs_read(struct xfp_artifact *a, uint32_t count, struct xfp_output_measure *outputs,
				 bool *calibrated, struct xfp_error *err);

/* The kinds of fits of a unit: codebooks and libraries, and the extended one of each if it was requested. */
enum xfp_fit_kind { XFP_FIT_BASE, XFP_FIT_LIBRARY, XFP_FIT_EXTENDED, XFP_FIT_EXTENDED_LIBRARY, XFP_FIT_KINDS };
/* Whether the modes have candidates in this kind of fit. */
static inline bool xfp_fit_wanted(const struct xfp_parameters *parameters, enum xfp_fit_kind kind)
{
	bool library = kind == XFP_FIT_LIBRARY || kind == XFP_FIT_EXTENDED_LIBRARY;

	return parameters->modes & (library ? XFP_LIBRARY_MODES : 1u << XFP_MODE_V2);
}

/* The bits that a fit measures. fp8, which needs no fitting, is measured by one of them: with the libraries if there
 * are any. */
uint32_t xfp_fit_bits(const struct xfp_parameters *parameters, enum xfp_fit_kind kind);

/* The measurements of one fit. Key NULL or "": there is no fit of this kind. */
struct xfp_fit_set {
	const char *key;
	const struct xfp_candidate *candidates;
	uint32_t count;
	const struct xfp_output_measure *outputs; /* of the candidates of a calibrated fit; otherwise NULL */
};
static inline struct xfp_fit_set xfp_fit_set_of(const struct xfp_fit *fit, const char *key)
{
	return (struct xfp_fit_set){ key, fit->candidates, fit->candidate_count,
				     fit->calibrated ? fit->outputs : NULL };
}
static inline bool xfp_fit_set_is_calibrated(const struct xfp_fit_set *set)
{
	return set->count && set->outputs;
}

/* The bytes of groups per row of all candidates, and whether a fit without calibration stores them: if they take at
 * most an eighth of a byte per weight, as those of two candidates with groups of 16 columns do. */
#define XFP_FIT_BYTES_SHARE 8
uint64_t xfp_fit_group_bytes(const struct xfp_candidate *candidates, uint32_t count, uint64_t cols);
static inline bool xfp_fit_keeps_bytes(const struct xfp_candidate *candidates, uint32_t count, uint64_t cols)
{
	return xfp_fit_group_bytes(candidates, count, cols) <= cols / XFP_FIT_BYTES_SHARE;
}

/* Writing: reserve the datasets of the candidates, by mode, group, library and k, with bytes of groups and rows unless
 * `cols` is 0; write the codebooks (NULL for library modes) and cosines of rows [first, first + count) of one
 * candidate, in any order; write a library; then write the table. */
enum xfp_status xfp_fit_begin(struct xfp_artifact *a, uint64_t total_rows, uint64_t cols,
			      const struct xfp_candidate *candidates, uint32_t count, struct xfp_error *err);
enum xfp_status xfp_fit_write_rows(struct xfp_artifact *a, const struct xfp_candidate *candidate, uint64_t first,
				   uint64_t count, const uint16_t *codebook, const double *cosine,
				   struct xfp_error *err);
enum xfp_status xfp_fit_write_library(struct xfp_artifact *a, const struct xfp_candidate *candidate,
				      const uint16_t *library, const float *hints, struct xfp_error *err);
enum xfp_status xfp_fit_end(struct xfp_artifact *a, const struct xfp_fit *fit, struct xfp_error *err);

/* Codes of rows with `cols` columns, as the bundle stores them. */
struct xfp_fit_codes {
	uint8_t *byte, *row; /* [rows][groups], [rows] */
	uint8_t *index;      /* [rows][xfp_index_row_bytes] of a calibrated fit; NULL: not written or read */
};
/* Codes of v2c: reserve the datasets of a calibrated fit; write or read the codes of rows [first, first + count), or
 * residuals by number. */
enum xfp_status xfp_fit_begin_codes(struct xfp_artifact *a, uint64_t total_rows, uint64_t cols, uint64_t outliers,
				    const struct xfp_candidate *candidates, uint32_t count, struct xfp_error *err);
enum xfp_status xfp_fit_write_codes(struct xfp_artifact *a, const struct xfp_candidate *candidate, uint64_t cols,
				    uint64_t first, uint64_t count, const struct xfp_fit_codes *codes,
				    struct xfp_error *err);
enum xfp_status xfp_fit_read_codes(struct xfp_artifact *a, const struct xfp_candidate *candidate, uint64_t cols,
				   uint64_t first, uint64_t count, const struct xfp_fit_codes *codes,
				   struct xfp_error *err);
enum xfp_status xfp_fit_write_residuals(struct xfp_artifact *a, const struct xfp_candidate *candidate, uint64_t first,
					uint64_t count, const uint16_t *residual, struct xfp_error *err);
enum xfp_status xfp_fit_read_residuals(struct xfp_artifact *a, const struct xfp_candidate *candidate, uint64_t first,
				       uint64_t count, uint16_t *residual, struct xfp_error *err);

/* Reading: the table; codebooks and cosines of a range of rows, where either pointer may be NULL; a library. */
enum xfp_status xfp_fit_read(struct xfp_artifact *a, struct xfp_fit *fit, struct xfp_error *err);
enum xfp_status xfp_fit_read_rows(struct xfp_artifact *a, const struct xfp_candidate *candidate, uint64_t first,
				  uint64_t count, uint16_t *codebook, double *cosine, struct xfp_error *err);
enum xfp_status xfp_fit_read_library(struct xfp_artifact *a, const struct xfp_candidate *candidate, uint16_t *library,
				     float *hints, struct xfp_error *err);

#endif

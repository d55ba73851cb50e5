/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work.h - the work folder of one conversion: parameters, stamps, events.
 *
 *   ledger.h5           schemas/ledger.h, by xfp-inspect
 *   units.mk            "UNITS = u000000 u000001 ...", by xfp-inspect
 *   fits.mk             "FITS = fit library", the fits a choice depends on, or "SURVEY = survey", by xfp
 *   u000012-fits.mk     "FITS = library", selected by the survey, with its stamp: by xfp-survey, and by xfp
 *   parameters.json     {"parameters": schemas/parameters.h, "seal": of their text as xfp writes it}, by xfp
 *   assigned            the assignment of each unit, if there is a size goal: assigned.h, by xfp
 *   u000012-survey      stamps: the key of the unit's artifact of that stage, 32 hex digits, a space, a seal
 *   u000012-outliers    (cache/seal.h) over the stamp's name, a space and the key, and a newline. make sees
 *   u000012-fit         these names and no others. A stamp exists only while its artifact does and its key
 *   u000012-library     is the current one; `xfp prepare` ensures that.
 *   u000012-extended    (the extended set, k = 5 and 6, if requested; fit and extended are of lloyd-fit,
 *   u000012-extended-library  library and extended-library of libfit, if the modes need them)
 *   u000012-choice
 *   u000012-packed        (of packed: or its parts are in the pending bundle)
 *   u000012-receipt     replaces a unit's artifacts, receipts.h
 *   calibration.h5      schemas/calibration.h, by xfp-calibrate --begin
 *   l000003-inputs      stamp of a layer's inputs, in the same form, by xfp-calibrate
 *   moving              which units are in the pending bundle, and moving-seen: moving.h
 *   events              one line per start or end of a step: events.h
 *   pulses              progress of stages within their units, stage_progress.h
 *   hosts/TAG/          events and pulses of stages on other hosts: hosts.h
 *   log                 output of make and the stages
 *   bundle              state of the bundle after it was written: bundle_stamp.h
 *   run                 the current or last run: run_record.h
 *   lock                held with flock(2) during a run, by xfp, and by make and the stages on its host
 *   lock.steps          shared by each stage, on any host: cache/steps.h
 */
#ifndef XFP_WORK_H
#define XFP_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "cache/key.h"
#include "cache/store.h"
#include "checkpoints/checkpoint.h"
#include "schemas/artifact.h"
#include "schemas/ledger.h"
#include "schemas/parameters.h"
#include "schemas/policy.h"
#include "stages/work/stages.h"

#define XFP_PARAMETERS_FILE "parameters.json"
#define XFP_UNITS_FILE "units.mk"
#define XFP_FITS_FILE "fits.mk"
#define XFP_LOG_FILE "log"
#define XFP_BUNDLE_STAMP "bundle"

/* Read the parameters that xfp wrote to the work folder, without their assignments, or write them. XFP_DAMAGED: the
 * seal does not match; xfp rewrites them in its next round. */
enum xfp_status xfp_work_write_parameters(const char *work, const struct xfp_parameters *parameters,
					  struct xfp_error *err);
enum xfp_status xfp_work_parameters(const char *work, struct xfp_parameters *parameters, struct xfp_error *err);

/* ---- layers -----------------------------------------------------------------------------------

 * The steps of a layer share stamps, events and progress with those of units: wherever these have the number of a unit,
 * XFP_LAYER | n stands for layer n. Names of layers are l000003; the one after the last, l000048 of 48 layers, is the
 * final norm, whose output is the input of the output head. */
#define XFP_LAYER 0x80000000u
#define XFP_NO_UNIT UINT32_MAX
static inline bool xfp_is_layer(uint32_t number)
{
	return number >= XFP_LAYER && number != XFP_NO_UNIT;
}
/* "l000003" -> 3. */
bool xfp_layer_parse(const char *text, uint32_t *layer);

/* ---- stamps ----------------------------------------------------------------------------------- */

/* The key of a stamp, or "" if there is no stamp, or one that is torn, damaged or another unit's. XFP_FAILED: it cannot
 * be read; it may exist. */
enum xfp_status xfp_stamp_find(const char *work, uint32_t unit, enum xfp_stamp stamp, char key[33],
			       struct xfp_error *err);
/* xfp_stamp_find for callers that treat an unreadable stamp as missing. */
bool xfp_stamp_read(const char *work, uint32_t unit, enum xfp_stamp stamp, char key[33]);
/* Whether a file of its name exists, which is all that make looks at. */
bool xfp_stamp_exists(const char *work, uint32_t unit, enum xfp_stamp stamp);
enum xfp_status xfp_stamp_write(const char *work, uint32_t unit, enum xfp_stamp stamp, const char *key,
				struct xfp_error *err);
/* Remove a stamp and those of all later stages; of a layer its only one. */
void xfp_stamp_remove(const char *work, uint32_t unit, enum xfp_stamp stamp);

/* ---- units ------------------------------------------------------------------------------------ */

/* "u000012" or "12" -> 12. */
bool xfp_unit_parse(const char *text, uint32_t *unit);
/* Write "u000012", or "l000003" of a layer. */
void xfp_unit_format(uint32_t unit, char text[16]);

/* The location of a matrix, as the manifest identifies it (cache/manifest.h): its region in the file or, if it is
 * packed, a digest of its recipe and of all files that this reads, so that another scale or another config.json is
 * another source. */
void xfp_region_format(const struct xfp_matrix_source *source, char text[160]);

#endif

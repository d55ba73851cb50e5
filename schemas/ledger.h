/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger.h - what inspect found: every tensor and its fate, every unit and where its matrices are.
 *
 * One HDF5 file, `ledger.h5` in the work folder, written once by inspect and replaced as a whole.
 * It depends on the checkpoint's headers, the family's rules, formats, overrides and the lm_head policy, and
 * on nothing else.
 *
 * Layout: the envelope of artifact.h, with its digest, then HDF5 (all tables are one-dimensional
 * datasets of little-endian compound records):
 *   attributes  kind "ledger", version 3, model (folder), family, format (of the checkpoint), packed (how its weights
 *               are, or nothing)
 *   /files      name, path, device, inode, size, mtime_ns, ctime_ns
 *   /tensors    name, reason, dtype, class, fate, rank, shape[8], file, offset, bytes, tied, recipe (2^64 - 1: none)
 *   /recipes    of packed tensors, as schemas/recipe/recipe.h has them: rows, cols, turned, outer, inner, beside,
 *               first_part, parts
 *   /parts      codec, version, rows, cols, parameters[4], first_component, components
 *   /components role, dtype, file, offset, bytes
 *   /units      name, role, class, plan, dtype, experts, rows, cols, first_matrix
 *   /matrices   tensor, view (base, rows, cols, row_stride, col_stride); a unit's matrices are
 *               consecutive, by expert number
 *   /extras     name: a path relative to the model's folder; of a file that was made of what the checkpoint says
 *               elsewhere, the path that it was written to, and XXH3-128 of it, in hex; of others both are empty
 *   /strings    uint8 pool; every string above is (offset, length) into it
 *
 * A stage opens the ledger and reads its own unit only.
 */
#ifndef XFP_LEDGER_H
#define XFP_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/system/file.h"
#include "base/xfp_error.h"
#include "schemas/layout/classes.h"
#include "schemas/recipe/source_file.h"

struct xfp_recipe; /* schemas/recipe/recipe.h */

#define XFP_LEDGER_FILE "ledger.h5"

/* What the pipeline does with a unit. */
enum xfp_plan {
	XFP_PLAN_FIT, /* outlier-extract, the fits, autoselect, pack */
	XFP_PLAN_FP8, /* pack alone, as e4m3 with a scale per row */
	XFP_PLAN_KEEP /* pack alone, as it is */
};

struct xfp_ledger_tensor {
	char *name;
	char *reason; /* of the fate, for people: "norm: kept by rule", "tied to ..." */
	enum xfp_dtype dtype;
	enum xfp_class class_;
	enum xfp_fate fate; /* QUANTIZED here means: belongs to a unit; the choice decides */
	uint32_t rank;
	uint64_t shape[8];
	uint32_t file;             /* of a packed tensor, that of its first component; `offset` likewise */
	uint64_t offset, bytes;    /* `bytes`: of its elements, as they are or unpacked */
	uint32_t tied;             /* TIED: the tensor it equals; otherwise UINT32_MAX */
	struct xfp_recipe *recipe; /* how it is unpacked; NULL: it lies in its file as it is */
};
/* What it takes in its files. */
uint64_t xfp_tensor_stored_bytes(const struct xfp_ledger_tensor *tensor);

struct xfp_ledger_matrix {
	uint32_t tensor;
	uint64_t base, rows, cols, row_stride, col_stride; /* see struct xfp_view of checkpoints/ */
};

struct xfp_ledger_unit {
	char *name; /* source tensor's name; a stack's with * for the expert number */
	char *role; /* "gate", "q" ... */
	enum xfp_class class_;
	enum xfp_plan plan;
	enum xfp_dtype dtype;  /* of every matrix of the unit */
	uint32_t experts;      /* matrices; 1 for a plain projection */
	uint64_t rows, cols;   /* of every matrix */
	uint32_t first_matrix; /* index into the ledger's matrices */
};
static inline uint64_t xfp_unit_weights(const struct xfp_ledger_unit *unit)
{
	return unit->experts * unit->rows * unit->cols;
}
/* In the checkpoint: what it costs to keep it. */
static inline uint64_t xfp_unit_source_bytes(const struct xfp_ledger_unit *unit)
{
	return xfp_unit_weights(unit) * (xfp_dtype_bits(unit->dtype) / 8);
}
/* As fp8: a byte a weight and a scale a row. */
static inline uint64_t xfp_unit_fp8_bytes(const struct xfp_ledger_unit *unit)
{
	return xfp_unit_weights(unit) + unit->experts * unit->rows * sizeof(float);
}

/* A small file that the checkpoint has not, made of what it says elsewhere: config.json of a GGUF. */
struct xfp_ledger_made {
	char *path;   /* where it is; NULL: it was not made, and lies in the model's folder */
	char hex[33]; /* XXH3-128 of it, which stands for who it is: it may be made again elsewhere */
};

/* Who wants to know how far work is that takes a while: that there is so much more of it than was said, and that so
 * much of it is done. Told in weights that are read, or in what takes as long as reading them; of a bundle, in bytes.
 * Called by any thread, several at a time. */
struct xfp_watcher {
	void (*more)(struct xfp_watcher *watcher, uint64_t work);
	void (*done)(struct xfp_watcher *watcher, uint64_t work);
};
/* NULL: nobody watches. */
static inline void xfp_watch_more(struct xfp_watcher *watcher, uint64_t work)
{
	if (watcher)
		watcher->more(watcher, work);
}
static inline void xfp_watch_done(struct xfp_watcher *watcher, uint64_t work)
{
	if (watcher)
		watcher->done(watcher, work);
}

/* The whole ledger in memory: what inspect writes and the front end and bundle writer read. */
struct xfp_ledger {
	char *model; /* folder of the checkpoint */
	char *family;
	char *format;
	char *packed; /* how weights are, "fp8"; "": all tensors lie there as they are */
	struct xfp_source_file *files;
	struct xfp_ledger_tensor *tensors;
	struct xfp_ledger_unit *units;
	struct xfp_ledger_matrix *matrices;
	char **extras;                /* names of small files to carry along, sorted */
	struct xfp_ledger_made *made; /* [extras]; NULL: none of them was made */
	uint32_t file_count, tensor_count, unit_count, matrix_count, extra_count;
	struct xfp_watcher *watcher; /* of those who read it; not stored; NULL: nobody watches */
};

enum xfp_status xfp_ledger_write(const char *path, const struct xfp_ledger *ledger, struct xfp_error *err);
enum xfp_status xfp_ledger_read(const char *path, struct xfp_ledger **out, struct xfp_error *err);

/* A ledger of one unit: `units` has one element, `matrices` its matrices (first_matrix 0),
 * `tensors` those that they refer to (renumbered, `tied` of none), `files` all, `extras` none. Reads
 * only what it needs, so that a stage's start does not grow with the model. A number that is not there is XFP_USAGE. */
enum xfp_status xfp_ledger_read_unit(const char *path, uint32_t unit, struct xfp_ledger **out, struct xfp_error *err);
/* Whether the files still are those that inspect saw, by identity (xfp_identity_at); XFP_FAILED names one
 * that is not. */
enum xfp_status xfp_ledger_check_files(const struct xfp_ledger *ledger, struct xfp_error *err);

/* Where an extra is, in a new string; NULL: out of memory. */
char *xfp_ledger_extra_path(const struct xfp_ledger *ledger, uint32_t extra);
static inline bool xfp_ledger_extra_made(const struct xfp_ledger *ledger, uint32_t extra)
{
	return ledger->made && ledger->made[extra].path;
}

void xfp_ledger_free(struct xfp_ledger *ledger); /* frees everything it points to; NULL is fine */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger.h - the result of inspect: every tensor and its fate, every unit and the locations of its matrices.
 *
 * One HDF5 file, `ledger.h5` in the work folder, written once by inspect and replaced as a whole.
 * It depends on the checkpoint's headers, the family's rules, formats, overrides and the lm_head policy only.
 *
 * Layout: the envelope of artifact.h, with its digest, then HDF5 (all tables are one-dimensional
 * datasets of little-endian compound records):
 *   attributes  kind "ledger", version 3, model (folder), family, format (of the checkpoint), packed (the method by
 *               which its weights are packed, or empty)
 *   /files      name, path, device, inode, size, mtime_ns, ctime_ns
 *   /tensors    name, reason, dtype, class, fate, rank, shape[8], file, offset, bytes, tied, recipe (2^64 - 1: none)
 *   /recipes    of packed tensors, as schemas/recipe/recipe.h has them: rows, cols, turned, outer, inner, beside,
 *               first_part, parts
 *   /parts      codec, version, rows, cols, parameters[4], first_component, components
 *   /components role, dtype, file, offset, bytes
 *   /units      name, role, class, plan, dtype, experts, rows, cols, first_matrix
 *   /matrices   tensor, view (base, rows, cols, row_stride, col_stride); a unit's matrices are
 *               consecutive, by expert number
 *   /extras     name: a path relative to the model's folder; for a synthesized file, the path that it was written
 *               to, and its XXH3-128 in hex; both are empty for others
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

/* How the pipeline processes a unit. */
enum xfp_plan {
	XFP_PLAN_FIT, /* outlier-extract, the fits, autoselect, pack */
	XFP_PLAN_FP8, /* pack alone, as e4m3 with a scale per row */
	XFP_PLAN_KEEP /* pack alone, unchanged */
};

struct xfp_ledger_tensor {
	char *name;
	char *reason; /* reason of the fate, for people: "norm: kept by rule", "tied to ..." */
	enum xfp_dtype dtype;
	enum xfp_class class_;
	enum xfp_fate fate; /* QUANTIZED here means that it belongs to a unit; the choice decides */
	uint32_t rank;
	uint64_t shape[8];
	uint32_t file;             /* for a packed tensor, file and offset of its first component */
	uint64_t offset, bytes;    /* `bytes`: size of its elements, unpacked */
	uint32_t tied;             /* TIED: the tensor it equals; otherwise UINT32_MAX */
	struct xfp_recipe *recipe; /* how to unpack it; NULL: the file stores its elements directly */
};
/* The size of a tensor in its files. */
uint64_t xfp_tensor_stored_bytes(const struct xfp_ledger_tensor *tensor);

struct xfp_ledger_matrix {
	uint32_t tensor;
	uint64_t base, rows, cols, row_stride, col_stride; /* see struct xfp_view of checkpoints/ */
};

struct xfp_ledger_unit {
	char *name; /* source tensor's name, with * for the expert number of a stack */
	char *role; /* "gate", "q" ... */
	enum xfp_class class_;
	enum xfp_plan plan;
	enum xfp_dtype dtype;  /* dtype of every matrix of the unit */
	uint32_t experts;      /* matrices; 1 for a plain projection */
	uint64_t rows, cols;   /* shape of every matrix */
	uint32_t first_matrix; /* index into the ledger's matrices */
};
static inline uint64_t xfp_unit_weights(const struct xfp_ledger_unit *unit)
{
	return unit->experts * unit->rows * unit->cols;
}
/* The size of a unit at source precision. */
static inline uint64_t xfp_unit_source_bytes(const struct xfp_ledger_unit *unit)
{
	return xfp_unit_weights(unit) * (xfp_dtype_bits(unit->dtype) / 8);
}
/* The size of a unit as fp8: a byte a weight and a scale a row. */
static inline uint64_t xfp_unit_fp8_bytes(const struct xfp_ledger_unit *unit)
{
	return xfp_unit_weights(unit) + unit->experts * unit->rows * sizeof(float);
}

/* A small file that the checkpoint lacks and that was synthesized from its metadata: config.json for a GGUF. */
struct xfp_ledger_synthesized {
	char *path;   /* its path; NULL: an original file in the model's folder */
	char hex[33]; /* its XXH3-128, which serves as its identity: it may be synthesized again elsewhere */
};

/* Progress callbacks for work that takes time: `more` announces additional work, `done` reports finished work. The unit
 * is a weight that is read, or an amount of work that takes as long; for a bundle, a byte. They are called from any
 * thread, and concurrently. */
struct xfp_watcher {
	void (*more)(struct xfp_watcher *watcher, uint64_t work);
	void (*done)(struct xfp_watcher *watcher, uint64_t work);
};
/* `watcher` NULL: no progress is reported. */
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

/* The whole ledger in memory: written by inspect, read by the front end and the bundle writer. */
struct xfp_ledger {
	char *model; /* folder of the checkpoint */
	char *family;
	char *format;
	char *packed; /* how weights are packed, "fp8"; "": no tensor is packed */
	struct xfp_source_file *files;
	struct xfp_ledger_tensor *tensors;
	struct xfp_ledger_unit *units;
	struct xfp_ledger_matrix *matrices;
	char **extras;                              /* names of small files to carry along, sorted */
	struct xfp_ledger_synthesized *synthesized; /* [extras]; NULL: none of them was synthesized */
	uint32_t file_count, tensor_count, unit_count, matrix_count, extra_count;
	struct xfp_watcher *watcher; /* set by the reader; not stored; NULL: none */
};

enum xfp_status xfp_ledger_write(const char *path, const struct xfp_ledger *ledger, struct xfp_error *err);
enum xfp_status xfp_ledger_read(const char *path, struct xfp_ledger **out, struct xfp_error *err);

/* Read a ledger of one unit: `units` has one element, `matrices` its matrices (first_matrix 0), `tensors` those that
 * they refer to (renumbered, without `tied`), `files` all, `extras` none. Reads only the necessary records, so that a
 * stage's start does not slow down with the size of the model. XFP_USAGE: there is no such unit. */
enum xfp_status xfp_ledger_read_unit(const char *path, uint32_t unit, struct xfp_ledger **out, struct xfp_error *err);
/* Accept the files on the devices that this host has them on: another host that mounts the same file system may give it
 * another device number, as NFS does. The rest of their identities still has to match. */
void xfp_ledger_accept_devices(struct xfp_ledger *ledger);
/* Check that the files are still those that inspect read, by identity (xfp_identity_at). XFP_FAILED: one has changed;
 * the message names it. */
enum xfp_status xfp_ledger_check_files(const struct xfp_ledger *ledger, struct xfp_error *err);

/* The path of an extra in a new string; NULL: out of memory. */
char *xfp_ledger_extra_path(const struct xfp_ledger *ledger, uint32_t extra);
static inline bool xfp_ledger_extra_is_synthesized(const struct xfp_ledger *ledger, uint32_t extra)
{
	return ledger->synthesized && ledger->synthesized[extra].path;
}

void xfp_ledger_free(struct xfp_ledger *ledger); /* frees everything that it points to; NULL is accepted */

#endif

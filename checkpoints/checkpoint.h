/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint.h - source checkpoints of any format: probe, list tensors, read rows.
 *
 * Opening a checkpoint reads headers only, and checks all of them: every listed file exists and has the size that its
 * header claims, byte ranges neither overlap nor leave holes, no name occurs twice. If a check fails, the result is
 * XFP_BAD_INPUT with a message that names the file, the tensor and the remedy. Nothing is mapped, and no code in a
 * checkpoint is executed.
 *
 * A format is one source file that fills in a `struct xfp_checkpoint_format`; open/probe.c chooses one.
 */
#ifndef XFP_CHECKPOINT_H
#define XFP_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/system/file.h"
#include "base/xfp_error.h"
#include "schemas/recipe/source_file.h"

struct xfp_recipe; /* schemas/recipe/recipe.h */

#define XFP_MAX_RANK 8
#define XFP_MAX_NAME 1024 /* longest tensor name, bytes */

struct xfp_source_tensor {
	char *name; /* UTF-8, any characters except NUL */
	enum xfp_dtype dtype;
	uint32_t rank;
	uint64_t shape[XFP_MAX_RANK]; /* row-major */
	uint32_t file;                /* index into `files`; for a packed tensor the file of its first component */
	uint64_t offset;              /* offset of the data in the file */
	uint64_t bytes;               /* size of the elements, unpacked */
	struct xfp_recipe *recipe;    /* how to reconstruct it; NULL if it is stored unpacked */
	const char *unread;           /* name of a form that cannot be read, static text; or NULL */
};
/* Return the bytes that a tensor occupies in its files. */
uint64_t xfp_source_stored_bytes(const struct xfp_source_tensor *tensor);

/* Return the packed form as static text, "gptq"; for ggml blocks their type; NULL if the tensor is not packed. */
const char *xfp_source_packed(const struct xfp_source_tensor *tensor);

/* A synthesized small file that the checkpoint does not contain, such as config.json from a GGUF's metadata. It is
 * carried along like an existing file; inspect writes it to the work folder. */
struct xfp_synthesized_file {
	char *name;
	char *bytes; /* NUL-terminated */
	size_t size;
};

struct xfp_checkpoint {
	char *folder;                        /* absolute path of the folder of its files */
	const char *format;                  /* "safetensors" */
	bool is_folder;                      /* MODEL was a folder: all its files belong to the checkpoint */
	bool apart;                          /* files next to MODEL do not belong to it: small files are synthesized */
	bool arranged;                       /* the reader created logical tensors itself: do not fold */
	const char *unread;                  /* name of a kind that cannot be read, static text; or NULL */
	char *config;                        /* text of config.json, or NULL */
	struct xfp_identity config_identity; /* of that file, taken before it was read */
	const char *packed;                  /* packed form of the weights, "fp8"; NULL if no tensor is packed */
	struct xfp_source_file *files;       /* files with tensors, and config.json if recipes depend on
	                                * it; sorted by name */
	uint32_t file_count;
	uint32_t members, without_crc;     /* of its archives, stored ones that are not empty; those of them without a
	                                * CRC-32. 0 in other formats */
	struct xfp_source_tensor *tensors; /* sorted by name, bytewise */
	uint32_t tensor_count;
	char **extras; /* config, tokenizer and other small files to carry along:
	                                    * paths relative to `folder`, sorted; no index, no weights */
	uint32_t extra_count;
	char **left_out; /* other files of the folder that are not weights, unordered */
	uint32_t left_out_count;
	struct xfp_synthesized_file *synthesized; /* the synthesized extras, sorted by name */
	uint32_t synthesized_count;
	char **notes; /* messages for the user, for instance tensors that the
	                                    * index omits; one line each */
	uint32_t note_count;
};

/* Prefix of the note that lists `left_out`. */
#define XFP_NOT_CARRIED "not copied into the bundle: "

/* Open a checkpoint; MODEL is a folder or a file. XFP_BAD_INPUT if a check fails. The caller closes it. */
enum xfp_status xfp_checkpoint_open(const char *model, struct xfp_checkpoint **out, struct xfp_error *err);
/* Open a checkpoint without folding packed weights: the stored parts are listed, for checkpoints whose parts do not fit
 * together. */
enum xfp_status xfp_checkpoint_open_stored(const char *model, struct xfp_checkpoint **out, struct xfp_error *err);
void xfp_checkpoint_close(struct xfp_checkpoint *checkpoint); /* NULL is fine */

/* Return the index of a tensor by exact name, or -1. */
int64_t xfp_checkpoint_find(const struct xfp_checkpoint *checkpoint, const char *name);

/* ------------------------------------------------------------------------------------------------ */

/*
 * A matrix W [rows, cols], y = W x, inside a source tensor: element (r, c) is the tensor's element number base + r *
 * row_stride + c * col_stride, counted in row-major order. This covers plain 2-D projections, one expert of a fused
 * stack, halves of a fused gate_up, interleaved rows and transposed storage. Readers always see W in this form.
 */
struct xfp_view {
	uint64_t base;
	uint64_t rows, cols;
	uint64_t row_stride, col_stride;
};

/* Location of a matrix, self-contained: a stage can read it without the checkpoint. */
struct xfp_matrix_source {
	const char *path;   /* file that holds the tensor */
	const char *tensor; /* its name, for messages */
	enum xfp_dtype dtype;
	uint64_t offset, bytes; /* the tensor's data in the file */
	struct xfp_view view;
	const struct xfp_identity *identity; /* expected identity of the file on opening; NULL accepts any */
	struct xfp_watcher *watcher;         /* observer of rows read in blocks (stages/quantize/rows.h), or NULL */
	/* For a packed tensor: its recipe, and the files that the components refer to by number. `path` and `offset`
	 * are those of the first component, `bytes` is the size of the elements; with an `identity`, each file must
	 * have the identity in `files`. */
	const struct xfp_recipe *recipe;
	const struct xfp_source_file *files;
};

struct xfp_matrix_reader; /* an open matrix; one thread at a time */

/* Open a matrix. Strings of `source` are borrowed until the reader is closed. The view is checked against `bytes`.
 * XFP_FAILED if a file does not have the expected identity. */
enum xfp_status xfp_matrix_open(const struct xfp_matrix_source *source, struct xfp_matrix_reader **out,
				struct xfp_error *err);
void xfp_matrix_close(struct xfp_matrix_reader *reader);

/* Read rows [first, first + count) in the source dtype to `buf`, row-major and contiguous: count * cols elements.
 * XFP_BAD_INPUT if the file has become shorter. */
enum xfp_status xfp_matrix_read(struct xfp_matrix_reader *reader, uint64_t first, uint64_t count, void *buf,
				struct xfp_error *err);

/* Return the number of rows to read at a time, so that a block has about `bytes` bytes: 1 to rows. It is larger for
 * transposed matrices, because each of their reads touches every source row. */
uint64_t xfp_matrix_block_rows(const struct xfp_matrix_source *source, uint64_t bytes);

/* Return the maximum memory of a reader. */
uint64_t xfp_matrix_reader_bytes(const struct xfp_matrix_source *source);

/* ------------------------------------------------------------------------------------------------ */

struct xfp_element_reader; /* a whole tensor; one thread at a time */

/* Open a whole tensor; parameters as xfp_matrix_open, and the view is ignored. */
enum xfp_status xfp_elements_open(const struct xfp_matrix_source *source, struct xfp_element_reader **out,
				  struct xfp_error *err);
void xfp_elements_close(struct xfp_element_reader *reader); /* NULL is fine */

/* Read bytes [offset, offset + size) of the tensor's elements, in the tensor's order. Read from front to back, in
 * blocks of about 1 MiB. */
enum xfp_status xfp_elements_read(struct xfp_element_reader *reader, uint64_t offset, uint64_t size, void *buf,
				  struct xfp_error *err);

/* Return the source of a whole tensor; the caller fills in the view. All pointers are borrowed from the checkpoint, and
 * the file's identity is not checked. */
struct xfp_matrix_source xfp_checkpoint_source(const struct xfp_checkpoint *checkpoint,
					       const struct xfp_source_tensor *tensor);

#endif

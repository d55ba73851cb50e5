/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint.h - source checkpoints, whatever their format: probe, list tensors, read rows.
 *
 * Opening a checkpoint reads headers only and checks it whole: every listed file is there and of
 * the size its header claims, byte ranges neither overlap nor leave holes, no name occurs twice. A
 * checkpoint that fails a check is XFP_BAD_INPUT with a message that names the file, the tensor
 * and the remedy. Nothing is ever mapped and nothing in a checkpoint is executed.
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
	char *name; /* UTF-8, any characters but NUL */
	enum xfp_dtype dtype;
	uint32_t rank;
	uint64_t shape[XFP_MAX_RANK]; /* row-major */
	uint32_t file;                /* index into `files`; of a packed tensor, that of its first component */
	uint64_t offset;              /* of the data, from the start of the file */
	uint64_t bytes;               /* of its elements, as they are or unpacked */
	struct xfp_recipe *recipe;    /* how it is unpacked; NULL: it lies there as it is */
	const char *unread;           /* the form, static text, that it can be listed in but not read; NULL: it can */
};
/* What it takes in its files. */
uint64_t xfp_source_stored_bytes(const struct xfp_source_tensor *tensor);

/* What it is packed as, static text: "gptq", of ggml blocks their type; NULL: it is not, wherever its elements lie. */
const char *xfp_source_packed(const struct xfp_source_tensor *tensor);

/* A small file that the checkpoint has not, made of what it says elsewhere: config.json of a GGUF's metadata. It is
 * carried along like one that lies there; inspect writes it into the work folder. */
struct xfp_made_file {
	char *name;
	char *bytes; /* with a 0 behind them */
	size_t size;
};

struct xfp_checkpoint {
	char *folder;                        /* the folder that holds its files, absolute */
	const char *format;                  /* "safetensors" */
	bool is_folder;                      /* MODEL was a folder: all that is in it belongs to it */
	bool apart;                          /* nothing beside MODEL belongs to it: what goes along is made */
	bool arranged;                       /* its reader made logical tensors itself: nothing is to be folded */
	const char *unread;                  /* what it is, static text, that is listed but not read; NULL: it can be */
	char *config;                        /* text of config.json, NULL when there is none */
	struct xfp_identity config_identity; /* of that file, from before it was read: no later text can pass for it */
	const char *packed;                  /* how weights are, "fp8"; NULL: all tensors lie there as they are */
	struct xfp_source_file *files;       /* those that hold tensors, and config.json where recipes follow from
	                                * it; sorted by name */
	uint32_t file_count;
	uint32_t members, without_crc;     /* of its archives, stored ones that are not empty; those of them without a
	                                * CRC-32. Of other formats 0 */
	struct xfp_source_tensor *tensors; /* sorted by name, bytewise */
	uint32_t tensor_count;
	char **extras; /* config, tokenizer and other small files to carry along:
	                                    * paths relative to `folder`, sorted; no index, no weights */
	uint32_t extra_count;
	char **left_out; /* files of the folder that are neither that nor weights, in no particular order */
	uint32_t left_out_count;
	struct xfp_made_file *made; /* those of the extras that were, sorted by name */
	uint32_t made_count;
	char **notes; /* what the user should know, for instance tensors that the
	                                    * index omits; one line each */
	uint32_t note_count;
};

/* How the note begins that tells of `left_out`. */
#define XFP_NOT_CARRIED "not carried: "

/* MODEL is a folder or a file. The caller closes what it opened. */
enum xfp_status xfp_checkpoint_open(const char *model, struct xfp_checkpoint **out, struct xfp_error *err);
/* The same with packed weights in the parts that they are stored in: what is left to look at where these do not belong
 * together. */
enum xfp_status xfp_checkpoint_open_stored(const char *model, struct xfp_checkpoint **out, struct xfp_error *err);
void xfp_checkpoint_close(struct xfp_checkpoint *checkpoint); /* NULL is fine */

/* Index of a tensor by exact name, or -1. */
int64_t xfp_checkpoint_find(const struct xfp_checkpoint *checkpoint, const char *name);

/* ------------------------------------------------------------------------------------------------ */

/*
 * One matrix W [rows, cols], y = W x, inside a source tensor: element (r, c) is the tensor's element
 * number base + r * row_stride + c * col_stride, counted in its flat row-major order. This covers
 * plain 2-D projections, one expert of a fused stack, halves of a fused gate_up, interleaved rows
 * and transposed storage; whatever the storage, readers see W normalised.
 */
struct xfp_view {
	uint64_t base;
	uint64_t rows, cols;
	uint64_t row_stride, col_stride;
};

/* Where a matrix is, self-contained: what a stage needs to read it without the checkpoint. */
struct xfp_matrix_source {
	const char *path;   /* file that holds the tensor */
	const char *tensor; /* its name, for messages */
	enum xfp_dtype dtype;
	uint64_t offset, bytes; /* the tensor's data in the file */
	struct xfp_view view;
	const struct xfp_identity *identity; /* which file that must be when it is opened; NULL: whichever is there */
	struct xfp_watcher *watcher;         /* who is told of rows in blocks (stages/quantize/rows.h); NULL: nobody */
	/* Of a packed tensor: how it is unpacked, and the files that its components number. Its `path` and `offset` are
	 * those of the first component, its `bytes` those of its elements, and with an `identity` each file must be as
	 * `files` says. */
	const struct xfp_recipe *recipe;
	const struct xfp_source_file *files;
};

struct xfp_matrix_reader; /* an open matrix; one thread at a time */

/* Strings of `source` are borrowed until the reader is closed. The view is checked against `bytes`. A file that is not
 * the one it should be is XFP_FAILED. */
enum xfp_status xfp_matrix_open(const struct xfp_matrix_source *source, struct xfp_matrix_reader **out,
				struct xfp_error *err);
void xfp_matrix_close(struct xfp_matrix_reader *reader);

/* Rows [first, first + count) in the source dtype, row-major and contiguous: count * cols elements
 * into `buf`. A file that has become shorter is XFP_BAD_INPUT. */
enum xfp_status xfp_matrix_read(struct xfp_matrix_reader *reader, uint64_t first, uint64_t count, void *buf,
				struct xfp_error *err);

/* Rows worth reading at a time so that a block takes about `bytes` bytes: at least 1, at most rows.
 * Transposed matrices answer with more rows, since each read of theirs touches every source row. */
uint64_t xfp_matrix_block_rows(const struct xfp_matrix_source *source, uint64_t bytes);

/* The most memory that a reader holds by itself. */
uint64_t xfp_matrix_reader_bytes(const struct xfp_matrix_source *source);

/* ------------------------------------------------------------------------------------------------ */

struct xfp_element_reader; /* a whole tensor; one thread at a time */

/* As xfp_matrix_open; the view is of no concern. */
enum xfp_status xfp_elements_open(const struct xfp_matrix_source *source, struct xfp_element_reader **out,
				  struct xfp_error *err);
void xfp_elements_close(struct xfp_element_reader *reader); /* NULL is fine */

/* Bytes [offset, offset + size) of the tensor's elements, in the tensor's own order. Meant to be read from front to
 * back, in blocks of a MiB or so. */
enum xfp_status xfp_elements_read(struct xfp_element_reader *reader, uint64_t offset, uint64_t size, void *buf,
				  struct xfp_error *err);

/* A whole tensor of a checkpoint; its view is to be filled in. All is borrowed from the checkpoint, and any file of its
 * name will do. */
struct xfp_matrix_source xfp_checkpoint_source(const struct xfp_checkpoint *checkpoint,
					       const struct xfp_source_tensor *tensor);

#endif

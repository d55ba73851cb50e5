/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state file: finished layers of an evaluation, so that it can be resumed.
 *
 *     16 bytes  MAGIC
 *     32        key: SHA-256 of the program's version, the identity of both models and the token ids
 *      8        zeros
 *      8        number of finished layers, and of all layers, 32 bits each
 *      8        sum of the errors after the word embedding
 *     16        of each layer: sums of the errors of the stream and of the layer alone
 *      ...      activations after the last finished layer, f32: of the model, then of the source
 *     32        SHA-256 of all that
 *
 * All in the machine's byte order: the file is only valid on this machine. A state of another evaluation, or a damaged
 * one, is never used; a file that is not a state is never overwritten.
 */
#include "model/evaluate/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/file.h"

#define MAGIC "xfp eval state 1"
#define HEAD 64
#define DIGEST 32
#define BUFFER ((size_t)1 << 20)
#define SHARE 10           /* writing states takes at most 1/SHARE of the time */
#define BYTES_A_SECOND 2e8 /* assumed speed of the first write */
#define MIN_SECONDS .02    /* the least that a write is assumed to take */

/* A state that is being written or read. */
struct state_file {
	int fd;
	char *path;
	uint64_t at; /* offset of the next read */
	struct xfp_sha256 sha;
	char *buffer;
};

static uint64_t state_bytes(const struct xfp_evaluation *e)
{
	uint64_t streams = xfp_evaluation_has_source(e) ? 2 : 1;

	return HEAD + sizeof(double) + e->evaluated.model.description->layers * sizeof *e->layers +
	       streams * xfp_evaluation_tokens(e) * e->evaluated.model.description->hidden * sizeof(float) + DIGEST;
}

/* ---- the key ---------------------------------------------------------------------------------------- */

static enum xfp_status make_key(struct xfp_evaluation *e, struct xfp_error *err)
{
	/* With XFP_FAST, results depend on the batch and on the instruction set. */
	const uint64_t counts[] = { e->tokens.sequences, e->tokens.length, xfp_evaluation_has_source(e),
				    e->request.fast, e->request.fast ? e->batching.sequences : 0 };
	struct xfp_sha256 sha;
	enum xfp_status status;

	xfp_sha256_init(&sha);
	xfp_sha256_update(&sha, MAGIC PACKAGE_VERSION, sizeof MAGIC PACKAGE_VERSION);
	xfp_sha256_update(&sha, counts, sizeof counts);
	if (e->request.fast)
		xfp_sha256_update(&sha, xfp_instructions(), strlen(xfp_instructions()));
	if (e->request.single)
		xfp_sha256_update(&sha, "single", sizeof "single");
	xfp_sha256_update(&sha, e->tokens.ids, xfp_evaluation_tokens(e) * sizeof *e->tokens.ids);
	if ((status = xfp_weights_identify(e->evaluated.model.weights, &sha, err)) ||
	    (xfp_evaluation_has_source(e) && (status = xfp_weights_identify(e->source.model.weights, &sha, err))))
		return status;
	xfp_sha256_final(&sha, e->state.key);
	return XFP_OK;
}

enum xfp_status xfp_evaluation_state_begin(struct xfp_evaluation *e, struct xfp_error *err)
{
	e->state.written_at = xfp_now();
	e->state.write_seconds = MIN_SECONDS + (double)state_bytes(e) / BYTES_A_SECOND;
	if (e->request.state_path)
		e->state.path = strdup(e->request.state_path);
	else if (xfp_weights_is_bundle(e->evaluated.model.weights))
		e->state.path = xfp_formatted("%s.eval", e->evaluated.model.path);
	else
		return XFP_OK;
	return e->state.path ? make_key(e, err) : xfp_no_memory(err);
}

/* ---- reading -------------------------------------------------------------------------------------- */

/* XFP_BAD_INPUT if the state ends too early, which is damage; XFP_FAILED if it cannot be read. */
static enum xfp_status read_bytes(struct state_file *file, void *to, size_t size, struct xfp_error *err)
{
	enum xfp_status status = xfp_pread(file->fd, to, size, file->at, file->path, err);

	file->at += size;
	if (!status)
		xfp_sha256_update(&file->sha, to, size);
	return status;
}

static enum xfp_status read_stream(struct xfp_evaluation *e, struct state_file *file, struct xfp_stream *stream,
				   struct xfp_error *err)
{
	size_t row = e->evaluated.model.description->hidden * sizeof(float), max = BUFFER > row ? BUFFER / row : 1;
	size_t tokens = xfp_evaluation_tokens(e);
	enum xfp_status status = XFP_OK;

	for (size_t first = 0; !status && first < tokens; first += max) {
		size_t count = tokens - first < max ? tokens - first : max;
		void *x = file->buffer;

		if (xfp_evaluation_stops(e))
			return xfp_fail(err, XFP_FAILED, "interrupted");
		if (!(status = read_bytes(file, x, count * row, err)))
			status = xfp_stream_write(stream, first, count, x, err);
	}
	return status;
}

/* Read everything; invalid unless it returns XFP_OK. */
static enum xfp_status read_all(struct xfp_evaluation *e, struct state_file *file, uint32_t *layers, double *embedding,
				struct xfp_error *err)
{
	char head[HEAD], digest[DIGEST], wanted[DIGEST];
	uint32_t counts[2];
	enum xfp_status status;

	if ((status = read_bytes(file, head, sizeof head - sizeof counts, err)) ||
	    (status = read_bytes(file, counts, sizeof counts, err)) ||
	    (status = read_bytes(file, embedding, sizeof *embedding, err)) ||
	    (status = read_bytes(file, e->layers, e->evaluated.model.description->layers * sizeof *e->layers, err)) ||
	    (status = read_stream(e, file, e->evaluated.stream, err)) ||
	    (xfp_evaluation_has_source(e) && (status = read_stream(e, file, e->source.stream, err))))
		return status;
	*layers = counts[0];
	xfp_sha256_final(&file->sha, (uint8_t *)wanted);
	if (!(status = read_bytes(file, digest, sizeof digest, err)) &&
	    (memcmp(digest, wanted, sizeof digest) || !counts[0] ||
	     counts[0] > e->evaluated.model.description->layers || counts[1] != e->evaluated.model.description->layers))
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: is damaged", file->path);
	return status;
}

/* Use the state only if its key is that of this evaluation. */
static enum xfp_status read_state(struct xfp_evaluation *e, struct state_file *file, uint64_t size,
				  struct xfp_error *err)
{
	char head[HEAD] = { 0 };
	double embedding = 0;
	uint32_t layers = 0;
	enum xfp_status status = xfp_pread(file->fd, head, size < sizeof head ? size : sizeof head, 0, file->path, err);

	if (status == XFP_FAILED)
		return status;
	if (memcmp(head, MAGIC, sizeof MAGIC - 1)) {
		xfp_evaluation_warn(
			e,
			"%s is not the state of an evaluation; it is not overwritten, and this evaluation saves "
			"no state",
			e->state.path);
		free(e->state.path);
		e->state.path = NULL;
		return XFP_OK;
	}
	if (memcmp(head + sizeof MAGIC - 1, e->state.key, sizeof e->state.key)) {
		xfp_evaluation_warn(e,
				    "%s is the state of another evaluation (other weights, tokens, options or "
				    "version); this one starts over",
				    e->state.path);
		return XFP_OK;
	}
	xfp_sha256_init(&file->sha);
	status = size == state_bytes(e) ? read_all(e, file, &layers, &embedding, err)
					: xfp_fail(err, XFP_BAD_INPUT, "%s: has another size", file->path);
	if (!status) {
		e->state.layers = layers;
		e->embedding_error = embedding;
		return XFP_OK;
	}
	memset(e->layers, 0, e->evaluated.model.description->layers * sizeof *e->layers);
	if (status != XFP_BAD_INPUT)
		return status;
	xfp_evaluation_warn(e, "%s is damaged; the evaluation starts over", e->state.path);
	return XFP_OK;
}

enum xfp_status xfp_evaluation_state_load(struct xfp_evaluation *e, struct xfp_error *err)
{
	struct state_file file = { .fd = -1 };
	size_t row = e->evaluated.model.description->hidden * sizeof(float);
	enum xfp_status status;
	struct stat st;

	if (!e->state.path || (access(e->state.path, F_OK) && errno == ENOENT)) {
		e->state.examined = true;
		return XFP_OK;
	}
	/* Copied, since messages outlive the state's path. */
	if (!(file.buffer = malloc(BUFFER > row ? BUFFER : row)) || !(file.path = strdup(e->state.path)))
		status = xfp_no_memory(err);
	else if (!(status = xfp_open_regular(file.path, &file.fd, &st, err)))
		status = read_state(e, &file, (uint64_t)st.st_size, err);
	e->state.examined = !status;
	if (file.fd >= 0)
		close(file.fd);
	free(file.buffer);
	free(file.path);
	return status;
}

/* ---- writing -------------------------------------------------------------------------------------- */

static enum xfp_status write_bytes(struct state_file *file, const void *from, size_t size, struct xfp_error *err)
{
	xfp_sha256_update(&file->sha, from, size);
	return xfp_write(file->fd, from, size, file->path, err);
}

static enum xfp_status write_stream(const struct xfp_evaluation *e, struct state_file *file,
				    const struct xfp_stream *stream, struct xfp_error *err)
{
	size_t row = e->evaluated.model.description->hidden * sizeof(float), max = BUFFER > row ? BUFFER / row : 1;
	size_t tokens = xfp_evaluation_tokens(e);
	enum xfp_status status = XFP_OK;

	for (size_t first = 0; !status && first < tokens; first += max) {
		size_t count = tokens - first < max ? tokens - first : max;
		void *x = file->buffer;

		if (!(status = xfp_stream_read(stream, first, count, x, err)))
			status = write_bytes(file, x, count * row, err);
	}
	return status;
}

static enum xfp_status write_all(const struct xfp_evaluation *e, struct state_file *file, uint32_t layers,
				 struct xfp_error *err)
{
	const uint32_t counts[2] = { layers, e->evaluated.model.description->layers };
	uint8_t digest[DIGEST];
	enum xfp_status status;

	xfp_sha256_init(&file->sha);
	if ((status = write_bytes(file, MAGIC, sizeof MAGIC - 1, err)) ||
	    (status = write_bytes(file, e->state.key, sizeof e->state.key, err)) ||
	    (status = write_bytes(file, (const char[8]){ 0 }, 8, err)) ||
	    (status = write_bytes(file, counts, sizeof counts, err)) ||
	    (status = write_bytes(file, &e->embedding_error, sizeof e->embedding_error, err)) ||
	    (status = write_bytes(file, e->layers, e->evaluated.model.description->layers * sizeof *e->layers, err)) ||
	    (status = write_stream(e, file, e->evaluated.stream, err)) ||
	    (xfp_evaluation_has_source(e) && (status = write_stream(e, file, e->source.stream, err))))
		return status;
	xfp_sha256_final(&file->sha, digest);
	return write_bytes(file, digest, sizeof digest, err);
}

static enum xfp_status write_state(const struct xfp_evaluation *e, uint32_t layers, struct xfp_error *err)
{
	size_t row = e->evaluated.model.description->hidden * sizeof(float);
	struct xfp_pending pending = { 0 };
	struct state_file file = { .buffer = malloc(BUFFER > row ? BUFFER : row) };
	enum xfp_status status = file.buffer ? xfp_pending_open(e->state.path, &pending, err) : xfp_no_memory(err);

	file.fd = pending.fd;
	file.path = pending.path;
	if (!status && !(status = write_all(e, &file, layers, err)))
		status = xfp_pending_publish(&pending, false, err);
	xfp_pending_discard(&pending);
	free(file.buffer);
	return status;
}

void xfp_evaluation_state_save(struct xfp_evaluation *e, uint32_t layers, bool now)
{
	double began = xfp_now();
	struct xfp_error err;

	if (!e->state.path || e->state.unwritable || !layers || layers == e->state.layers ||
	    (!now && began - e->state.written_at < SHARE * e->state.write_seconds))
		return;
	if (write_state(e, layers, &err)) {
		xfp_evaluation_warn(e, "cannot save finished layers: %s", err.text);
		e->state.unwritable = true;
		return;
	}
	e->state.layers = layers;
	e->state.written_at = xfp_now();
	e->state.write_seconds = MIN_SECONDS + e->state.written_at - began;
}

void xfp_evaluation_state_remove(struct xfp_evaluation *e)
{
	if (e->state.path && e->state.layers)
		unlink(e->state.path);
}

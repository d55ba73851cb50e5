/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.c - `xfp unpack`: convert a bundle to a folder of safetensors that any engine loads.
 *
 * input    a bundle
 * output   DIR: model.safetensors or its shards and their index, and the small files
 *
 * DIR must be new or empty. A failure, such as a damaged bundle, leaves it unchanged.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/printable.h"
#include "base/system/command_line.h"
#include "base/system/file.h"
#include "base/system/mapped.h"
#include "base/system/new_folder.h"
#include "base/system/output.h"
#include "base/system/signals.h"
#include "base/text/screen.h"
#include "base/text/size.h"
#include "checkpoints/folder.h"
#include "commands/ui/commands.h"
#include "commands/ui/faults.h"
#include "commands/ui/report.h"
#include "commands/unpack/config.h"
#include "commands/unpack/safetensors_write.h"
#include "commands/unpack/unpack.h"
#include "schemas/json_print.h"
#include "schemas/layout/classes.h"

#define DEFAULT_SHARD_BYTES UINT64_C(5000000000)
#define SINGLE_NAME "model.safetensors"
#define INDEX_NAME "model.safetensors.index.json"

struct unpack_request {
	const char *bundle, *folder;
	bool source_dtype, json, unchecked;
	enum xfp_dtype dtype;
	const char *dtype_name; /* as in config.json; NULL: each tensor's own */
	uint64_t shard_bytes;
	const char *program;
};

/* A run of `xfp unpack`. */
struct unpacking {
	const struct unpack_request *request;
	struct xfp_bundle *bundle;
	struct xfp_bundle_info info;
	struct xfp_tensor_views views;
	struct xfp_safetensor *tensors; /* tensors to write, in the bundle's order */
	uint32_t *from;                 /* index of the tensor that each is a copy of */
	uint32_t *shard;                /* of each; never decreases */
	uint32_t count, shards, kept;   /* kept: those not decoded */
	uint64_t bytes;
	struct xfp_created created; /* removed after a failure */
	json_t *files;              /* their names */
	bool stripped;              /* config.json lost its description of packed weights */
	struct xfp_signals signals;
};

/* ---- assigning tensors to shards --------------------------------------------------------------- */

static enum xfp_status lay_out(struct unpacking *u, struct xfp_error *err)
{
	struct xfp_tensor_info info, equal;
	uint64_t filled = 0, max = u->request->shard_bytes;

	u->tensors = calloc(u->info.tensors + (size_t)1, sizeof *u->tensors);
	u->from = calloc(u->info.tensors + (size_t)1, sizeof *u->from);
	u->shard = calloc(u->info.tensors + (size_t)1, sizeof *u->shard);
	if (!u->tensors || !u->from || !u->shard)
		return xfp_no_memory(err);
	for (uint32_t t = 0; xfp_bundle_tensor(u->bundle, t, &info); t++) {
		uint32_t from = info.fate == XFP_FATE_TIED ? info.tied : t;
		struct xfp_safetensor *out = &u->tensors[u->count];

		if (info.fate == XFP_FATE_DROPPED || !xfp_bundle_tensor(u->bundle, from, &equal))
			continue;
		*out = (struct xfp_safetensor){ .name = info.name,
						.dtype = (enum xfp_dtype)info.dtype,
						.rank = info.rank };
		if (equal.fate == XFP_FATE_QUANTIZED && !u->request->source_dtype)
			out->dtype = u->request->dtype;
		u->kept += equal.fate != XFP_FATE_QUANTIZED;
		out->bytes = info.elements * xfp_dtype_bits(out->dtype) / 8;
		memcpy(out->shape, info.shape, sizeof out->shape);
		if (filled && (out->bytes > max || filled > max - out->bytes)) {
			u->shards++;
			filled = 0;
		}
		filled += out->bytes;
		u->bytes += out->bytes;
		u->shard[u->count] = u->shards;
		u->from[u->count++] = from;
	}
	u->shards++;
	return XFP_OK;
}

static char *shard_name(const struct unpacking *u, uint32_t shard)
{
	return u->shards == 1 ? strdup(SINGLE_NAME)
			      : xfp_formatted("model-%05" PRIu32 "-of-%05" PRIu32 ".safetensors", shard + 1, u->shards);
}

/* ---- files --------------------------------------------------------------------------------------- */

/* Create the folders of DIR that a file's name needs. */
static enum xfp_status make_parents(struct unpacking *u, const char *name, struct xfp_error *err)
{
	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		char *path = xfp_formatted("%s/%.*s", u->request->folder, (int)(slash - name), name);
		enum xfp_status status;

		if (!path)
			return xfp_no_memory(err);
		if (!mkdir(path, 0777)) {
			if ((status = xfp_created_add(&u->created, path, err)))
				return status;
			continue;
		}
		status = errno == EEXIST ? XFP_OK : xfp_fail_errno(err, errno, "%s", path);
		free(path);
		if (status)
			return status;
	}
	return XFP_OK;
}

static enum xfp_status note_file(struct unpacking *u, const char *name, struct xfp_error *err)
{
	if (json_array_append_new(u->files, json_string(name)))
		return xfp_no_memory(err);
	return xfp_created_add(&u->created, xfp_path(u->request->folder, name), err);
}

static enum xfp_status write_small(struct unpacking *u, const char *name, const void *data, size_t size,
				   struct xfp_error *err)
{
	char *path = xfp_path(u->request->folder, name);
	enum xfp_status status = path ? make_parents(u, name, err) : xfp_no_memory(err);

	if (!status && !(status = note_file(u, name, err)))
		status = xfp_write_file(path, data, size, true, err);
	free(path);
	return status;
}

/* ---- the work ---------------------------------------------------------------------------------- */

static enum xfp_status write_shard(struct unpacking *u, uint32_t shard, uint32_t first, uint32_t count,
				   struct xfp_error *err)
{
	char *name = shard_name(u, shard), *path = name ? xfp_path(u->request->folder, name) : NULL;
	struct xfp_pending file = { .fd = -1 };
	enum xfp_status status;

	status = path ? xfp_safetensors_begin(path, u->tensors + first, count, &file, err) : xfp_no_memory(err);
	if (!status) /* its temporary name, too */
		status = xfp_created_add(&u->created, strdup(file.path), err);
	for (uint32_t i = first; !status && i < first + count; i++)
		status = xfp_unpack_tensor(u->bundle, &u->views, u->from[i], u->tensors[i].dtype, file.fd,
					   u->tensors[i].offset, path, &u->signals, err);
	if (!status && !(status = note_file(u, name, err)))
		status = xfp_pending_publish(&file, true, err);
	xfp_pending_discard(&file);
	free(name);
	free(path);
	return status;
}

static enum xfp_status write_shards(struct unpacking *u, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	uint32_t first = 0;

	for (uint32_t shard = 0; !status && shard < u->shards; shard++) {
		uint32_t end = first;

		while (end < u->count && u->shard[end] == shard)
			end++;
		status = write_shard(u, shard, first, end - first, err);
		first = end;
	}
	return status;
}

/* The index of shards, in the format of Hugging Face. */
static enum xfp_status write_index(struct unpacking *u, struct xfp_error *err)
{
	json_t *map = json_object(), *root;
	enum xfp_status status;
	char *text;

	for (uint32_t i = 0; i < u->count; i++) {
		char *name = shard_name(u, u->shard[i]);

		xfp_json_put(&map, u->tensors[i].name, name ? json_string(name) : NULL);
		free(name);
	}
	root = XFP_JSON({ "metadata", XFP_JSON({ "total_size", xfp_json_count(u->bytes) }) }, { "weight_map", map });
	text = json_dumps(root, JSON_INDENT(2) | JSON_SORT_KEYS);
	status = text ? write_small(u, INDEX_NAME, text, strlen(text), err) : xfp_no_memory(err);
	free(text);
	json_decref(root);
	return status;
}

/* Write a file of the checkpoint unchanged, except that config.json loses its description of packed weights. */
static enum xfp_status write_file(struct unpacking *u, const char *name, const char *data, size_t size,
				  struct xfp_error *err)
{
	enum xfp_status status;
	size_t left = size;
	char *text = NULL;

	if (xfp_is_packing_file(name))
		return XFP_OK;
	if (!strcmp(name, "config.json") && !(text = malloc(size + 1)))
		return xfp_no_memory(err);
	u->stripped |= text && xfp_config_unpack(data, size, text, &left);
	status = u->stripped && text ? write_small(u, name, text, left, err) : write_small(u, name, data, size, err);
	free(text);
	return status;
}

static enum xfp_status write_files(struct unpacking *u, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	struct xfp_file_info file;
	void *copy;

	for (uint32_t f = 0; !status && xfp_bundle_file(u->bundle, f, &file); f++) {
		/* A file with such a name would replace the weights. */
		if (strstr(file.name, ".safetensors"))
			return xfp_fail(err, XFP_BAD_INPUT,
					"%s: its file '%s' could replace weights; do not trust this bundle",
					u->request->bundle, xfp_printable(file.name).text);
		/* From a copy: write() would report an unreadable page as "bad address". */
		if (!(copy = malloc(file.bytes + 1)))
			return xfp_no_memory(err);
		memcpy(copy, file.data, file.bytes);
		status = write_file(u, file.name, copy, file.bytes, err);
		free(copy);
	}
	return status;
}

/* Check the bundle's digests first: a damaged model that loads is worse than none. */
static enum xfp_status check_bytes(const struct unpacking *u, struct xfp_error *err)
{
	struct xfp_faults faults = { .program = u->request->program };
	enum xfp_status status = xfp_verify_bytes(u->bundle, &faults, err);

	xfp_faults_rest(&faults);
	if (!status && faults.status)
		status = xfp_fail(err, faults.status, "%s: damaged; copy or convert it again (--no-check unpacks it)",
				  u->request->bundle);
	xfp_faults_free(&faults);
	return status;
}

/* config.json is copied, so it may name another dtype than the weights now have. */
static void note_config(const struct unpacking *u)
{
	uint32_t number = xfp_bundle_find_file(u->bundle, "config.json");
	const char *named = NULL;
	struct xfp_file_info file;
	json_t *config;

	if (u->stripped)
		fprintf(stderr, "%s: note: config.json has no quantization_config: the weights are no longer packed\n",
			u->request->program);
	if (!u->request->dtype_name || !xfp_bundle_file(u->bundle, number, &file))
		return;
	config = json_loadb(file.data, file.bytes, 0, NULL);
	if (!(named = json_string_value(json_object_get(config, "torch_dtype"))))
		named = json_string_value(json_object_get(config, "dtype"));
	if (named && strcmp(named, u->request->dtype_name))
		fprintf(stderr,
			"%s: note: config.json still says %s; engines that follow it round the weights to that\n",
			u->request->program, xfp_printable(named).text);
	json_decref(config);
}

/* Print the result. Failing to print is a failure, too, and nothing is left behind; main() prints the reason. */
static enum xfp_status print_result(const struct unpacking *u, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	char bytes[32];

	if (!u->request->json) {
		xfp_screen_printf(stdout, "%s: %" PRIu32 " tensors, %s, in %" PRIu32 " %s; %" PRIu32 " other files\n",
				  u->request->folder, u->count, xfp_human((double)u->bytes, "B", bytes), u->shards,
				  u->shards == 1 ? "file" : "files", u->info.files);
		if (!u->request->source_dtype)
			printf("decoded weights are %s; %" PRIu32 " kept tensors are unchanged\n",
			       xfp_dtype_name(u->request->dtype), u->kept);
	} else {
		status = xfp_json_print(XFP_JSON({ "files", json_incref(u->files) },
						 { "tensors", xfp_json_count(u->count) },
						 { "bytes", xfp_json_count(u->bytes) }),
					err);
	}
	return status || xfp_output_flush() ? status : XFP_FAILED;
}

/* A signal is delivered to any thread that does not block it, and threads inherit the mask they are created with. So
 * create all threads while signals are blocked, and unblock them until there are files to remove. */
static void make_threads(struct xfp_signals *signals)
{
	int threads = 0;

	xfp_signals_block(signals);
#pragma omp parallel reduction(+ : threads)
	threads++;
	xfp_signals_release(signals);
}

static enum xfp_status unpack(const struct unpack_request *request, struct xfp_error *err)
{
	struct unpacking u = { .request = request, .files = json_array() };
	enum xfp_status status = u.files ? XFP_OK : xfp_no_memory(err);

	xfp_mapped_begin(request->program, request->bundle, &u.created);
	if (status || (status = xfp_bundle_open(request->bundle, &u.bundle, err)))
		goto done;
	xfp_bundle_describe(u.bundle, &u.info);
	make_threads(&u.signals);
	if ((status = xfp_tensor_views(u.bundle, &u.views, err)) || (status = lay_out(&u, err)) ||
	    (status = xfp_new_folder_check(request->folder, err)) ||
	    (!request->unchecked && (status = check_bytes(&u, err))))
		goto done;
	/* From here on there are files to remove. The index, which completes the checkpoint, is written last. */
	xfp_signals_block(&u.signals);
	if ((status = xfp_new_folder_make(&u.created, request->folder, err)) || (status = write_files(&u, err)) ||
	    (status = write_shards(&u, err)) || (u.shards > 1 && (status = write_index(&u, err))) ||
	    (status = xfp_created_sync(&u.created, err)) || (status = print_result(&u, err)))
		xfp_created_undo(&u.created);
	else
		note_config(&u);
	if (u.signals.interrupted)
		xfp_screen_printf(stderr, "\n%s: interrupted; %s is unchanged\n", request->program, request->folder);
	xfp_signals_release(&u.signals);
done:
	xfp_mapped_end();
	xfp_created_free(&u.created);
	free(u.tensors);
	free(u.from);
	free(u.shard);
	xfp_tensor_views_free(&u.views);
	json_decref(u.files);
	xfp_bundle_close(u.bundle);
	return status;
}

/* ---- options ----------------------------------------------------------------------------------- */

static const char *const dtype_names[] = { "bf16", "f16", "f32", "source", NULL };
#define SOURCE_DTYPE 3

static void set_dtype(struct unpack_request *request, unsigned number)
{
	static const struct {
		const char *long_name;
		enum xfp_dtype dtype;
	} dtypes[] = { { "bfloat16", XFP_BF16 }, { "float16", XFP_F16 }, { "float32", XFP_F32 } };

	request->source_dtype = number == SOURCE_DTYPE;
	if (request->source_dtype)
		return;
	request->dtype_name = dtypes[number].long_name;
	request->dtype = dtypes[number].dtype;
}

/* Whether DIR looks like a file name, such as out.gguf, which no program would open as a folder. Prints the error. */
static bool names_a_file(const struct unpack_request *request)
{
	static const char *const suffixes[] = { ".gguf", ".safetensors", ".bin", ".pt",  ".pth", ".ckpt",
						".onnx", ".npz",         ".h5",  ".xfp", ".tar", ".zip" };
	size_t length = strlen(request->folder), which = 0;
	struct stat st;

	for (; which < sizeof suffixes / sizeof *suffixes; which++)
		if (length >= strlen(suffixes[which]) &&
		    !strcasecmp(request->folder + length - strlen(suffixes[which]), suffixes[which]))
			break;
	if (strcmp(request->folder, "-") != 0 && which == sizeof suffixes / sizeof *suffixes)
		return false;
	if (!stat(request->folder, &st) && S_ISDIR(st.st_mode))
		return false;
	xfp_screen_printf(stderr, "%s: -o %s: is a file name, but a checkpoint is a folder; name a folder%s\n",
			  request->program, request->folder,
			  which ? "" : ", and make a GGUF file of it with llama.cpp's converter");
	return true;
}

int xfp_main_unpack(int argc, char **argv)
{
	struct unpack_request request = { .program = argv[0], .shard_bytes = DEFAULT_SHARD_BYTES };
	unsigned dtype = SOURCE_DTYPE;
	const struct xfp_option options[] = {
		{ .name = "output",
		  .path = true,
		  .letter = 'o',
		  .value = "DIR",
		  .text = "write to this folder, which must be new or empty",
		  .into = &request.folder },
		{ .name = "dtype",
		  .value = "TYPE",
		  .text = "type of decoded weights (default: source, the original one);\n"
			  "kept tensors are not converted",
		  .choices = dtype_names,
		  .choice = &dtype },
		{ .name = "max-shard-size",
		  .value = "N",
		  .complete = "5GB|10GB|50GB",
		  .text = "maximum bytes of data in a file, with K, M, G, KB, MB, GB (powers of 1000)\n"
			  "or KiB, MiB, GiB (powers of 1024); default 5GB",
		  .into_size = &request.shard_bytes },
		{ .name = "no-check", .text = "do not check the bundle's digests first", .set = &request.unchecked },
		{ .name = "json", .text = "print one JSON object: files, tensors, bytes", .set = &request.json },
		{ 0 },
	};
	struct xfp_command_line line = {
		.usage = "xfp unpack [--dtype bf16|f16|f32|source] [--max-shard-size N] [--no-check]\n"
			 "                  [--json] -o DIR BUNDLE",
		.operand = "BUNDLE",
		.summary = "Writes a bundle as a checkpoint: safetensors with the original names and shapes, and\n"
			   "the small files. Quantized weights are decoded; kept tensors are copied byte for byte.",
		.options = options,
	};
	struct xfp_error err = { .status = XFP_OK };
	int status;

	if (!xfp_command_line_read(&line, argc, argv, &status))
		return status;
	set_dtype(&request, dtype);
	if (!request.folder || !*request.folder)
		return xfp_command_line_refuse(&line, "the output folder is missing; name it with -o DIR");
	if (names_a_file(&request) || !(request.bundle = xfp_command_line_bundle(&line)))
		return XFP_USAGE;
	status = (int)unpack(&request, &err);
	if (status && *err.text)
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/calibration.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/sha256.h"
#include "base/system/file.h"
#include "schemas/h5.h"

#define EMBEDDING "embed_tokens.weight"
#define NORM "norm.weight"
#define ENCODER_EMBEDDINGS "embeddings."
#define ENCODER_POSITIONS "embeddings.position_ids" /* 0, 1, 2 ..., which nothing reads */

/* ---- writing ------------------------------------------------------------------------------------- */

static enum xfp_status write_all(struct xfp_artifact *a, const struct xfp_calibration *c, struct xfp_error *err)
{
	enum xfp_status status;

	(void)((status = xfp_h5_write_text(a, "sha256", c->sha256, err)) ||
	       (status = xfp_h5_write_text(a, "source", c->source, err)) ||
	       (status = xfp_h5_write_text(a, "description", c->description, err)) ||
	       (status = xfp_h5_write_text(a, "model", c->model, err)) ||
	       (status = xfp_h5_write_text(a, "identity", c->identity, err)) ||
	       (status = xfp_h5_write_text(a, "body", c->body, err)) ||
	       (status = xfp_h5_write_text(a, "head", c->head, err)) ||
	       (status = xfp_h5_write_text(a, "notes", c->notes, err)) ||
	       (status = xfp_h5_write_u64(a, "layers", c->layers, err)) ||
	       (status = xfp_h5_write_u64(a, "hidden", c->hidden, err)) ||
	       (status = xfp_h5_write_u64(a, "experts_per_token", c->experts_per_token, err)) ||
	       (status = xfp_h5_write_u64(a, "windows", c->windows, err)) ||
	       (status = xfp_h5_write_u64(a, "length", c->length, err)) ||
	       (status = xfp_h5_write_u64(a, "memory", c->memory, err)) ||
	       (status = xfp_h5_write(a, "ids", H5T_NATIVE_UINT32, c->windows * c->length, c->ids, err)));
	if (!status && c->seconds && !(status = xfp_h5_write_f64(a, "generating", c->generating, err)))
		status = xfp_h5_write(a, "seconds", H5T_NATIVE_DOUBLE, c->layers + (uint64_t)1, c->seconds, err);
	return status;
}

/* The same ids in windows of another length have other inputs. */
static void hash_windows(struct xfp_calibration *c)
{
	const uint32_t length = (uint32_t)c->length;
	struct xfp_sha256 sha;
	uint8_t digest[32];

	xfp_sha256_init(&sha);
	xfp_sha256_update(&sha, &length, sizeof length);
	xfp_sha256_update(&sha, c->ids, c->windows * c->length * sizeof *c->ids);
	xfp_sha256_final(&sha, digest);
	xfp_hex(digest, sizeof digest, c->sha256);
}

enum xfp_status xfp_calibration_write(const char *work, struct xfp_calibration *c, struct xfp_error *err)
{
	static const struct xfp_artifact_label label = { XFP_CALIBRATION_KIND, XFP_CALIBRATION_VERSION, "", "", "", 0 };
	char *path = xfp_path(work, XFP_CALIBRATION_FILE);
	struct xfp_pending pending = { .fd = -1 };
	struct xfp_artifact a = { 0 };
	enum xfp_status status = path ? xfp_pending_open(path, &pending, err) : xfp_no_memory(err);

	hash_windows(c);
	if (!status)
		status = xfp_artifact_create(pending.path, &a, err);
	if (!status && !(status = write_all(&a, c, err)) && !(status = xfp_artifact_finish(&a, &label, err)))
		status = xfp_pending_publish(&pending, true, err);
	xfp_artifact_close(&a);
	xfp_pending_discard(&pending);
	free(path);
	return status;
}

/* ---- reading ------------------------------------------------------------------------------------- */

static enum xfp_status read_hex(struct xfp_artifact *a, const char *name, size_t size, char *hex, struct xfp_error *err)
{
	char *text = NULL;
	enum xfp_status status = xfp_h5_read_text(a, name, &text, err);

	if (!status && (strlen(text) != size || strspn(text, "0123456789abcdef") != size))
		status = xfp_h5_damaged(a, err, "impossible %s", name);
	if (!status)
		memcpy(hex, text, size + 1);
	free(text);
	return status;
}

static enum xfp_status read_seconds(struct xfp_artifact *a, struct xfp_calibration *c, struct xfp_error *err)
{
	uint64_t count;
	bool has;
	enum xfp_status status = xfp_h5_has(a, "seconds", &has, err);

	if (status || !has)
		return status;
	if ((status = xfp_h5_read_f64(a, "generating", &c->generating, err)) ||
	    (status = xfp_h5_count(a, "seconds", &count, err)))
		return status;
	if (count != c->layers + (uint64_t)1)
		return xfp_h5_damaged(a, err, "impossible number of seconds");
	if (!(c->seconds = malloc(count * sizeof *c->seconds)))
		return xfp_no_memory_for(err, a->path);
	return xfp_h5_read(a, "seconds", H5T_NATIVE_DOUBLE, count, c->seconds, err);
}

static enum xfp_status read_all(struct xfp_artifact *a, struct xfp_calibration *c, struct xfp_error *err)
{
	uint64_t layers, hidden, experts, count, claimed, bytes;
	enum xfp_status status;

	(void)((status = read_hex(a, "sha256", 64, c->sha256, err)) ||
	       (status = xfp_h5_read_text(a, "source", &c->source, err)) ||
	       (status = read_hex(a, "description", 32, c->description, err)) ||
	       (status = xfp_h5_read_text(a, "model", &c->model, err)) ||
	       (status = read_hex(a, "identity", 64, c->identity, err)) ||
	       (status = xfp_h5_read_text(a, "body", &c->body, err)) ||
	       (status = xfp_h5_read_text(a, "head", &c->head, err)) ||
	       (status = xfp_h5_read_text(a, "notes", &c->notes, err)) ||
	       (status = xfp_h5_read_u64(a, "layers", &layers, err)) ||
	       (status = xfp_h5_read_u64(a, "hidden", &hidden, err)) ||
	       (status = xfp_h5_read_u64(a, "experts_per_token", &experts, err)) ||
	       (status = xfp_h5_read_u64(a, "windows", &c->windows, err)) ||
	       (status = xfp_h5_read_u64(a, "length", &c->length, err)) ||
	       (status = xfp_h5_read_u64(a, "memory", &c->memory, err)) ||
	       (status = xfp_h5_count(a, "ids", &count, err)));
	if (status)
		return status;
	if (!layers || layers > INT32_MAX || !hidden || hidden > UINT32_MAX || experts > UINT32_MAX || !count ||
	    !xfp_mul(c->windows, c->length, &claimed) || claimed != count || !xfp_mul(count, sizeof *c->ids, &bytes))
		return xfp_h5_damaged(a, err, "impossible shape");
	c->layers = (uint32_t)layers;
	c->hidden = (uint32_t)hidden;
	c->experts_per_token = (uint32_t)experts;
	if (!(c->ids = malloc(bytes)))
		return xfp_no_memory_for(err, a->path);
	status = xfp_h5_read(a, "ids", H5T_NATIVE_UINT32, count, c->ids, err);
	return status ? status : read_seconds(a, c, err);
}

enum xfp_status xfp_calibration_read(const char *work, struct xfp_calibration *calibration, bool *found,
				     struct xfp_error *err)
{
	char *path = xfp_path(work, XFP_CALIBRATION_FILE);
	struct xfp_calibration read = { .ids = NULL };
	struct xfp_artifact a = { 0 };
	struct stat st = { 0 };
	enum xfp_status status = path ? xfp_stat(path, &st, err) : xfp_no_memory(err);

	*calibration = read;
	*found = !status && st.st_mode;
	if (*found) {
		status = xfp_artifact_open(path, XFP_CALIBRATION_KIND, XFP_CALIBRATION_VERSION, "", &a, err);
		if (!status)
			status = read_all(&a, &read, err);
		xfp_artifact_close(&a);
	}
	if (status)
		xfp_calibration_free(&read);
	*calibration = read;
	free(path);
	return status;
}

void xfp_calibration_free(struct xfp_calibration *c)
{
	free(c->source);
	free(c->model);
	free(c->body);
	free(c->head);
	free(c->notes);
	free(c->ids);
	free(c->seconds);
	*c = (struct xfp_calibration){ .ids = NULL };
}

/* ---- layers -------------------------------------------------------------------------------------- */

/* The rest of a tensor's name after the prefix of the model's tensors; NULL if it has another prefix. */
static const char *name_in_body(const struct xfp_calibration *c, const char *tensor)
{
	size_t length = strlen(c->body);

	return strncmp(tensor, c->body, length) ? NULL : tensor + length;
}

/* The rest of a name after "layers.", or "encoder.layer." of encoders; NULL if it begins with neither. */
static const char *name_in_layers(const char *name)
{
	static const char *const prefixes[] = { "layers.", "encoder.layer." };

	for (size_t i = 0; name && i < sizeof prefixes / sizeof *prefixes; i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return name + strlen(prefixes[i]);
	return NULL;
}

/* Parse "layers.N.NAME". */
static bool parse_layer(const char *name, uint32_t *layer)
{
	uint64_t number = 0;
	const char *digit;

	if (!(name = name_in_layers(name)))
		return false;
	for (digit = name; *digit >= '0' && *digit <= '9' && number < UINT32_MAX; digit++)
		number = number * 10 + (uint64_t)(*digit - '0');
	if (digit == name || (*name == '0' && digit - name > 1) || *digit != '.' || !digit[1] || number >= UINT32_MAX)
		return false;
	*layer = (uint32_t)number;
	return true;
}

bool xfp_calibration_layer(const struct xfp_calibration *c, const char *tensor, uint32_t *layer)
{
	uint32_t number;

	if (*c->head && !strcmp(tensor, c->head))
		number = c->layers;
	else if (!parse_layer(name_in_body(c, tensor), &number) || number >= c->layers)
		return false;
	*layer = number;
	return true;
}

bool xfp_calibration_unit(const struct xfp_calibration *c, const struct xfp_ledger *ledger, uint32_t unit,
			  uint32_t *layer)
{
	uint32_t tensor = ledger->matrices[ledger->units[unit].first_matrix].tensor;

	return xfp_calibration_layer(c, ledger->tensors[tensor].name, layer);
}

static bool determines(const struct xfp_calibration *c, const char *tensor, uint32_t layer)
{
	const char *name = name_in_body(c, tensor);
	uint32_t number;

	if (!name)
		return false;
	if (layer == c->layers)
		return !strcmp(name, NORM);
	if (parse_layer(name, &number))
		return number == layer;
	if (layer || !strcmp(name, ENCODER_POSITIONS))
		return false;
	return !strcmp(name, EMBEDDING) || !strncmp(name, ENCODER_EMBEDDINGS, strlen(ENCODER_EMBEDDINGS));
}

/* The ledger's tensors are in order of name, like the checkpoint's. */
uint32_t xfp_calibration_tensors(const struct xfp_calibration *c, const struct xfp_ledger *ledger, uint32_t layer,
				 uint32_t *list)
{
	uint32_t count = 0;

	for (uint32_t t = 0; t < ledger->tensor_count; t++) {
		if (!determines(c, ledger->tensors[t].name, layer))
			continue;
		if (list)
			list[count] = t;
		count++;
	}
	return count;
}

enum xfp_status xfp_layer_sources_list(struct xfp_layer_sources *sources, const struct xfp_calibration *c,
				       const struct xfp_ledger *ledger, uint32_t layer, struct xfp_error *err)
{
	sources->count = xfp_calibration_tensors(c, ledger, layer, NULL);
	sources->tensor = calloc(sources->count + (size_t)1, sizeof *sources->tensor);
	sources->source = calloc(sources->count + (size_t)1, sizeof *sources->source);
	if (!sources->tensor || !sources->source) {
		xfp_layer_sources_free(sources);
		return xfp_no_memory(err);
	}
	xfp_calibration_tensors(c, ledger, layer, sources->tensor);
	for (uint32_t i = 0; i < sources->count; i++)
		sources->source[i].name = ledger->tensors[sources->tensor[i]].name;
	return XFP_OK;
}

void xfp_layer_sources_free(struct xfp_layer_sources *sources)
{
	free(sources->tensor);
	free(sources->source);
	*sources = (struct xfp_layer_sources){ .count = 0 };
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/like_compare.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/system/file.h"
#include "runtime/xfp.h"
#include "schemas/layout/bundle_layout.h"

#define BLOCK ((size_t)1 << 20)

/* ---- bytes ------------------------------------------------------------------------------------- */

static enum xfp_status read_block(int fd, const char *path, void *block, size_t *size, struct xfp_error *err)
{
	*size = 0;
	while (*size < BLOCK) {
		ssize_t got = read(fd, (char *)block + *size, BLOCK - *size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return xfp_fail_errno(err, errno, "%s: cannot read", path);
		if (!got)
			break;
		*size += (size_t)got;
	}
	return XFP_OK;
}

static enum xfp_status same_bytes(const char *const path[2], bool *same, struct xfp_error *err)
{
	void *block[2] = { malloc(BLOCK), malloc(BLOCK) };
	enum xfp_status status = block[0] && block[1] ? XFP_OK : xfp_no_memory(err);
	int fd[2] = { -1, -1 };
	size_t size[2] = { 1, 1 };

	for (int i = 0; !status && i < 2; i++)
		if ((fd[i] = open(path[i], O_RDONLY | O_CLOEXEC)) < 0)
			status = xfp_fail_errno(err, errno, "%s: cannot open", path[i]);
	*same = true;
	while (!status && *same && size[0]) {
		for (int i = 0; !status && i < 2; i++)
			status = read_block(fd[i], path[i], block[i], &size[i], err);
		*same = size[0] == size[1] && !memcmp(block[0], block[1], size[0]);
	}
	for (int i = 0; i < 2; i++) {
		free(block[i]);
		if (fd[i] >= 0)
			close(fd[i]);
	}
	return status;
}

/* ---- what differs ------------------------------------------------------------------------------ */

struct pair {
	const char *path[2]; /* the --like bundle, and the one that was written */
	struct xfp_bundle *bundle[2];
	struct xfp_error *err;
};

/* Find the first member that is missing or different in the other object, such as "parameters.floors.attention". */
static bool find_difference(json_t *a, json_t *b, char *name, size_t size)
{
	const char *key;
	json_t *value;

	for (int turn = 0; turn < 2; turn++) {
		json_object_foreach (turn ? b : a, key, value) {
			json_t *other = json_object_get(turn ? a : b, key);
			size_t used = strlen(name);

			if (json_equal(value, other))
				continue;
			snprintf(name + used, size - used, "%s%s", used ? "." : "", key);
			if (json_is_object(value) && json_is_object(other))
				find_difference(value, other, name, size);
			return true;
		}
	}
	return false;
}

/* Outputs are measured: if they differ, so do units, and their difference says more. */
static enum xfp_status compare_json(const struct pair *pair)
{
	struct xfp_bundle_info info[2];
	char name[256] = "";
	json_t *root[2];
	bool measured = true, differs;

	for (int i = 0; i < 2; i++)
		xfp_bundle_describe(pair->bundle[i], &info[i]);
	if (info[0].json_bytes == info[1].json_bytes && !memcmp(info[0].json, info[1].json, info[0].json_bytes))
		return XFP_OK;
	for (int i = 0; i < 2; i++) {
		root[i] = json_loadb(info[i].json, info[i].json_bytes, 0, NULL);
		measured &= !json_object_del(root[i], "outputs");
	}
	differs = find_difference(root[0], root[1], name, sizeof name);
	json_decref(root[0]);
	json_decref(root[1]);
	if (!differs && measured)
		return XFP_OK;
	return xfp_fail(pair->err, XFP_UNMET, "%s: " XFP_MEMBER_JSON " differs: %s", pair->path[0],
			differs ? xfp_printable(name).text : "its text");
}

static enum xfp_status compare_files(const struct pair *pair)
{
	struct xfp_file_info file[2];
	char member[XFP_FILE_MEMBER_BYTES];

	for (uint32_t f = 0; xfp_bundle_file(pair->bundle[0], f, &file[0]); f++) {
		if (xfp_bundle_file(pair->bundle[1], f, &file[1]) && !strcmp(file[0].name, file[1].name) &&
		    file[0].bytes == file[1].bytes && !memcmp(file[0].data, file[1].data, file[0].bytes))
			continue;
		xfp_file_member(f, file[0].name, member);
		return xfp_fail(pair->err, XFP_UNMET, "%s: %s differs: file %s has other contents in the checkpoint",
				pair->path[0], member, xfp_printable(file[0].name).text);
	}
	return XFP_OK;
}

/* Compare the source digests of a matrix or tensor. */
static enum xfp_status compare_source(const struct pair *pair, const char *member, const char *tensor,
				      const uint8_t *const source[2])
{
	char digest[2][17];

	if (!memcmp(source[0], source[1], 16))
		return XFP_OK;
	for (int i = 0; i < 2; i++)
		xfp_hex(source[i], 8, digest[i]);
	return xfp_fail(
		pair->err, XFP_UNMET,
		"%s: %s differs: tensor %s has other weights in the checkpoint (digest %s..., but the bundle was "
		"made from %s...)",
		pair->path[0], member, xfp_printable(tensor).text, digest[1], digest[0]);
}

static enum xfp_status compare_part(const struct pair *pair, uint32_t unit, enum xfp_part part, const char *name,
				    const void *const data[2], const uint64_t bytes[2])
{
	char member[24];

	if (bytes[0] == bytes[1] && (!bytes[0] || !memcmp(data[0], data[1], bytes[0])))
		return XFP_OK;
	xfp_part_member(unit, part, member);
	return xfp_fail(pair->err, XFP_UNMET,
			"%s: %s differs: unit %s, though its source, the settings and the algorithms are the same; "
			"xfp verify checks whether one of the two bundles is damaged",
			pair->path[0], member, xfp_printable(name).text);
}

static enum xfp_status compare_matrix(const struct pair *pair, uint32_t u, const char *name,
				      const struct xfp_matrix_info m[2])
{
	const struct {
		const void *data[2];
		uint64_t bytes[2];
	} parts[XFP_PARTS] = {
		[XFP_PART_INDEX] = { { m[0].index, m[1].index }, { m[0].index_bytes, m[1].index_bytes } },
		[XFP_PART_CODE] = { { m[0].code, m[1].code }, { m[0].code_bytes, m[1].code_bytes } },
		[XFP_PART_GROUP] = { { m[0].group, m[1].group }, { m[0].group_bytes, m[1].group_bytes } },
		[XFP_PART_BALANCE] = { { m[0].balance, m[1].balance }, { m[0].balance_bytes, m[1].balance_bytes } },
		[XFP_PART_OUTLIER] = { { m[0].outlier, m[1].outlier }, { m[0].outlier_bytes, m[1].outlier_bytes } },
	};
	const uint8_t *const source[2] = { m[0].source, m[1].source };
	struct xfp_tensor_info tensor = { .name = name };
	enum xfp_status status;
	char member[24];

	xfp_bundle_tensor(pair->bundle[0], m[0].tensor, &tensor);
	xfp_part_member(u, XFP_PART_INDEX, member);
	status = compare_source(pair, member, tensor.name, source);
	for (int part = 0; !status && part < XFP_PARTS; part++)
		status = compare_part(pair, u, (enum xfp_part)part, name, parts[part].data, parts[part].bytes);
	return status;
}

static enum xfp_status compare_units(const struct pair *pair)
{
	struct xfp_unit_info unit[2];
	enum xfp_status status = XFP_OK;

	for (uint32_t u = 0; !status && xfp_bundle_unit(pair->bundle[0], u, &unit[0]); u++) {
		if (!xfp_bundle_unit(pair->bundle[1], u, &unit[1]) || unit[0].experts != unit[1].experts)
			return xfp_fail(pair->err, XFP_UNMET, "%s: " XFP_MEMBER_IDX " differs: unit %s", pair->path[0],
					xfp_printable(unit[0].name).text);
		for (uint32_t e = 0; !status && e < unit[0].experts; e++) {
			struct xfp_matrix_info matrix[2];

			if (xfp_bundle_matrix(pair->bundle[0], unit[0].first_matrix + e, &matrix[0]) &&
			    xfp_bundle_matrix(pair->bundle[1], unit[1].first_matrix + e, &matrix[1]))
				status = compare_matrix(pair, u, unit[0].name, matrix);
		}
	}
	return status;
}

static enum xfp_status compare_tensors(const struct pair *pair)
{
	struct xfp_tensor_info tensor[2];
	enum xfp_status status = XFP_OK;
	char member[24];

	for (uint32_t t = 0; !status && xfp_bundle_tensor(pair->bundle[0], t, &tensor[0]); t++) {
		xfp_part_member(t, XFP_PARTS, member);
		if (xfp_bundle_tensor(pair->bundle[1], t, &tensor[1]) && tensor[0].source && tensor[1].source)
			status = compare_source(pair, member, tensor[0].name,
						(const uint8_t *const[2]){ tensor[0].source, tensor[1].source });
	}
	return status;
}

static enum xfp_status explain(struct pair *pair)
{
	enum xfp_status status = XFP_OK;

	for (int i = 0; !status && i < 2; i++)
		status = xfp_bundle_open(pair->path[i], &pair->bundle[i], pair->err);
	if (!status)
		status = compare_json(pair);
	if (!status)
		status = compare_files(pair);
	if (!status)
		status = compare_units(pair);
	if (!status)
		status = compare_tensors(pair);
	if (!status)
		status = xfp_fail(pair->err, XFP_UNMET,
				  "%s: " XFP_MEMBER_IDX " differs; xfp verify checks whether one of the two bundles "
				  "is damaged",
				  pair->path[0]);
	xfp_bundle_close(pair->bundle[0]);
	xfp_bundle_close(pair->bundle[1]);
	return status;
}

enum xfp_status xfp_like_compare(const char *like, const char *out, struct xfp_error *err)
{
	struct pair pair = { .path = { like, out }, .err = err };
	bool same = false;
	enum xfp_status status = same_bytes(pair.path, &same, err);

	return status || same ? status : explain(&pair);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/printable.h"
#include "cache/manifest_db.h"
#include "cache/seal.h"
#include "schemas/inputs.h"
#include "schemas/outliers.h"
#include "schemas/packed.h"
#include "schemas/surveyed.h"

static const char insert_artifact[] = "INSERT INTO artifacts VALUES (?, ?, ?, ?, ?, ?, ?, NULL)";
static const char set_seal[] = "UPDATE artifacts SET seal = ? WHERE key = ?";
static const char insert_input[] = "INSERT OR IGNORE INTO inputs VALUES (?, ?, ?)";
static const char insert_outliers[] = "INSERT INTO outliers VALUES (?, ?, ?, ?, ?, ?)";
static const char insert_candidate[] = "INSERT INTO candidates VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
static const char insert_choice[] = "INSERT INTO choices VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
static const char insert_packed[] = "INSERT INTO packed VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
static const char insert_layer_inputs[] = "INSERT INTO layer_inputs VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
static const char insert_scales[] = "INSERT INTO scales VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
static const char select_candidates[] =
	"SELECT mode, k, sigma_milli, \"group\", library, bytes, outliers, cos_median, cos_p5, error, "
	"output_median, output_p5, output_error "
	"FROM candidates WHERE fit_key = ? ORDER BY number";

const struct xfp_output_measure xfp_manifest_no_outputs = { NAN, NAN, NAN };

/* ---- ingesting, by kind ------------------------------------------------------------------------ */

static enum xfp_status add_outliers(struct xfp_manifest *m, struct xfp_artifact *a, const char *key,
				    struct xfp_error *err)
{
	struct xfp_outliers o = { 0 };
	enum xfp_status status;

	if ((status = xfp_outliers_read(a, &o, err)))
		return status;
	status = xfp_manifest_exec(m, err, insert_outliers, "tiiiii", key, (int64_t)o.matrices, (int64_t)o.rows,
				   (int64_t)o.cols, (int64_t)o.sigma_milli, (int64_t)o.first[o.matrices]);
	xfp_outliers_free(&o);
	return status;
}

static enum xfp_status add_candidates(struct xfp_manifest *m, const struct xfp_fit_set *set, struct xfp_error *err)
{
	enum xfp_status status;
	uint8_t seal[16];

	xfp_seal_candidates(set, seal);
	status = xfp_manifest_exec(m, err, set_seal, "bt", seal, set->key);
	for (uint32_t i = 0; !status && i < set->count; i++) {
		const struct xfp_candidate *c = &set->candidates[i];
		const struct xfp_output_measure *o = set->outputs ? &set->outputs[i] : &xfp_manifest_no_outputs;

		status = xfp_manifest_exec(m, err, insert_candidate, "titiiiiiidddddd", set->key, (int64_t)i,
					   xfp_mode_name(c->mode), (int64_t)c->k, (int64_t)c->sigma_milli,
					   (int64_t)c->group, (int64_t)c->library, (int64_t)c->bytes,
					   (int64_t)c->outliers, c->cos_median, c->cos_p5, c->error, o->median, o->p5,
					   o->error);
	}
	return status;
}

static enum xfp_status add_fit(struct xfp_manifest *m, struct xfp_artifact *a, const char *key, struct xfp_error *err)
{
	struct xfp_fit fit = { 0 };
	enum xfp_status status = xfp_fit_read(a, &fit, err);

	const struct xfp_fit_set set = xfp_fit_set_of(&fit, key);

	return status ? status : add_candidates(m, &set, err);
}

static enum xfp_status add_survey(struct xfp_manifest *m, struct xfp_artifact *a, const char *key,
				  struct xfp_error *err)
{
	struct xfp_surveyed *surveyed = calloc(1, sizeof *surveyed);
	enum xfp_status status = surveyed ? xfp_surveyed_read(a, surveyed, err) : xfp_no_memory(err);

	if (!status) {
		const struct xfp_fit_set set = { key, surveyed->list, surveyed->count, NULL };

		status = add_candidates(m, &set, err);
		xfp_surveyed_free(surveyed);
	}
	free(surveyed);
	return status;
}

static enum xfp_status add_choice(struct xfp_manifest *m, struct xfp_artifact *a, const char *key,
				  struct xfp_error *err)
{
	enum xfp_status status;
	struct xfp_choice choice;
	const struct xfp_candidate *c = &choice.candidate;
	const struct xfp_output_measure *o = &choice.output;

	if ((status = xfp_choice_read(a, &choice, err)))
		return status;
	if (!choice.calibrated)
		o = &xfp_manifest_no_outputs;
	return xfp_manifest_exec(m, err, insert_choice, "ttiiiiiidddiitddd", key, xfp_mode_name(c->mode), (int64_t)c->k,
				 (int64_t)c->sigma_milli, (int64_t)c->group, (int64_t)c->library, (int64_t)c->bytes,
				 (int64_t)c->outliers, c->cos_median, c->cos_p5, c->error, (int64_t)choice.floor,
				 (int64_t)choice.met, choice.fit, o->median, o->p5, o->error);
}

static enum xfp_status add_packed(struct xfp_manifest *m, struct xfp_artifact *a, const char *key,
				  struct xfp_error *err)
{
	struct xfp_packed p = { 0 };
	enum xfp_status status;
	uint64_t bytes = 0;

	if ((status = xfp_packed_read(a, &p, err)))
		return status;
	for (unsigned part = 0; part < XFP_PARTS; part++)
		bytes += p.bytes[part];
	status = xfp_manifest_exec(m, err, insert_packed, "ttiiiiiiiiiiiddd", key, xfp_mode_name(p.mode), (int64_t)p.k,
				   (int64_t)p.matrices, (int64_t)p.rows, (int64_t)p.cols, (int64_t)p.outliers,
				   (int64_t)bytes, (int64_t)p.bytes[XFP_PART_INDEX], (int64_t)p.bytes[XFP_PART_CODE],
				   (int64_t)p.bytes[XFP_PART_GROUP], (int64_t)p.bytes[XFP_PART_BALANCE],
				   (int64_t)p.bytes[XFP_PART_OUTLIER], p.cos_median, p.cos_p5, p.error);
	xfp_packed_free(&p);
	return status;
}

static enum xfp_status add_layer_inputs(struct xfp_manifest *m, struct xfp_artifact *a, const char *key,
					struct xfp_error *err)
{
	struct xfp_inputs inputs = { 0 };
	enum xfp_status status = xfp_inputs_read(a, &inputs, err);

	if (!status)
		status = xfp_manifest_exec(m, err, insert_layer_inputs, "tiiiiiii", key, (int64_t)inputs.layer,
					   (int64_t)inputs.tokens, (int64_t)inputs.length, (int64_t)inputs.hidden,
					   (int64_t)inputs.experts_per_token, (int64_t)inputs.input_count,
					   (int64_t)inputs.tensor_count);
	xfp_inputs_free(&inputs);
	return status;
}

static enum xfp_status add_scales(struct xfp_manifest *m, struct xfp_artifact *a, const char *key,
				  struct xfp_error *err)
{
	struct xfp_output_scale scale;
	enum xfp_status status = xfp_scales_read(a, &scale, err);

	return status ? status
		      : xfp_manifest_exec(m, err, insert_scales, "tiiddddd", key, (int64_t)scale.matrices,
					  (int64_t)scale.rows, scale.growth, scale.feedback, scale.feedback_median,
					  scale.rounding, scale.rounding_median);
}

static const struct kind {
	const char *name;
	uint32_t version;
	enum xfp_status (*add)(struct xfp_manifest *m, struct xfp_artifact *a, const char *key, struct xfp_error *err);
} kinds[] = {
	{ XFP_SURVEY_KIND, XFP_SURVEY_VERSION, add_survey }, { XFP_OUTLIERS_KIND, XFP_OUTLIERS_VERSION, add_outliers },
	{ XFP_FIT_KIND, XFP_FIT_VERSION, add_fit },          { XFP_CHOICE_KIND, XFP_CHOICE_VERSION, add_choice },
	{ XFP_PACKED_KIND, XFP_PACKED_VERSION, add_packed }, { XFP_INPUTS_KIND, XFP_INPUTS_VERSION, add_layer_inputs },
	{ XFP_SCALES_KIND, XFP_SCALES_VERSION, add_scales },
};

static const struct kind *find_kind(const char *name, uint32_t version)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!strcmp(kinds[i].name, name) && kinds[i].version == version)
			return &kinds[i];
	return NULL;
}

bool xfp_manifest_supports(const char *kind, uint32_t version)
{
	return find_kind(kind, version) != NULL;
}

const char *xfp_manifest_kind(const char *name)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!strcmp(kinds[i].name, name))
			return kinds[i].name;
	return NULL;
}

/* Add the lines of a key text whose value is a key. */
static enum xfp_status add_inputs(struct xfp_manifest *m, const struct xfp_artifact_label *label, const char *key,
				  struct xfp_error *err)
{
	static const char *const names[] = { "outliers",         "fit",    "extended", "library",
					     "extended-library", "survey", "scales",   "inputs" };
	enum xfp_status status = XFP_OK;
	const char *line = label->key_text, *end;

	for (; !status && (end = strchr(line, '\n')); line = end + 1)
		for (size_t i = 0; !status && i < sizeof names / sizeof *names; i++) {
			size_t length = strlen(names[i]);
			char input[33];

			if (strncmp(line, names[i], length) || line[length] != ' ' ||
			    end - line != (ptrdiff_t)length + 33)
				continue;
			memcpy(input, line + length + 1, 32);
			input[32] = 0;
			status = xfp_manifest_exec(m, err, insert_input, "ttt", key, names[i], input);
		}
	return status;
}

static enum xfp_status add_artifact(struct xfp_manifest *m, struct xfp_artifact *a, const char *key,
				    struct xfp_error *err)
{
	struct xfp_artifact_label label;
	const struct kind *kind;
	enum xfp_status status;
	struct stat st;

	if ((status = xfp_artifact_get_label(a, &label, err)))
		return status;
	if (!(kind = find_kind(label.kind, label.version)))
		status = xfp_fail(err, XFP_DAMAGED, "%s: artifact of another version (%s %u); it will be made again",
				  a->path, xfp_printable(label.kind).text, label.version);
	else if (stat(a->path, &st))
		status = xfp_fail(err, XFP_FAILED, "%s: cannot stat", a->path);
	else if (!(status = xfp_manifest_exec(m, err, insert_artifact, "ttitidt", key, label.kind,
					      (int64_t)label.version, label.unit, (int64_t)st.st_size, label.seconds,
					      label.key_text)) &&
		 !(status = add_inputs(m, &label, key, err)))
		status = kind->add(m, a, key, err);
	xfp_artifact_label_free(&label);
	return status;
}

/* Delete the rows of a key from all tables, since damage may have removed parent rows. */
static enum xfp_status drop_rows(struct xfp_manifest *m, const char *key, struct xfp_error *err)
{
	static const char *const drops[] = {
		"DELETE FROM artifacts WHERE key = ?",      "DELETE FROM inputs WHERE key = ?",
		"DELETE FROM outliers WHERE key = ?",       "DELETE FROM choices WHERE key = ?",
		"DELETE FROM candidates WHERE fit_key = ?", "DELETE FROM packed WHERE key = ?",
		"DELETE FROM layer_inputs WHERE key = ?",   "DELETE FROM scales WHERE key = ?",
	};
	enum xfp_status status = XFP_OK;

	for (size_t i = 0; !status && i < sizeof drops / sizeof *drops; i++)
		status = xfp_manifest_exec(m, err, drops[i], "t", key);
	return status;
}

static enum xfp_status ingest(struct xfp_manifest *m, const struct xfp_store *store, const char *key, bool again,
			      struct xfp_error *err)
{
	struct xfp_artifact a;
	enum xfp_status status;
	char *path;

	if (m->read_only || (!again && xfp_manifest_has(m, key)))
		return XFP_OK;
	if (!(path = xfp_store_path(store, key)))
		return xfp_no_memory_for(err, store->folder);
	status = xfp_artifact_open(path, NULL, 0, key, &a, err);
	free(path);
	if (status)
		return status;
	if (!(status = xfp_manifest_enter(m, err))) {
		/* Another process may have added it since the first check. */
		if ((again || !xfp_manifest_has(m, key)) && !(status = drop_rows(m, key, err)))
			status = add_artifact(m, &a, key, err);
		status = xfp_manifest_leave(m, status, err);
	}
	xfp_artifact_close(&a);
	return status;
}

enum xfp_status xfp_manifest_ingest(struct xfp_manifest *m, const struct xfp_store *store, const char *key,
				    struct xfp_error *err)
{
	return ingest(m, store, key, false, err);
}

enum xfp_status xfp_manifest_repair(struct xfp_manifest *m, const struct xfp_store *store, const char *key,
				    struct xfp_error *err)
{
	return ingest(m, store, key, true, err);
}

struct all {
	struct xfp_manifest *m;
	const struct xfp_store *store;
	int64_t count;
};

static enum xfp_status ingest_one(const char *key, const char *path, void *context, struct xfp_error *err)
{
	struct all *all = context;
	enum xfp_status status = xfp_manifest_ingest(all->m, all->store, key, err);

	/* A damaged artifact is left to the stage that needs it; one that was just removed, or that this user may not
	 * read, is skipped. */
	if (status == XFP_DAMAGED || (status && access(path, R_OK)))
		return XFP_OK;
	all->count += !status;
	return status;
}

enum xfp_status xfp_manifest_ingest_all(struct xfp_manifest *m, const struct xfp_store *store, int64_t *count,
					struct xfp_error *err)
{
	struct all all = { .m = m, .store = store };
	enum xfp_status status = xfp_store_each(store, ingest_one, &all, err);

	*count = all.count;
	return status;
}

/* ---- asking ------------------------------------------------------------------------------------ */

bool xfp_manifest_has(struct xfp_manifest *m, const char *key)
{
	sqlite3_stmt *row = xfp_manifest_query(m, "SELECT 1 FROM artifacts WHERE key = ?", "t", key);

	if (row)
		sqlite3_reset(row);
	return row != NULL;
}

enum xfp_status xfp_manifest_remove_artifact(struct xfp_manifest *m, const char *key, struct xfp_error *err)
{
	enum xfp_status status = xfp_manifest_enter(m, err);

	return status ? status : xfp_manifest_leave(m, drop_rows(m, key, err), err);
}

/* Read the outputs of select_candidates; false: none were measured. */
static bool read_outputs(sqlite3_stmt *row, struct xfp_output_measure *output)
{
	*output = (struct xfp_output_measure){ sqlite3_column_double(row, 10), sqlite3_column_double(row, 11),
					       sqlite3_column_double(row, 12) };
	return sqlite3_column_type(row, 10) != SQLITE_NULL;
}

/* Read the columns of select_candidates, except outputs. */
static bool read_candidate(sqlite3_stmt *row, struct xfp_candidate *c)
{
	const char *name = (const char *)sqlite3_column_text(row, 0);
	enum xfp_mode mode;

	if (!name || !xfp_mode_parse(name, &mode))
		return false;
	*c = (struct xfp_candidate){
		.mode = mode,
		.k = (uint32_t)sqlite3_column_int64(row, 1),
		.sigma_milli = (uint32_t)sqlite3_column_int64(row, 2),
		.group = (uint16_t)sqlite3_column_int64(row, 3),
		.library = (uint16_t)sqlite3_column_int64(row, 4),
		.bytes = (uint64_t)sqlite3_column_int64(row, 5),
		.outliers = (uint64_t)sqlite3_column_int64(row, 6),
		.cos_median = sqlite3_column_double(row, 7),
		.cos_p5 = sqlite3_column_double(row, 8),
		.error = sqlite3_column_double(row, 9),
	};
	return true;
}

/* Read the seal of the candidates of a fit or survey. */
static bool get_seal(struct xfp_manifest *m, const char *key, uint8_t seal[16])
{
	sqlite3_stmt *row = xfp_manifest_query(m, "SELECT seal FROM artifacts WHERE key = ?", "t", key);
	bool found = row && sqlite3_column_bytes(row, 0) == 16;

	if (found)
		memcpy(seal, sqlite3_column_blob(row, 0), 16);
	if (row)
		sqlite3_reset(row);
	return found;
}

bool xfp_manifest_get_candidates(struct xfp_manifest *m, const char *key, uint32_t max,
				 struct xfp_candidate *candidates, struct xfp_output_measure *outputs, bool *calibrated,
				 uint32_t *count)
{
	uint8_t want[16], seal[16];
	sqlite3_stmt *row;
	uint32_t found = 0;
	bool measured = false;
	int rc = SQLITE_ROW;

	if (!get_seal(m, key, want))
		return false;
	row = xfp_manifest_query(m, select_candidates, "t", key);
	while (row && rc == SQLITE_ROW && found < max && read_candidate(row, &candidates[found])) {
		measured |= outputs && read_outputs(row, &outputs[found]);
		found++;
		rc = sqlite3_step(row);
	}
	if (row)
		sqlite3_reset(row);
	xfp_seal_candidates(&(struct xfp_fit_set){ key, candidates, found, measured ? outputs : NULL }, seal);
	*count = found;
	if (calibrated)
		*calibrated = measured;
	return !memcmp(seal, want, sizeof seal);
}

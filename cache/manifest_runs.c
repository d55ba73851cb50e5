/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "cache/manifest_db.h"
#include "cache/seal.h"
#include "schemas/parameters.h"

/* ---- sources ----------------------------------------------------------------------------------- */

static const char find_source[] = "SELECT s.digest, s.seal FROM source_files AS f JOIN sources AS s ON s.file = f.id "
				  "WHERE f.path = ? AND f.device = ? AND f.inode = ? AND f.size = ? "
				  "AND f.mtime_ns = ? AND f.ctime_ns = ? AND s.region = ?";
static const char drop_changed_file[] = "DELETE FROM source_files WHERE path = ? AND NOT (device = ? AND inode = ? "
					"AND size = ? AND mtime_ns = ? AND ctime_ns = ?)";
static const char add_file[] = "INSERT OR IGNORE INTO source_files (path, device, inode, size, mtime_ns, ctime_ns) "
			       "VALUES (?, ?, ?, ?, ?, ?)";
static const char add_source[] = "INSERT OR REPLACE INTO sources SELECT id, ?, ?, ? FROM source_files WHERE path = ?";
static const char drop_source[] = "DELETE FROM sources WHERE region = ? AND file IN "
				  "(SELECT id FROM source_files WHERE path = ?)";

/* SQLite's integers are signed; only the bits matter. */
#define IDENTITY(i) (int64_t)(i)->device, (int64_t)(i)->inode, (int64_t)(i)->size, (i)->mtime_ns, (i)->ctime_ns

bool xfp_manifest_get_source(struct xfp_manifest *m, const char *path, const struct xfp_identity *identity,
			     const char *region, uint8_t digest[16])
{
	sqlite3_stmt *row = xfp_manifest_query(m, find_source, "tiiiiit", path, IDENTITY(identity), region);
	bool found = row && sqlite3_column_bytes(row, 0) == 16 && sqlite3_column_bytes(row, 1) == 16;
	uint8_t seal[16];

	if (found) {
		xfp_seal_source(path, identity, region, sqlite3_column_blob(row, 0), seal);
		found = !memcmp(seal, sqlite3_column_blob(row, 1), sizeof seal);
	}
	if (found)
		memcpy(digest, sqlite3_column_blob(row, 0), 16);
	if (row)
		sqlite3_reset(row);
	return found;
}

enum xfp_status xfp_manifest_put_source(struct xfp_manifest *m, const char *path, const struct xfp_identity *identity,
					const char *region, const uint8_t digest[16], struct xfp_error *err)
{
	enum xfp_status status;
	uint8_t seal[16];

	if ((status = xfp_manifest_enter(m, err)))
		return status;
	xfp_seal_source(path, identity, region, digest, seal);
	/* Rows of the file's earlier identities are deleted. */
	(void)((status = xfp_manifest_exec(m, err, drop_changed_file, "tiiiii", path, IDENTITY(identity))) ||
	       (status = xfp_manifest_exec(m, err, add_file, "tiiiii", path, IDENTITY(identity))) ||
	       (status = xfp_manifest_exec(m, err, add_source, "tbbt", region, digest, seal, path)));
	return xfp_manifest_leave(m, status, err);
}

enum xfp_status xfp_manifest_remove_source(struct xfp_manifest *m, const char *path, const char *region,
					   struct xfp_error *err)
{
	return xfp_manifest_exec(m, err, drop_source, "tt", region, path);
}

/* ---- runs -------------------------------------------------------------------------------------- */

#define NOW "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')"

static const char add_run[] = "INSERT INTO runs (model, output, parameters, started) VALUES (?, ?, ?, " NOW ")";
static const char end_run[] = "UPDATE runs SET ended = " NOW ", status = ? WHERE run = ?";
static const char add_bundle[] = "INSERT OR REPLACE INTO bundles (run, path, sha256, bytes) "
				 "SELECT run, output, ?, ? FROM runs WHERE run = ?";
static const char set_verified[] = "UPDATE bundles SET verified = ?, verify_status = ? WHERE run = "
				   "(SELECT max(run) FROM bundles WHERE path = ? AND sha256 = ?)";
static const char keep_verified[] =
	"UPDATE bundles SET (verified, verify_status) = (SELECT b.verified, b.verify_status FROM bundles AS b "
	"WHERE b.path = bundles.path AND b.sha256 = bundles.sha256 AND b.run < bundles.run "
	"ORDER BY b.run DESC LIMIT 1) WHERE run = ?";
static const char add_unit[] = "INSERT OR REPLACE INTO run_units (run, number, unit, class, role, experts, rows, cols, "
			       "mode, survey_key, scales_key, outliers_key, fit_key, choice_key, packed_key, fitted, "
			       "repacked, seconds) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
static const char add_unit_choice[] = "UPDATE run_units SET k = ?, sigma_milli = ?, bytes = ?, outliers = ?, "
				      "cos_median = ?, cos_p5 = ?, output_median = ?, output_p5 = ?, output_error = ?, "
				      "floor = ?, met = ? WHERE run = ? AND number = ?";

enum xfp_status xfp_manifest_run_begin(struct xfp_manifest *m, const char *model, const char *output,
				       const char *parameters_json, int64_t *run, struct xfp_error *err)
{
	enum xfp_status status = xfp_manifest_exec(m, err, add_run, "ttt", model, output, parameters_json);

	if (!status)
		*run = m->read_only ? 0 : sqlite3_last_insert_rowid(m->db);
	return status;
}

enum xfp_status xfp_manifest_run_unit(struct xfp_manifest *m, int64_t run, const struct xfp_run_unit *u,
				      struct xfp_error *err)
{
	const struct xfp_choice *choice = u->choice;
	const struct xfp_candidate *c = choice ? &choice->candidate : NULL;
	const struct xfp_output_measure *o = c && choice->calibrated ? &choice->output : &xfp_manifest_no_outputs;
	/* If the unit has two fits, record the one that contains the chosen candidate. */
	const char *fit = c && c->mode != XFP_MODE_KEEP ? choice->fit : u->fit;
	int64_t number = u->number;
	enum xfp_status status;

	if ((status = xfp_manifest_enter(m, err)))
		return status;
	status = xfp_manifest_exec(m, err, add_unit, "iitttiiitttttttiid", run, number, u->name, u->class_, u->role,
				   (int64_t)u->experts, (int64_t)u->rows, (int64_t)u->cols, u->mode, u->survey,
				   u->scales, u->outliers, fit, u->choice_key, u->packed, (int64_t)u->fitted,
				   (int64_t)u->repacked, u->seconds);
	if (!status && c)
		status = xfp_manifest_exec(m, err, add_unit_choice, "iiiiddddddiii", (int64_t)c->k,
					   (int64_t)c->sigma_milli, (int64_t)c->bytes, (int64_t)c->outliers,
					   c->cos_median, c->cos_p5, o->median, o->p5, o->error,
					   choice->floor / (double)XFP_NANO, (int64_t)choice->met, run, number);
	return xfp_manifest_leave(m, status, err);
}

enum xfp_status xfp_manifest_run_end(struct xfp_manifest *m, int64_t run, enum xfp_status status_of_run,
				     const char *sha256, uint64_t bundle_bytes, struct xfp_error *err)
{
	enum xfp_status status;

	if ((status = xfp_manifest_enter(m, err)))
		return status;
	status = xfp_manifest_exec(m, err, end_run, "ii", (int64_t)status_of_run, run);
	if (!status && sha256)
		status = xfp_manifest_exec(m, err, add_bundle, "tii", sha256, (int64_t)bundle_bytes, run);
	return xfp_manifest_leave(m, status, err);
}

enum xfp_status xfp_manifest_verified(struct xfp_manifest *m, const char *path, const char *sha256, const char *when,
				      int status, struct xfp_error *err)
{
	return xfp_manifest_exec(m, err, set_verified, "titt", when, (int64_t)status, path, sha256);
}

enum xfp_status xfp_manifest_still_verified(struct xfp_manifest *m, int64_t run, struct xfp_error *err)
{
	return xfp_manifest_exec(m, err, keep_verified, "i", run);
}

uint64_t xfp_manifest_unused_surveys(struct xfp_manifest *m)
{
	char count[64] = "";
	int rc;

	xfp_manifest_query_text(m,
				"SELECT count(*) FROM artifacts WHERE kind = 'survey' AND key NOT IN "
				"(SELECT survey_key FROM run_units WHERE survey_key IS NOT NULL)",
				count, &rc);
	return strtoull(count, NULL, 10);
}

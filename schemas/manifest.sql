-- SPDX-License-Identifier: Apache-2.0
--
-- manifest.sql - CACHE/manifest.sqlite: what is in an artifact cache, and what was done with it.
--
-- The artifacts are the truth. Everything here but source_files, sources, runs, run_units and
-- bundles is read from them and can be rebuilt by scanning CACHE/artifacts. Ask it with any SQLite
-- client; it may be read while xfp runs. xfp-manifest(5) has queries to begin with:
--
--   sqlite3 -header -column xfp-cache/manifest.sqlite \
--     "SELECT unit, mode, k, cos_median, bytes FROM latest_units WHERE class = 'attention' ORDER BY cos_median"
--
-- SQLite does not checksum what it stores. What xfp lets decide anything without reading an artifact or
-- a checkpoint, candidates and sources, carries a seal; a row whose seal does not fit is not believed.
--
-- A thing is `made` where it was computed, `cached` where it was found among the artifacts.
--
-- Keys are 32 hex digits (cache/key.h). Cosines and errors are those of schemas/fit.h, floors are
-- fractions, times are UTC, seconds are wall time. user_version is the version of this schema: one
-- of another version is set aside and rebuilt.

-- ---- artifacts ------------------------------------------------------------------------------------

-- Every artifact that was found whole. One row here, and one or more in the table of its kind.
CREATE TABLE artifacts (
	key      TEXT PRIMARY KEY,
	kind     TEXT NOT NULL,     -- survey, scales, outliers, fit, choice, packed or inputs
	version  INTEGER NOT NULL,  -- of that kind's layout
	unit     TEXT NOT NULL,     -- the unit it was first made for; others may share it
	bytes    INTEGER NOT NULL,  -- of the file
	seconds  REAL NOT NULL,     -- that its making took
	key_text TEXT NOT NULL,     -- the ingredients that the key is the digest of, one a line
	seal     BLOB               -- of kinds fit and survey: digest of its candidates (cache/seal.h), 16 bytes
) WITHOUT ROWID;
CREATE INDEX artifacts_by_kind ON artifacts (kind, bytes, seconds);

-- What an artifact was made from: the ingredients of its key that are keys themselves.
CREATE TABLE inputs (
	key   TEXT NOT NULL REFERENCES artifacts (key) ON DELETE CASCADE,
	name  TEXT NOT NULL,        -- outliers, fit, extended, library, extended-library or survey; inputs: of a fit
	                            -- or of scales those of the layer, of a layer's inputs those of the layer before
	input TEXT NOT NULL,
	PRIMARY KEY (key, name)
) WITHOUT ROWID;
CREATE INDEX inputs_by_input ON inputs (input);

-- Artifacts of kind outliers.
CREATE TABLE outliers (
	key         TEXT PRIMARY KEY REFERENCES artifacts (key) ON DELETE CASCADE,
	matrices    INTEGER NOT NULL, -- experts of a stack, otherwise 1
	"rows"      INTEGER NOT NULL, -- of one matrix
	cols        INTEGER NOT NULL,
	sigma_milli INTEGER NOT NULL, -- threshold in thousandths of the standard deviation, 0: none
	marked      INTEGER NOT NULL  -- outliers of all matrices
) WITHOUT ROWID;

-- Artifacts of kinds fit and survey: every way to store the unit that was measured, on all rows or on some.
CREATE TABLE candidates (
	fit_key     TEXT NOT NULL REFERENCES artifacts (key) ON DELETE CASCADE,
	number      INTEGER NOT NULL, -- in the artifact, from 0
	mode        TEXT NOT NULL,
	k           INTEGER NOT NULL, -- bits an index
	sigma_milli INTEGER NOT NULL,
	"group"     INTEGER NOT NULL, -- columns of a group, 0: none
	library     INTEGER NOT NULL, -- entries of the library, 0: none
	bytes       INTEGER NOT NULL, -- everything that would be stored for the unit
	outliers    INTEGER NOT NULL,
	cos_median  REAL NOT NULL,    -- lower median of the rows' cosines
	cos_p5      REAL NOT NULL,    -- their 5th percentile
	error       REAL NOT NULL,    -- squared error / squared norm
	output_median REAL,           -- the same three of outputs, for the calibration's inputs; NULL: not calibrated
	output_p5     REAL,
	output_error  REAL,
	PRIMARY KEY (fit_key, number)
) WITHOUT ROWID;

-- Artifacts of kind choice: which candidate it was, and what was asked for.
CREATE TABLE choices (
	key         TEXT PRIMARY KEY REFERENCES artifacts (key) ON DELETE CASCADE,
	mode        TEXT NOT NULL,    -- keep: source precision
	k           INTEGER NOT NULL,
	sigma_milli INTEGER NOT NULL,
	"group"     INTEGER NOT NULL,
	library     INTEGER NOT NULL,
	bytes       INTEGER NOT NULL,
	outliers    INTEGER NOT NULL,
	cos_median  REAL NOT NULL,
	cos_p5      REAL NOT NULL,
	error       REAL NOT NULL,
	floor_nano  INTEGER NOT NULL, -- the floor in billionths
	met         INTEGER NOT NULL, -- 1: the floor is met
	fit_key     TEXT NOT NULL,    -- the fit that measured it; of the outliers for keep
	output_median REAL,           -- of outputs, as in candidates, and the floor applies to the median; NULL: it
	output_p5     REAL,           -- applies to cos_median
	output_error  REAL
) WITHOUT ROWID;

-- Artifacts of kind packed: what the bundle holds of a unit.
CREATE TABLE packed (
	key           TEXT PRIMARY KEY REFERENCES artifacts (key) ON DELETE CASCADE,
	mode          TEXT NOT NULL,
	k             INTEGER NOT NULL,
	matrices      INTEGER NOT NULL,
	"rows"        INTEGER NOT NULL,
	cols          INTEGER NOT NULL,
	outliers      INTEGER NOT NULL,
	bytes         INTEGER NOT NULL, -- of all parts together, which are:
	index_bytes   INTEGER NOT NULL,
	code_bytes    INTEGER NOT NULL,
	group_bytes   INTEGER NOT NULL,
	balance_bytes INTEGER NOT NULL,
	outlier_bytes INTEGER NOT NULL,
	cos_median    REAL NOT NULL,
	cos_p5        REAL NOT NULL,
	error         REAL NOT NULL
) WITHOUT ROWID;

-- Artifacts of kind inputs: what the matrices of a layer multiplied, for the tokens of a calibration.
CREATE TABLE layer_inputs (
	key               TEXT PRIMARY KEY REFERENCES artifacts (key) ON DELETE CASCADE,
	layer             INTEGER NOT NULL, -- from 0; the number of layers: the input of the output head
	tokens            INTEGER NOT NULL,
	length            INTEGER NOT NULL, -- tokens of a window
	hidden            INTEGER NOT NULL, -- columns of the residual stream
	experts_per_token INTEGER NOT NULL, -- 0: a layer without experts
	inputs            INTEGER NOT NULL, -- distinct inputs
	tensors           INTEGER NOT NULL  -- that are multiplied by them
) WITHOUT ROWID;

-- Artifacts of kind scales: how errors of outputs follow from the errors of weights that a survey measured.
CREATE TABLE scales (
	key             TEXT PRIMARY KEY REFERENCES artifacts (key) ON DELETE CASCADE,
	matrices        INTEGER NOT NULL, -- that were used
	"rows"          INTEGER NOT NULL, -- of all of them together
	growth          REAL NOT NULL,    -- weights with error feedback
	feedback        REAL NOT NULL,    -- outputs with error feedback
	feedback_median REAL NOT NULL,    -- of the outputs of single rows
	rounding        REAL NOT NULL,    -- outputs without error feedback
	rounding_median REAL NOT NULL
) WITHOUT ROWID;

-- ---- sources --------------------------------------------------------------------------------------

-- Checkpoint files as they were when their matrices were digested. A file that differs in any of
-- these is read again.
CREATE TABLE source_files (
	id       INTEGER PRIMARY KEY,
	path     TEXT NOT NULL UNIQUE,
	device   INTEGER NOT NULL,
	inode    INTEGER NOT NULL,
	size     INTEGER NOT NULL,
	mtime_ns INTEGER NOT NULL,
	ctime_ns INTEGER NOT NULL
);

-- Digests of the matrices in them. A row of region CRC-32 records that the members of an archive were compared with
-- theirs: its digest is two counts of 8 bytes, members with the right CRC-32 and members without one.
CREATE TABLE sources (
	file   INTEGER NOT NULL REFERENCES source_files (id) ON DELETE CASCADE,
	region TEXT NOT NULL,       -- OFFSET DTYPE BASE ROWS COLS ROW_STRIDE COL_STRIDE
	digest BLOB NOT NULL,       -- XXH3-128, 16 bytes
	seal   BLOB NOT NULL,       -- digest of this row and its file's (cache/seal.h), 16 bytes
	PRIMARY KEY (file, region)
) WITHOUT ROWID;

-- ---- runs -----------------------------------------------------------------------------------------

-- Every run of `xfp convert`.
CREATE TABLE runs (
	run        INTEGER PRIMARY KEY AUTOINCREMENT,
	model      TEXT NOT NULL,    -- absolute path
	output     TEXT NOT NULL,    -- absolute path
	parameters TEXT NOT NULL,    -- schemas/parameters.h, JSON
	started    TEXT NOT NULL,
	ended      TEXT,             -- NULL: running, or killed
	status     INTEGER           -- exit status
);

-- The units of a run, as they finished.
CREATE TABLE run_units (
	run          INTEGER NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
	number       INTEGER NOT NULL, -- in the ledger and in the bundle's member names
	unit         TEXT NOT NULL,    -- the source tensor's name; a stack's with * for the expert number
	class        TEXT NOT NULL,
	role         TEXT NOT NULL,
	experts      INTEGER NOT NULL,
	"rows"       INTEGER NOT NULL,
	cols         INTEGER NOT NULL,
	mode         TEXT NOT NULL,
	k            INTEGER,          -- these eight as chosen; NULL for fp8 units, which have no choice
	sigma_milli  INTEGER,
	bytes        INTEGER,
	outliers     INTEGER,
	cos_median   REAL,
	cos_p5       REAL,
	output_median REAL,            -- these three, too; NULL: not calibrated
	output_p5    REAL,
	output_error REAL,
	floor        REAL,
	met          INTEGER,
	survey_key   TEXT,             -- artifacts; NULL where there is none, or none any more
	scales_key   TEXT,
	outliers_key TEXT,
	fit_key      TEXT,
	choice_key   TEXT,
	packed_key   TEXT,
	fitted       INTEGER NOT NULL, -- 1: its fit was made in this run; 0: cached, or it has none
	repacked     INTEGER NOT NULL, -- 1: what the bundle holds of it was made in this run; 0: cached
	seconds      REAL NOT NULL,    -- of what was made in this run
	PRIMARY KEY (run, number)
) WITHOUT ROWID;

-- Bundles that runs wrote, or found as they had to be. What `xfp verify --work` says of one is known from the next run
-- on; a bundle that is found as it was is as verified as it was, one that is written again is not.
CREATE TABLE bundles (
	run           INTEGER PRIMARY KEY REFERENCES runs (run) ON DELETE CASCADE,
	path          TEXT NOT NULL,
	sha256        TEXT NOT NULL,    -- of the whole file
	bytes         INTEGER NOT NULL,
	verified      TEXT,             -- when it last was, NULL: not
	verify_status INTEGER           -- exit status of that, 0: it passed; NULL: not verified
);

-- ---- questions ------------------------------------------------------------------------------------

-- Units of all runs with what follows from them: true bits count every stored byte, made_seconds is
-- what it took to make the unit's artifacts, in whichever runs that was. An artifact that units share
-- counts for each of them.
CREATE VIEW unit_results AS
SELECT u.run, r.output, u.number, u.unit, u.class, u.role, u.experts, u."rows", u.cols, u.mode,
       coalesce(u.k, p.k) AS k, coalesce(u.cos_median, p.cos_median) AS cos_median,
       coalesce(u.cos_p5, p.cos_p5) AS cos_p5, u.output_median, u.output_p5, u.output_error, u.floor, u.met,
       u.experts * u."rows" * u.cols AS weights,
       coalesce(p.bytes, u.bytes) AS bytes,
       8.0 * coalesce(p.bytes, u.bytes) / nullif(u.experts * u."rows" * u.cols, 0) AS true_bits,
       1.0 * coalesce(u.outliers, p.outliers) / nullif(u.experts * u."rows" * u.cols, 0) AS outlier_share,
       u.fitted, u.repacked, u.seconds,
       (SELECT total(a.seconds) FROM artifacts AS a WHERE a.key IN (
               SELECT u.outliers_key UNION SELECT u.choice_key UNION SELECT u.packed_key
               UNION SELECT i.input FROM inputs AS i WHERE i.key = u.choice_key)) AS made_seconds,
       u.sigma_milli, u.outliers_key, u.fit_key, u.choice_key, u.packed_key
FROM run_units AS u JOIN runs AS r ON r.run = u.run LEFT JOIN packed AS p ON p.key = u.packed_key;

-- Of every output the last run that succeeded. The views named latest_* are of these runs: where a
-- cache has several outputs, ask WHERE output = '/folder/model.xfp'.
CREATE VIEW latest_runs AS
SELECT output, max(run) AS run FROM runs WHERE status = 0 GROUP BY output;

-- Which units, which candidate, what cosine, what size, what it cost.
CREATE VIEW latest_units AS
SELECT * FROM unit_results WHERE run IN (SELECT run FROM latest_runs);

-- The same, summed up a class. Units without a floor are not below it.
CREATE VIEW latest_classes AS
SELECT output, class, count(*) AS units, sum(weights) AS weights, sum(bytes) AS bytes,
       8.0 * sum(bytes) / nullif(sum(weights), 0) AS true_bits, min(cos_median) AS least_cos_median,
       sum(outlier_share * weights) / nullif(sum(weights), 0) AS outlier_share,
       sum(coalesce(met = 0, 0)) AS below_floor, sum(mode = 'keep') AS kept,
       sum(seconds) AS seconds, sum(made_seconds) AS made_seconds
FROM latest_units GROUP BY output, class;

-- Everything that those runs had to choose from: the candidates of the fits that a unit's choice was
-- made from, not those that other settings left in the cache, and the one that was chosen.
CREATE VIEW latest_candidates AS
SELECT u.run, u.output, u.number, u.unit, u.class, c.mode, c.k, c.sigma_milli, c."group", c.library, c.cos_median, c.cos_p5, c.error,
       c.output_median, c.output_p5, c.output_error, c.bytes, 8.0 * c.bytes / nullif(u.weights, 0) AS true_bits,
       u.floor, coalesce(c.output_median, c.cos_median) >= u.floor AS meets,
       c.mode = u.mode AND c.k = u.k AND c.sigma_milli = u.sigma_milli AND c.fit_key = u.fit_key AND
       c."group" = (SELECT "group" FROM choices WHERE key = u.choice_key) AS chosen
FROM latest_units AS u
JOIN inputs AS i ON i.key = u.choice_key AND i.name IN ('fit', 'extended', 'library', 'extended-library')
JOIN candidates AS c ON c.fit_key = i.input;

-- What a stage has cost, over all artifacts that are there.
CREATE VIEW stage_costs AS
SELECT kind, count(*) AS artifacts, sum(seconds) AS seconds, max(seconds) AS longest FROM artifacts GROUP BY kind;

-- What fills the cache.
CREATE VIEW cache_sizes AS
SELECT kind, count(*) AS artifacts, sum(bytes) AS bytes FROM artifacts GROUP BY kind;

-- Units whose packing a run made: after a changed floor, those whose choice changed.
CREATE VIEW repacked_units AS
SELECT run, output, number, unit, class, mode, k, cos_median, bytes FROM unit_results WHERE repacked;

-- Runs, the last of each output or not, with their outcome, what they made, and what was cached.
CREATE VIEW run_summaries AS
SELECT r.run, r.model, r.output, r.started, r.ended, r.status, count(u.number) AS units,
       coalesce(sum(u.fitted), 0) AS fitted, coalesce(sum(u.repacked), 0) AS repacked,
       coalesce(sum(NOT u.repacked), 0) AS cached, coalesce(sum(u.seconds), 0.0) AS seconds,
       b.sha256, b.bytes, b.verified, b.verify_status
FROM runs AS r LEFT JOIN run_units AS u ON u.run = r.run LEFT JOIN bundles AS b ON b.run = r.run
GROUP BY r.run;

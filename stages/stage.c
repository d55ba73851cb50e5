/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/stage.h"

#include <assert.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/clock.h"
#include "base/system/command_line.h"
#include "base/system/output.h"
#include "base/system/standard_files.h"
#include "kernels/encode/encode.h"
#include "schemas/surveyed.h"
#include "stages/layer_inputs.h"
#include "stages/quantize/decide.h"
#include "stages/quantize/target.h"
#include "stages/quantize/variants.h"
#include "stages/work/assigned.h"
#include "stages/work/hosts.h"

static const char *name_of(const struct xfp_stage *stage)
{
	return stage->run ? xfp_steps[stage->step].stage : XFP_BUNDLE_STAGE;
}

static const char *program_of(const struct xfp_stage *stage)
{
	return stage->run ? xfp_steps[stage->step].program : XFP_BUNDLE_PROGRAM;
}

static bool is_of_layers(const struct xfp_stage *stage)
{
	return stage->run && stage->step == XFP_STAMP_INPUTS;
}

static bool has_extended(const struct xfp_stage *stage)
{
	return stage->run && !is_of_layers(stage) && xfp_step_extended(stage->step) != XFP_STAMPS;
}

#define MAX_OPTIONS 12 /* of a stage */

static const char *setting(const char *variable, const char *otherwise)
{
	const char *value = getenv(variable);

	return value && *value ? value : otherwise;
}

/* The stage compares the layer with the model's; each layer has at least one tensor. */
static enum xfp_status check_layer(const struct xfp_job *job, struct xfp_error *err)
{
	uint32_t layer = job->number & ~XFP_LAYER, most = job->ledger->tensor_count;

	return layer <= most ? XFP_OK
			     : xfp_fail(err, XFP_USAGE, "l%06u: the model has at most %u layers", (unsigned)layer,
					(unsigned)most);
}

/* Read the ledger of the job's unit, or the whole ledger for a layer. */
static enum xfp_status read_ledger(struct xfp_job *job, struct xfp_error *err)
{
	char *path = xfp_path(job->work, XFP_LEDGER_FILE);
	enum xfp_status status;

	if (!path)
		return xfp_no_memory(err);
	status = xfp_is_layer(job->number) ? xfp_ledger_read(path, &job->ledger, err)
					   : xfp_ledger_read_unit(path, job->number, &job->ledger, err);
	if (!status && xfp_is_remote())
		xfp_ledger_accept_devices(job->ledger);
	free(path);
	return status;
}

/* Open everything of the job that all stages need. */
static enum xfp_status open_job(struct xfp_job *job, const char *cache, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	if (!xfp_is_layer(job->number))
		status = xfp_work_parameters(job->work, &job->parameters, err);
	if (!status)
		status = read_ledger(job, err);
	if (!status && xfp_is_layer(job->number))
		status = check_layer(job, err);
	if (status)
		return status;
	if (!xfp_is_layer(job->number)) {
		job->unit = &job->ledger->units[0];
		job->parameters = xfp_decide_parameters(&job->parameters, job->unit, &job->policy);
	}
	return xfp_store_open(cache, &job->store, err);
}

/* Narrow the unit's parameters: by the assignment of a goal, or else by its survey if its threshold is automatic. */
static enum xfp_status narrow_parameters(struct xfp_job *job, struct xfp_error *err)
{
	struct xfp_artifact artifact = { 0 };
	struct xfp_surveyed *surveyed;
	enum xfp_status status;
	bool assigned;
	char key[33];

	if (job->unit->plan != XFP_PLAN_FIT)
		return XFP_OK;
	status = xfp_assigned_read(job->work, job->number, &job->assignment, &assigned, err);
	if (!status && assigned && xfp_is_assigned(&job->assignment))
		xfp_assignment_narrow(&job->assignment, &job->policy, &job->parameters);
	if (status || !xfp_decide_by_survey(&job->parameters, job->unit))
		return status;
	if (!(surveyed = calloc(1, sizeof *surveyed)))
		return xfp_no_memory(err);
	status = xfp_job_open(job, XFP_STAMP_SURVEY, &artifact, key, err);
	if (!status)
		status = xfp_surveyed_read(&artifact, surveyed, err);
	if (!status)
		status = xfp_layer_inputs_predict(job, surveyed->list, surveyed->count, err);
	if (!status)
		xfp_narrow_to_survey(surveyed->list, surveyed->count, job->unit, &job->policy, &job->parameters);
	job->narrowed = !status;
	xfp_artifact_close(&artifact);
	xfp_surveyed_free(surveyed);
	free(surveyed);
	return status;
}

/* For progress displays only. */
static void announce(const struct xfp_job *job, const struct xfp_stage *stage)
{
	struct xfp_event event = { .unit = job->number, .outcome = "started" };
	struct xfp_error ignored;

	snprintf(event.stage, sizeof event.stage, "%s", name_of(stage));
	xfp_event_append(job->work, &event, &ignored);
}

/* Record the outcome as an event. */
static enum xfp_status record(struct xfp_job *job, const struct xfp_stage *stage, enum xfp_status status,
			      struct xfp_error *err)
{
	struct xfp_error ignored;

	job->event.seconds = xfp_now() - job->started;
	job->event.status = status;
	snprintf(job->event.stage, sizeof job->event.stage, "%s", name_of(stage));
	if (!status)
		return xfp_event_append(job->work, &job->event, err);
	strcpy(job->event.outcome, status == XFP_DAMAGED ? "damaged" : "failed");
	snprintf(job->event.message, sizeof job->event.message, "%s", err->text);
	xfp_event_append(job->work, &job->event, &ignored);
	return status;
}

/* Handle weights that differ from those that the unit's stamps are based on: if the files have changed, report that. */
static enum xfp_status begin_again(const struct xfp_job *job, struct xfp_error *err)
{
	enum xfp_status status = xfp_ledger_check_files(job->ledger, err);

	if (status)
		return status;
	xfp_stamp_remove(job->work, job->number, xfp_is_layer(job->number) ? XFP_STAMP_INPUTS : XFP_STAMP_SURVEY);
	return XFP_CHANGED;
}

static enum xfp_status name_host(enum xfp_status status, struct xfp_error *err)
{
	char host[XFP_HOST_NAME];

	return xfp_host_name(host) ? xfp_context(err, status, "%s", xfp_printable(host).text) : status;
}

static enum xfp_status run_job(struct xfp_job *job, const struct xfp_stage *stage, const char *cache,
			       struct xfp_error *err)
{
	enum xfp_status status = open_job(job, cache, err);

	if (!status) {
		announce(job, stage);
		xfp_stage_progress_begin(&job->progress, job->work,
					 job->unit ? job->number
						   : xfp_layer_slot(job->ledger, job->number & ~XFP_LAYER),
					 name_of(stage), job->unit ? xfp_unit_weights(job->unit) : 0);
		job->ledger->watcher = &job->progress.watcher;
		if (job->unit && stage->step != XFP_STAMP_SURVEY)
			status = narrow_parameters(job, err);
		if (!status)
			status = stage->run(job, err);
		if (status == XFP_CHANGED)
			status = begin_again(job, err);
		if (status && job->unit)
			xfp_context(err, status, "unit %s (%s)", job->unit->name, job->unit->role);
	}
	if (status && xfp_is_remote())
		name_host(status, err);
	/* XFP_WANT_EXTENDED is not an event of its own: the extended fit that follows is. */
	return status == XFP_WANT_EXTENDED ? status : record(job, stage, status, err);
}

static enum xfp_status run_all(struct xfp_job *job, const struct xfp_stage *stage,
			       const struct xfp_all_units_job *whole, struct xfp_error *err)
{
	enum xfp_status status;
	char told[65] = "";

	strcpy(job->event.outcome, "made");
	status = stage->run_all(whole, told, err);
	strcpy(job->event.message, told);
	return record(job, stage, status, err);
}

/* HDF5 allocates and frees half a MiB for every file: keep this memory in the process. */
static void keep_memory(void)
{
#ifdef M_MMAP_THRESHOLD
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	mallopt(M_TRIM_THRESHOLD, 16 << 20);
#endif
}

/* The arguments from the command line or the environment. */
struct stage_call {
	const char *cache, *expected;
	bool move;
	const char *operand; /* UNIT or FILE */
};

static bool is_apart(const struct xfp_stage *stage)
{
	return stage->apart.run && *stage->apart.chosen;
}

/* Parse the number of a unit or of a layer. */
static bool parse_operand(const struct xfp_stage *stage, const struct stage_call *call, struct xfp_job *job)
{
	if (!is_of_layers(stage))
		return xfp_unit_parse(call->operand, &job->number);
	if (!xfp_layer_parse(call->operand, &job->number))
		return false;
	job->number |= XFP_LAYER;
	return true;
}

/* Parse the command line into the job and the call. True to continue; otherwise *status is the exit status. */
static bool read_line(int argc, char **argv, const struct xfp_stage *stage, struct xfp_job *job,
		      struct stage_call *call, int *status)
{
	struct xfp_option options[MAX_OPTIONS + 1] = {
		{ .name = "work",
		  .value = "DIR",
		  .text = "work folder (default: XFP_WORK, or the current folder)",
		  .into = &job->work },
		{ .name = "cache",
		  .value = "DIR",
		  .text = "artifact cache (default: XFP_CACHE, or xfp-cache)",
		  .into = &call->cache },
	};
	char usage[256], summary[512];
	struct xfp_command_line line = { .usage = usage,
					 .summary = summary,
					 .options = options,
					 .column = stage->options ? 0 : 20,
					 .operand = stage->apart.run ? stage->apart.operand
						    : stage->run     ? "UNIT"
								     : "BUNDLE" };
	bool layers = is_of_layers(stage);

	if (has_extended(stage))
		options[2] = (struct xfp_option){ .name = "extended",
						  .text = "measure the extended set (k = 5, 6) instead of the base set",
						  .set = &job->extended };
	if (stage->run_all) {
		options[2] = (struct xfp_option){ .name = "expect",
						  .value = "HEX",
						  .text = "write nothing unless this is the digest of all choices",
						  .into = &call->expected };
		options[3] = (struct xfp_option){ .name = "move",
						  .text = "keep and continue the pending file, and record synced units",
						  .set = &call->move };
	}
	for (unsigned i = 2, k = 0; stage->options && stage->options[k].name; i++, k++) {
		assert(i < MAX_OPTIONS);
		options[i] = stage->options[k];
	}
	snprintf(usage, sizeof usage, "%s [--work DIR] [--cache DIR]%s%s%s %s", program_of(stage),
		 has_extended(stage) ? " [--extended]"
		 : stage->run_all    ? " [--expect HEX] [--move]"
				     : "",
		 stage->usage ? " " : "", stage->usage ? stage->usage : "",
		 layers       ? "LAYER"
		 : stage->run ? "UNIT"
			      : "FILE");
	if (stage->apart.run)
		snprintf(usage + strlen(usage), sizeof usage - strlen(usage), "\n   or: %s [--work DIR] %s %s",
			 program_of(stage), stage->apart.usage, stage->apart.operand);
	snprintf(summary, sizeof summary, "%s%s", stage->summary,
		 layers       ? "\n\nLAYER is a layer of the model, such as l000003."
		 : stage->run ? "\n\nUNIT is a unit of the work folder's ledger, such as u000012."
			      : "");
	argv[0] = (char *)program_of(stage); /* the prefix of messages */
	if (!xfp_command_line_read(&line, argc, argv, status))
		return false;
	call->operand = line.arguments[0];
	if (line.argument_count == 1 && (!stage->run || is_apart(stage) || parse_operand(stage, call, job)))
		return true;
	*status = xfp_command_line_refuse(&line, NULL);
	return false;
}

/* Run the step while sharing the locks of the work folder and of the cache. */
static int run_locked(struct xfp_job *job, const struct xfp_stage *stage, const struct stage_call *call,
		      struct xfp_error *err)
{
	const struct xfp_all_units_job whole = { job->work, call->cache, call->operand, call->expected, call->move };
	const struct xfp_stage_locks locks = xfp_stage_locks_share(job->work, call->cache);
	enum xfp_status status = xfp_run_version_check(err);

	job->event.unit = stage->run ? job->number : XFP_NO_UNIT;
	if (status)
		record(job, stage, name_host(status, err), err);
	else
		status = stage->run ? run_job(job, stage, call->cache, err) : run_all(job, stage, &whole, err);
	xfp_stage_locks_release(&locks);
	return (int)status;
}

static int run(int argc, char **argv, const struct xfp_stage *stage)
{
	struct xfp_job job = { .work = setting("XFP_WORK", "."), .started = xfp_now(), .own = stage->own };
	struct stage_call call = { .cache = setting("XFP_CACHE", "xfp-cache") };
	const char *instructions = setting("XFP_INSTRUCTIONS", "");
	struct xfp_error err = { 0 };
	int status;

	xfp_standard_files();
	keep_memory();
	if (!read_line(argc, argv, stage, &job, &call, &status))
		return status;
	if (*instructions && !xfp_encoder_use(instructions)) {
		fprintf(stderr,
			"%s: XFP_INSTRUCTIONS=%s: expected plain, avx2, avx512 or neon, if the processor has it\n",
			program_of(stage), xfp_printable(instructions).text);
		return XFP_USAGE;
	}
	if (is_apart(stage))
		status = (int)stage->apart.run(stage->own, job.work, call.operand, &err);
	else
		status = run_locked(&job, stage, &call, &err);
	if (status && status != XFP_WANT_EXTENDED)
		fprintf(stderr, "%s: %s\n", program_of(stage), err.text);
	xfp_ledger_free(job.ledger);
	xfp_parameters_free(&job.parameters);
	xfp_store_close(&job.store);
	return status;
}

int xfp_stage_main(int argc, char **argv, const struct xfp_stage *stage)
{
	return xfp_output_finish(program_of(stage), run(argc, argv, stage));
}

enum xfp_status xfp_stamped_open(const struct xfp_store *store, const char *work, uint32_t unit, enum xfp_stamp stamp,
				 const char *key, struct xfp_artifact *artifact, struct xfp_error *err)
{
	char *path = xfp_store_path(store, key);
	enum xfp_status status;

	if (!path)
		return xfp_no_memory(err);
	status = xfp_artifact_open(path, xfp_steps[stamp].kind, xfp_steps[stamp].version, key, artifact, err);
	if (status == XFP_DAMAGED)
		xfp_store_remove(store, key);
	else if (status && !xfp_store_has(store, key))
		status = XFP_DAMAGED;
	/* Other errors do not mean that the artifact is damaged. */
	if (status == XFP_DAMAGED)
		xfp_stamp_remove(work, unit, stamp);
	free(path);
	return status;
}

enum xfp_status xfp_job_open_key(struct xfp_job *job, enum xfp_stamp stamp, const char *key,
				 struct xfp_artifact *artifact, struct xfp_error *err)
{
	return xfp_stamped_open(&job->store, job->work, job->number, stamp, key, artifact, err);
}

enum xfp_status xfp_job_open(struct xfp_job *job, enum xfp_stamp stamp, struct xfp_artifact *artifact, char key[33],
			     struct xfp_error *err)
{
	enum xfp_status status = xfp_stamp_find(job->work, job->number, stamp, key, err);

	if (status)
		return status;
	if (!*key) {
		xfp_stamp_remove(job->work, job->number, stamp);
		return xfp_fail(err, XFP_DAMAGED, "no %s artifact yet: run the unit's earlier stages first",
				xfp_steps[stamp].kind);
	}
	return xfp_job_open_key(job, stamp, key, artifact, err);
}

/* Whether the artifact exists and is sound. */
static enum xfp_status look(struct xfp_job *job, enum xfp_stamp stamp, const char *key, bool *hit,
			    struct xfp_error *err)
{
	struct xfp_artifact artifact = { 0 };
	struct xfp_error why = { 0 };
	enum xfp_status status;
	char *path;

	*hit = false;
	if (!xfp_store_has(&job->store, key))
		return XFP_OK;
	if (!(path = xfp_store_path(&job->store, key)))
		return xfp_no_memory(err);
	status = xfp_artifact_open(path, xfp_steps[stamp].kind, xfp_steps[stamp].version, key, &artifact, &why);
	free(path);
	if (!status) {
		xfp_artifact_close(&artifact);
		*hit = true;
	} else if (status == XFP_DAMAGED) {
		fprintf(stderr, "xfp: %s: making it again\n", why.text);
		xfp_store_remove(&job->store, key);
		xfp_stamp_remove(job->work, job->number, stamp);
	} else if (xfp_store_has(&job->store, key)) {
		return xfp_fail(err, status, "%s", why.text);
	}
	return XFP_OK;
}

enum xfp_status xfp_job_make(struct xfp_job *job, enum xfp_stamp stamp, const struct xfp_key *key, xfp_fill_fn *fill,
			     void *own, struct xfp_error *err)
{
	char layer[16];
	const struct xfp_production production = {
		.store = &job->store,
		.key = key,
		.stamp = stamp,
		.unit = job->unit ? job->unit->name : layer,
		.started = job->started,
		.ledger = job->ledger,
	};
	bool hit;
	enum xfp_status status = look(job, stamp, key->hex, &hit, err);

	xfp_unit_format(job->number, layer);
	strcpy(job->event.key, key->hex);
	strcpy(job->event.outcome, hit ? "hit" : "made");
	return status || hit ? status : xfp_produce(&production, fill, own, err);
}

enum xfp_status xfp_job_stamp(const struct xfp_job *job, enum xfp_stamp stamp, const char *key, struct xfp_error *err)
{
	enum xfp_status status = xfp_steps[stamp].weights ? xfp_ledger_check_files(job->ledger, err) : XFP_OK;

	if (!status)
		return xfp_stamp_write(job->work, job->number, stamp, key, err);
	xfp_stamp_remove(job->work, job->number, stamp);
	return status;
}

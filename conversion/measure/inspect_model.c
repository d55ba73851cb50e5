/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/measure/inspect_model.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/system/file.h"
#include "base/system/temporary.h"
#include "conversion/run_inspect.h"
#include "stages/work/work.h"

static enum xfp_status read_ledger(const char *work, struct xfp_ledger **ledger, struct xfp_error *err)
{
	char *path = xfp_path(work, XFP_LEDGER_FILE);
	enum xfp_status status = path ? xfp_ledger_read(path, ledger, err) : xfp_no_memory(err);

	free(path);
	return status;
}

enum xfp_status xfp_inspect_model(const char *program, char *model, char *family,
				  const struct xfp_parameters *parameters, struct xfp_signals *signals,
				  struct xfp_notify notify, struct xfp_ledger **ledger, struct xfp_error *err)
{
	char *work = xfp_temporary_folder(err);
	const struct xfp_request inspected = {
		.program = program, .model = model, .family = family, .work = work, .cache = work, .quiet = true
	};
	struct xfp_conversion c = { .request = &inspected,
				    .parameters = *parameters,
				    .signals = signals,
				    .notify = notify,
				    .place = { .lock = -1, .log = -1, .cache_lock = -1 } };
	FILE *log = work ? tmpfile() : NULL;
	enum xfp_status status = XFP_FAILED;

	if (work && !log)
		xfp_fail(err, XFP_FAILED, "cannot create a temporary file");
	if (work && log) {
		c.place.log = fileno(log);
		status = xfp_run_environment(work, work, err);
		if (!status)
			status = (enum xfp_status)xfp_run_inspect(&c, work, err);
		if (!status)
			status = read_ledger(work, ledger, err);
	}
	if (log)
		fclose(log);
	xfp_temporary_remove(work);
	xfp_run_record_free(&c.place.record);
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/work/produce.h"

#include "base/system/clock.h"
#include "schemas/choice.h"

static enum xfp_status finish(const struct xfp_production *p, struct xfp_artifact *artifact, struct xfp_error *err)
{
	const struct xfp_artifact_label label = {
		.kind = xfp_steps[p->stamp].kind,
		.version = xfp_steps[p->stamp].version,
		.key = p->key->hex,
		.key_text = p->key->text,
		.unit = p->unit,
		.seconds = xfp_now() - p->started,
	};
	enum xfp_status status = p->ledger ? xfp_ledger_check_files(p->ledger, err) : XFP_OK;

	return status ? status : xfp_artifact_finish(artifact, &label, err);
}

enum xfp_status xfp_produce(const struct xfp_production *production, xfp_fill_fn *fill, void *own,
			    struct xfp_error *err)
{
	struct xfp_artifact artifact = { 0 };
	struct xfp_pending pending = { 0 };
	enum xfp_status status = xfp_store_begin(production->store, production->key->hex, &pending, err);

	if (!status)
		status = xfp_artifact_create(pending.path, &artifact, err);
	if (!status)
		status = fill(own, &artifact, err);
	if (!status)
		status = finish(production, &artifact, err);
	if (!status)
		status = xfp_pending_publish(&pending, false, err);
	xfp_artifact_close(&artifact);
	xfp_pending_discard(&pending);
	return status;
}

enum xfp_status xfp_fill_choice(void *own, struct xfp_artifact *artifact, struct xfp_error *err)
{
	return xfp_choice_write(artifact, own, err);
}

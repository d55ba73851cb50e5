/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/pack/fitted.h"

#include <stdlib.h>

#include "kernels/common/lane_index.h"
#include "stages/quantize/threads.h"

enum xfp_status xfp_packing_open(struct xfp_packing *p, struct xfp_job *job, const struct xfp_choice *choice,
				 struct xfp_packed *packed, struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_source(job->ledger, 0);
	enum xfp_status status;

	*p = (struct xfp_packing){ .job = job, .packed = packed, .threads = xfp_threads() };
	if ((status = xfp_chosen_open(job, choice, &p->chosen, err)))
		return status;
	p->block = xfp_rows_block(&source);
	p->row_bytes = xfp_index_row_bytes(packed->cols, choice->candidate.k);
	p->index = malloc(p->block * p->row_bytes);
	return p->index ? xfp_scaling_init(&p->scaling, packed->cols, err) : xfp_no_memory(err);
}

void xfp_packing_close(struct xfp_packing *p)
{
	xfp_chosen_close(&p->chosen);
	xfp_scaling_free(&p->scaling);
	free(p->index);
}

static enum xfp_status pack_rows(struct xfp_packing *p, const struct xfp_packing_methods *methods, void *own,
				 uint32_t m, const struct xfp_marks *marks, struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_source(p->job->ledger, m);
	struct xfp_rows rows = { 0 };
	enum xfp_status status = xfp_rows_open_again(&source, p->packed->matrix[m].source, &rows, err);

	while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count) {
		if (methods->block && (status = methods->block(own, m, &rows, err)))
			break;
#pragma omp parallel for
		for (uint64_t r = 0; r < rows.count; r++)
			methods->row(own, xfp_thread(), &rows, marks, r);
		status = xfp_part_append(&p->part[XFP_PART_INDEX], p->index, rows.count * p->row_bytes, err);
	}
	xfp_rows_close(&rows);
	return status;
}

static enum xfp_status pack_matrix(struct xfp_packing *p, const struct xfp_packing_methods *methods, void *own,
				   uint32_t m, struct xfp_error *err)
{
	struct xfp_packed_matrix *matrix = &p->packed->matrix[m];
	const struct xfp_outliers *known = &p->chosen.known;
	struct xfp_marks marks = { 0 };
	enum xfp_status status = xfp_chosen_marks(&p->chosen, m, &marks, err);

	matrix->offset[XFP_PART_INDEX] = p->part[XFP_PART_INDEX].offset;
	matrix->offset[XFP_PART_CODE] = methods->begin ? 0 : p->part[XFP_PART_CODE].offset;
	matrix->offset[XFP_PART_GROUP] = p->part[XFP_PART_GROUP].offset;
	matrix->offset[XFP_PART_OUTLIER] = marks.count ? p->part[XFP_PART_OUTLIER].offset : 0;
	xfp_scaling_set(&p->scaling, known->balance, known->exponent[m]);
	p->residual = malloc((marks.count + 1) * sizeof *p->residual);
	if (!status && !p->residual)
		status = xfp_no_memory(err);
	if (!status)
		status =
			methods->copy ? methods->copy(own, m, &marks, err) : pack_rows(p, methods, own, m, &marks, err);
	if (!status && methods->end)
		status = methods->end(own, err);
	if (!status && marks.count)
		status = xfp_chosen_write_outliers(&p->chosen, &marks, p->residual, &p->part[XFP_PART_OUTLIER], err);
	xfp_marks_free(&marks);
	free(p->residual);
	p->residual = NULL;
	return status;
}

enum xfp_status xfp_packing_write(struct xfp_packing *p, const struct xfp_choice *choice,
				  const struct xfp_packing_methods *methods, void *own, struct xfp_artifact *artifact,
				  struct xfp_error *err)
{
	struct xfp_packed *packed = p->packed;
	enum xfp_status status;

	xfp_chosen_describe(&p->chosen, choice, packed);
	status = xfp_packed_begin(artifact, packed, err);
	for (int part = 0; part < XFP_PARTS; part++)
		xfp_part_begin(&p->part[part], artifact, (enum xfp_part)part);
	if (!status && methods->begin)
		status = methods->begin(own, err);
	if (!status && packed->bytes[XFP_PART_BALANCE])
		status = xfp_part_append(&p->part[XFP_PART_BALANCE], p->chosen.known.balance, packed->cols, err);
	for (uint32_t m = 0; !status && m < packed->matrices; m++)
		status = pack_matrix(p, methods, own, m, err);
	for (int part = 0; part < XFP_PARTS; part++)
		xfp_part_end(&p->part[part], packed);
	return status;
}

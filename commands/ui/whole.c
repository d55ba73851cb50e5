/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/ui/whole.h"

#include <string.h>

#include "base/text/size.h"
#include "schemas/json_print.h"
#include "schemas/policy.h"
#include "schemas/recipe/recipe.h"

#define MUCH 0.1     /* of the file: kept tensors that are worth a remark */
#define LONG_ROW 768 /* columns: 6/8 of that, 64 entries of a codebook and outliers are less than a byte each */

/* ---- what there is ----------------------------------------------------------------------------- */

struct tensor {
	enum xfp_class class_;
	enum xfp_dtype dtype;
	enum xfp_fate fate;
	const char *reason; /* of its fate: what was kept as asked for can be asked for otherwise */
	uint32_t rank;
	uint64_t bytes, cols;
	bool apart; /* stored by itself, not in a unit */
};

/* What --format could make smaller. */
static void add_kept(struct xfp_whole *whole, enum xfp_class class_, uint64_t bytes, uint64_t cols)
{
	if (!whole->could[class_] || cols < whole->cols[class_])
		whole->cols[class_] = cols;
	whole->could[class_] += bytes;
}

static void add_tensor(struct xfp_whole *whole, const struct tensor *t)
{
	const struct xfp_parameters usual = xfp_parameters_default();
	bool reached = xfp_policy_extends(&usual, t->class_) || (t->reason && strstr(t->reason, "as asked for"));

	whole->source += t->bytes;
	if (t->fate != XFP_FATE_TIED)
		whole->elements += t->bytes * 8 / xfp_dtype_bits(t->dtype);
	if (!t->apart)
		return;
	whole->kept += t->bytes;
	if (reached && t->rank == 2 && xfp_dtype_is_weight(t->dtype))
		add_kept(whole, t->class_, t->bytes, t->cols);
}

void xfp_whole_add_unit(struct xfp_whole *whole, enum xfp_class class_, enum xfp_mode mode, uint64_t bytes,
			uint64_t weights, uint64_t cols, double paper)
{
	if (mode == XFP_MODE_KEEP) {
		whole->kept += bytes;
		add_kept(whole, class_, bytes, cols);
		return;
	}
	whole->units += bytes;
	whole->unit_weights += weights;
	whole->paper += paper * (double)weights;
}

/* Of a whole tensor in the checkpoint: dtypes of less than a byte are packed. */
static uint64_t source_bytes(const struct xfp_tensor_info *tensor)
{
	return (tensor->elements * xfp_dtype_bits((enum xfp_dtype)tensor->dtype) + 7) / 8;
}

double xfp_unit_paper_bits(const struct xfp_bundle *bundle, const struct xfp_unit_info *unit)
{
	struct xfp_matrix_info matrix;
	double k = 0;

	for (uint32_t e = 0; e < unit->experts; e++)
		if (xfp_bundle_matrix(bundle, unit->first_matrix + e, &matrix))
			k += matrix.k;
	return xfp_paper_bits((enum xfp_mode)unit->mode, unit->experts ? k / unit->experts : 0, unit->group_size,
			      (enum xfp_dtype)unit->dtype);
}

struct xfp_whole xfp_whole_of_bundle(const struct xfp_bundle *bundle)
{
	struct xfp_bundle_info info;
	struct xfp_whole whole = { 0 };
	struct xfp_tensor_info tensor;
	struct xfp_unit_info unit;
	struct xfp_file_info file;

	xfp_bundle_info(bundle, &info);
	whole.bytes = info.file_bytes;
	for (uint32_t u = 0; xfp_bundle_unit(bundle, u, &unit); u++)
		xfp_whole_add_unit(&whole, (enum xfp_class)unit.class_, (enum xfp_mode)unit.mode, unit.bytes,
				   unit.weights, unit.cols, xfp_unit_paper_bits(bundle, &unit));
	for (uint32_t f = 0; xfp_bundle_file(bundle, f, &file); f++)
		whole.files += file.bytes;
	for (uint32_t t = 0; xfp_bundle_tensor(bundle, t, &tensor); t++)
		add_tensor(&whole, &(struct tensor){ .class_ = (enum xfp_class)tensor.class_,
						     .dtype = (enum xfp_dtype)tensor.dtype,
						     .fate = (enum xfp_fate)tensor.fate,
						     .reason = tensor.reason,
						     .rank = tensor.rank,
						     .bytes = source_bytes(&tensor),
						     .cols = tensor.rank == 2 ? tensor.shape[1] : 0,
						     .apart = tensor.data != NULL });
	return whole;
}

uint64_t xfp_whole_stored(const struct xfp_ledger *ledger)
{
	uint64_t bytes = 0;
	bool packed = false;

	for (uint32_t t = 0; t < ledger->tensor_count; t++) {
		bytes += xfp_tensor_stored_bytes(&ledger->tensors[t]);
		packed |= ledger->tensors[t].recipe && ledger->tensors[t].recipe->parts[0].codec != XFP_CODEC_PLAIN;
	}
	return packed ? bytes : 0;
}

struct xfp_whole xfp_whole_of_ledger(const struct xfp_ledger *ledger)
{
	struct xfp_whole whole = { .stored = xfp_whole_stored(ledger) };

	for (uint32_t t = 0; t < ledger->tensor_count; t++) {
		const struct xfp_ledger_tensor *tensor = &ledger->tensors[t];

		add_tensor(&whole, &(struct tensor){ .class_ = tensor->class_,
						     .dtype = tensor->dtype,
						     .fate = tensor->fate,
						     .reason = tensor->reason,
						     .rank = tensor->rank,
						     .bytes = tensor->bytes,
						     .cols = tensor->rank == 2 ? tensor->shape[1] : 0,
						     .apart = tensor->fate == XFP_FATE_KEPT });
	}
	return whole;
}

/* ---- what it comes to -------------------------------------------------------------------------- */

static double bits(uint64_t bytes, uint64_t weights)
{
	return weights ? (double)bytes * 8 / (double)weights : 0;
}

double xfp_paper_bits(enum xfp_mode mode, double k, uint32_t group, enum xfp_dtype source)
{
	switch (mode) {
	case XFP_MODE_KEEP:
		return xfp_dtype_bits(source);
	case XFP_MODE_FP8:
		return 8;
	case XFP_MODE_V2A:
		return k + 40.0 / group; /* number of its codebook, scale, midpoint */
	case XFP_MODE_V2C:
		return k + 8.0 / group;
	default:
		return k;
	}
}

double xfp_whole_paper_bits(const struct xfp_whole *whole)
{
	return whole->unit_weights ? whole->paper / (double)whole->unit_weights : 0;
}

double xfp_whole_bits(const struct xfp_whole *whole)
{
	return bits(whole->bytes, whole->elements);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}

/* The class whose kept matrices take most; XFP_CLASSES: none is worth a word. */
static enum xfp_class largest_kept(const struct xfp_whole *whole)
{
	enum xfp_class largest = XFP_CLASSES;

	for (int i = 0; i < XFP_CLASSES; i++)
		if ((double)whole->could[i] > MUCH / 2 * (double)whole->bytes &&
		    (largest == XFP_CLASSES || whole->could[i] > whole->could[largest]))
			largest = (enum xfp_class)i;
	return largest;
}

/* What makes matrices of a class smaller, whatever the mode. Six bits an index take less than fp8 and have a better
 * cosine, but not where a row's codebook is longer than what it spares. */
static const char *remedy(const struct xfp_whole *whole, enum xfp_class class_)
{
	return whole->compact || whole->cols[class_] >= LONG_ROW ? "6" : "fp8";
}

static void print_remark(FILE *out, const struct xfp_whole *whole)
{
	enum xfp_class class_ = largest_kept(whole);

	/* The line above has the share: it is said again only with what can be done about it. */
	if ((double)whole->kept < MUCH * (double)whole->bytes || class_ == XFP_CLASSES)
		return;
	fprintf(out, "kept tensors are %.0f %% of the bundle; --format %s=%s quantizes %.0f %%\n",
		percent(whole->kept, whole->bytes), xfp_class_name(class_), remedy(whole, class_),
		percent(whole->could[class_], whole->bytes));
}

/* What the source takes where its weights are packed: people compare the bundle with that. */
static void print_stored(FILE *out, const struct xfp_whole *whole)
{
	char stored[32];

	if (!whole->stored)
		return;
	xfp_human((double)whole->stored, "B", stored);
	if (whole->bytes <= whole->stored)
		fprintf(out, "packed as it is, the source takes %s; the bundle is %.1f %% of that\n", stored,
			percent(whole->bytes, whole->stored));
	else
		fprintf(out,
			"warning: the bundle has more bits than the source, which is packed and takes %s,\n"
			"at %.3f bits per weight; lower floors, fewer --bits or --target-bpw make it smaller\n",
			stored, bits(whole->stored, whole->elements));
}

void xfp_whole_print(FILE *out, const char *what, const struct xfp_whole *whole)
{
	uint64_t named = whole->units + whole->kept + whole->files;
	uint64_t rest = whole->bytes > named ? whole->bytes - named : 0;
	char size[32], source[32];

	fprintf(out, "%s%s, %.3f bits per weight overall; %.1f %% of the source's %s\n", what,
		xfp_human((double)whole->bytes, "B", size), xfp_whole_bits(whole), percent(whole->bytes, whole->source),
		xfp_human((double)whole->source, "B", source));
	print_stored(out, whole);
	fprintf(out,
		"quantized %.1f %%, at %.3f bits per weight (%.3f as papers count);\n"
		"kept tensors %.1f %%, files %.1f %%, index and padding %.1f %%\n",
		percent(whole->units, whole->bytes), bits(whole->units, whole->unit_weights),
		xfp_whole_paper_bits(whole), percent(whole->kept, whole->bytes), percent(whole->files, whole->bytes),
		percent(rest, whole->bytes));
	print_remark(out, whole);
}

json_t *xfp_whole_json(const struct xfp_whole *whole)
{
	return XFP_JSON({ "bytes", json_integer((json_int_t)whole->bytes) },
			{ "bits_per_weight", json_real(xfp_whole_bits(whole)) },
			{ "true_bits", json_real(bits(whole->units, whole->unit_weights)) },
			{ "paper_bits", json_real(xfp_whole_paper_bits(whole)) },
			{ "elements", json_integer((json_int_t)whole->elements) },
			{ "source_bytes", json_integer((json_int_t)whole->source) },
			{ "stored_bytes", whole->stored ? json_integer((json_int_t)whole->stored) : json_null() },
			{ "quantized_bytes", json_integer((json_int_t)whole->units) },
			{ "kept_bytes", json_integer((json_int_t)whole->kept) },
			{ "file_bytes", json_integer((json_int_t)whole->files) });
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/ui/whole_print.h"

#include "base/text/size.h"
#include "schemas/json_print.h"

#define MUCH 0.1     /* share of the file from which kept tensors get a remark */
#define LONG_ROW 768 /* columns: 6/8 of that, 64 entries of a codebook and outliers are less than a byte each */

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}

/* The class whose kept matrices need the most bytes; XFP_CLASSES if none is worth a remark. */
static enum xfp_class largest_kept(const struct xfp_whole *whole)
{
	enum xfp_class largest = XFP_CLASSES;

	for (int i = 0; i < XFP_CLASSES; i++)
		if ((double)whole->could[i] > MUCH / 2 * (double)whole->bytes &&
		    (largest == XFP_CLASSES || whole->could[i] > whole->could[largest]))
			largest = (enum xfp_class)i;
	return largest;
}

/* The format that makes matrices of a class smaller in any mode. Six bits per index need less than fp8 and have a
 * better cosine, unless a row's codebook outweighs the saving. */
static const char *remedy(const struct xfp_whole *whole, enum xfp_class class_)
{
	return whole->compact || whole->cols[class_] >= LONG_ROW ? "6" : "fp8";
}

static void print_remark(FILE *out, const struct xfp_whole *whole)
{
	enum xfp_class class_ = largest_kept(whole);

	/* The line above has the share already, so repeat it only together with a remedy. */
	if ((double)whole->kept < MUCH * (double)whole->bytes || class_ == XFP_CLASSES)
		return;
	fprintf(out, "kept tensors are %.0f %% of the bundle; --format %s=%s quantizes %.0f %%\n",
		percent(whole->kept, whole->bytes), xfp_class_name(class_), remedy(whole, class_),
		percent(whole->could[class_], whole->bytes));
}

/* The size of a packed source, with which users compare the bundle. */
static void print_stored(FILE *out, const struct xfp_whole *whole)
{
	char stored[32];

	if (!whole->stored)
		return;
	xfp_human((double)whole->stored, "B", stored);
	if (whole->bytes <= whole->stored)
		fprintf(out, "the packed source has %s; the bundle is %.1f %% of that\n", stored,
			percent(whole->bytes, whole->stored));
	else
		fprintf(out,
			"warning: the bundle has more bits than the source, which is packed and takes %s,\n"
			"at %.3f bits per weight; lower floors, fewer --bits or --target-bpw make it smaller\n",
			stored, xfp_bits_each(whole->stored, whole->elements));
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
		percent(whole->units, whole->bytes), xfp_bits_each(whole->units, whole->unit_weights),
		xfp_whole_paper_bits(whole), percent(whole->kept, whole->bytes), percent(whole->files, whole->bytes),
		percent(rest, whole->bytes));
	print_remark(out, whole);
}

json_t *xfp_whole_json(const struct xfp_whole *whole)
{
	return XFP_JSON(
		{ "bytes", xfp_json_count(whole->bytes) }, { "bits_per_weight", json_real(xfp_whole_bits(whole)) },
		{ "true_bits", json_real(xfp_bits_each(whole->units, whole->unit_weights)) },
		{ "paper_bits", json_real(xfp_whole_paper_bits(whole)) },
		{ "elements", xfp_json_count(whole->elements) }, { "source_bytes", xfp_json_count(whole->source) },
		{ "stored_bytes", xfp_json_count_or_null(whole->stored) },
		{ "quantized_bytes", xfp_json_count(whole->units) }, { "kept_bytes", xfp_json_count(whole->kept) },
		{ "file_bytes", xfp_json_count(whole->files) });
}

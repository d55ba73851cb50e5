/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/ui/composition_print.h"

#include "base/text/size.h"
#include "schemas/json_print.h"

#define MUCH 0.1     /* share of the file from which kept tensors get a remark */
#define LONG_ROW 768 /* columns: 6/8 of that, 64 entries of a codebook and outliers are less than a byte each */

static double percent(uint64_t part, uint64_t composition)
{
	return composition ? 100 * (double)part / (double)composition : 0;
}

/* The class whose kept matrices need the most bytes; XFP_CLASSES if none is worth a remark. */
static enum xfp_class largest_kept(const struct xfp_composition *composition)
{
	enum xfp_class largest = XFP_CLASSES;

	for (int i = 0; i < XFP_CLASSES; i++)
		if ((double)composition->quantizable[i] > MUCH / 2 * (double)composition->bytes &&
		    (largest == XFP_CLASSES || composition->quantizable[i] > composition->quantizable[largest]))
			largest = (enum xfp_class)i;
	return largest;
}

/* The format that makes matrices of a class smaller in any mode. Six bits per index need less than fp8 and have a
 * better cosine, unless a row's codebook outweighs the saving. */
static const char *remedy(const struct xfp_composition *composition, enum xfp_class class_)
{
	return composition->compact || composition->cols[class_] >= LONG_ROW ? "6" : "fp8";
}

static void print_remark(FILE *out, const struct xfp_composition *composition)
{
	enum xfp_class class_ = largest_kept(composition);

	/* The line above has the share already, so repeat it only together with a remedy. */
	if ((double)composition->kept < MUCH * (double)composition->bytes || class_ == XFP_CLASSES)
		return;
	fprintf(out, "kept tensors are %.0f %% of the bundle; --format %s=%s quantizes %.0f %%\n",
		percent(composition->kept, composition->bytes), xfp_class_name(class_), remedy(composition, class_),
		percent(composition->quantizable[class_], composition->bytes));
}

/* The size of a packed source, with which users compare the bundle. */
static void print_stored(FILE *out, const struct xfp_composition *composition)
{
	char stored[32];

	if (!composition->stored)
		return;
	xfp_human((double)composition->stored, "B", stored);
	if (composition->bytes <= composition->stored)
		fprintf(out, "the packed source has %s; the bundle is %.1f %% of that\n", stored,
			percent(composition->bytes, composition->stored));
	else
		fprintf(out,
			"warning: the bundle has more bits than the source, which is packed and takes %s,\n"
			"at %.3f bits per weight; lower floors, fewer --bits or --target-bpw make it smaller\n",
			stored, xfp_bits_per_weight(composition->stored, composition->elements));
}

void xfp_composition_print(FILE *out, const char *what, const struct xfp_composition *composition)
{
	uint64_t named = composition->units + composition->kept + composition->files;
	uint64_t rest = composition->bytes > named ? composition->bytes - named : 0;
	char size[32], source[32];

	fprintf(out, "%s%s, %.3f bits per weight overall; %.1f %% of the source's %s\n", what,
		xfp_human((double)composition->bytes, "B", size), xfp_composition_bits(composition),
		percent(composition->bytes, composition->source), xfp_human((double)composition->source, "B", source));
	print_stored(out, composition);
	fprintf(out,
		"quantized %.1f %% of bytes, at %.3f bits per weight (%.3f as papers count);\n"
		"kept tensors %.1f %%, files %.1f %%, index and padding %.1f %%\n",
		percent(composition->units, composition->bytes),
		xfp_bits_per_weight(composition->units, composition->unit_weights),
		xfp_composition_paper_bits(composition), percent(composition->kept, composition->bytes),
		percent(composition->files, composition->bytes), percent(rest, composition->bytes));
	print_remark(out, composition);
}

json_t *xfp_composition_json(const struct xfp_composition *composition)
{
	return XFP_JSON({ "bytes", xfp_json_count(composition->bytes) },
			{ "bits_per_weight", json_real(xfp_composition_bits(composition)) },
			{ "true_bits", json_real(xfp_bits_per_weight(composition->units, composition->unit_weights)) },
			{ "paper_bits", json_real(xfp_composition_paper_bits(composition)) },
			{ "elements", xfp_json_count(composition->elements) },
			{ "source_bytes", xfp_json_count(composition->source) },
			{ "stored_bytes", xfp_json_count_or_null(composition->stored) },
			{ "quantized_bytes", xfp_json_count(composition->units) },
			{ "kept_bytes", xfp_json_count(composition->kept) },
			{ "file_bytes", xfp_json_count(composition->files) });
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Multiplies a matrix of a bundle by a vector of ones, or prints one of its rows, as a token's embedding is looked up:
 * cc example.c $(pkg-config --cflags --libs xfp) */
#include <stdio.h>
#include <stdlib.h>
#include <xfp.h>

int main(int argc, char **argv)
{
	struct xfp_error err = { XFP_USAGE, "usage: example BUNDLE TENSOR [ROW]" };
	struct xfp_linear_info size = { 0, 0, 0 };
	struct xfp_bundle *bundle = NULL;
	struct xfp_linear *linear = NULL;
	float *x = NULL, *y = NULL;

	if ((argc == 3 || argc == 4) && !xfp_bundle_open(argv[1], &bundle, &err) &&
	    !xfp_linear_open_tensor(bundle, xfp_bundle_find_tensor(bundle, argv[2]), NULL, &linear, &err))
		xfp_linear_describe(linear, &size);
	if (linear && argc == 4) {
		uint32_t row = (uint32_t)strtoul(argv[3], NULL, 10);
		y = malloc(size.cols * sizeof *y);
		struct xfp_output out = { y, XFP_FLOAT32, 1, size.cols };
		err.status = xfp_rows(linear, &row, 1, &out, &err);
		size.rows = size.cols;
	} else if (linear) {
		x = malloc(size.cols * sizeof *x);
		y = malloc(size.rows * sizeof *y);
		for (size_t c = 0; x && c < size.cols; c++)
			x[c] = 1;
		struct xfp_input in = { x, XFP_FLOAT32, 1, size.cols };
		struct xfp_output out = { y, XFP_FLOAT32, 1, size.rows };
		err.status = xfp_multiply(NULL, linear, 0, 1, &in, &out, &err);
	}
	for (size_t r = 0; !err.status && r < size.rows; r++)
		printf("%.9g\n", y[r]);
	if (err.status)
		fprintf(stderr, "%s\n", err.text);
	free(x);
	free(y);
	xfp_linear_close(linear);
	xfp_bundle_close(bundle);
	return err.status;
}

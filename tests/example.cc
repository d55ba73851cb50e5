/* SPDX-License-Identifier: Apache-2.0 */
/* Multiplies a unit of a bundle by a vector of ones, in C++17:
 * c++ -std=c++17 example.cc $(pkg-config --cflags --libs xfp) */
#include <cstdio>
#include <memory>
#include <vector>
#include <xfp.h>

struct close_handle {
	void operator()(xfp_bundle *bundle) const
	{
		xfp_bundle_close(bundle);
	}
	void operator()(xfp_team *team) const
	{
		xfp_team_end(team);
	}
	void operator()(xfp_linear *linear) const
	{
		xfp_linear_close(linear);
	}
};

static xfp_status multiply(const char *path, const char *name, xfp_error *err)
{
	xfp_bundle *opened = nullptr;
	if (xfp_status status = xfp_bundle_open(path, &opened, err))
		return status;
	std::unique_ptr<xfp_bundle, close_handle> bundle(opened);
	xfp_bundle_info contents;
	xfp_bundle_describe(bundle.get(), &contents);

	xfp_team *started = nullptr;
	if (xfp_status status = xfp_team_start(0, &started, err))
		return status;
	std::unique_ptr<xfp_team, close_handle> team(started);

	uint32_t unit = xfp_bundle_find_unit(bundle.get(), name, nullptr);
	if (unit == XFP_NOT_FOUND)
		return xfp_fail(err, XFP_USAGE, "%s: has no unit %s", contents.path, name);
	xfp_linear *matrix = nullptr;
	if (xfp_status status = xfp_linear_open(bundle.get(), unit, nullptr, &matrix, err))
		return status;
	std::unique_ptr<xfp_linear, close_handle> linear(matrix);
	xfp_linear_info shape;
	xfp_linear_describe(linear.get(), &shape);

	std::vector<float> x(shape.cols, 1.0f), y(shape.rows);
	xfp_input in = { x.data(), XFP_FLOAT32, 1, x.size() };
	xfp_output out = { y.data(), XFP_FLOAT32, 1, y.size() };
	if (xfp_status status = xfp_multiply(team.get(), linear.get(), 0, 1, &in, &out, err))
		return status;
	for (float value : y)
		std::printf("%.9g\n", value);
	return XFP_OK;
}

int main(int argc, char **argv)
{
	xfp_error err = { XFP_USAGE, "usage: example BUNDLE UNIT" };
	xfp_status status = argc == 3 ? multiply(argv[1], argv[2], &err) : XFP_USAGE;

	if (status)
		std::fprintf(stderr, "%s\n", err.text);
	return status;
}

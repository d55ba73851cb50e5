# SPDX-License-Identifier: Apache-2.0
#
# man/: a page per executable and command, and the formats.

dist_man_MANS += man/xfp-kernel-verify.1 man/xfp.5
if CONVERTER
dist_man_MANS += \
	man/xfp-autoselect.1 \
	man/xfp-bundle.1 \
	man/xfp-calibrate.1 \
	man/xfp-cache.1 \
	man/xfp-compare.1 \
	man/xfp-convert.1 \
	man/xfp-eval.1 \
	man/xfp-family.5 \
	man/xfp-generate.1 \
	man/xfp-info.1 \
	man/xfp-inspect.1 \
	man/xfp-launch.1 \
	man/xfp-libfit.1 \
	man/xfp-lloyd-fit.1 \
	man/xfp-manifest.5 \
	man/xfp-method.7 \
	man/xfp-outlier-extract.1 \
	man/xfp-pack.1 \
	man/xfp-pipelines.7 \
	man/xfp-plan.1 \
	man/xfp-report.1 \
	man/xfp-status.1 \
	man/xfp-survey.1 \
	man/xfp-surveys.5 \
	man/xfp-unpack.1 \
	man/xfp-verify.1 \
	man/xfp-walk.1 \
	man/xfp.1
endif

# SPDX-License-Identifier: Apache-2.0
#
# docs/: which models are known, what was measured, and how to measure it. How to use the tools is in man/.

EXTRA_DIST += \
	docs/models.md \
	docs/results.md \
	docs/speed.md

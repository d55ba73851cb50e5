# SPDX-License-Identifier: Apache-2.0
#
# docs/: known models, tests, measurements. How to use the tools is in man/.

EXTRA_DIST += \
	docs/adding.md \
	docs/glossary.md \
	docs/internals.md \
	docs/models.md \
	docs/python.md \
	docs/report-dark.png \
	docs/report-desktop.png \
	docs/report-phone.png \
	docs/report.md \
	docs/results.md \
	docs/speed.md \
	docs/testing.md

# SPDX-License-Identifier: Apache-2.0
#
# graph.mk - one target a unit. It runs inside a work folder, after `xfp prepare` wrote todo.mk there:
# FIT_UNITS, PACK_UNITS and SURVEY_UNITS, the units that are not finished. Each goes through the whole of its chain at
# once, so that under -j N there are N units in flight and a stage finds what the one before it read and
# wrote in the page cache.
#
# Names that make sees are u000012-packed and the like. Which stamps are there was decided by content
# (xfp prepare removes those that are not current), so no time of any file matters.

MAKEFLAGS += --no-builtin-rules
.SUFFIXES:

include todo.mk

fit_targets = $(FIT_UNITS:%=%-packed)
pack_targets = $(PACK_UNITS:%=%-packed)
survey_targets = $(SURVEY_UNITS:%=%-survey)

.PHONY: units
units: $(survey_targets) $(fit_targets) $(pack_targets)

# With a goal, all units are surveyed first; xfp prepare then lists the work that follows.
$(survey_targets): %-survey:
	xfp-survey $*

$(fit_targets): %-packed:
	+$(MAKE) --no-print-directory -f "$$XFP_PIPELINES/unit.mk" UNIT=$*

# fp8 and kept units need no decision: the first stage is the last.
$(pack_targets): %-packed:
	xfp-pack $*

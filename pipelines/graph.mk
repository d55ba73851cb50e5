# SPDX-License-Identifier: Apache-2.0
#
# graph.mk - one target a unit. It runs inside a work folder, after `xfp prepare` wrote todo.mk there. That lists the
# units that are not finished. FIT_UNITS and PACK_UNITS go through their whole chain at once, so that under -j N there
# are N units in flight and a stage finds what the one before it read and wrote in the page cache. SURVEY_UNITS and
# SCALED_UNITS are only surveyed. With --calibrate, CALIBRATED_UNITS have a whole chain, too; it begins once the inputs
# of their layer exist, and so do the surveys of SCALED_UNITS. LAYERS are the layers whose inputs do not exist.
#
# Names that make sees are u000012-packed and the like. Which stamps are there was decided by content
# (xfp prepare removes those that are not current), so no time of any file matters.

MAKEFLAGS += --no-builtin-rules
.SUFFIXES:

.DEFAULT_GOAL = units
# Not from the environment.
SURVEY_UNITS =
SCALED_UNITS =
CALIBRATED_UNITS =
LAYERS =
BATCHES =
CALIBRATED_BATCHES =
STEP =
include todo.mk

fit_targets = $(FIT_UNITS:%=%-packed)
pack_targets = $(PACK_UNITS:%=%-packed)
survey_targets = $(SURVEY_UNITS:%=%-survey)
scale_targets = $(SCALED_UNITS:%=%-scales)
calibrated_targets = $(CALIBRATED_UNITS:%=%-packed)

.PHONY: units
unit_targets = $(survey_targets) $(scale_targets) $(fit_targets) $(pack_targets) $(calibrated_targets)
units: $(or $(strip $(BATCHES) $(CALIBRATED_BATCHES)),$(unit_targets))

# On a node, STEP is the file of the step (xfp-launch), which becomes executable when another step fails without -k: no
# other unit is started then.
if_wanted = $(if $(STEP),@test ! -x $(STEP))

# With a goal, all units are surveyed first; xfp prepare then lists the work that follows.
$(survey_targets): %-survey:
	$(if_wanted)
	xfp-survey $*

# With --calibrate the survey also predicts outputs, once the inputs of the unit's layer exist.
$(scale_targets): %-scales:
	$(if_wanted)
	$(if $(LAYERS),nice )xfp-survey $*

$(fit_targets): %-packed:
	$(if_wanted)
	+$(MAKE) --no-print-directory -f "$$XFP_PIPELINES/unit.mk" UNIT=$*

# fp8 and kept units need no decision: the first stage is the last.
$(pack_targets): %-packed:
	$(if_wanted)
	xfp-pack $*

# Layers are computed one after the other, in an order that todo.mk has, each with as many threads as there are jobs.
# Units run at a lower priority, since the next layers are what others wait for.
$(LAYERS:%=%-inputs): %-inputs:
	xfp-calibrate $${XFP_LAYER_THREADS:+--threads $$XFP_LAYER_THREADS} $*

# Whether make continues after a failure.
keeps_going = $(findstring k,$(filter-out --%,$(firstword -$(MAKEFLAGS))))
go_on = $(if $(keeps_going), || :)

# A layer waits for the units of the layer before the last, which bounds the inputs that exist at a time. With -k it
# does not wait for their success: u000012-tried succeeds even if the unit failed, and u000012-packed reports that.
tried = $(CALIBRATED_UNITS:%=%-tried)
.PHONY: $(tried)
$(tried): %-tried:
	$(if_wanted)
	+$(if $(LAYERS),nice )$(MAKE) --no-print-directory -f "$$XFP_PIPELINES/unit.mk" UNIT=$*$(go_on)
$(calibrated_targets): %-packed: | %-tried
	@test -e $@

# With a launcher, todo.mk groups the targets of units into batches. xfp-launch runs this file with the targets of one
# batch on a node, without batches and layers.
launch = xfp-launch $(if $(LAYERS),--nice )$(if $(keeps_going),--keep-going )
tried_batches = $(CALIBRATED_BATCHES:%=%-tried)
.PHONY: $(BATCHES) $(CALIBRATED_BATCHES) $(tried_batches)
$(BATCHES):
	$(launch)$($@)
$(tried_batches): %-tried:
	$(launch)$($*)$(go_on)
$(CALIBRATED_BATCHES): %: | %-tried
	@ls $(filter u%,$($*)) >/dev/null

# SPDX-License-Identifier: Apache-2.0
#
# unit.mk - the chain of one unit: make -f unit.mk UNIT=u000012, inside the work folder.
#
# A target is a stamp that its stage writes: the key of the artifact that it made or found. Order-only
# prerequisites: a stamp that is there is right, however old it is.

MAKEFLAGS += --no-builtin-rules
.SUFFIXES:

$(UNIT)-packed: | $(UNIT)-choice
	xfp-pack $(UNIT)

# The measurements that the choice needs, as xfp prepare recorded them: fit, library or both.
FITS = fit
-include fits.mk

# Or as determined by the unit's survey, which make then includes before it continues. Included files are made even
# with -n, which must not run anything: one of the listed fits is then missing.
ifdef SURVEY
ifeq (,$(findstring n,$(filter-out --%,$(firstword -$(MAKEFLAGS)))))
include $(UNIT)-fits.mk
else ifneq (,$(wildcard $(UNIT)-fits.mk))
include $(UNIT)-fits.mk
else
FITS = fit library
endif
$(UNIT)-fits.mk:
	xfp-survey $(UNIT)
# With -k make continues after a failure; a unit must not.
$(UNIT)-outliers: | $(UNIT)-fits.mk
endif

# Status 76: no candidate meets the floor with less than fp8 takes, and k = 5, 6 and fp8 are allowed but not measured yet.
$(UNIT)-choice: | $(FITS:%=$(UNIT)-%)
	xfp-autoselect $(UNIT) || { s=$$?; test $$s -eq 76 || exit $$s; \
		$(foreach fit,$(FITS),$(extended_$(fit)) &&) xfp-autoselect $(UNIT); }

extended_fit = xfp-lloyd-fit --extended $(UNIT)
extended_library = xfp-libfit --extended $(UNIT)

$(UNIT)-fit: | $(UNIT)-outliers
	xfp-lloyd-fit $(UNIT)

$(UNIT)-library: | $(UNIT)-outliers
	xfp-libfit $(UNIT)

$(UNIT)-outliers:
	xfp-outlier-extract $(UNIT)

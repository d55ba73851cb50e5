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

# Status 76: no candidate meets the floor, and k = 5 and 6 are allowed but not measured yet.
$(UNIT)-choice: | $(UNIT)-fit
	xfp-autoselect $(UNIT) || { test $$? -eq 76 && xfp-lloyd-fit --extended $(UNIT) && xfp-autoselect $(UNIT); }

# xfp-libfit joins here for the modes with libraries: another fit of the same outliers, which autoselect
# then chooses among.
$(UNIT)-fit: | $(UNIT)-outliers
	xfp-lloyd-fit $(UNIT)

$(UNIT)-outliers:
	xfp-outlier-extract $(UNIT)

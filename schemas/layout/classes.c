/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/layout/classes.h"

#include <stdio.h>
#include <string.h>

static const char *const class_names[XFP_CLASSES] = {
	"attention", "linear_attention", "dense_mlp", "shared_expert", "routed_expert", "lm_head",
	"embedding", "router",           "norm",      "vision",        "mtp",           "other",
};
static const char *const fate_names[XFP_FATES] = { "quantized", "kept", "tied", "dropped" };
static const char *const mode_names[XFP_MODES] = { "keep", "fp8", "v2", "v2a", "v2c" };

static int find(const char *const *names, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

const char *xfp_class_name(enum xfp_class value)
{
	return class_names[value];
}

const char *xfp_class_list(char list[XFP_CLASS_LIST])
{
	*list = '\0';
	for (int i = 0; i < XFP_CLASSES; i++)
		snprintf(list + strlen(list), XFP_CLASS_LIST - strlen(list), "%s%s", i ? ", " : "", class_names[i]);
	return list;
}

const char *xfp_fate_name(enum xfp_fate value)
{
	return fate_names[value];
}
const char *xfp_mode_name(enum xfp_mode value)
{
	return mode_names[value];
}

bool xfp_class_parse(const char *name, enum xfp_class *value)
{
	int found = find(class_names, XFP_CLASSES, name);

	if (found >= 0)
		*value = (enum xfp_class)found;
	return found >= 0;
}

bool xfp_mode_parse(const char *name, enum xfp_mode *value)
{
	int found = find(mode_names, XFP_MODES, name);

	if (found >= 0)
		*value = (enum xfp_mode)found;
	return found >= 0;
}

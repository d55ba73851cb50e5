/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "checkpoints/folder.h"
#include "checkpoints/format.h"
#include "checkpoints/note.h"

#define CONFIG "config.json"

enum xfp_status xfp_checkpoint_make(struct xfp_checkpoint *c, const char *name, char *bytes, size_t size,
				    struct xfp_error *err)
{
	struct xfp_made_file *grown = realloc(c->made, (c->made_count + (size_t)1) * sizeof *grown);
	char *copy = strdup(name);
	uint32_t at;

	if (grown)
		c->made = grown;
	if (!grown || !copy) {
		free(copy);
		free(bytes);
		return xfp_no_memory_for(err, c->folder);
	}
	for (at = c->made_count++; at && strcmp(grown[at - 1].name, name) > 0; at--)
		grown[at] = grown[at - 1];
	grown[at] = (struct xfp_made_file){ copy, bytes, size };
	return XFP_OK;
}

/* Return whether a member of an archive only describes packed weights, and so is not needed any more. */
static bool is_done_with(struct xfp_checkpoint *c, const char *name)
{
	if (!xfp_is_packing_file(name))
		return false;
	if (!c->packed)
		xfp_checkpoint_leave_out(c, name);
	return true;
}

static void drop_synthesized(struct xfp_checkpoint *c, uint32_t number)
{
	free(c->made[number].name);
	free(c->made[number].bytes);
	c->made_count--;
	memmove(c->made + number, c->made + number + 1, (c->made_count - number) * sizeof *c->made);
}

static void note_config(struct xfp_checkpoint *c)
{
	xfp_checkpoint_note(c, CONFIG ": exists, but a new one from the metadata is carried along");
}

bool xfp_checkpoint_keeps_file(struct xfp_checkpoint *c, const char *name)
{
	uint32_t at = 0;

	while (at < c->made_count && strcmp(c->made[at].name, name) != 0)
		at++;
	if (at == c->made_count)
		return true;
	if (!strcmp(name, CONFIG)) {
		note_config(c);
		return false;
	}
	drop_synthesized(c, at);
	return true;
}

/* Return the position of a name among the extras, or where to insert it. */
static uint32_t place_of(const struct xfp_checkpoint *c, const char *name)
{
	uint32_t at = 0;

	while (at < c->extra_count && strcmp(c->extras[at], name) < 0)
		at++;
	return at;
}

enum xfp_status xfp_checkpoint_add_synthesized(struct xfp_checkpoint *c, struct xfp_error *err)
{
	char **grown = realloc(c->extras, ((size_t)c->extra_count + c->made_count + 1) * sizeof *grown);

	if (!grown)
		return xfp_no_memory_for(err, c->folder);
	c->extras = grown;
	for (uint32_t m = 0; m < c->made_count; m++) {
		const char *name = c->made[m].name;
		uint32_t at = place_of(c, name);
		bool there = at < c->extra_count && !strcmp(grown[at], name);
		char *copy;

		if ((there && strcmp(name, CONFIG) != 0) || is_done_with(c, name)) {
			drop_synthesized(c, m--);
		} else if (there) {
			note_config(c);
		} else {
			if (!(copy = strdup(name)))
				return xfp_no_memory_for(err, c->folder);
			memmove(grown + at + 1, grown + at, (c->extra_count - at) * sizeof *grown);
			grown[at] = copy;
			c->extra_count++;
		}
	}
	return XFP_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel launches, which the server runs; see driver.c. */
#include "tests/cuda/driver_calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct library {
	struct kernel *kernels;
	int number; /* the server's name for it */
};

static FILE *to_server, *from_server;
static int libraries;

/* the server: send a line, and read its reply, which ends with "ok" or "fault" */

static void run_server(int in, int out)
{
	const char *folder = getenv("srcdir"), *python = getenv("PYTHON"), *given = getenv("STAND_IN_SERVER");
	char path[4096], file[32];

	snprintf(path, sizeof path, "%s/tests/cuda/ptx_server.py", folder ? folder : ".");
	snprintf(file, sizeof file, "%d", memory_file());
	/* The server would inherit standard input and output; replace them by the pipes. */
	if (dup2(in, 0) < 0 || dup2(out, 1) < 0)
		_exit(127);
	if (python)
		execlp(python, python, given ? given : path, file, (char *)NULL);
	_exit(127);
}

static enum result start_server(void)
{
	int in[2], out[2];
	pid_t child;

	if (to_server)
		return SUCCESS;
	memory_file();
	if (pipe(in))
		return OPERATING_SYSTEM;
	if (pipe(out)) {
		close(in[0]);
		close(in[1]);
		return OPERATING_SYSTEM;
	}
	child = fork();
	if (!child) {
		close(in[1]);
		close(out[0]);
		run_server(in[0], out[1]);
	}
	close(in[0]);
	close(out[1]);
	if (child > 0) {
		to_server = fdopen(in[1], "w");
		from_server = fdopen(out[0], "r");
	}
	return child > 0 && to_server && from_server ? SUCCESS : OPERATING_SYSTEM;
}

static enum result say(const char *line)
{
	enum result result = start_server();

	if (!result && (fprintf(to_server, "%s\n", line) < 0 || fflush(to_server)))
		result = OPERATING_SYSTEM;
	return result;
}

/* Read the next line, without its newline; NULL if the server has exited. */
static char *hear(char **line, size_t *room)
{
	ssize_t length;

	errno = 0;
	length = getline(line, room, from_server);
	if (length <= 0) {
		fprintf(stderr, "stand-in driver: the server of PTX is gone\n");
		return NULL;
	}
	(*line)[length - 1] = 0;
	return *line;
}

int launch_now(const char *text)
{
	char *line = NULL;
	size_t room = 0;
	enum result result;

	if (setting("STAND_IN_IDLE", 0) == 1 || (setting("STAND_IN_IDLE", 0) == 2 && strstr(text, " xfp_measure_")))
		return SUCCESS;
	result = say(text);
	if (!result && !hear(&line, &room))
		result = OPERATING_SYSTEM;
	if (!result && !strncmp(line, "fault ", 6)) {
		fprintf(stderr, "stand-in driver: %s\n", line + 6);
		result = ILLEGAL_ADDRESS;
	} else if (!result && strncmp(line, "ok", 2)) {
		fprintf(stderr, "stand-in driver: the server says: %s\n", line);
		result = OPERATING_SYSTEM;
	}
	free(line);
	return result;
}

/* ---- libraries */

/* "kernel NAME STATIC-SHARED LOCAL OFFSET:BYTES ..." */
static enum result add_kernel(struct library *library, char *line)
{
	struct kernel *kernel = calloc(1, sizeof *kernel);
	char *rest = NULL, *word = strtok_r(line, " ", &rest);

	if (!kernel)
		return OUT_OF_MEMORY;
	kernel->next = library->kernels;
	library->kernels = kernel;
	kernel->library = library;
	kernel->max_shared = PLAIN_SHARED;
	word = strtok_r(NULL, " ", &rest);
	kernel->name = strdup(word ? word : "");
	word = strtok_r(NULL, " ", &rest);
	kernel->static_shared = word ? atoi(word) : 0;
	word = strtok_r(NULL, " ", &rest);
	kernel->local = word ? atoi(word) : 0;
	while ((word = strtok_r(NULL, " ", &rest)) && kernel->parameter_count < 64) {
		size_t n = kernel->parameter_count++;

		if (sscanf(word, "%zu:%zu", &kernel->parameter[n].offset, &kernel->parameter[n].bytes) != 2)
			return OPERATING_SYSTEM;
		kernel->parameter_bytes = kernel->parameter[n].offset + kernel->parameter[n].bytes;
	}
	return kernel->name ? SUCCESS : OUT_OF_MEMORY;
}

int cuLibraryUnload(struct library *library)
{
	int result = drain();

	if (!library)
		return INVALID_HANDLE;
	while (library->kernels) {
		struct kernel *kernel = library->kernels;

		library->kernels = kernel->next;
		free(kernel->name);
		free(kernel);
	}
	free(library);
	return result;
}

/* Load the files of a colon-separated list. */
static enum result load_files(struct library *library, const char *files)
{
	char *line = NULL, *message = malloc(strlen(files) + 64);
	size_t room = 0;
	enum result result = message ? SUCCESS : OUT_OF_MEMORY;

	if (!result) {
		sprintf(message, "load %d %s", library->number, files);
		result = say(message);
	}
	while (!result) {
		if (!hear(&line, &room))
			result = OPERATING_SYSTEM;
		else if (!strncmp(line, "kernel ", 7))
			result = add_kernel(library, line);
		else if (!strncmp(line, "ok", 2))
			break;
		else {
			fprintf(stderr, "stand-in driver: %s\n", line);
			result = INVALID_IMAGE;
		}
	}
	free(message);
	free(line);
	return result;
}

static enum result load_text(struct library *library, const char *text)
{
	char path[] = "/tmp/stand-in-ptx-XXXXXX";
	size_t length = strlen(text);
	int file = mkstemp(path);
	enum result result = OPERATING_SYSTEM;

	if (file < 0)
		return OPERATING_SYSTEM;
	if (write(file, text, length) == (ssize_t)length)
		result = load_files(library, path);
	close(file);
	unlink(path);
	return result;
}

/* Find the PTX file for the fat binary at `code`: the one next to FILE.fatbin; otherwise any of them. */
static const char *files_of(const unsigned char *code, const char *files, char file[4096])
{
	uint16_t before;
	uint64_t after;

	memcpy(&before, code + 6, sizeof before);
	memcpy(&after, code + 8, sizeof after);
	for (const char *at = files, *next; *at; at = *next ? next + 1 : next) {
		uint64_t bytes = 0;
		FILE *there;
		int byte;

		next = at + strcspn(at, ":");
		snprintf(file, 4096, "%.*s", (int)(next - at), at);
		if (!strrchr(file, '.') || strlen(file) > 4000)
			continue;
		strcpy(strrchr(file, '.'), ".fatbin");
		if (!(there = fopen(file, "r")))
			continue;
		while ((byte = getc(there)) != EOF && bytes < before + after && byte == code[bytes])
			bytes++;
		fclose(there);
		snprintf(file, 4096, "%.*s", (int)(next - at), at);
		if (byte == EOF && bytes == before + after)
			return file;
	}
	return files;
}

static int load_image(struct library **library, const void *code)
{
	static const unsigned char fatbin[] = { 0x50, 0xed, 0x55, 0xba }, elf[] = { 0x7f, 'E', 'L', 'F' };
	const char *files = getenv("STAND_IN_PTX"), *text = code;
	char file[4096];
	int result = ready();

	if (result || (result = not_capturing()))
		return result;
	if (setting("STAND_IN_REFUSE", 0))
		return NO_BINARY_FOR_GPU;
	*library = calloc(1, sizeof **library);
	if (!*library)
		return OUT_OF_MEMORY;
	(*library)->number = ++libraries;
	if (!memcmp(code, fatbin, sizeof fatbin) || !memcmp(code, elf, sizeof elf))
		result = files ? load_files(*library, files_of(code, files, file)) : INVALID_IMAGE;
	else if (!memcmp(text, "//", 2) || text[0] == '.' || text[0] == '\n')
		result = load_text(*library, text);
	else
		result = INVALID_IMAGE;
	if (result)
		cuLibraryUnload(*library);
	return result;
}

int cuLibraryLoadData(struct library **library, const void *code, int *jit, void **jit_values, unsigned jit_count,
		      int *options, void **values, unsigned count)
{
	int result = failure(__func__);

	(void)jit, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
	return result ? result : load_image(library, code);
}

int cuModuleLoadData(struct library **module, const void *code)
{
	return load_image(module, code);
}

int cuModuleUnload(struct library *module)
{
	return cuLibraryUnload(module);
}

int cuLibraryGetKernel(struct kernel **kernel, struct library *library, const char *name)
{
	for (*kernel = library ? library->kernels : NULL; *kernel; *kernel = (*kernel)->next) {
		if (!strcmp((*kernel)->name, name))
			return ready();
	}
	return NOT_FOUND;
}

int cuModuleGetFunction(struct kernel **function, struct library *module, const char *name)
{
	return cuLibraryGetKernel(function, module, name);
}

int cuKernelGetFunction(struct kernel **function, struct kernel *kernel)
{
	*function = kernel;
	return kernel ? ready() : (int)INVALID_HANDLE;
}

int cuKernelGetParamInfo(struct kernel *kernel, size_t index, size_t *offset, size_t *bytes)
{
	if (!kernel || index >= kernel->parameter_count)
		return INVALID_VALUE;
	*offset = kernel->parameter[index].offset;
	if (bytes)
		*bytes = kernel->parameter[index].bytes;
	return SUCCESS;
}

int cuFuncSetAttribute(struct kernel *function, int attribute, int value)
{
	if (!function)
		return INVALID_HANDLE;
	if (attribute == 9 && value >= -1 && value <= 100) /* share of the cache used as shared memory */
		return ready();
	if (attribute != FUNCTION_MAX_SHARED || value < 0 || value + function->static_shared > shared_optin())
		return INVALID_VALUE;
	function->max_shared = value;
	return ready();
}

int cuKernelSetAttribute(int attribute, int value, struct kernel *kernel, int device)
{
	if (device < 0 || device >= devices())
		return INVALID_DEVICE;
	return cuFuncSetAttribute(kernel, attribute, value);
}

int cuFuncGetAttribute(int *value, int attribute, struct kernel *function)
{
	int result = failure(__func__);

	if (!function || result)
		return result ? result : INVALID_HANDLE;
	/* A newer driver may or may not need the code for this. */
	if (version() < 12040)
		function->loaded = true;
	switch (attribute) {
	case 0:
		*value = 1024;
		return SUCCESS;
	case 1:
		*value = function->static_shared;
		return SUCCESS;
	case 3:
		*value = function->local;
		return SUCCESS;
	case 4:
		*value = 64;
		return SUCCESS;
	case 6:
		*value = compute_capability();
		return SUCCESS;
	case FUNCTION_MAX_SHARED:
		*value = function->max_shared;
		return SUCCESS;
	default:
		return INVALID_VALUE;
	}
}

int cuFuncLoad(struct kernel *function)
{
	int result = ready();

	if (!function || result || (result = not_capturing()))
		return result ? result : INVALID_HANDLE;
	function->loaded = true;
	return SUCCESS;
}

/* ---- launches */

/* The bytes of the parameters: an array of pointers, or a buffer with its size in `extra`. */
static enum result gather(const struct kernel *kernel, void **parameters, void **extra, unsigned char *block)
{
	if (parameters) {
		for (size_t i = 0; i < kernel->parameter_count; i++)
			memcpy(block + kernel->parameter[i].offset, parameters[i], kernel->parameter[i].bytes);
		return SUCCESS;
	}
	if (extra && extra[0] == (void *)1 && extra[2] == (void *)2) {
		if (*(const size_t *)extra[3] < kernel->parameter_bytes)
			return INVALID_VALUE;
		memcpy(block, extra[1], kernel->parameter_bytes);
		return SUCCESS;
	}
	return kernel->parameter_count ? INVALID_VALUE : SUCCESS;
}

static bool sizes_fit(const unsigned *grid, const unsigned *block)
{
	static const unsigned most[] = { 1024, 1024, 64 };
	uint64_t threads = 1;

	for (int i = 0; i < 3; i++) {
		if (!grid[i] || !block[i] || block[i] > most[i] || grid[i] > (i ? 65535U : 0x7fffffffU))
			return false;
		threads *= block[i];
	}
	return threads <= 1024;
}

/* Only programmatic stream serialization is supported, which needs compute capability 9.0. */
static bool attributes_fit(const struct launch_config *config)
{
	for (unsigned i = 0; i < config->attribute_count; i++)
		if (!config->attributes || config->attributes[i].id != 6 || config->attributes[i].value < 0 ||
		    config->attributes[i].value > 1 || compute_capability() < 90)
			return false;
	return true;
}

static char *launch_line(const struct kernel *kernel, const unsigned *grid, const unsigned *block, unsigned shared,
			 const unsigned char *parameters)
{
	char *line = malloc(strlen(kernel->name) + 2 * kernel->parameter_bytes + 128);
	int length;

	if (!line)
		return NULL;
	length = sprintf(line, "launch %d %s %u %u %u %u %u %u %u ", kernel->library->number, kernel->name, grid[0],
			 grid[1], grid[2], block[0], block[1], block[2], shared);
	for (size_t i = 0; i < kernel->parameter_bytes; i++)
		length += sprintf(line + length, "%02x", parameters[i]);
	sprintf(line + length, kernel->parameter_bytes ? "" : "-");
	return line;
}

int cuLaunchKernelEx(const struct launch_config *config, struct kernel *function, void **parameters, void **extra)
{
	unsigned char bytes[4096] = { 0 };
	char *line;
	int result = ready();

	if (result)
		return result;
	if (!function)
		return INVALID_HANDLE;
	if (!sizes_fit(config->grid, config->block) || !attributes_fit(config) ||
	    function->parameter_bytes > sizeof bytes || config->shared > (unsigned)function->max_shared ||
	    config->shared + (unsigned)function->static_shared > (unsigned)shared_optin() ||
	    (result = gather(function, parameters, extra, bytes)))
		return INVALID_VALUE;
	/* Stricter than a real driver, which may have loaded the code in an earlier launch. */
	if (not_capturing() && !function->loaded)
		return STREAM_CAPTURE_UNSUPPORTED;
	line = launch_line(function, config->grid, config->block, config->shared, bytes);
	if (!line)
		return OUT_OF_MEMORY;
	return enqueue(config->stream, (struct work){ .what = LAUNCH, .line = line, .rows = 1 });
}

int cuLaunchKernel(struct kernel *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
		   unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **parameters, void **extra)
{
	return cuLaunchKernelEx(&(struct launch_config){ .grid = { grid_x, grid_y, grid_z },
							 .block = { block_x, block_y, block_z },
							 .shared = shared,
							 .stream = stream },
				function, parameters, extra);
}

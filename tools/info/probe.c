/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* probe.c - see probe.h.
 *
 * The child's standard error is a pipe, on which the libraries say why a call failed. Its result comes
 * over a second pipe, as JSON. */
#include "tools/info/probe.h"
#include "common/clock.h"
#include "tools/info/attributes.h"
#include "tools/info/output.h"
#include "tools/cli.h"
#include "tools/parse_json.h"
#include <dat/dat_messages.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	TEXT_MAX = 1 << 20,	/* bytes that are kept of what a child writes */
	READ = 4096,		/* bytes of one read */
	READS = 32,		/* reads between checks of child and clock: twice the 64 KiB of a pipe */
};

void probe_init(void)
{
	setenv("DAT_DBG_TYPE", "1", 1);
	setenv("DAT_DBG_DEST", "0", 1);
	setenv("DAPL_DBG_TYPE", "3", 1);
	setenv("DAPL_DBG_DEST", "0", 1);
	unsetenv("DAPL_DBG_LEVEL");
	setenv("DAT_TRACE_LEVEL", "0", 1);
	setenv("DAPL_TRACE_LEVEL", "0", 1);
}

/* --- in the child ------------------------------------------------------------------- */

/* What the libraries have told of the last line that they printed. */
static struct {
	pthread_mutex_t lock;
	char id[64];
	int error;
} last_line = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Leaves the line to the library, which prints it: the parent reads it, also of a child that crashes. */
static DAT_BOOLEAN note_line(const DAT_MESSAGE *message)
{
	pthread_mutex_lock(&last_line.lock);
	snprintf(last_line.id, sizeof last_line.id, "%s", message->id ? message->id : "");
	last_line.error = message->error;
	pthread_mutex_unlock(&last_line.lock);
	return DAT_FALSE;
}

static void add_last_line(json_t *result)
{
	pthread_mutex_lock(&last_line.lock);
	if (*last_line.id)
		output_set(result, "message_id", output_text(last_line.id));
	if (last_line.error)
		output_set(result, "message_error", json_integer(last_line.error));
	pthread_mutex_unlock(&last_line.lock);
}

static json_t *failure(const char *state, const char *call, DAT_RETURN ret)
{
	const char *type = "", *subtype = "";
	json_t *result = json_object();

	dat_strerror(ret, &type, &subtype);
	output_set(result, "state", output_text(state));
	output_set(result, "call", output_text(call));
	output_set(result, "result", output_format("%s%s%s", type, *subtype ? " " : "", subtype));
	return result;
}

static DAT_RETURN register_memory(DAT_IA_HANDLE ia, const char **call)
{
	static char memory[PROBE_BYTES] __attribute__((aligned(4096)));
	DAT_REGION_DESCRIPTION region = { .for_va = memory };
	DAT_PZ_HANDLE pz;
	DAT_LMR_HANDLE lmr;
	DAT_RETURN ret;

	*call = "dat_pz_create";
	ret = dat_pz_create(ia, &pz);
	if (ret)
		return ret;
	*call = "dat_lmr_create";
	ret = dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof memory, pz, DAT_MEM_PRIV_ALL_FLAG,
			     DAT_VA_TYPE_VA, &lmr, NULL, NULL, NULL, NULL);
	if (!ret)
		dat_lmr_free(lmr);
	dat_pz_free(pz);
	return ret;
}

static json_t *query(DAT_IA_HANDLE ia)
{
	DAT_PROVIDER_ATTR provider;
	const char *call = NULL;
	DAT_IA_ATTR attr;
	DAT_RETURN ret;
	json_t *result, *named;

	memset(&attr, 0, sizeof attr);
	memset((void *)&provider, 0, sizeof provider);
	ret = dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL, &provider);
	if (ret)
		return failure("failed", "dat_ia_query", ret);
	ret = register_memory(ia, &call);
	if (ret) {
		result = failure("open", call, ret);
	} else {
		result = json_object();
		output_set(result, "state", output_text("open"));
	}
	output_set(result, "ia_attributes", attributes_of_ia(&attr));
	output_set(result, "provider_attributes", attributes_of_provider(&provider));
	named = attributes_named(provider.provider_specific_attr, provider.num_provider_specific_attr);
	json_object_update_new(named, attributes_named(attr.vendor_attr, attr.num_vendor_attr));
	json_object_update_new(named, attributes_named(attr.transport_attr, attr.num_transport_attr));
	output_set(result, "named", named);
	output_set(result, "extensions", attributes_extensions(&attr, &provider));
	return result;
}

static json_t *open_and_query(const DAT_PROVIDER_INFO *info)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;
	json_t *result;
	DAT_RETURN ret;

	ret = dat_ia_openv((DAT_NAME_PTR)(uintptr_t)info->ia_name, 8, &evd, &ia,
			   info->dapl_version_major, info->dapl_version_minor, info->is_thread_safe);
	if (ret)
		return failure("failed", "dat_ia_open", ret);
	result = query(ia);
	dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	return result;
}

/* Makes the child end with the parent, whatever ends the parent: a provider may hang, and only the parent
 * has a time limit for it. */
static void end_with_parent(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)	/* ended before prctl() */
		_exit(1);
}

static void run_child(const DAT_PROVIDER_INFO *info, int result_fd, int message_fd)
{
	json_t *result;
	char *text;

	dup2(message_fd, STDERR_FILENO);
	dup2(message_fd, STDOUT_FILENO);	/* stdout's buffer is empty: the parent has flushed it */
	dats_set_message_handler(note_line);
	result = open_and_query(info);
	add_last_line(result);
	text = json_dumps(result, JSON_COMPACT);
	fflush(stdout);
	if (!text)
		fail("there is no memory left");
	if (write(result_fd, text, strlen(text)) != (ssize_t)strlen(text))
		_exit(1);
	_exit(0);	/* no destructor of the provider can fail or hang now */
}

/* --- in the parent ------------------------------------------------------------------ */

struct text {
	char *bytes;
	size_t length;
	int fd;		/* -1: ended */
};

static void read_some(struct text *text)
{
	char buffer[READ];
	ssize_t n = read(text->fd, buffer, sizeof buffer);

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) {
		close(text->fd);
		text->fd = -1;
	} else if (text->length + n <= TEXT_MAX) {
		memcpy(text->bytes + text->length, buffer, n);
		text->length += n;
		text->bytes[text->length] = '\0';
	}
}

/* Returns the last line that the libraries or the child printed, without the name in front; NULL if none. */
static json_t *last_message(const char *text)
{
	const char *best = NULL;
	size_t length;

	while (*text) {
		length = strcspn(text, "\n");
		if (!strncmp(text, "dat: ", 5) || !strncmp(text, "dapl: ", 6) || !strncmp(text, "datinfo: ", 9))
			best = text;
		text += length + (text[length] == '\n');
	}
	if (!best)
		return NULL;
	best = strchr(best, ' ') + 1;
	return output_format("%.*s", (int)strcspn(best, "\n"), best);
}

/* Reads what the child writes until it has ended. Returns false if it has not by then. The end of the pipes
 * is no sign of its end: a process that the provider has started may keep them open. What the child wrote
 * before its end is in the pipes then, so READS reads get all of it. */
static bool wait_for(pid_t child, struct text texts[2], uint64_t until, int *status)
{
	for (;;) {
		struct pollfd fds[2] = { { texts[0].fd, POLLIN, 0 }, { texts[1].fd, POLLIN, 0 } };
		bool ended = waitpid(child, status, WNOHANG) == child;

		for (int reads = 0; reads < READS && poll(fds, 2, ended ? 0 : 20) > 0; reads++)
			for (int i = 0; i < 2; i++) {
				if (fds[i].revents)
					read_some(&texts[i]);
				fds[i].fd = texts[i].fd;
			}
		if (ended)
			return true;
		if (clock_now_ns() >= until)
			return false;
	}
}

/* Describes how a child ended that wrote no result. If it exited, memory lacked or its provider library
 * called exit(). */
static json_t *judge_end(bool ended, int status)
{
	json_t *result = json_object();

	output_set(result, "call", output_text("dat_ia_open"));
	if (!ended) {
		output_set(result, "state", output_text("hung"));
	} else if (WIFSIGNALED(status)) {
		output_set(result, "state", output_text("crashed"));
		output_set(result, "signal", output_format("%d, %s", WTERMSIG(status), strsignal(WTERMSIG(status))));
	} else {
		output_set(result, "state", output_text("failed"));
		output_set(result, "message", output_format("the process that opened the adapter ended with exit "
							    "status %d", WEXITSTATUS(status)));
	}
	return result;
}

static json_t *judge(bool ended, int status, const struct text texts[2])
{
	json_t *result = parse_json(texts[0].bytes, texts[0].length), *message = last_message(texts[1].bytes);

	if (!json_is_object(result)) {
		json_decref(result);
		result = judge_end(ended, status);
	}
	if (message)
		output_set(result, "message", message);
	return result;
}

json_t *probe_ia(const DAT_PROVIDER_INFO *info, unsigned seconds)
{
	struct text texts[2];
	int results[2], messages[2], status = 0;
	json_t *result;
	pid_t child, parent = getpid();
	bool ended;

	fflush(stdout);
	if (pipe(results) || pipe(messages))
		fail("pipe: %m");
	child = fork();
	if (child < 0)
		fail("fork: %m");
	if (!child) {
		end_with_parent(parent);
		run_child(info, results[1], messages[1]);
	}
	close(results[1]);
	close(messages[1]);
	texts[0] = (struct text){ calloc(1, TEXT_MAX + 1), 0, results[0] };
	texts[1] = (struct text){ calloc(1, TEXT_MAX + 1), 0, messages[0] };
	if (!texts[0].bytes || !texts[1].bytes)
		fail("there is no memory left");
	ended = wait_for(child, texts, clock_now_ns() + seconds * 1000000000ull, &status);
	if (!ended) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	result = judge(ended, status, texts);
	for (int i = 0; i < 2; i++) {
		if (texts[i].fd >= 0)
			close(texts[i].fd);
		free(texts[i].bytes);
	}
	return result;
}

/* --- the list -------------------------------------------------------------------------- */

/* Returns the lines of a file, without the name of the registry in front. */
static json_t *lines_of(int fd)
{
	json_t *lines = json_array();
	char *line = NULL;
	size_t room = 0;
	FILE *file;

	lseek(fd, 0, SEEK_SET);
	file = fdopen(fd, "r");
	while (file && getline(&line, &room, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		output_append(lines, output_text(strncmp(line, "dat: ", 5) ? line : line + 5));
	}
	free(line);
	if (file)
		fclose(file);
	return lines;
}

DAT_RETURN probe_entries(DAT_ENTRY **list, DAT_COUNT *count, json_t **messages)
{
	int file = memfd_create("datinfo", MFD_CLOEXEC), saved = dup(STDERR_FILENO);
	DAT_RETURN ret;

	if (file < 0)
		fail("memfd_create: %m");
	dup2(file, STDERR_FILENO);
	ret = dats_list_entries(list, count);
	if (saved >= 0) {
		dup2(saved, STDERR_FILENO);
		close(saved);
	} else {
		close(STDERR_FILENO);
	}
	*messages = lines_of(file);
	return ret;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* listeners.c - see listeners.h. The kernel reports the inode of a socket. Its process is the first that
 * has a descriptor of that inode. */
#include "tools/info/listeners.h"
#include "tools/control/client.h"
#include "tools/control/netlink.h"
#include "tools/info/output.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TCP_STATE_LISTEN = 10 };		/* TCP_LISTEN of the kernel */

/* --- sockets ----------------------------------------------------------------------------- */

void listeners_parse(struct nlmsghdr *head, json_t *list)
{
	const struct inet_diag_msg *socket = nlmsg_data(head);
	char address[INET6_ADDRSTRLEN];
	json_t *listener;

	if (head->nlmsg_type != SOCK_DIAG_BY_FAMILY || nlmsg_datalen(head) < (int)sizeof *socket ||
	    socket->idiag_state != TCP_STATE_LISTEN ||
	    !inet_ntop(socket->idiag_family, socket->id.idiag_src, address, sizeof address))
		return;
	listener = json_object();
	output_set(listener, "address", output_text(address));
	output_set(listener, "port", json_integer(ntohs(socket->id.idiag_sport)));
	output_set(listener, "uid", json_integer(socket->idiag_uid));
	output_set(listener, "inode", json_integer(socket->idiag_inode));
	output_append(list, listener);
}

static void see_socket(struct nlmsghdr *head, void *list)
{
	listeners_parse(head, list);
}

static void add_family(json_t *list, int family)
{
	struct inet_diag_req_v2 request = { .sdiag_family = (unsigned char)family,
		.sdiag_protocol = IPPROTO_TCP, .idiag_states = 1 << TCP_STATE_LISTEN };
	struct nl_msg *question = nlmsg_alloc_simple(SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP);

	if (question && !nlmsg_append(question, &request, sizeof request, NLMSG_ALIGNTO))
		netlink_dump(NETLINK_SOCK_DIAG, question, see_socket, list);
	else
		nlmsg_free(question);
}

/* --- processes ----------------------------------------------------------------------------- */

static void set_process(json_t *list, json_int_t inode, pid_t pid)
{
	json_t *listener;
	char name[CONTROL_PROGRAM];
	size_t i;

	json_array_foreach(list, i, listener) {
		if (json_integer_value(json_object_get(listener, "inode")) != inode ||
		    json_object_get(listener, "pid"))
			continue;
		output_set(listener, "pid", json_integer(pid));
		output_set(listener, "program", output_text(control_program(name, pid)));
	}
}

static void look_at_descriptors(json_t *list, pid_t pid)
{
	struct dirent *entry;
	char path[64], target[64];
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%ld/fd", (long)pid);
	dir = opendir(path);	/* fails for a process of another user */
	while (dir && (entry = readdir(dir))) {
		ssize_t length = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
		long long inode;

		target[length > 0 ? length : 0] = '\0';
		if (sscanf(target, "socket:[%lld]", &inode) == 1)
			set_process(list, inode, pid);
	}
	if (dir)
		closedir(dir);
}

static void find_processes(json_t *list)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (atoi(entry->d_name) > 0)
			look_at_descriptors(list, (pid_t)atoi(entry->d_name));
	if (dir)
		closedir(dir);
}

json_t *listeners_tcp(void)
{
	json_t *list = json_array();

	add_family(list, AF_INET);
	add_family(list, AF_INET6);
	if (json_array_size(list))
		find_processes(list);
	return list;
}

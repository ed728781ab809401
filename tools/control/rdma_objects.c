/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma_objects.c - see rdma_objects.h. NETLINK_RDMA identifies devices by number, so the first request finds
 * the number of the device with this name. */
#include "tools/control/rdma_objects.h"
#include "tools/control/client.h"
#include "tools/control/netlink.h"
#include "tools/info/output.h"
#include <arpa/inet.h>
#include <netlink/attr.h>
#include <rdma/rdma_netlink.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static const struct {
	int command, table, entry;
} kinds[RDMA_KINDS] = {
	[RDMA_CONTEXT] = { RDMA_NLDEV_CMD_RES_CTX_GET, RDMA_NLDEV_ATTR_RES_CTX,
			   RDMA_NLDEV_ATTR_RES_CTX_ENTRY },
	[RDMA_PD] = { RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_ATTR_RES_PD, RDMA_NLDEV_ATTR_RES_PD_ENTRY },
	[RDMA_MR] = { RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_ATTR_RES_MR, RDMA_NLDEV_ATTR_RES_MR_ENTRY },
	[RDMA_CQ] = { RDMA_NLDEV_CMD_RES_CQ_GET, RDMA_NLDEV_ATTR_RES_CQ, RDMA_NLDEV_ATTR_RES_CQ_ENTRY },
	[RDMA_QP] = { RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_ATTR_RES_QP, RDMA_NLDEV_ATTR_RES_QP_ENTRY },
	[RDMA_CM_ID] = { RDMA_NLDEV_CMD_RES_CM_ID_GET, RDMA_NLDEV_ATTR_RES_CM_ID,
			 RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY },
};

static const struct nla_policy policy[RDMA_NLDEV_ATTR_MAX] = {
	[RDMA_NLDEV_ATTR_DEV_INDEX] = { .type = NLA_U32 },
	[RDMA_NLDEV_ATTR_DEV_NAME] = { .type = NLA_NUL_STRING },
	[RDMA_NLDEV_ATTR_RES_CTX] = { .type = NLA_NESTED },
	[RDMA_NLDEV_ATTR_RES_PD] = { .type = NLA_NESTED },
	[RDMA_NLDEV_ATTR_RES_MR] = { .type = NLA_NESTED },
	[RDMA_NLDEV_ATTR_RES_CQ] = { .type = NLA_NESTED },
	[RDMA_NLDEV_ATTR_RES_QP] = { .type = NLA_NESTED },
	[RDMA_NLDEV_ATTR_RES_CM_ID] = { .type = NLA_NESTED },
	[RDMA_NLDEV_ATTR_RES_PID] = { .type = NLA_U32 },
	[RDMA_NLDEV_ATTR_RES_LQPN] = { .type = NLA_U32 },
	[RDMA_NLDEV_ATTR_RES_TYPE] = { .type = NLA_U8 },
	[RDMA_NLDEV_ATTR_RES_STATE] = { .type = NLA_U8 },
	[RDMA_NLDEV_ATTR_RES_PS] = { .type = NLA_U32 },
};

/* --- one object ------------------------------------------------------------------------ */

static json_t *name_of(const char *const *names, size_t count, struct nlattr *attribute)
{
	size_t number = attribute ? nla_get_u8(attribute) : count;

	return output_text(number < count && names[number] ? names[number] : "");
}

static void add_qp(json_t *object, struct nlattr **attributes)
{
	static const char *const types[] = { "SMI", "GSI", "RC", "UC", "UD", "RAW_IPV6", "RAW_ETHERTYPE",
		NULL, "RAW_PACKET", "XRC_INI", "XRC_TGT" };
	static const char *const states[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

	output_set(object, "qp", json_integer(nla_get_u32(attributes[RDMA_NLDEV_ATTR_RES_LQPN])));
	output_set(object, "type", name_of(types, sizeof types / sizeof *types,
					   attributes[RDMA_NLDEV_ATTR_RES_TYPE]));
	output_set(object, "state", name_of(states, sizeof states / sizeof *states,
					    attributes[RDMA_NLDEV_ATTR_RES_STATE]));
}

/* The kernel's attribute has the size of a sockaddr_storage. A shorter one is accepted if it holds an
 * address of its family. */
static void add_address(json_t *object, struct nlattr *attribute)
{
	struct sockaddr_storage address = { 0 };
	const struct sockaddr_in *four = (const struct sockaddr_in *)&address;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address;
	size_t length = attribute ? (size_t)nla_len(attribute) : 0;
	char text[INET6_ADDRSTRLEN] = "";
	int port = 0;

	if (length)
		memcpy(&address, nla_data(attribute), length < sizeof address ? length : sizeof address);
	if (address.ss_family == AF_INET && length >= sizeof *four) {
		inet_ntop(AF_INET, &four->sin_addr, text, sizeof text);
		port = ntohs(four->sin_port);
	} else if (address.ss_family == AF_INET6 && length >= sizeof *six) {
		inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text);
		port = ntohs(six->sin6_port);
	}
	output_set(object, "address", output_text(text));
	output_set(object, "port", json_integer(port));
}

/* The numbers are those of the kernel's enum rdma_cm_state and of its port spaces. */
static void add_cm_id(json_t *object, struct nlattr **attributes)
{
	enum { PORT_SPACE_UDP = 0x0111 };
	static const char *const states[] = { "IDLE", "ADDR_QUERY", "ADDR_RESOLVED", "ROUTE_QUERY",
		"ROUTE_RESOLVED", "CONNECT", "DISCONNECT", "ADDR_BOUND", "LISTEN", "DEVICE_REMOVAL",
		"DESTROYING" };
	struct nlattr *space = attributes[RDMA_NLDEV_ATTR_RES_PS];

	output_set(object, "state", name_of(states, sizeof states / sizeof *states,
					    attributes[RDMA_NLDEV_ATTR_RES_STATE]));
	output_set(object, "service", output_text(space && nla_get_u32(space) == PORT_SPACE_UDP ? "UD" : "RC"));
	add_address(object, attributes[RDMA_NLDEV_ATTR_RES_SRC_ADDR]);
}

/* Returns the process of a thread: the kernel reports the thread that created an object. */
static pid_t process_of(pid_t thread)
{
	char path[64], line[256];
	int process = thread;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%ld/status", (long)thread);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "Tgid: %d", &process) == 1)
			break;
	if (file)
		fclose(file);
	return process;
}

static void add_object(enum rdma_kind kind, struct nlattr *entry, json_t *list)
{
	struct nlattr *attributes[RDMA_NLDEV_ATTR_MAX];
	json_t *object;
	char name[CONTROL_PROGRAM];
	pid_t pid;

	if (nla_parse_nested(attributes, RDMA_NLDEV_ATTR_MAX - 1, entry, (struct nla_policy *)policy) ||
	    !attributes[RDMA_NLDEV_ATTR_RES_PID] ||
	    (kind == RDMA_QP && !attributes[RDMA_NLDEV_ATTR_RES_LQPN]))
		return;
	pid = process_of((pid_t)nla_get_u32(attributes[RDMA_NLDEV_ATTR_RES_PID]));
	object = json_object();
	output_set(object, "pid", json_integer(pid));
	output_set(object, "program", output_text(control_program(name, pid)));
	if (kind == RDMA_QP)
		add_qp(object, attributes);
	if (kind == RDMA_CM_ID)
		add_cm_id(object, attributes);
	output_append(list, object);
}

void rdma_objects_parse(enum rdma_kind kind, struct nlmsghdr *head, json_t *list)
{
	struct nlattr *attributes[RDMA_NLDEV_ATTR_MAX], *entry;
	int left;

	if (nlmsg_parse(head, 0, attributes, RDMA_NLDEV_ATTR_MAX - 1, (struct nla_policy *)policy) ||
	    !attributes[kinds[kind].table])
		return;
	nla_for_each_nested(entry, attributes[kinds[kind].table], left)
		if (nla_type(entry) == kinds[kind].entry)
			add_object(kind, entry, list);
}

/* --- asking -------------------------------------------------------------------------------- */

static struct nl_msg *make_question(int command)
{
	return nlmsg_alloc_simple(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command), NLM_F_REQUEST | NLM_F_DUMP);
}

struct search {
	const char *device;
	uint32_t index;
	bool found;
};

static void see_device(struct nlmsghdr *head, void *arg)
{
	struct nlattr *attributes[RDMA_NLDEV_ATTR_MAX];
	struct search *search = arg;

	if (nlmsg_parse(head, 0, attributes, RDMA_NLDEV_ATTR_MAX - 1, (struct nla_policy *)policy) ||
	    !attributes[RDMA_NLDEV_ATTR_DEV_INDEX] || !attributes[RDMA_NLDEV_ATTR_DEV_NAME] ||
	    strcmp(nla_get_string(attributes[RDMA_NLDEV_ATTR_DEV_NAME]), search->device) != 0)
		return;
	search->index = nla_get_u32(attributes[RDMA_NLDEV_ATTR_DEV_INDEX]);
	search->found = true;
}

struct answer {
	enum rdma_kind kind;
	json_t *list;
};

static void see_objects(struct nlmsghdr *head, void *arg)
{
	struct answer *answer = arg;

	rdma_objects_parse(answer->kind, head, answer->list);
}

json_t *rdma_objects(enum rdma_kind kind, const char *device)
{
	struct search search = { .device = device };
	struct answer answer = { kind, json_array() };
	struct nl_msg *question;

	if (netlink_dump(NETLINK_RDMA, make_question(RDMA_NLDEV_CMD_GET), see_device, &search) ||
	    !search.found)
		return answer.list;
	question = make_question(kinds[kind].command);
	if (question && !nla_put_u32(question, RDMA_NLDEV_ATTR_DEV_INDEX, search.index))
		netlink_dump(NETLINK_RDMA, question, see_objects, &answer);
	else
		nlmsg_free(question);
	return answer.list;
}

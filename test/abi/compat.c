/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* compat.c - what old source relies on and values.json cannot say (ABI-18, 20, 21, 22). */
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <dat2/udat.h>
#include <dat2/dat_registry.h>
#include <dat2/dat_ib_extensions.h>
#include <dat2/dat_trace.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static int wrong;

#define CHECK(what) \
	do { \
		if (!(what)) \
			wrong += printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
	} while (0)
#define TEXT(x) TEXT_OF(x)
#define TEXT_OF(x) #x

/* What dat_strerror_extension() falls back on. The library is not linked here. */
DAT_RETURN dat_strerror(DAT_RETURN ret, const char **major, const char **minor)
{
	*major = DAT_GET_TYPE(ret) == DAT_ABORT ? "DAT_ABORT" : "";
	*minor = "";
	return DAT_SUCCESS;
}

static void open_macro(void)
{
	CHECK(!strcmp(TEXT((dat_ia_open(n, q, e, i))),
		"(dat_ia_openv((n), (q), (e), (i), 2, 0, DAT_FALSE))"));
}

static void old_names(void)
{
	DAT_IA_ATTR attr = { .max_mtu_size = 7, .max_rdma_read_per_ep = 8 };
	DAT_RMR_BIND_COMPLETION_STATUS status = DAT_RMR_BIND_FAILURE;

	CHECK(attr.max_message_size == 7 && attr.max_rdma_read_per_ep_in == 8);
	CHECK(DAT_DTO_FAILURE == DAT_DTO_ERR_FLUSHED && status == DAT_DTO_ERR_FLUSHED);
	CHECK(DAT_IA_FIELD_IA_MAX_DTO_PER_OP == DAT_IA_FIELD_IA_MAX_DTO_PER_EP);
}

static void extension_data(void)
{
	DAT_EVENT event;
	DAT_IB_EXTENSION_EVENT_DATA *ext = (DAT_IB_EXTENSION_EVENT_DATA *)event.event_extension_data;

	CHECK(DAT_IB_EXTENSION_VERSION == 209);
	CHECK(sizeof *ext == 64 && sizeof event.event_extension_data == 64);
	CHECK(sizeof ext->remote_ah.ia_addr == sizeof(struct sockaddr_in6));
	ext->remote_ah.ah = (struct ibv_ah *)NULL;
}

static void extension_words(void)
{
	const char *s = NULL;

	CHECK(dat_strerror_extension(DAT_IB_ERR, &s) == DAT_SUCCESS && !strcmp(s, "DAT_IB_ERR"));
	CHECK(dat_strerror_extension((DAT_IB_RETURN)(DAT_CLASS_ERROR | DAT_IB_COLLECTIVE_ERR), &s)
		== DAT_SUCCESS && !strcmp(s, "DAT_IB_COLLECTIVE_ERR"));
	CHECK(dat_strerror_extension((DAT_IB_RETURN)(DAT_CLASS_ERROR | DAT_ABORT), &s)
		== DAT_SUCCESS && !strcmp(s, "DAT_ABORT"));
	CHECK(dat_strerror_ext_status(DAT_OP_SUCCESS, &s) == DAT_SUCCESS && !strcmp(s, " "));
	CHECK(dat_strerror_ext_status(DAT_IB_OP_ERR, &s) == DAT_SUCCESS
		&& !strcmp(s, "DAT_IB_OP_ERR"));
	CHECK(dat_strerror_ext_status(DAT_IB_COLL_COMP_ERR, &s) == DAT_SUCCESS
		&& !strcmp(s, "DAT_IB_COLL_COMP_ERR"));
	CHECK(dat_strerror_ext_status((DAT_IB_STATUS)99, &s)
		== (DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG1));
}

/* Signedness, which sizes do not show. */
static void signs(void)
{
	CHECK((DAT_COUNT)-1 < 0 && (DAT_FD)-1 < 0 && (DAT_EXTENDED_OP)-1 < 0);
	CHECK((DAT_TIMEOUT)-1 > 0 && (DAT_RETURN)-1 > 0 && (DAT_SEG_LENGTH)-1 > 0);
	CHECK((DAT_LMR_CONTEXT)-1 > 0 && (DAT_RMR_CONTEXT)-1 > 0 && (DAT_HA_LB)-1 > 0);
	CHECK((DAT_VLEN)-1 > 0 && (DAT_VADDR)-1 > 0 && (DAT_PADDR)-1 > 0);
	CHECK((DAT_CONN_QUAL)-1 > 0 && (DAT_PORT_QUAL)-1 > 0 && (DAT_UVERYLONG)-1 > 0);
	CHECK((DAT_IA_ATTR_MASK)-1 > 0 && (DAT_PROVIDER_ATTR_MASK)-1 > 0);
	CHECK((DAT_EP_PARAM_MASK)-1 > 0);
	CHECK(DAT_WATERMARK_INFINITE < 0 && DAT_VALUE_UNKNOWN < DAT_WATERMARK_INFINITE);
}

static DAT_RETURN level_of_anything(DAT_TRC_COMPONENT component, DAT_UINT32 *level)
{
	*level = component == DAT_TRC_DAPL ? DAT_TRC_LVL_DETAIL : DAT_TRC_LVL_OFF;
	return DAT_SUCCESS;
}

/* A function as the value of a named attribute, there and back. */
static void trace_attribute(void)
{
	DAT_NAMED_ATTR attr = { DAT_ATTR_DEBUG_QUERY,
		(const char *)(uintptr_t)(DAT_TRCLVL_QUERY_FUNC)level_of_anything };
	DAT_TRCLVL_QUERY_FUNC query = (DAT_TRCLVL_QUERY_FUNC)(uintptr_t)attr.value;
	DAT_UINT32 level = 0;

	CHECK(query(DAT_TRC_DAPL, &level) == DAT_SUCCESS && level == 7);
	CHECK(!strcmp(attr.name, "debug_query") && !strcmp(DAT_ATTR_DEBUG_MODIFY, "debug_modify"));
	CHECK(!strcmp(DAT_ATTR_VENDOR_EXTENSION, "vendor_extension"));
	CHECK(!strcmp(DAT_ATTR_VENDOR_EXT_VERSION, "vendor_ext_version"));
	CHECK(!strcmp(DAT_ATTR_DELAYED_ACK_SUPPORTED, "delayed_ack_supported"));
	CHECK(!strcmp(DAT_ATTR_DELAYED_ACK, "delayed_ack"));
	CHECK(DAT_TRC_LVL_ERROR == 1 && DAT_TRC_LVL_NORMAL == 3 && DAT_TRC_LVL_MAX == 10);
}

static void null_agent(void)
{
	DAT_OS_WAIT_PROXY_AGENT agent = DAT_OS_WAIT_PROXY_AGENT_NULL;

	CHECK(!agent.instance_data && !agent.proxy_agent_func);
}

int main(void)
{
	open_macro();
	old_names();
	extension_data();
	extension_words();
	signs();
	trace_attribute();
	null_agent();
	return wrong != 0;
}

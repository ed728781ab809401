/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* message_ids.h - the failures that an administrator can mend. Each has a constant id of 128
 * bits, by which the system's journal finds it and its entry in etc/dapl.catalog. An id is
 * never changed and never used again; test/lint/catalogue compares the two files, and asks that each
 * message is there.
 *
 * X(name, id, priority, title): the title completes "37 more like this: ...". */
#ifndef COMMON_MESSAGE_IDS_H
#define COMMON_MESSAGE_IDS_H
#include <syslog.h>

#define LOG_MESSAGES(X) \
	/* the registry */ \
	X(CONF_LINE,		"708a2b90a3bc4f6ebf29da7574cbbdff", LOG_ERR, \
	  "a line of dat.conf is wrong") \
	X(CONF_FILE,		"1c1b764371ec41a09c2966a1f73fc684", LOG_ERR, \
	  "a configuration file cannot be read") \
	X(UNKNOWN_IA,		"a177ec26afd44e4e9d2ad062dcf7da45", LOG_ERR, \
	  "no interface adapter has this name") \
	X(LIBRARY_NOT_LOADED,	"54293136ea5541e7b648dd7295bdf34d", LOG_ERR, \
	  "a provider library cannot be loaded") \
	X(NO_PROVIDER,		"c54cbc1e0f7d4d0f9b6a2a8e7d1f3b90", LOG_ERR, \
	  "a library is not a provider") \
	X(NOT_REGISTERED,	"75ee6f14a8884bb3897d702068b9c06a", LOG_ERR, \
	  "a library does not offer what its entry promises") \
	/* the environment */ \
	X(BAD_VALUE,		"74442c966d8e4463826ca05b743b6d8c", LOG_WARNING, \
	  "an environment variable has a wrong value") \
	X(UNKNOWN_VARIABLE,	"886867a1dbe34768a831bde9fa002dc4", LOG_NOTICE, \
	  "an environment variable has no meaning") \
	/* opening an adapter */ \
	X(BAD_PARAMS,		"8380a1d294ff4307acee159f02e958a6", LOG_ERR, \
	  "ia_params of dat.conf are wrong") \
	X(NO_DEVICE,		"59bdee7b958445ce98202aa1d31c4e47", LOG_ERR, \
	  "there is no such RDMA device") \
	X(NO_ADDRESS,		"634a0ea0d5814483a88c726959cb488c", LOG_ERR, \
	  "there is no such interface or address") \
	X(OPEN_FAILED,		"351faf532e3144a8a3a85c79d58b5710", LOG_ERR, \
	  "a device cannot be opened") \
	X(NO_CAPABILITY,	"5d0c1b7e3a944f2f9c6e81d2b47a0f36", LOG_ERR, \
	  "a process lacks a capability") \
	/* connections */ \
	X(NO_ROUTE,		"99c1a389dda44c9796c7744f1a04064c", LOG_WARNING, \
	  "a peer cannot be reached") \
	X(REFUSED,		"9ef3cfafcd534ed4aac4b4a22062b7d8", LOG_WARNING, \
	  "a connection was refused") \
	X(TIMED_OUT,		"eb7980851a4a4f188e2ffef995542228", LOG_WARNING, \
	  "a connection attempt timed out") \
	X(CONNECT_FAILED,	"2fa55eae7efc44dfbfec8d4a50d2b6a7", LOG_WARNING, \
	  "a connection attempt failed") \
	X(PEER_LOST,		"160d1e7a78334f24a3ba164fa7ed679e", LOG_WARNING, \
	  "a peer does not answer any more") \
	X(CONNECTION_BROKEN,	"d996336544e24d7097bba639dff6a259", LOG_WARNING, \
	  "a connection broke") \
	X(HALF_OPEN,		"8e4e49d1278640b6a9caf18a74c4ac6b", LOG_WARNING, \
	  "connections that sent no request were dropped") \
	X(NO_SHARED_MEMORY,	"abfdfff748f04097a1079d1a82bc6772", LOG_WARNING, \
	  "a connection on this host goes over TCP") \
	/* resources */ \
	X(MEMLOCK,		"8b3e291b020b498c9560587e4f64011e", LOG_ERR, \
	  "memory cannot be registered") \
	X(NO_DESCRIPTORS,	"fb891ee8875146a88221e8abc3213b78", LOG_ERR, \
	  "there are no file descriptors left") \
	X(NO_MEMORY,		"9cfe294f72304495b7ce294feed6e1de", LOG_ERR, \
	  "there is no memory left, or no thread") \
	X(DEVICE_MEMORY,	"7b0f6d4ce1b94c0a8d3f52c9aa16e074", LOG_ERR, \
	  "device memory is used up") \
	X(MEMORY_GONE,		"19c1a672d17f4ba68f2c61010ceae9d7", LOG_ERR, \
	  "registered memory is not there any more") \
	X(BAD_SEGMENT,		"d910738851874f0ca0f1fbf5432c41e7", LOG_WARNING, \
	  "a request names memory that is not registered") \
	X(UNKNOWN_NUMBER,	"8289be25ad544e00a236ba5c5497ad77", LOG_WARNING, \
	  "an event or a status has a number that is not known") \
	X(DEVICE_LOST,		"969b235fef38483d969e5b59db5b69e6", LOG_CRIT, \
	  "a device failed or was removed")

enum log_id {
#define X(name, id, priority, title) REPORT_##name,
	LOG_MESSAGES(X)
#undef X
	REPORT_COUNT,
};

#endif

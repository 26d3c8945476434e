/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Preloaded into the user-mode kernel: on a processor whose extended state is larger than what that kernel keeps of it, the host
 * refuses to set it in part (EFAULT). What the kernel doesn't keep stays as it is.
 */

#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define STATE_MAX 65536

static long ask(long request, long process, long address, void *data)
{
	return syscall(SYS_ptrace, request, process, address, data);
}

long ptrace(enum __ptrace_request request, ...)
{
	static unsigned char state[STATE_MAX];
	va_list arguments;
	long process, address, word;
	void *data;

	va_start(arguments, request);
	process = va_arg(arguments, int);
	address = va_arg(arguments, long);
	data = va_arg(arguments, void *);
	va_end(arguments);
	if (request == PTRACE_SETREGSET && address == NT_X86_XSTATE) {
		struct iovec *given = data;
		struct iovec whole = {state, sizeof(state)};

		if (ask(PTRACE_GETREGSET, process, address, &whole) < 0) {
			return -1;
		}
		memcpy(state, given->iov_base, given->iov_len < whole.iov_len ? given->iov_len : whole.iov_len);
		return ask(request, process, address, &whole);
	}
	if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER) {
		if (ask(request, process, address, &word) < 0) {
			return -1;
		}
		errno = 0;
		return word;
	}

	return ask(request, process, address, data);
}

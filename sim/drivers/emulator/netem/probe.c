/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Runs inside the user-mode kernel. "load FILE": loads a module. "send FILE COUNT INTERVAL_US LENGTH": sends frames on va, and
 * writes of each what was sent and what came to vb: "s NUMBER NS" (just before it was sent), "r NUMBER NS" (the kernel's stamp).
 */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ETHERTYPE   0x88B5
#define LENGTH_MAX  1514
#define QUEUE       (64 << 20) /* Octets that wait to be read. */
#define LAST_MS     500        /* After the last frame. */
#define NS_PER_S    1000000000ll

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);

	return time.tv_sec * NS_PER_S + time.tv_nsec;
}

static int open_on(const char *name, int protocol)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(protocol)};
	int one = 1, size = QUEUE;
	int socket_ = socket(AF_PACKET, SOCK_RAW, htons(protocol));

	address.sll_ifindex = (int)if_nametoindex(name);
	if (socket_ < 0 || bind(socket_, (struct sockaddr *)&address, sizeof(address))) {
		fail(name);
	}
	if (setsockopt(socket_, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one)) ||
	    setsockopt(socket_, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) ||
	    setsockopt(socket_, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size))) {
		fail("setsockopt");
	}

	return socket_;
}

static void read_all(int source, FILE *file)
{
	uint8_t frame[LENGTH_MAX];
	char control[256];
	uint32_t number;

	for (;;) {
		struct iovec part = {frame, sizeof(frame)};
		struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
		struct timespec stamp = {0, 0};

		if (recvmsg(source, &message, MSG_DONTWAIT) < 18) {
			return;
		}
		for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one)) {
			if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == SO_TIMESTAMPNS) {
				memcpy(&stamp, CMSG_DATA(one), sizeof(stamp));
			}
		}
		memcpy(&number, frame + 14, sizeof(number));
		fprintf(file, "r %u %lld\n", number, stamp.tv_sec * NS_PER_S + stamp.tv_nsec);
	}
}

static void send_all(FILE *file, uint32_t count, long interval_us, size_t length)
{
	uint8_t frame[LENGTH_MAX] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, ETHERTYPE >> 8, ETHERTYPE & 0xFF};
	int64_t *sent = calloc(count, sizeof(*sent));
	int sink = open_on("va", 0), source = open_on("vb", ETHERTYPE);
	struct timespec due;

	clock_gettime(CLOCK_MONOTONIC, &due);
	for (uint32_t number = 0; number < count; number++) {
		memcpy(frame + 14, &number, sizeof(number));
		if (interval_us) {
			due.tv_nsec += interval_us * 1000;
			due.tv_sec += due.tv_nsec / NS_PER_S;
			due.tv_nsec %= NS_PER_S;
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
		}
		sent[number] = now_ns();
		send(sink, frame, length, 0); /* One that a full queue drops fails: it doesn't arrive, which is what is asked. */
	}
	usleep(LAST_MS * 1000);
	for (uint32_t number = 0; number < count; number++) {
		fprintf(file, "s %u %lld\n", number, (long long)sent[number]);
	}
	read_all(source, file);
}

int main(int count, char **words)
{
	FILE *file;

	if (count == 3 && !strcmp(words[1], "load")) {
		if (syscall(SYS_finit_module, open(words[2], O_RDONLY), "", 0)) {
			fail(words[2]);
		}
		return 0;
	}
	if (count != 6 || strcmp(words[1], "send") || atol(words[5]) < 18 || atol(words[5]) > LENGTH_MAX) {
		fprintf(stderr, "usage: probe load FILE | send FILE COUNT INTERVAL_US LENGTH\n");
		return 2;
	}
	file = fopen(words[2], "w");
	if (!file) {
		fail(words[2]);
	}
	send_all(file, (uint32_t)atol(words[3]), atol(words[4]), (size_t)atol(words[5]));

	return fclose(file) ? 1 : 0;
}

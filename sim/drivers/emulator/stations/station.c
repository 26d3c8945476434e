/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* The stack of a station: frames and time come from the simulation by these calls, and nothing else does. */

#include <string.h>

#include "lwip/etharp.h"
#include "lwip/init.h"
#include "lwip/netif.h"
#include "lwip/timeouts.h"
#include "netif/ethernet.h"

#include "client.h"
#include "resent.h"
#include "server.h"

#define FRAME_MIN     60
#define FRAME_MAX     1514
#define FRAMES_MAX    1024 /* That wait to be taken. */
#define NS_PER_MS     1000000u
#define SERVER_NUMBER 2

static uint64_t now_ns;
static uint64_t random_state;
static struct netif interface;
static struct web_site site;

static uint8_t frames[FRAMES_MAX][FRAME_MAX];
static uint16_t lengths[FRAMES_MAX];
static unsigned int first, waiting;

u32_t sys_now(void)
{
	return (u32_t)(now_ns / NS_PER_MS);
}

unsigned int station_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;

	return (unsigned int)(random_state >> 32);
}

static err_t put_out(struct netif *netif, struct pbuf *frame)
{
	unsigned int place = (first + waiting) % FRAMES_MAX;

	(void)netif;
	if (waiting == FRAMES_MAX || frame->tot_len > FRAME_MAX) {
		LWIP_PLATFORM_ASSERT("a frame that can't be handed out");
	}
	memset(frames[place], 0, FRAME_MIN);
	pbuf_copy_partial(frame, frames[place], frame->tot_len, 0);
	resent_look(frames[place], frame->tot_len);
	lengths[place] = LWIP_MAX(frame->tot_len, FRAME_MIN);
	waiting++;

	return ERR_OK;
}

static err_t bring_up(struct netif *netif)
{
	netif->name[0] = 's';
	netif->name[1] = 't';
	netif->output = etharp_output;
	netif->linkoutput = put_out;
	netif->mtu = 1500;
	netif->hwaddr_len = ETH_HWADDR_LEN;
	netif->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET | NETIF_FLAG_LINK_UP;

	return ERR_OK;
}

/* Start a station: number 2 serves, any other one fetches from number 2. */
int station_start(unsigned int number, uint64_t seed, const uint32_t *file_lengths, uint32_t count, int is_kept)
{
	static uint32_t kept[65536];
	ip4_addr_t address, mask, gateway;
	ip_addr_t server;

	if (count > sizeof(kept) / sizeof(kept[0]) || seed == 0) {
		return -1;
	}
	memcpy(kept, file_lengths, count * sizeof(kept[0]));
	site.lengths = kept;
	site.count = count;
	random_state = seed;
	lwip_init();
	IP4_ADDR(&address, 10, 0, 0, number);
	IP4_ADDR(&mask, 255, 255, 255, 0);
	ip4_addr_set_zero(&gateway);
	memcpy(interface.hwaddr, "\x02\x00\x00\x00\x00", 5);
	interface.hwaddr[5] = (u8_t)number;
	if (!netif_add(&interface, &address, &mask, &gateway, NULL, bring_up, ethernet_input)) {
		return -1;
	}
	netif_set_default(&interface);
	netif_set_up(&interface);
	if (number == SERVER_NUMBER) {
		return web_serve(&site);
	}
	IP_ADDR4(&server, 10, 0, 0, SERVER_NUMBER);
	web_fetch(&site, &server, is_kept);
	web_go_on();

	return 0;
}

/* Take a frame at a time, which must not be before that of any call so far. */
int station_take_in(uint64_t time_ns, const uint8_t *octets, uint16_t length)
{
	struct pbuf *frame = pbuf_alloc(PBUF_RAW, length, PBUF_POOL);

	now_ns = time_ns;
	if (!frame) {
		return ERR_MEM;
	}
	pbuf_take(frame, octets, length);
	if (interface.input(frame, &interface) != ERR_OK) {
		pbuf_free(frame);
	}
	web_go_on();

	return 0;
}

/* Let the timers run that have run out by a time. */
void station_run_timers(uint64_t time_ns)
{
	now_ns = time_ns;
	sys_check_timeouts();
	web_go_on();
}

/* Return when the next timer runs out (ns), or 2^64 - 1. */
uint64_t station_next_timer(void)
{
	u32_t sleep = sys_timeouts_sleeptime();

	return sleep == SYS_TIMEOUTS_SLEEPTIME_INFINITE ? UINT64_MAX : (now_ns / NS_PER_MS + sleep) * NS_PER_MS;
}

/* Copy the next frame that leaves; return its length without FCS, or 0. */
unsigned int station_take_out(uint8_t *octets)
{
	unsigned int length;

	if (!waiting) {
		return 0;
	}
	length = lengths[first];
	memcpy(octets, frames[first], length);
	first = (first + 1) % FRAMES_MAX;
	waiting--;

	return length;
}

void station_read_progress(struct station_progress *progress)
{
	*progress = web_progress;
	progress->resent = resent_segments;
}

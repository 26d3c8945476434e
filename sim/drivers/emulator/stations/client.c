/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* The client: fetches all files, one after the other, and compares each octet with what it must be. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lwip/tcp.h"

#include "client.h"

#define HEAD_MAX 512

struct station_progress web_progress;

static const struct web_site *fetched;
static ip_addr_t server;
static int is_kept;

static struct tcp_pcb *connection;
static int is_connected, must_ask;
static char head[HEAD_MAX];
static uint32_t head_length;
static int in_content;
static uint32_t place; /* In the content. */

/* Leave the connection that there is, if any. */
static err_t leave(void)
{
	struct tcp_pcb *pcb = connection;

	connection = NULL;
	is_connected = 0;
	if (!pcb) {
		return ERR_OK;
	}
	tcp_recv(pcb, NULL);
	tcp_err(pcb, NULL);
	if (tcp_close(pcb) != ERR_OK) {
		tcp_abort(pcb);
		return ERR_ABRT;
	}

	return ERR_OK;
}

/* Begin the present file again, over another connection. */
static void repeat(void)
{
	web_progress.repeats++;
	must_ask = 1;
}

/* A head that is here in full: the content must be as long as the file is. */
static void read_head(void)
{
	const char *found = strstr(head, "Content-Length: ");

	if (strncmp(head, "HTTP/1.", 7) || strncmp(head + 8, " 200", 4) || !found ||
	    strtoul(found + 16, NULL, 10) != fetched->lengths[web_progress.files]) {
		web_progress.wrong++;
	}
	in_content = 1;
	place = 0;
}

static void read_octet(uint8_t octet)
{
	if (in_content) {
		if (place >= fetched->lengths[web_progress.files] || octet != web_octet(web_progress.files, place)) {
			web_progress.wrong++;
		}
		place++;
		web_progress.octets++;
		return;
	}
	if (head_length == HEAD_MAX - 1) {
		web_progress.wrong++;
		return;
	}
	head[head_length++] = (char)octet;
	head[head_length] = 0;
	if (head_length >= 4 && !memcmp(head + head_length - 4, "\r\n\r\n", 4)) {
		read_head();
	}
}

static err_t on_data(void *argument, struct tcp_pcb *pcb, struct pbuf *data, err_t error)
{
	(void)argument;
	(void)error;
	if (!data) {
		repeat();
		return leave();
	}
	for (struct pbuf *part = data; part; part = part->next) {
		for (u16_t i = 0; i < part->len; i++) {
			read_octet(((uint8_t *)part->payload)[i]);
		}
	}
	tcp_recved(pcb, data->tot_len);
	pbuf_free(data);
	if (in_content && place >= fetched->lengths[web_progress.files]) {
		web_progress.files++;
		must_ask = 1;
		if (!is_kept || web_progress.files == fetched->count) {
			return leave();
		}
	}

	return ERR_OK;
}

static void on_error(void *argument, err_t error)
{
	(void)argument;
	(void)error;
	connection = NULL; /* The stack has freed it. */
	is_connected = 0;
	repeat();
}

static err_t on_connected(void *argument, struct tcp_pcb *pcb, err_t error)
{
	(void)argument;
	(void)pcb;
	is_connected = error == ERR_OK;

	return ERR_OK;
}

static void open_connection(void)
{
	connection = tcp_new();
	if (!connection) {
		LWIP_PLATFORM_ASSERT("no connection");
	}
	web_progress.connections++;
	tcp_recv(connection, on_data);
	tcp_err(connection, on_error);
	tcp_nagle_disable(connection);
	tcp_connect(connection, &server, HTTP_PORT, on_connected);
}

static void ask(void)
{
	char request[128];
	int length = snprintf(request, sizeof(request), "GET /%u HTTP/1.%d\r\nHost: server\r\nUser-Agent: station\r\n\r\n",
			      web_progress.files, is_kept ? 1 : 0);

	if (tcp_write(connection, request, (u16_t)length, TCP_WRITE_FLAG_COPY) != ERR_OK) {
		return; /* Asked again when the stack goes on. */
	}
	must_ask = 0;
	in_content = 0;
	head_length = 0;
	tcp_output(connection);
}

void web_fetch(const struct web_site *site, const ip_addr_t *address, int is_connection_kept)
{
	fetched = site;
	server = *address;
	is_kept = is_connection_kept;
	must_ask = site->count > 0;
}

void web_go_on(void)
{
	if (!must_ask || web_progress.files == fetched->count) {
		return;
	}
	if (!connection) {
		open_connection();
	} else if (is_connected) {
		ask();
	}
}

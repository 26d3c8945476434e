/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* The web server: GET of a file by its number; HTTP/1.0 closes after it, HTTP/1.1 waits for the next request. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lwip/tcp.h"

#include "server.h"

#define REQUEST_MAX 512
#define PIECE_MAX   TCP_MSS

struct visit {
	char request[REQUEST_MAX];
	uint32_t length;   /* Of the request, so far. */
	uint32_t file;
	uint32_t place;    /* In it: what comes next. */
	uint32_t end;
	int is_answering;
	int is_kept;
};

static const struct web_site *served;

static void forget(struct tcp_pcb *pcb, struct visit *visit)
{
	tcp_arg(pcb, NULL);
	tcp_recv(pcb, NULL);
	tcp_sent(pcb, NULL);
	tcp_err(pcb, NULL);
	free(visit);
}

/* Close a connection; what was written is still sent. Return ERR_ABRT where there was no memory to close it. */
static err_t leave(struct tcp_pcb *pcb, struct visit *visit)
{
	forget(pcb, visit);
	if (tcp_close(pcb) != ERR_OK) {
		tcp_abort(pcb);
		return ERR_ABRT;
	}

	return ERR_OK;
}

/* Write as much of the file as there is space for. */
static err_t write_on(struct tcp_pcb *pcb, struct visit *visit)
{
	uint8_t piece[PIECE_MAX];

	while (visit->place < visit->end) {
		uint32_t length = LWIP_MIN(LWIP_MIN(visit->end - visit->place, PIECE_MAX), tcp_sndbuf(pcb));
		u8_t flags = TCP_WRITE_FLAG_COPY;

		for (uint32_t i = 0; i < length; i++) {
			piece[i] = web_octet(visit->file, visit->place + i);
		}
		if (visit->place + length < visit->end) {
			flags |= TCP_WRITE_FLAG_MORE;
		}
		if (!length || tcp_write(pcb, piece, (u16_t)length, flags) != ERR_OK) {
			break; /* The rest when what is under way has been acknowledged. */
		}
		visit->place += length;
	}
	tcp_output(pcb);
	if (visit->place == visit->end) {
		visit->is_answering = 0;
		if (!visit->is_kept) {
			return leave(pcb, visit);
		}
	}

	return ERR_OK;
}

/* Answer a request that is here in full. */
static err_t answer(struct tcp_pcb *pcb, struct visit *visit)
{
	char head[160];
	unsigned int file, minor;
	int length;

	visit->is_kept = 0;
	visit->place = visit->end = 0;
	if (sscanf(visit->request, "GET /%u HTTP/1.%u", &file, &minor) == 2 && file < served->count) {
		visit->file = file;
		visit->end = served->lengths[file];
		visit->is_kept = minor >= 1;
		length = snprintf(head, sizeof(head), "HTTP/1.%u 200 OK\r\nServer: station\r\nContent-Type: text/plain\r\n"
				  "Content-Length: %u\r\n\r\n", minor, visit->end);
	} else {
		length = snprintf(head, sizeof(head), "HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n");
	}
	visit->length = 0;
	visit->is_answering = 1;
	if (tcp_write(pcb, head, (u16_t)length, TCP_WRITE_FLAG_COPY | TCP_WRITE_FLAG_MORE) != ERR_OK) {
		forget(pcb, visit);
		tcp_abort(pcb);
		return ERR_ABRT;
	}

	return write_on(pcb, visit);
}

static err_t on_data(void *argument, struct tcp_pcb *pcb, struct pbuf *data, err_t error)
{
	struct visit *visit = argument;
	u16_t length;

	(void)error;
	if (!data) {
		return leave(pcb, visit);
	}
	length = LWIP_MIN(data->tot_len, REQUEST_MAX - 1 - visit->length);
	pbuf_copy_partial(data, visit->request + visit->length, length, 0);
	visit->length += length;
	visit->request[visit->length] = 0;
	tcp_recved(pcb, data->tot_len);
	pbuf_free(data);
	if (!visit->is_answering && strstr(visit->request, "\r\n\r\n")) {
		return answer(pcb, visit);
	}

	return ERR_OK;
}

static err_t on_sent(void *argument, struct tcp_pcb *pcb, u16_t length)
{
	struct visit *visit = argument;

	(void)length;

	return visit->is_answering ? write_on(pcb, visit) : ERR_OK;
}

static void on_error(void *argument, err_t error)
{
	(void)error;
	free(argument);
}

static err_t on_visit(void *argument, struct tcp_pcb *pcb, err_t error)
{
	struct visit *visit = calloc(1, sizeof(*visit));

	(void)argument;
	if (error != ERR_OK || !visit) {
		free(visit);
		return ERR_VAL;
	}
	tcp_arg(pcb, visit);
	tcp_recv(pcb, on_data);
	tcp_sent(pcb, on_sent);
	tcp_err(pcb, on_error);
	tcp_nagle_disable(pcb); /* As web servers do: else the end of a file waits for a delayed acknowledgement. */

	return ERR_OK;
}

int web_serve(const struct web_site *site)
{
	struct tcp_pcb *pcb = tcp_new();

	served = site;
	if (!pcb || tcp_bind(pcb, IP_ADDR_ANY, HTTP_PORT) != ERR_OK) {
		return ERR_USE;
	}
	pcb = tcp_listen(pcb);
	if (!pcb) {
		return ERR_MEM;
	}
	tcp_accept(pcb, on_visit);

	return 0;
}

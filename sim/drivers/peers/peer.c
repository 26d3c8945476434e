// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// A station of the simulation (sim/system/harness/wire/station.h) whose frames a program answers: each that comes goes over a
// TCP connection of this machine to it, with its time, and simulated time stands still until the program has said what it sends,
// and when. The seed of the station is the program's port. peer.py is the other end.

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FRAME_MOST = 1514, PROGRESS_WORDS = 6 };

struct frame {
    struct frame *next;
    uint64_t due_ns;
    uint32_t length;
    uint8_t octets[FRAME_MOST];
};

static int program = -1;
static uint64_t now_ns;
static struct frame *waiting;  // By their times; those of one time as they came.

static int whole(ssize_t (*move)(int, void *, size_t, int), void *octets, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t some = move(program, (uint8_t *)octets + done, size - done, MSG_NOSIGNAL);
        if (some <= 0)
            return 1;
        done += (size_t)some;
    }
    return 0;
}

static ssize_t put(int file, void *octets, size_t size, int flags)
{
    return send(file, octets, size, flags);
}

static void hold(struct frame *one)
{
    struct frame **place = &waiting;

    while (*place && (*place)->due_ns <= one->due_ns)
        place = &(*place)->next;
    one->next = *place;
    *place = one;
}

int station_start(unsigned number, uint64_t seed, const uint32_t *lengths, uint32_t count, int is_kept)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)seed)};
    int one = 1;

    (void)number, (void)lengths, (void)count, (void)is_kept;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    program = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (program < 0 || connect(program, (struct sockaddr *)&address, sizeof address))
        return 1;
    return setsockopt(program, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

int station_take_in(uint64_t time_ns, const uint8_t *octets, uint16_t length)
{
    uint64_t head[2] = {time_ns, length};
    uint64_t answers;

    now_ns = time_ns;
    if (whole(put, head, sizeof head) || whole(put, (void *)octets, length) || whole(recv, &answers, sizeof answers))
        return 1;
    for (uint64_t number = 0; number < answers; number++) {
        struct frame *one = malloc(sizeof *one);

        if (!one || whole(recv, head, sizeof head) || head[1] > FRAME_MOST)
            return 1;
        one->due_ns = head[0];
        one->length = (uint32_t)head[1];
        if (whole(recv, one->octets, one->length))
            return 1;
        hold(one);
    }
    return 0;
}

void station_run_timers(uint64_t time_ns)
{
    now_ns = time_ns;
}

uint64_t station_next_timer(void)
{
    return waiting ? waiting->due_ns : UINT64_MAX;
}

unsigned station_take_out(uint8_t *octets)
{
    struct frame *one = waiting;
    unsigned length;

    if (!one || one->due_ns > now_ns)
        return 0;
    waiting = one->next;
    length = one->length;
    memcpy(octets, one->octets, length);
    free(one);
    return length;
}

void station_read_progress(uint32_t *words)
{
    memset(words, 0, PROGRESS_WORDS * sizeof *words);
}

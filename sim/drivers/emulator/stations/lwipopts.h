/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* How the stations' stack is built: no system below it, one interface, TCP over IPv4 over Ethernet. */

#ifndef STATION_LWIPOPTS_H
#define STATION_LWIPOPTS_H

/* Time and chance are the simulation's. */
#define NO_SYS                1
#define SYS_LIGHTWEIGHT_PROT  0
#define LWIP_RAND()           station_random()
unsigned int station_random(void);

/* Memory is the process's, so that a station never lacks it. */
#define MEM_LIBC_MALLOC       1
#define MEMP_MEM_MALLOC       1
#define MEM_ALIGNMENT         8
#define MEMP_NUM_TCP_SEG      1024

/* What isn't used. */
#define LWIP_NETCONN          0
#define LWIP_SOCKET           0
#define LWIP_UDP              0
#define LWIP_STATS            0

/* TCP: full segments, the largest window that needs no scaling; all else as lwIP has it (first time-out 3 s, timers of
 * 250 and 500 ms, NewReno), what comes out of order is kept and told to the sender.
 */
#define TCP_MSS               1460
#define TCP_WND               (44 * TCP_MSS)
#define TCP_SND_BUF           (44 * TCP_MSS)
#define TCP_QUEUE_OOSEQ       1
#define LWIP_TCP_SACK_OUT     1

/* A frame is handed out in one piece. */
#define LWIP_NETIF_TX_SINGLE_PBUF 1

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Weights of the members of the bank by how well they predicted, in numbers of 32 bits: the
 * processor divides those itself.
 *
 * Source: D. T. Magill, "Optimal adaptive estimation of sampled stochastic processes", IEEE Trans.
 * Automatic Control 10 (1965): exp(-nats), with mean squares of innovations (R. K. Mehra, the same
 * 15, 1970) for likelihoods.
 */

#ifndef LITEPROBE_WEIGHTS_H
#define LITEPROBE_WEIGHTS_H

#include <stdint.h>

#define LP_MEMBERS     8
/* Of a weight, and one nat. */
#define LP_WEIGHT_BITS 15
#define LP_NAT         256

/** Return the shift that leaves 12 digits of a value, or all when it has less. */
unsigned int lp_shift_to_12(int64_t a);

/** Return a >> shift, at most ``most``. */
uint32_t lp_scaled(int64_t a, unsigned int shift, uint32_t most);

/**
 * Add to ``nats`` (2^-8) what stands against each member: ``samples`` / 2 * (its mean square / the
 * least - 1), at most 256 nats. Few digits of the squares are used.
 */
void lp_nats(int32_t nats[LP_MEMBERS], const int64_t squares[LP_MEMBERS], uint32_t samples);

/** Put the weights that belong to ``nats``, 15 digits each; their sum is 2^15. */
void lp_weights(uint32_t weights[LP_MEMBERS], const int32_t nats[LP_MEMBERS]);

#endif

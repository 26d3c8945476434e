// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// The device under test: a store-and-forward hop between two GMIIs of one clock. A frame leaves LATENCY clocks after it has
// come in, or when the one before has left and the gap is over.
module hop #(parameter LATENCY = 375, parameter GAP = 12) (
    input            clk,
    input            rst,
    input            rx_dv,
    input      [7:0] rxd,
    output reg       tx_en,
    output reg [7:0] txd
);
    reg  [7:0] octets [0:16383];
    reg [13:0] ends   [0:63];      // Of frames that wait: where the next one begins,
    reg [31:0] dues   [0:63];      // and when they may leave.
    reg [13:0] written, read;
    reg  [5:0] came, gone;
    reg [31:0] now, free;
    reg        was_valid;

    always @(posedge clk) begin
        now    <= now + 1;
        was_valid <= rx_dv;
        tx_en  <= 0;
        txd    <= 0;
        if (rx_dv) begin
            octets[written] <= rxd;
            written         <= written + 1;
        end
        if (was_valid & ~rx_dv) begin
            ends[came] <= written;
            dues[came] <= now + LATENCY;
            came       <= came + 1;
        end
        if (came != gone && now + 1 >= dues[gone] && now >= free) begin
            tx_en <= 1;
            txd   <= octets[read];
            read  <= read + 1;
            if (read + 14'd1 == ends[gone]) begin
                gone <= gone + 1;
                free <= now + 1 + GAP;
            end
        end
        if (rst) begin
            written <= 0; read <= 0; came <= 0; gone <= 0; now <= 0; free <= 0; was_valid <= 0;
        end
    end
endmodule

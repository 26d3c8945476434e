// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// The SDRAM's pins of a board, with delays: every time that io_timing.py counts with, at either end of its limits.
// Plusargs, in ps: period and clock (how far the chip's clock is behind the FPGA's); out (tCOPLL), access (tAC) and hold (tOH).
`timescale 1ps/1ps

module liteprobe_sim; // What cells.v looks at, for the PHYs' pins.
    wire signed [15:0] skew_ps = 0;
    wire noise = 0;
endmodule

module memory_pins;
    integer period, lag, leaves, access, hold, wanted;
    reg clk = 0, chip_clk = 0, rst = 1;
    wire sdram_clock, ras_n, cas_n, we_n;
    wire [15:0] errors, rounds;
    wire [10:0] a;
    wire [1:0]  ba;
    wire [31:0] dq;
    memory_pins_bench bench(
        .memory_clk(clk), .chip_clk(chip_clk), .memory_rst(rst), .errors(errors), .rounds(rounds), .sdram_clock(sdram_clock),
        .sdram_a(a), .sdram_ba(ba), .sdram_ras_n(ras_n), .sdram_cas_n(cas_n), .sdram_we_n(we_n), .sdram_dq(dq)
    );

    wire ck;
    wire [2:0]  command;
    wire [10:0] address;
    wire [1:0]  bank;
    wire [31:0] written;
    memory_leaves out(leaves, sdram_clock, {ras_n, cas_n, we_n}, a, ba, dq, ck, command, address, bank, written);

    reg [10:0] row[0:3];
    reg [31:0] words[0:(1 << 20) - 1];
    reg [31:0] found, given = 0;
    reg was_read = 0, gives = 0;
    always @(posedge ck) begin
        was_read <= command == 3'b101;
        found    <= words[{row[bank], bank[0], address[7:0]}];
        if (command == 3'b011) row[bank] <= address;
        if (command == 3'b100) words[{row[bank], bank[0], address[7:0]}] <= written;
        given <= #(hold) 32'hdeadbeef;
        if (was_read) begin
            given <= #(access) found;
            gives <= #(hold) 1;
        end else gives <= #(hold + 6000) 0;
    end
    assign dq = gives ? given : 32'bz;

    initial begin
        void'($value$plusargs("period=%d", period));
        void'($value$plusargs("clock=%d", lag));
        void'($value$plusargs("out=%d", leaves));
        void'($value$plusargs("access=%d", access));
        void'($value$plusargs("hold=%d", hold));
        void'($value$plusargs("rounds=%d", wanted));
        fork
            forever begin clk = 1; #(period/2); clk = 0; #(period - period/2); end
            begin #(lag); forever begin chip_clk = 1; #(period/2); chip_clk = 0; #(period - period/2); end end
            #(20*period) rst = 0;
            forever begin
                @(posedge clk);
                if (rounds == wanted || $time > 1000000000) begin
                    $display("rounds %0d errors %0d", rounds, errors);
                    $finish;
                end
            end
        join
    end
endmodule

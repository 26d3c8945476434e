// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// The SDRAM's pins of a board whose samples can be moved, with delays, skew and drift; its DELAYFs, and its PLL.
// Plusargs, in ps: period, slow (period), step (of the PLL), lag (of the chip's clock at first), tap; out (tCOPLL), access and
// hold (tAC, tOH, with what the FPGA asks for around its edge taken off), skew (of what is read), drift (of it, from the first
// round to the last).
`timescale 1ps/1ps

module liteprobe_sim; // What cells.v looks at, for the PHYs' pins.
    wire signed [15:0] skew_ps = 0;
    wire noise = 0;
endmodule

module memory_eye;
    liteprobe_sim liteprobe_sim();
    integer whole, period, slow_period, step, leaves, access, hold, skew, drift, wanted, shift = 0, lag, adjust, tap, taps = 124;
    integer found_lag = 0, found_taps = 0, found_half = 0;
    reg clk = 0, moved = 0, rst = 1, was_open = 0;
    wire sdram_clock, ras_n, cas_n, we_n, phase_step, phase_advance, slow, ready, half, load_n, move, direction;
    wire [31:0] errors, rounds;
    wire [1:0]  state;
    wire [7:0]  width, moves, wrong;
    wire [10:0] a;
    wire [1:0]  ba;
    wire [31:0] dq;
    wire chip_clk = slow ? clk : moved;
    memory_eye_bench bench(
        .memory_clk(clk), .sdram_clk(chip_clk), .memory_rst(rst), .half(half), .load_n(load_n), .move(move),
        .direction(direction), .errors(errors), .rounds(rounds), .eye_state(state),
        .eye_width(width), .eye_moves(moves), .eye_errors(wrong), .eye_ready(ready), .eye_slow(slow), .phase_step(phase_step),
        .phase_advance(phase_advance), .sdram_clock(sdram_clock), .sdram_a(a), .sdram_ba(ba), .sdram_ras_n(ras_n),
        .sdram_cas_n(cas_n), .sdram_we_n(we_n), .sdram_dq(dq)
    );
    // A falling edge is a step, FPGA-TN-02200.
    always @(negedge phase_step) if (!rst) begin
        adjust = adjust + (phase_advance ? -step : step);
        lag    = lag + (phase_advance ? -step : step);
    end

    // A tap is a falling edge of MOVE, FPGA-TN-02035. What is read is late by them.
    always @(negedge move or negedge load_n)
        if (!load_n) taps = 124;
        else if (direction ? taps == 0 : taps == 127) $display("beyond 1");
        else taps = taps + (direction ? -1 : 1);
    wire integer behind = skew + shift + taps*tap;

    wire ck;
    wire [2:0]  command;
    wire [10:0] address;
    wire [1:0]  bank;
    wire [31:0] written;
    memory_leaves out(leaves, sdram_clock, {ras_n, cas_n, we_n}, a, ba, dq, ck, command, address, bank, written);

    reg [10:0] row[0:3];
    reg [31:0] words[0:(1 << 21) - 1];
    // Words and whether there is one, by age. No delay is longer than a period: Verilator keeps one value for each of them.
    reg [31:0] found[0:3], given = 0;
    reg [3:0] was_read = 0;
    reg gives = 0;
    integer age, late;
    always @(posedge ck) begin
        was_read <= {was_read[2:0], command == 3'b101};
        found[0] <= words[{row[bank], bank, address[7:0]}];
        for (int n = 0; n < 3; n++) found[n + 1] <= found[n];
        late = access + behind;
        age  = 1 + late/whole; // CL 3: two edges after that of the command.
        late = late % whole;
        if (command == 3'b011) row[bank] <= address;
        if (command == 3'b100) words[{row[bank], bank, address[7:0]}] <= written;
        given <= #(hold + behind) 32'hdeadbeef;
        if (was_read[age]) given <= #(late) found[age];
        if (was_read[1]) gives <= #(hold + behind) 1;
        else gives <= #(hold + behind + 2500) 0;
    end
    assign dq = gives ? given : 32'bz;
    always @(rounds) shift = drift*$signed(rounds)/wanted;

    integer moved_rest;
    initial begin
        void'($value$plusargs("period=%d", period));
        void'($value$plusargs("slow=%d", slow_period));
        void'($value$plusargs("step=%d", step));
        void'($value$plusargs("tap=%d", tap));
        void'($value$plusargs("lag=%d", lag));
        void'($value$plusargs("out=%d", leaves));
        void'($value$plusargs("access=%d", access));
        void'($value$plusargs("hold=%d", hold));
        void'($value$plusargs("skew=%d", skew));
        void'($value$plusargs("drift=%d", drift));
        void'($value$plusargs("rounds=%d", wanted));
        adjust = lag;
        fork
            forever begin
                whole = slow ? slow_period : period;
                clk = 1; #(whole/2); clk = 0; #(whole - whole/2);
            end
            forever begin
                moved = 1; #(period/2); moved = 0;
                moved_rest = period - period/2 + adjust;
                adjust = 0;
                #(moved_rest);
            end
            #(20*period) rst = 0;
            forever begin
                @(posedge clk);
                if (ready && !was_open) begin found_lag = lag; found_taps = taps; found_half = half; end
                was_open = was_open | ready;
                if (rounds == wanted) begin
                    $display("rounds %0d errors %0d state %0d width %0d moves %0d wrong %0d", rounds, errors, state, width,
                        moves, wrong);
                    $display("found_lag %0d found_taps %0d found_half %0d lag %0d taps %0d half %0d", found_lag, found_taps,
                        found_half, lag, taps, half);
                    $finish;
                end
            end
        join
    end
endmodule

// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Runs one program on both ports of a transmit_bench at once and writes the tick of each start and end of
// TX_EN. For trains too long for cocotb; clocks are asynchronous (sys_half_ps), a tick is 8 ns.
//
// Plusargs: length, count, repeats, ticks, fraction, gap, sys_half_ps, file. Lines of the file: "<port> <start> <end>";
// at last "counters <port> <sent> <late> <underruns>".

`timescale 1ps/1ps

module transmit_run;
    longint length, count, repeats, ticks, fraction, gap, sys_half_ps;
    string  name;
    integer file;

    logic sys_clk = 0, sys_rst = 1, timebase_clk = 0, timebase_rst = 1;
    logic arm = 0, start_request = 0;
    logic [63:0] tick = 0;
    wire  [2:0]  state [2];
    wire  [31:0] sent [2], late [2], underruns [2];
    wire  [1:0]  valid;
    logic [1:0]  valid_d = 0;
    logic [63:0] begun [2];

    always #4000 timebase_clk = ~timebase_clk;
    always #(sys_half_ps) sys_clk = ~sys_clk;

`define PORT(n) \
        .p``n``_length(length[13:0]), .p``n``_count(count[31:0]), .p``n``_repeats(repeats[31:0]), \
        .p``n``_interval_ticks(ticks[31:0]), .p``n``_interval_fraction(fraction[31:0]), .p``n``_gap_ticks(gap[31:0]), \
        .p``n``_start_time(64'd0), .p``n``_timed(1'd0), .p``n``_fill(2'd2), .p``n``_payload_offset(8'd42), \
        .p``n``_checksum_enable(1'd0), .p``n``_checksum_seed(16'd0), .p``n``_arm(arm), .p``n``_stop(1'd0), .p``n``_clear(1'd0), \
        .p``n``_header_adr(5'd0), .p``n``_header_dat(32'd0), .p``n``_header_we(1'd0), \
        .p``n``_management_valid(1'd0), .p``n``_management_last(1'd0), .p``n``_management_data(32'd0), \
        .p``n``_management_last_be(4'd0), .p``n``_first_late(), .p``n``_management_sent(), .p``n``_management_held(), \
        .p``n``_management_dropped(), .p``n``_tx_data(), .p``n``_tx_valid(valid[n]), .p``n``_state(state[n]), \
        .p``n``_sent(sent[n]), .p``n``_late(late[n]), .p``n``_underruns(underruns[n])

    transmit_bench bench(
        .sys_clk(sys_clk), .sys_rst(sys_rst), .timebase_clk(timebase_clk), .timebase_rst(timebase_rst),
        .start_mask(2'd3), .start_request(start_request), .now(), .ticks(), .set(1'd0), .set_time(64'd0),
        .increment(48'h080000000000), `PORT(0), `PORT(1));

    always @(posedge timebase_clk) begin
        tick    <= tick + 1;
        valid_d <= valid;
        for (int n = 0; n < 2; n++) begin
            if (valid[n] & ~valid_d[n]) begun[n] <= tick;
            if (~valid[n] & valid_d[n]) $fwrite(file, "%0d %0d %0d\n", n, begun[n], tick);
        end
    end

    initial begin
        if (!$value$plusargs("length=%d", length) || !$value$plusargs("count=%d", count)
            || !$value$plusargs("repeats=%d", repeats) || !$value$plusargs("ticks=%d", ticks)
            || !$value$plusargs("fraction=%d", fraction) || !$value$plusargs("gap=%d", gap)
            || !$value$plusargs("sys_half_ps=%d", sys_half_ps) || !$value$plusargs("file=%s", name)) begin
            $display("a plusarg is missing");
            $fatal;
        end
        file = $fopen(name, "w");
        repeat (20) @(negedge sys_clk);
        sys_rst = 0;
        timebase_rst = 0;
        repeat (10) @(negedge sys_clk);
        arm = 1;
        @(negedge sys_clk) arm = 0;
        repeat (100) @(negedge sys_clk);
        start_request = 1;
        @(negedge sys_clk) start_request = 0;
        wait (state[0] == 0 && state[1] == 0);
        repeat (100) @(negedge sys_clk);
        for (int n = 0; n < 2; n++) $fwrite(file, "counters %0d %0d %0d %0d\n", n, sent[n], late[n], underruns[n]);
        $fclose(file);
        $finish;
    end
endmodule

// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// An SDRAM chip of 32 bits as LiteDRAM uses one: bursts of one word, read latency 2. What is read before it is written is
// garbage, as in a chip. Source: data sheet of the M12L64322A.
module sdram_chip #(parameter ROW_BITS = 11, BANK_BITS = 1, COLUMN_BITS = 8) (
    input                 clk, ras_n, cas_n, we_n,
    input [ROW_BITS-1:0]  a,
    input [BANK_BITS-1:0] ba,
    inout [31:0]          dq
);
    reg [ROW_BITS-1:0] row[0:(1<<BANK_BITS)-1];
    reg [31:0]         words[0:(1<<(ROW_BITS+BANK_BITS+COLUMN_BITS))-1];
    reg [31:0]         found, out;
    reg                was_read = 0, is_out = 0;
    wire [ROW_BITS+BANK_BITS+COLUMN_BITS-1:0] place = {row[ba], ba, a[COLUMN_BITS-1:0]};
    always @(posedge clk) begin
        was_read <= {ras_n, cas_n, we_n} == 3'b101;
        found    <= words[place];
        is_out   <= was_read;
        out      <= found;
        case ({ras_n, cas_n, we_n})
            3'b011: row[ba] <= a;
            3'b100: words[place] <= dq;
        endcase
    end
    assign dq = is_out ? out : 32'bz;
endmodule

// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// A gigabit PHY at its RGMII pins; the harness makes wires of the octets beside it.
// `half` is 1 in the first half of a tick of the timebase, `rx_half` in the first half of one of the receive clock. Both
// change after all that the clocks change, so that a pin is seen as it was before the edge.
// An octet that the FPGA sends comes out a tick after its first half stood at the pins.
module rgmii_phy (
    input            half, rx_half,
    input      [3:0] in_band, // What RXD says between frames.
    // RGMII, by the names of the FPGA's side. The receive clock goes past.
    input            tx_ctl,
    input      [3:0] tx_data,
    output           rx_ctl,
    output     [3:0] rx_data,
    // Octets.
    output reg       sent_valid,
    output reg [7:0] sent_data,
    input            valid,
    input      [7:0] data
);
    // Transmit.
    reg       tx_en;
    reg [3:0] tx_low;
    always @(posedge half) begin
        tx_en  <= tx_ctl;
        tx_low <= tx_data;
    end
    always @(negedge half) begin
        sent_valid <= tx_en;
        sent_data  <= {tx_data, tx_low};
    end

    // Receive.
    wire [7:0] octet = valid ? data : {2{in_band}};
    reg        was_valid;
    reg  [3:0] high;
    always @(posedge rx_half) begin
        was_valid <= valid;
        high      <= octet[7:4];
    end
    assign rx_ctl  = rx_half ? was_valid : valid;
    assign rx_data = rx_half ? high : octet[3:0];
endmodule

#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>
#include <liteprobe/image.h>

int main(void)
{
	printk("LiteProbe %s, gateware %08x\n", lp_image.version, lp_image.map_hash);
	return 0;
}

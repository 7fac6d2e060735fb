// What identifies this host and this boot of it.

#ifndef BR_HOST_H_
#define BR_HOST_H_

struct host {
  char name[256];
  char boot_id[64];  // new with every boot; "" when the kernel does not tell
};

void host_read(struct host* host);

#endif

// TCP ports of this host: is one free, does the server of a run answer on it?

#ifndef BR_PORT_H_
#define BR_PORT_H_

// The verb `port` with its options. Returns the exit code.
int port_command(int argc, char** argv);

#endif

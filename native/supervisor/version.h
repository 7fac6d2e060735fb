#ifndef BR_VERSION_H_
#define BR_VERSION_H_

#define BR_VERSION "1.1"

#endif

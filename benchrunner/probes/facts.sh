# Prints all that the host facts are made of, in one go. POSIX sh; needs nothing but grep.
# Arguments: directories. First come lines "path:content" of small files; then sections, each
# begun by "=== name". Whatever is not there is not printed. Pure printing: nothing is changed.
LC_ALL=C
export LC_ALL
PATH=$PATH:/usr/sbin:/sbin
cpu=/sys/devices/system/cpu
files() { grep -sH '' "$@"; }
section() { printf '\n=== %s\n' "$*"; }

files /proc/cpuinfo /proc/meminfo /proc/cmdline /proc/swaps /proc/loadavg /proc/uptime \
  /proc/self/mountinfo /etc/os-release \
  /proc/sys/kernel/osrelease /proc/sys/kernel/version /proc/sys/kernel/random/boot_id \
  /proc/sys/kernel/io_uring_disabled /proc/sys/kernel/numa_balancing \
  /proc/sys/kernel/randomize_va_space /proc/sys/kernel/tainted \
  /proc/sys/kernel/perf_event_paranoid \
  /proc/sys/vm/swappiness /proc/sys/vm/dirty_ratio /proc/sys/vm/dirty_background_ratio \
  /proc/sys/vm/zone_reclaim_mode /proc/sys/vm/overcommit_memory \
  /sys/kernel/mm/transparent_hugepage/enabled /sys/kernel/mm/transparent_hugepage/defrag \
  /sys/kernel/mm/ksm/run /sys/module/damon_*/parameters/enabled \
  /sys/kernel/mm/damon/admin/kdamonds/[0-9]*/state \
  $cpu/online $cpu/isolated $cpu/smt/active $cpu/intel_pstate/no_turbo $cpu/cpufreq/boost \
  $cpu/vulnerabilities/* $cpu/cpu0/cache/index*/level $cpu/cpu0/cache/index*/type \
  $cpu/cpu0/cache/index*/size \
  $cpu/cpu[0-9]*/topology/core_id $cpu/cpu[0-9]*/topology/physical_package_id \
  $cpu/cpu[0-9]*/cpufreq/scaling_governor $cpu/cpu0/cpufreq/scaling_driver \
  $cpu/cpu[0-9]*/cpufreq/energy_performance_preference $cpu/cpuidle/current_driver \
  $cpu/cpu0/cpufreq/cpuinfo_max_freq $cpu/cpu0/cpufreq/cpuinfo_min_freq \
  /sys/devices/system/node/node*/cpulist /sys/devices/system/node/node*/distance \
  /sys/devices/system/node/node*/meminfo \
  /sys/devices/system/clocksource/clocksource0/current_clocksource \
  /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name /sys/class/dmi/id/board_name \
  /sys/class/dmi/id/bios_version /sys/hypervisor/type

section clock
date +%s.%N
section machine
uname -m
section open files
ulimit -n
section irqbalance
if grep -qsx irqbalance /proc/[0-9]*/comm; then echo 1; else echo 0; fi
section libc
getconf GNU_LIBC_VERSION 2>/dev/null
section virtualisation
systemd-detect-virt --vm 2>/dev/null
section container
systemd-detect-virt --container 2>/dev/null || { [ -e /.dockerenv ] && echo docker; }

# Limits of every control group from ours up to the root: "file value" on a line each.
limits() {
  root=$1 group=$2
  while :; do
    for file in cpu.max memory.max cpuset.cpus.effective cpu.cfs_quota_us cpu.cfs_period_us \
      memory.limit_in_bytes cpuset.cpus; do
      [ -r "$root$group/$file" ] || continue
      IFS= read -r line <"$root$group/$file" && printf '%s %s\n' "$file" "$line"
    done
    [ -n "$group" ] || break
    group=${group%/*}
  done
}
section cgroup
while IFS=: read -r number controllers group; do
  group=${group%/}
  if [ "$number" = 0 ]; then
    for root in /sys/fs/cgroup /sys/fs/cgroup/unified; do
      [ -e "$root/cgroup.controllers" ] && limits "$root" "$group"
    done
  else
    case $controllers in cpu | cpu,cpuacct | cpuacct,cpu | memory | cpuset)
      limits "/sys/fs/cgroup/$controllers" "$group" ;;
    esac
  fi
done </proc/self/cgroup 2>/dev/null

for tool in cc c++ clang make cmake ld cargo git ccache fio db_bench numactl perf python3; do
  path=$(command -v "$tool") || continue
  section "tool $tool $path"
  "$tool" --version </dev/null 2>&1 | sed -n 1p
done

# A block device and what it lies on, down to the disks. A subshell, because it calls itself.
device() (
  name=${1##*/}
  if [ -e "$1/partition" ]; then parents=$(readlink -f "$1/.."); else parents=$(echo "$1"/slaves/*); fi
  paths=
  for file in size dm/name md/level loop/backing_file device/model device/vendor \
    device/firmware_rev device/rev queue/rotational queue/scheduler queue/nr_requests \
    queue/max_sectors_kb queue/max_hw_sectors_kb queue/read_ahead_kb queue/write_cache queue/nomerges \
    queue/logical_block_size queue/physical_block_size queue/wbt_lat_usec queue/discard_max_bytes
  do paths="$paths /sys/class/block/$name/$file"; done
  printf 'device %s\n' "$name"
  files $paths
  for parent in $parents; do
    [ -e "$parent" ] || continue
    printf 'below %s %s\n' "$name" "${parent##*/}"
    device "$(readlink -f "$parent")"
  done
)
index=0
for directory; do
  section "directory $index"
  index=$((index + 1))
  while [ ! -d "$directory" ]; do directory=$(dirname -- "$directory"); done
  df -Pk -- "$directory" 2>/dev/null | sed -n '2s/^/df /p'
  number=$(stat -c %d -- "$directory" 2>/dev/null) || continue
  major=$(((number >> 8) & 4095))
  minor=$(((number & 255) | ((number >> 12) & 1048320)))
  printf 'number %s:%s\n' "$major" "$minor"
  path=$(readlink -f "/sys/dev/block/$major:$minor")
  if [ ! -e "$path" ]; then
    source=$(df -P -- "$directory" 2>/dev/null | sed -n '2s/ .*//p')
    case $source in /dev/*) path=/sys/class/block/$(basename "$(readlink -f "$source")") ;; esac
    path=$(readlink -f "$path")
  fi
  if [ -e "$path" ]; then device "$path"; fi
done
exit 0

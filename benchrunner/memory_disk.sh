# Looks at, makes and removes the memory disk of a work directory. Each verb is one process, so that
# nothing comes between a check and what it permits. It says what it found or did in one word.
#
# Arguments: verb, claimed work directory, then for mount: bytes, and trials whose databases stay.
# Ours is a tmpfs that is called benchrunner and mounted at WORK/memory, below our marker.
set -eu
verb=$1 work=$2
shift 2
[ -f "$work/.benchrunner" ] || { echo unclaimed; exit 0; }
point=$(cd -P -- "$work" && pwd)/memory

# What is mounted there: ours, none, or its type and source. The kernel escapes what could confuse.
state() {
  escaped=$(printf '%s' "$point" | sed 's/\\/\\134/g; s/ /\\040/g; s/	/\\011/g')
  top=none
  while read -r _ _ _ _ where rest; do
    [ "$where" != "$escaped" ] || top=${rest##* - }
  done </proc/self/mountinfo
  case $top in
    'tmpfs benchrunner '*) echo ours ;;
    *) echo "${top% *}" ;;
  esac
}

is_wanted() {
  for trial; do [ ! -d "$point/trials/$trial" ] || return 0; done
  return 1
}

take_away() {
  umount -- "$point" || { [ "$(state)" = none ] || { echo busy; exit 0; }; }
  rmdir -- "$point"
}

found=$(state)
case $verb:$found in
  look:ours) echo "ours $(du -sk -- "$point" | cut -f1)" ;;
  look:* | unmount:none) echo "$found" ;;
  unmount:ours) take_away && echo unmounted ;;
  mount:ours | mount:none)
    bytes=$1
    shift
    if [ "$found" = ours ]; then
      if is_wanted "$@"; then
        mount -o "remount,size=$bytes" -- "$point" && echo kept
        exit
      fi
      take_away
    fi
    mkdir -p -- "$point"
    rmdir -- "$point" 2>/dev/null || { echo "occupied"; exit 0; }
    mkdir -- "$point"
    if mount -t tmpfs -o "size=$bytes,mode=0700,nosuid,nodev" benchrunner "$point"; then
      echo mounted
    else
      rmdir -- "$point"
      echo refused
    fi
    ;;
  *) echo "$found" ;;
esac

# Reads, journals and changes settings of a host. POSIX sh.
# Arguments: verb, root (empty, or the folder that stands for / in tests), then by verb:
#   look JOURNAL GLOB...         prints files as grep -H does, those that are there, and the journal
#   journal JOURNAL BYTES        replaces the journal by stdin, synced; no bytes: deletes it
#   apply                        stdin has lines path<TAB>undo<TAB>value and a last line "end"
LC_ALL=C
export LC_ALL
PATH=$PATH:/usr/sbin:/sbin
verb=$1 root=$2
shift 2
tab=$(printf '\t')

# The content of a file that only root may read.
from_root() {
  [ -e "$1" ] && [ ! -r "$1" ] && as_root cat -- "$1" 2>/dev/null
}

# The value of $1 in $value; of "always [madvise] never" it is the word in brackets.
get() {
  case $1 in
    service:*)
      value=
      if [ "$(systemctl show -p LoadState --value "${1#service:}" 2>/dev/null)" = loaded ]; then
        value=inactive
        [ "$(systemctl is-active "${1#service:}" 2>/dev/null)" != active ] || value=active
      elif (set +f; grep -qsx "${1#service:}" "$root"/proc/[0-9]*/comm); then
        value=unmanaged
      fi
      [ -n "$value" ] ;;
    *)
      # Some shells read byte by byte, and files of /proc/sys end after the first byte.
      case $1 in
        /sys/*) { IFS= read -r value <"$root$1"; } 2>/dev/null || value= ;;
        *) value=$(cat -- "$root$1" 2>/dev/null) ;;
      esac
      [ -n "$value" ] || value=$(from_root "$root$1") || return 1
      case $value in *'['*']'*) value=${value#*'['}; value=${value%%']'*} ;; esac ;;
  esac
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo -n "$@"
  else echo 'not root, and no sudo' >&2; return 1
  fi
}

# Sets $1 to $2. Complaints go to stdout, on one line.
put() {
  {
    case $1 in
      service:*)
        if [ "$2" = active ]; then as_root systemctl start "${1#service:}"
        else as_root systemctl stop "${1#service:}"
        fi ;;
      *)
        if [ -w "$root$1" ]; then printf '%s\n' "$2" | tee "$root$1"
        else printf '%s\n' "$2" | as_root tee "$root$1"
        fi ;;
    esac
  } 2>&1 >/dev/null | tr '\n\t' '  '
}

look() {
  journal=$1
  shift
  IFS=
  for glob; do
    case $glob in
      service:*) if get "$glob"; then printf '%s:%s\n' "$glob" "$value"; fi ;;
      *)
        for path in $root$glob; do
          [ ! -e "$path" ] || printf 'there:%s\n' "${path#"$root"}"
          if value=$(from_root "$path"); then printf '%s:%s\n' "$path" "$value"; fi
        done
        grep -sH '' $root$glob ;;
    esac
  done
  echo journal
  [ ! -e "$journal" ] || cat -- "$journal"
}

# Complete under its name or not there: what a cut connection left of stdin is never renamed.
replace_journal() {
  set -e
  if [ "$2" = 0 ]; then
    rm -f -- "$1"
  else
    cat >"$1.part"
    if [ "$(wc -c <"$1.part")" -ne "$2" ]; then rm -f -- "$1.part"; echo 'cut short' >&2; exit 3; fi
    sync -- "$1.part" 2>/dev/null || sync
    mv -f -- "$1.part" "$1"
  fi
  sync -- "${1%/*}" 2>/dev/null || sync
}

# Two rounds, because one setting can reset another, or not take a value before another is set.
# What neither is as wanted nor as it was is undone at once: the journal does not know that value.
apply() {
  lines=$(cat)
  case $lines in end | *"
end") ;; *) echo 'cut short' >&2; exit 3 ;; esac
  IFS='
'
  set -f
  for round in 1 2; do
    for line in $lines; do
      [ "$line" != end ] || continue
      path=${line%%"$tab"*} rest=${line#*"$tab"}
      undo=${rest%%"$tab"*} wanted=${rest#*"$tab"}
      why=
      get "$path"
      [ "$value" = "$wanted" ] || why=$(put "$path" "$wanted")
      [ "$round" = 2 ] || continue
      get "$path" || value=
      printf '%s\t%s\t%s\n' "$path" "$value" "$why"
      case $value in "$wanted" | "$undo") ;; *) [ -z "$undo" ] || put "$path" "$undo" >/dev/null ;; esac
    done
  done
}

case $verb in
  look) look "$@" ;;
  journal) replace_journal "$@" ;;
  apply) apply ;;
esac

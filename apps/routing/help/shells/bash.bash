# Completion of routing in bash. `routing complete` knows what may come next; this hands over the words and shows the
# answer. Works with and without the package bash-completion.

# Sets `words`, those up to the cursor as they are typed, and `cut`, the part of the last one that bash keeps: it takes
# = and : for the ends of words.
_routing_words() {
  local line=${COMP_LINE:0:COMP_POINT} word blank i
  line=${line#*"${COMP_WORDS[0]}"}
  words=("${COMP_WORDS[0]}")
  cut=
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    blank=${line%%[![:space:]]*}
    line=${line#"$blank"}
    # The cursor may stand inside the word.
    [[ $line == "$word"* ]] || word=$line
    line=${line#"$word"}
    if [[ -n $blank || $i -eq 1 ]]; then
      words+=("$word")
      cut=
    else
      cut=${words[-1]}
      words[-1]+=$word
    fi
    [[ $word == [=:]* ]] && cut=${words[-1]}
  done
}

_routing() {
  local words cut answer program candidate quote='' i
  _routing_words
  for i in "${!words[@]}"; do
    case ${words[i]} in
      [\'\"]*) quote=${words[i]:0:1} words[i]=${words[i]:1} words[i]=${words[i]%"$quote"} ;;
      *) quote='' words[i]=${words[i]//\\/} ;;
    esac
  done
  cut=${cut//\\/}
  program=${words[0]/#\~\//$HOME/}
  mapfile -t answer < <(command "$program" complete "${words[@]:1}" 2>/dev/null)
  ((${#answer[@]} > 0)) || return
  COMPREPLY=()
  local current=${words[-1]#"$cut"}
  case ${answer[-1]} in
    :files)
      compopt -o filenames
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      ;;
    :folders)
      compopt -o filenames
      mapfile -t COMPREPLY < <(compgen -d -- "$current")
      ;;
  esac
  for candidate in "${answer[@]:0:${#answer[@]}-1}"; do
    candidate=${candidate%%$'\t'*}
    candidate=${candidate#"$cut"}
    if [[ -z $quote && $candidate == *[!a-zA-Z0-9_./=,+:~@%-]* ]]; then
      if [[ $candidate == '~/'* ]]; then
        printf -v candidate '~/%q' "${candidate:2}"
      else
        printf -v candidate %q "$candidate"
      fi
    fi
    COMPREPLY+=("$candidate")
  done
  # A beginning, not a whole word.
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/.,] ]]; then compopt -o nospace; fi
}

complete -F _routing routing

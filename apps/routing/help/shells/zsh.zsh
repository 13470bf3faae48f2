#compdef routing
# Completion of routing in zsh. `routing complete` knows what may come next; this hands over the words and shows the
# answer. As the file _routing in a folder of $fpath, or: source <(routing completion zsh), after compinit.

_routing() {
  local program=${${(Q)words[1]}/#\~\//$HOME/}
  local -a answer whole beginnings
  answer=("${(@f)$(command $program complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
  local line word
  for line in "${(@)answer[1,-2]}"; do
    word=${line%%$'\t'*}
    # _describe takes the first colon for the end of the word.
    local entry=${word//:/\\:}
    [[ $line == *$'\t'* ]] && entry+=:${line#*$'\t'}
    # A beginning, not a whole word: no space follows.
    if [[ $word == *[=/.,] ]]; then
      beginnings+=("$entry")
    else
      whole+=("$entry")
    fi
  done
  local found=1
  (( $#whole )) && _describe -t values 'routing' whole && found=0
  (( $#beginnings )) && _describe -t values 'routing' beginnings -S '' && found=0
  case $answer[-1] in
    :files) compset -P '*='; _files && found=0 ;;
    :folders) compset -P '*='; _files -/ && found=0 ;;
  esac
  return found
}

if [[ $funcstack[1] == _routing ]]; then
  _routing "$@"
else
  compdef _routing routing
fi

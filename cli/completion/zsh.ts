/** For zsh: as a file named _infer on fpath, or evaluated after compinit. */
export const zsh = String.raw`#compdef infer
# Keep it: infer completion zsh > "${'$'}{fpath[1]}/_infer"
_infer() {
  local -a lines answers
  local line directive
  lines=("${'$'}{(@f)$("${'$'}{words[1]}" __complete -- "${'$'}{(@)words[2,CURRENT]}" 2>/dev/null)}")
  for line in "${'$'}{lines[@]}"; do
    if [[ $line == :* ]]; then
      directive=$line
    elif [[ -n $line ]]; then
      answers+=("${'$'}{${'$'}{line%%$'\t'*}//:/\\:}:${'$'}{line#*$'\t'}")
    fi
  done
  (( ${'$'}{#answers} )) && _describe -V infer answers
  case $directive in
    :files) _files ;;
    :directories) _files -/ ;;
  esac
  return 0
}
if [[ ${'$'}{funcstack[1]} == _infer ]]; then _infer "$@"; else compdef _infer infer; fi
`

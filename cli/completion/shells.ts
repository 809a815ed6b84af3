/**
 * For bash 4.4 or newer. Bash splits words at colons and equals signs, which model ids and options contain. The script
 * joins the words again, and removes the part before the last separator from the candidates.
 */
export const bash = String.raw`# bash completion for infer
# Keep it: infer completion bash > ~/.local/share/bash-completion/completions/infer
_infer() {
  local -a words=() answers=()
  local rest=$COMP_LINE word line directive=:none index
  for ((index = 0; index <= COMP_CWORD; index++)); do
    word=${'$'}{COMP_WORDS[index]}
    if ((index > 0)) && [[ $rest != [[:space:]]* ]]; then
      words[-1]+=$word
    else
      words+=("$word")
    fi
    rest=${'$'}{rest#"${'$'}{rest%%[![:space:]]*}"}
    rest=${'$'}{rest#"$word"}
  done
  local current=${'$'}{words[-1]} skip=
  while IFS= read -r line; do
    if [[ $line == :* ]]; then directive=$line; else answers+=("${'$'}{line%%$'\t'*}"); fi
  done < <("${'$'}{words[0]/#\~\//$HOME/}" __complete -- "${'$'}{words[@]:1}" 2>/dev/null)
  [[ $current == *[:=]* ]] && skip=${'$'}{current%"${'$'}{current##*[:=]}"}
  COMPREPLY=("${'$'}{answers[@]#"$skip"}")
  case $directive in
    :files | :directories)
      local -a found=()
      local kind=-f
      [[ $directive == :directories ]] && kind=-d
      mapfile -t found < <(compgen "$kind" -- "${'$'}{current#"$skip"}")
      COMPREPLY+=("${'$'}{found[@]}")
      compopt -o filenames
      ;;
  esac
}
complete -F _infer infer
`

/** For fish 3 or newer. */
export const fish = String.raw`# fish completion for infer
# Keep it: infer completion fish > ~/.config/fish/completions/infer.fish
function __infer_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  for line in ($words[1] __complete -- $words[2..-1] "$current" 2>/dev/null)
    switch $line
      case :files
        __fish_complete_path $current
      case :directories
        __fish_complete_directories $current
      case ':*'
      case '*'
        printf '%s\n' $line
    end
  end
end
complete -c infer -f -a '(__infer_complete)'
`

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

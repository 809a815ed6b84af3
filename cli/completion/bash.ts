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

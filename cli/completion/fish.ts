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

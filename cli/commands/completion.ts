import { Argument, type Command } from '@commander-js/extra-typings'
import { bash, fish, zsh } from '../completion/shells.ts'
import { withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'

const scripts = { bash, zsh, fish } as const

/** `infer completion <shell>`: prints the script with which a shell completes commands, options and model ids. */
export function define(command: Command, terminal: Terminal): void {
  command
    .description(
      'Prints a script that lets the Tab key complete commands, options and the ids of models. Put it where the shell looks for such scripts, as below, and start a new shell.',
    )
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(scripts) as (keyof typeof scripts)[]))
    .action((shell: keyof typeof scripts) => void terminal.stdout.write(scripts[shell]))
  withExamples(command, [
    ['source <(infer completion bash)', 'for this session'],
    ['infer completion bash > ~/.local/share/bash-completion/completions/infer', 'for every session'],
    ['infer completion zsh > "${fpath[1]}/_infer"', 'for zsh'],
    ['infer completion fish > ~/.config/fish/completions/infer.fish', 'for fish'],
  ])
}

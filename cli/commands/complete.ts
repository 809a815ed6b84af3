import type { Command } from '@commander-js/extra-typings'
import { candidatesFor } from '../completion/candidates.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { openProgram } from './program.ts'

/**
 * `infer __complete -- <words…>`: the scripts of `infer completion` run it on each press of Tab. Prints one candidate
 * per line, with its description after a tab, then `:files`, `:directories` or `:none`. On any failure it prints no
 * candidate and exits with 0, so that no error message appears in the line that the user types.
 */
export function define(command: Command, terminal: Terminal): void {
  command
    .argument('[words...]', 'the command line up to the cursor')
    .helpOption(false)
    .allowUnknownOption()
    .action(async words => {
      const { all, paths } = await candidatesFor(words, terminal, openProgram).catch(() => ({ all: [], paths: 'none' }))
      for (const { value, description } of all) terminal.print(`${oneLine(value)}\t${oneLine(description)}`)
      terminal.print(`:${paths}`)
    })
}

const oneLine = (text: string): string => printable(text).replaceAll(/\s+/g, ' ')

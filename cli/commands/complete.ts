import type { Command } from 'commander'
import { candidatesFor } from '../completion/candidates.ts'
import { printable } from '../paint.ts'
import type { Terminal } from '../terminal.ts'

/**
 * `infer __complete -- <words…>`: what the scripts of `infer completion` ask for each press of Tab. One candidate a
 * line, a tab, what it is; then `:files`, `:directories` or `:none`. Says nothing and ends with 0 when anything fails:
 * somebody who types must not be disturbed.
 */
export function define(command: Command, terminal: Terminal): void {
  command
    .argument('[words...]', 'the command line up to the cursor')
    .helpOption(false)
    .allowUnknownOption()
    .action(async (words: string[]) => {
      const { all, paths } = await candidatesFor(words, terminal).catch(() => ({ all: [], paths: 'none' }))
      for (const { value, description } of all) terminal.print(`${oneLine(value)}\t${oneLine(description)}`)
      terminal.print(`:${paths}`)
    })
}

const oneLine = (text: string): string => printable(text).replaceAll(/\s+/g, ' ')

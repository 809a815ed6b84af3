import { type Command, Option, type OptionValues } from '@commander-js/extra-typings'
import type { Terminal } from '../terminal/terminal.ts'

/** Adds the hidden option with which the server runs a setup: it asks nothing, and prints its progress. See `printEvent`. */
export const withEvents = <Args extends unknown[], Options extends OptionValues>(command: Command<Args, Options>) =>
  command.addOption(
    new Option('--events', 'do not ask, and print the progress as JSON, one object per line').hideHelp(),
  )

/** Prints what a setup does now, or a line of its tools, for the server. Downloads print the events of `infer model pull --json`. */
export function printEvent(event: 'step' | 'line', text: string, terminal: Terminal): void {
  terminal.stdout.write(`${JSON.stringify({ event, text })}\n`)
}

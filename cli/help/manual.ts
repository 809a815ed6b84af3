import type { Command } from 'commander'
import { environmentVariables } from '../../core/environment-variables.ts'
import { wrapText } from '../terminal/styled-line.ts'
import { type CommandFacts, commandFacts, exits, files, guideOf } from './facts.ts'

/**
 * Adds environment, files and exit codes to the end of the help of a command and its subcommands, after the examples.
 * Call it when the command is complete.
 */
export function addManual(command: Command, width: number, name = command.name()): void {
  addOwn(command, width, name)
  for (const subcommand of command.commands) addManual(subcommand, width, name)
}

/** Adds the same to one command, without its subcommands. */
export function addOwn(command: Command, width: number, name = command.name()): void {
  const facts = commandFacts[name]
  if (!facts) throw new Error(`cli/help/facts.ts has no entry for '${name}'`)
  const guide = guideOf[name] === undefined ? '' : `\n\nGuide: infer help ${guideOf[name]}`
  command.addHelpText('after', `\n${manualOf(facts, width)}${guide}`)
}

/** Formats the sections as text. */
function manualOf({ environment, files: known, exits: codes }: CommandFacts, width: number): string {
  const inDirectory = known.some(name => !/^[/~]/.test(name))
  const sections: [title: string, rows: [term: string, text: string][]][] = [
    ['Environment:', environment.map(name => [name, environmentVariables[name].meaning])],
    [`Files${inDirectory ? ' (in the data directory)' : ''}:`, known.map(name => [name, files[name]])],
    [
      'Exit codes:',
      (Object.keys(exits) as unknown as (keyof typeof exits)[])
        .filter(code => codes[code] !== undefined)
        .map(code => [String(code), codes[code]!]),
    ],
  ]
  return sections
    .filter(([, rows]) => rows.length > 0)
    .map(([title, rows]) => [title, ...drawRows(rows, width)].join('\n'))
    .join('\n\n')
}

/** Draws terms and their meanings in two columns; long texts are wrapped inside their column. */
export function drawRows(rows: readonly (readonly [term: string, text: string])[], width: number): string[] {
  const left = Math.max(...rows.map(([term]) => term.length)) + 4
  const room = Math.max(30, width - left)
  return rows.flatMap(([term, text]) =>
    wrapText(text, room).map((line, at) => `${(at === 0 ? `  ${term}` : '').padEnd(left)}${line}`),
  )
}

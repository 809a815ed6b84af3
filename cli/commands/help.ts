import type { Command } from '@commander-js/extra-typings'
import { stripAnsi } from 'consola/utils'
import { nearest } from '../../core/nearest.ts'
import { type Guide, guideText, readGuides } from '../../server/docs/guides.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { withExamples } from '../terminal/options.ts'
import { printPaged } from '../terminal/pager.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { entries } from './program.ts'

/** `infer help …`: prints guides. `helpLast` in `cli/commands/program.ts` handles the help of commands. */
export function define(command: Command, terminal: Terminal): void {
  command
    .description(
      'Prints a guide as text of 80 columns, or the help of a command. Without a name lists the guides. In a terminal, what is longer than the screen is shown by INFER_PAGER, PAGER or less.',
    )
    .argument('[name...]', 'a guide, such as workflows, or a command, such as model add')
    .option('--no-pager', 'print it at once, also if it is longer than the screen')
    .action(([name], { pager }) => {
      const print = (text: string) => (pager ? printPaged(text, terminal) : terminal.print(text))
      const guides = readGuides()
      if (name === undefined) return print(listOf(guides, terminal))
      if (!guides.some(({ topic }) => topic === name)) throw unknown(name, guides)
      const text = guideText(name).trimEnd()
      print(terminal.hasColors ? text : stripAnsi(text))
    })
  withExamples(command, [
    ['infer help', 'list the guides'],
    ['infer help workflows', 'read one'],
    ['infer help jobs --no-pager', 'print it at once'],
    ['infer help model add', 'the same as infer model add --help'],
  ])
}

function listOf(guides: readonly Guide[], { paint }: Terminal): string {
  const width = Math.max(...guides.map(({ topic }) => topic.length))
  const groups = [...new Set(guides.map(({ group }) => group))]
  return [
    'Guides. Read one with: infer help <topic>',
    ...groups.flatMap(group => [
      '',
      paint.strong(`${group}:`),
      ...guides
        .filter(guide => guide.group === group)
        .map(({ topic, summary }) => `  ${paint.name(topic.padEnd(width))}  ${summary}`),
    ]),
    '',
    'In a browser, while the server runs: http://127.0.0.1:8787/docs/guides',
    "Commands: 'infer --help' lists them, 'infer help <command>' explains one.",
    "Keys of infer.yaml: 'infer config explain' lists them, or explains one.",
  ].join('\n')
}

function unknown(name: string, guides: readonly Guide[]) {
  const names = [...guides.map(({ topic }) => topic), ...entries.map(entry => entry.name)]
  const closest = nearest(name.slice(0, 64), names)
  const suggestion = closest === undefined ? '' : ` Did you mean '${closest}'?`
  return usageFailure(`There is no guide and no command '${name}'.${suggestion} See: infer help`)
}

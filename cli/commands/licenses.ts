import type { Command } from '@commander-js/extra-typings'
import { readAsset } from '../../core/assets.ts'
import { withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** `infer licenses`: prints the licences of all third-party software in the program. */
export function define(command: Command, terminal: Terminal): void {
  command.action(() => terminal.print(Buffer.from(readAsset('licenses.txt')).toString('utf8').trimEnd()))
  withExamples(command, [['infer licenses | less', 'every licence with its text']])
}

import type { Command } from 'commander'
import { readAsset } from '../../core/assets.ts'
import { withExamples } from '../options.ts'
import type { Terminal } from '../terminal.ts'

/** `infer licenses`: what others have made and the program carries, with the texts that must go with it. */
export function define(command: Command, terminal: Terminal): void {
  command.action(() => terminal.print(Buffer.from(readAsset('licenses.txt')).toString('utf8').trimEnd()))
  withExamples(command, [['infer licenses | less', 'every licence with its text']])
}

import type { Command } from 'commander'
import { withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { define as defineList } from './task/list.ts'
import { define as defineShow } from './task/show.ts'

/** `infer task …`: the tasks that models can perform. */
export function define(command: Command, terminal: Terminal): void {
  defineList(command.command('list'), terminal)
  defineShow(command.command('show'), terminal)
  withExamples(command, [
    ['infer task list', 'the tasks that models can perform'],
    ['infer task show text-to-image', 'the fields of its requests and results'],
  ])
}

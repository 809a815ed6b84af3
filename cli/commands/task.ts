import type { Command } from 'commander'
import { withExamples } from '../options.ts'
import { define as defineList } from '../tasks/list.ts'
import { define as defineShow } from '../tasks/show.ts'
import type { Terminal } from '../terminal.ts'

/** `infer task …`: the tasks that models can perform. */
export function define(command: Command, terminal: Terminal): void {
  defineList(command.command('list'), terminal)
  defineShow(command.command('show'), terminal)
  withExamples(command, [
    ['infer task list', 'the tasks that models can perform'],
    ['infer task show text-to-image', 'the fields of its requests and results'],
  ])
}

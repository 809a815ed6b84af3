import type { Command } from 'commander'
import { withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { define as defineCancel } from './execution/cancel.ts'
import { define as defineList } from './execution/list.ts'
import { define as defineLogs } from './execution/logs.ts'
import { define as defineRemove } from './execution/remove.ts'
import { define as defineRetry } from './execution/retry.ts'
import { define as defineShow } from './execution/show.ts'
import { define as defineWatch } from './execution/watch.ts'

/** `infer execution …`: executions of workflows. */
export function define(command: Command, terminal: Terminal): void {
  for (const part of [defineList, defineShow, defineWatch, defineCancel, defineRetry, defineLogs, defineRemove])
    part(command, terminal)
  withExamples(command, [
    ['infer execution list', 'executions and their status'],
    ['infer execution watch 7QK2M9XD', 'by the end of its id'],
    ['infer execution retry 7QK2M9XD', 'continue where it failed'],
  ])
}

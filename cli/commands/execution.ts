import type { Command } from 'commander'
import { define as defineCancel } from '../executions/cancel.ts'
import { define as defineList } from '../executions/list.ts'
import { define as defineLogs } from '../executions/logs.ts'
import { define as defineRemove } from '../executions/remove.ts'
import { define as defineRetry } from '../executions/retry.ts'
import { define as defineShow } from '../executions/show.ts'
import { define as defineWatch } from '../executions/watch.ts'
import { withExamples } from '../options.ts'
import type { Terminal } from '../terminal.ts'

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

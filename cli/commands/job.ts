import type { Command } from 'commander'
import { withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { define as defineCancel } from './job/cancel.ts'
import { define as defineList } from './job/list.ts'
import { define as defineLogs } from './job/logs.ts'
import { define as defineRemove } from './job/remove.ts'
import { define as defineRetry } from './job/retry.ts'
import { define as defineShow } from './job/show.ts'
import { define as defineWatch } from './job/watch.ts'

/** `infer job …`: background jobs that the server stores. */
export function define(command: Command, terminal: Terminal): void {
  for (const part of [defineList, defineShow, defineWatch, defineCancel, defineRetry, defineLogs, defineRemove])
    part(command, terminal)
  withExamples(command, [
    ['infer job list', 'jobs and their status'],
    ['infer job watch', 'all pending and running jobs'],
    ['infer job cancel 7QK2M9XD', 'by the end of its id'],
  ])
}

import type { Command } from 'commander'
import { define as defineCancel } from '../jobs/cancel.ts'
import { define as defineList } from '../jobs/list.ts'
import { define as defineLogs } from '../jobs/logs.ts'
import { define as defineRemove } from '../jobs/remove.ts'
import { define as defineRetry } from '../jobs/retry.ts'
import { define as defineShow } from '../jobs/show.ts'
import { define as defineWatch } from '../jobs/watch.ts'
import { withExamples } from '../options.ts'
import type { Terminal } from '../terminal.ts'

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

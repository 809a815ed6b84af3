import type { Command } from 'commander'
import { withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { define as defineCreate } from './org/create.ts'
import { define as defineDelete } from './org/delete.ts'
import { define as defineLimits } from './org/limits.ts'
import { define as defineList } from './org/list.ts'
import { define as defineResume } from './org/resume.ts'
import { define as defineShow } from './org/show.ts'
import { define as defineSuspend } from './org/suspend.ts'
import { define as defineUpdate } from './org/update.ts'

/** `infer org …`: organizations of the server on this machine, whether it runs or not, or of the server at INFER_URL. */
export function define(command: Command, terminal: Terminal): void {
  for (const part of [
    defineCreate,
    defineList,
    defineShow,
    defineUpdate,
    defineLimits,
    defineSuspend,
    defineResume,
    defineDelete,
  ])
    part(command, terminal)
  withExamples(command, [
    ['infer org create acme', 'create an organization'],
    ['infer org limits acme --spend-limit 100', 'bound what it spends'],
    ['infer org suspend acme', 'refuse its tokens for a while'],
  ])
}

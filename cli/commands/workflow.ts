import type { Command } from 'commander'
import { withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { define as defineCheck } from './workflow/check.ts'
import { define as defineCreate } from './workflow/create.ts'
import { define as defineGraph } from './workflow/graph.ts'
import { define as defineList } from './workflow/list.ts'
import { define as defineRemove } from './workflow/remove.ts'
import { define as defineRun } from './workflow/run.ts'
import { define as defineShow } from './workflow/show.ts'

/** `infer workflow …`: tasks that depend on each other, run as one execution. */
export function define(command: Command, terminal: Terminal): void {
  for (const part of [defineRun, defineCheck, defineGraph, defineList, defineShow, defineCreate, defineRemove])
    part(command, terminal)
  withExamples(command, [
    ['infer workflow run story.yaml --param topic="a cat"', 'run a file without storing it'],
    ['infer workflow check story.yaml', 'validate a file'],
    ['infer workflow graph story.yaml', 'draw the nodes and their dependencies'],
  ])
}

import type { Command } from 'commander'
import { withExamples } from '../options.ts'
import type { Terminal } from '../terminal.ts'
import { define as defineCheck } from '../workflows/check.ts'
import { define as defineCreate } from '../workflows/create.ts'
import { define as defineGraph } from '../workflows/graph.ts'
import { define as defineList } from '../workflows/list.ts'
import { define as defineRemove } from '../workflows/remove.ts'
import { define as defineRun } from '../workflows/run.ts'
import { define as defineShow } from '../workflows/show.ts'

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

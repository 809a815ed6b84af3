import type { Command } from '@commander-js/extra-typings'
import type { Task } from '../../core/schemas/task.ts'
import { define as defineAdd } from '../models/add.ts'
import { define as defineBench } from '../models/bench.ts'
import { define as defineCatalog } from '../models/catalog.ts'
import { define as defineFetch } from '../models/fetch.ts'
import { define as defineList } from '../models/list.ts'
import { defineLoad, defineUnload } from '../models/load.ts'
import { define as definePlan } from '../models/plan.ts'
import { define as definePull } from '../models/pull.ts'
import { define as defineRemove } from '../models/remove.ts'
import { define as defineShow } from '../models/show.ts'
import { define as defineTest } from '../models/test.ts'
import { withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** `infer model …`: adds, tests, loads and removes models. */
export function define(command: Command, terminal: Terminal): void {
  const offerBackend = async (dataDir: string, signal: AbortSignal) => {
    const { offerGpu } = await import('../engines/offer-gpu.ts')
    await offerGpu({ dataDir }, terminal, signal)
  }
  const offerEngine = async (of: { engine: string; tasks: readonly Task[]; dataDir: string }, signal: AbortSignal) => {
    const offer = await import('../engines/offer-engine.ts')
    await offer.offerEngine(of, terminal, signal)
  }
  const parts = {
    list: defineList,
    show: defineShow,
    plan: definePlan,
    catalog: defineCatalog,
    add: (add: Command) => defineAdd(add, terminal, { offerBackend, offerEngine }),
    pull: definePull,
    fetch: defineFetch,
    test: defineTest,
    bench: defineBench,
    load: defineLoad,
    unload: defineUnload,
    remove: defineRemove,
  }
  for (const [name, definePart] of Object.entries(parts)) definePart(command.command(name), terminal)
  withExamples(command, [
    ['infer model list', 'offered models, and which are loaded'],
    ['infer model catalog', 'well-known open models, and which fit here'],
    ['infer model add qwen3-8b', 'download a model and offer it'],
    ['infer model test', 'send a test request to each model'],
  ])
}

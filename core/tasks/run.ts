import type { Limits } from '../config.ts'
import type { Cpu } from '../cpu/cpu.ts'
import { Failure } from '../failure.ts'
import type { Fleet } from '../fleet.ts'
import { costOf } from '../models/cost.ts'
import type { Registry } from '../models/registry.ts'
import type { JobRecord, Usage } from '../store/store.ts'
import { answerBound } from './answer-bound.ts'
import { ask } from './ask.ts'

/** How long a durable job holds its place for a model that loads; it is given back afterwards, at no cost. */
const waitMs = 60_000

/** Runs one attempt of a durable job on an engine: the same preparing and shaping as for a caller on the line. */
export function openTaskRunner({
  fleet,
  registry,
  cpu,
  limits,
}: {
  fleet: Fleet
  registry: Registry
  cpu: Cpu
  limits: Limits
}) {
  return async function run(
    job: JobRecord,
    signal: AbortSignal,
  ): Promise<{ result: string; usage: Usage; cost: number; engineId: string | null }> {
    const model = registry.find(job.modelId)
    if (!model?.enabled) throw new Failure('model_not_found', `The model '${job.modelId}' is no longer offered here.`)
    const body = Buffer.from(job.inputs)
    const prepared = await cpu.prepare(job.task, body, registry.catalog(), limits)
    using lease = await fleet.lease(model, { waitMs, signal })
    const answers: Buffer[] = []
    for (const call of prepared.bodies)
      answers.push(await ask(lease, prepared.path, call, answerBound(prepared.want, limits), signal))
    const { body: shaped, usage } = await cpu.shape(answers, prepared.want)
    const result =
      typeof shaped === 'string'
        ? shaped
        : Buffer.from(shaped.buffer, shaped.byteOffset, shaped.byteLength).toString('utf8')
    return { result, usage, cost: costOf(model.price, usage), engineId: lease.engineId }
  }
}

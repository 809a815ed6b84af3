import { Failure } from '../../../core/failure.ts'
import type { CallEnd } from '../../../core/jobs/call.ts'
import type { Lease } from '../../../core/models/fleet.ts'
import type { TextTask } from '../../../core/schemas/task.ts'
import { answerBound } from '../../../core/tasks/answer-bound.ts'
import { withImages } from '../../../core/tasks/chat/images.ts'
import { ask } from '../../../core/tasks/protocols/ask.ts'
import { noUsage } from '../../../core/usage.ts'
import type { Call } from '../../http/request/call.ts'
import type { InferenceOwners } from '../../work/inference.ts'
import { maxAnswerBytes } from './content.ts'

/**
 * Runs a request of a text task as a synchronous call and resolves with the whole answer, as JSON. Rejects with the
 * Failure of the request; that is `cancelled` if the client disconnected or cancelled it.
 */
export async function runTextCall(
  call: Call,
  task: TextTask,
  request: object,
  { admission, config, cpu, jobs, media, registry, throughput }: Omit<InferenceOwners, 'idempotency' | 'timings'>,
): Promise<unknown> {
  admission.requireRoom()
  const createdAt = Date.now()
  const body = Buffer.from(JSON.stringify(request))
  const checked = await cpu.prepare(task, body, registry.catalog(), config.limits, { strict: true })
  const { modelId } = checked
  const admitted = admission.admit(call.caller, { kind: 'call', task, modelId, estimate: () => checked.estimate! })
  if (checked.images) admission.requireQueueRoom(admitted)
  const sender = { organizationId: call.caller.organizationId, origin: call.origin, signal: call.signal }
  // Fetched before the call takes a slot that others could use.
  const prepared = await withImages(checked, ({ param, value }) => media.imageDataUrl(sender, param, value))
  call.releaseBody()
  let answer: string | Uint8Array = ''

  async function attempt(lease: Lease): Promise<CallEnd> {
    const answers: Buffer[] = []
    try {
      const maxBytes = answerBound(prepared.answerFormat, config.limits)
      for (const one of prepared.bodies) answers.push(await ask(lease, prepared.path, one, maxBytes, call.abortSource))
    } catch (thrown) {
      const failure = Failure.from(thrown)
      if (failure.code === 'cancelled') return { how: 'cancelled', usage: noUsage }
      return failure.code === 'worker_error' ? { how: 'retry', failure } : { how: 'failed', failure, usage: noUsage }
    }
    const shaped = await cpu.shape(answers, prepared.answerFormat)
    throughput.used(lease.modelId, shaped.usage)
    call.abortSource.throwIfAborted()
    answer = shaped.body
    return { how: 'completed', usage: shaped.usage }
  }

  const { end } = await jobs.calls.run(
    { admitted, createdAt, waitMs: Number.POSITIVE_INFINITY, caller: call.abortSource },
    attempt,
  )
  if (end.how === 'cancelled') throw new Failure('cancelled', 'The request was cancelled.')
  if (answer.length > maxAnswerBytes)
    throw new Failure(
      'payload_too_large',
      `The answer has ${answer.length} bytes, and a tool returns at most ${maxAnswerBytes}. Send fewer inputs at a time.`,
    )
  return JSON.parse(typeof answer === 'string' ? answer : Buffer.from(answer).toString('utf8'))
}

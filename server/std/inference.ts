import type { Admitted } from '../../core/admission/admission.ts'
import { Failure } from '../../core/failure.ts'
import type { Lease } from '../../core/fleet.ts'
import type { CallEnd } from '../../core/jobs/call.ts'
import type { TextTask } from '../../core/schemas/task.ts'
import type { Usage } from '../../core/store/store.ts'
import { answerBound } from '../../core/tasks/answer-bound.ts'
import { withPictures } from '../../core/tasks/chat/pictures.ts'
import type { Prepared } from '../../core/tasks/prepared.ts'
import { ask } from '../../core/tasks/protocols/ask.ts'
import { isStreamWant } from '../../core/tasks/stream-shape.ts'
import { heldBytes, readBody } from '../body.ts'
import type { Call } from '../call.ts'
import { type Hold, holdKey, idempotencyKeyOf, keepAnswer, replay } from '../idempotency.ts'
import { originOf } from '../origin.ts'
import { preferenceOf } from '../prefer.ts'
import { answerLater, submitJob } from '../submit.ts'
import { carryOut } from './attempts.ts'
import { StreamRelay } from './relay.ts'

const nothing: Usage = { inputTokens: 0, outputTokens: 0 }

/**
 * The walk of a synchronous inference request: body → checked and put into the engine's words → may this caller use
 * this model → a slot of an engine → its answer, relayed or reshaped → one finished record. The call is a job that
 * lives in memory while somebody waits for it. An engine that breaks before the caller has seen a byte is tried again.
 */
export async function infer(task: TextTask, call: Call): Promise<void> {
  const { owners } = call
  const { admission, config, cpu, registry } = owners
  admission.requireRoom()
  const createdAt = Date.now()
  call.letBodyGo = admission.holdBody(heldBytes(call.req))
  const prefer = preferenceOf(call.req.headers.prefer)
  const body = await readBody(call.req, config.limits.chat_body)
  // Before the bytes are given to a thread. What no job may be as large as is answered on the line after all.
  const kept = prefer.later && body.length <= config.limits.json_body ? body.toString('utf8') : undefined
  const keyed = idempotencyKeyOf(call) !== undefined
  const ready = cpu.prepare(task, body, registry.catalog(), config.limits, keyed)
  const checked = ready instanceof Promise ? await ready : ready
  call.bodyHash = checked.bodyHash
  const later = kept !== undefined && !checked.stream
  // Reading a large body takes a while, in which the configuration may have changed.
  const kind = later ? 'job' : 'call'
  const admitted = admission.admit(call.caller, { kind, task, modelId: checked.modelId })
  if (later) return respondLater(call, admitted, kept)
  // What was wrong with the request was said before this: it uses up no key.
  if (keyed) {
    using hold = await holdKey(call)
    if (hold.reply) replay(call, hold.reply)
    else await answer(call, checked, { admitted, createdAt, waitMs: prefer.waitMs, hold })
  } else await answer(call, checked, { admitted, createdAt, waitMs: prefer.waitMs })
}

interface Circumstances {
  admitted: Admitted
  createdAt: number
  /** The caller's bound; the model has its own. */
  waitMs: number
  hold?: Hold
}

/** The part of the walk in which something is done for the caller: what comes of it is on the record. */
async function answer(call: Call, checked: Prepared, circumstances: Circumstances): Promise<void> {
  const prepared = checked.pictures ? await withPicturesOf(call, checked) : checked
  const { stream } = prepared
  await carryOut(call, { stream, ...circumstances }, (lease, { id }) =>
    stream ? relay(call, prepared, lease) : collect(call, prepared, lease, circumstances.hold, id),
  )
}

/** `Prefer: respond-async`: the same request as a durable job. */
async function respondLater(call: Call, admitted: Admitted, body: string): Promise<void> {
  const { stream: _, ...request } = JSON.parse(body) as Record<string, unknown>
  const { job } = await submitJob(call, request, { admitted, inputs: request }, call.owners)
  answerLater(call, job)
}

/** Pictures that are named by their addresses are fetched before a slot is asked for, which others could use. */
function withPicturesOf(call: Call, checked: Prepared): Promise<Prepared> {
  const sender = { organizationId: call.caller.organizationId, origin: originOf(call), signal: call.gone }
  return withPictures(checked, ({ param, value }) => call.owners.media.picture(sender, param, value))
}

function relay(call: Call, prepared: Prepared, lease: Lease): Promise<CallEnd> {
  const { owners } = call
  const { want } = prepared
  if (!isStreamWant(want)) throw new Error(`${want.task} has no stream`)
  return new Promise(resolve => {
    const stream = new StreamRelay({
      call,
      want,
      maxFrameBytes: owners.config.limits.stream_frame,
      streams: owners.streams,
      meter: owners.throughput.meter(want.modelId),
      timings: owners.timings,
      ended: resolve,
    })
    stream.attach(
      lease.open(
        { path: prepared.path, body: prepared.bodies[0]!, stream: true, maxBytes: Number.POSITIVE_INFINITY },
        stream,
      ),
    )
  })
}

async function collect(
  call: Call,
  prepared: Prepared,
  lease: Lease,
  hold: Hold | undefined,
  jobId: string,
): Promise<CallEnd> {
  const { cpu, config, throughput } = call.owners
  const answers: Buffer[] = []
  try {
    for (const body of prepared.bodies)
      answers.push(await ask(lease, prepared.path, body, answerBound(prepared.want, config.limits), call.leaving))
  } catch (thrown) {
    const failure = Failure.from(thrown)
    if (failure.code === 'cancelled') return { how: 'cancelled', usage: nothing }
    // Only a broken engine is worth another one. What it answered, right or wrong, it would answer again.
    return failure.code === 'worker_error' ? { how: 'retry', failure } : { how: 'failed', failure, usage: nothing }
  }
  const ready = cpu.shape(answers, prepared.want)
  const shaped = ready instanceof Promise ? await ready : ready
  throughput.used(lease.modelId, shaped.usage)
  // Whoever cancelled it while it was being shaped was told so.
  call.leaving.throwIfAborted()
  // Before it is sent: whoever has seen an answer is given the same one again.
  if (hold) await keepAnswer(hold, shaped.body, jobId)
  call.send(200, shaped.body)
  return { how: 'completed', usage: shaped.usage }
}

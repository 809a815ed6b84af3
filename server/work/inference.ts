import type { z } from 'zod'
import type { Admitted } from '../../core/admission/admission.ts'
import { isSmallBody } from '../../core/cpu/small-body.ts'
import { type ChatFormName, formedStream } from '../../core/dialects/chat-forms.ts'
import { Failure } from '../../core/failure.ts'
import { ignoredHeader, ignoredText } from '../../core/ignored.ts'
import type { CallAttempt, CallEnd, RunningCall } from '../../core/jobs/call.ts'
import { callFallbacks, type OtherModel } from '../../core/jobs/call-fallbacks.ts'
import type { Lease } from '../../core/models/fleet.ts'
import { catalogOfWork } from '../../core/models/model-names.ts'
import { conversationTask, type TextTask } from '../../core/schemas/task.ts'
import type { Usage } from '../../core/store/store.ts'
import { answerBound } from '../../core/tasks/answer-bound.ts'
import { AnswerCollector } from '../../core/tasks/answer-collector.ts'
import { fetchFrom, withImages } from '../../core/tasks/chat/images.ts'
import type { PreparedRequest } from '../../core/tasks/engine-request.ts'
import type { PrepareOptions } from '../../core/tasks/preparation.ts'
import { ask, openShortened } from '../../core/tasks/protocols/ask.ts'
import { isStreamable } from '../../core/tasks/stream-shape.ts'
import { noUsage } from '../../core/usage.ts'
import { heldAfterReading, heldBytes, readBody } from '../http/body/body.ts'
import type { AnyEndpoint, EndpointFacts, Path } from '../http/request/endpoint.ts'
import { errorFrame, errorGroups } from '../http/request/errors.ts'
import type { ClientExchange } from '../http/request/exchange.ts'
import { answeredBefore, idempotencyKeyOf, keepAnswer } from '../http/request/idempotency.ts'
import type { Owners } from '../http/request/owners.ts'
import { preferenceOf } from '../http/request/prefer.ts'
import type { routeOf } from '../http/request/route.ts'
import { StreamRelay } from './relay.ts'
import { type CallWork, runCall } from './run-call.ts'
import { answerLater, submitJob } from './submit.ts'

export type InferenceOwners = Owners<
  | 'admission'
  | 'config'
  | 'cpu'
  | 'jobs'
  | 'media'
  | 'registry'
  | 'idempotency'
  | 'throughput'
  | 'timings'
  | 'resumable'
> & {
  /** Called with the body of each request before it is used, for whoever passes the request on after all. */
  bodyRead?: (exchange: ClientExchange, body: Buffer) => void
}

/** The state that a form keeps for one request until the answer is sent. */
export interface FormState {
  context?: unknown
  /** Characters of large texts in `context`. */
  contextLength?: number
  /** Called with the data that the form saved from the request, before it is admitted; throws what refuses it. */
  check?: (remembered: unknown) => void
  /** Stores the answer, a JSON text, before it is sent. `remembered` is the data that the form saved from the request. */
  keep?: (remembered: unknown, answer: string) => Promise<void>
}

/** What a route of inference answers. */
interface InferenceRoute {
  /** The form of request and answer, if it is that of another API. */
  dialect?: ChatFormName | undefined
  /** Default: conversations. */
  task?: TextTask | undefined
  /** Gives what the form needs besides the body, which was read. Undefined: the request has been answered. */
  begin?: ((exchange: ClientExchange, body: Buffer) => Promise<FormState | undefined>) | undefined
}

type InferenceFacts<B extends z.ZodType, R extends z.ZodType> = InferenceRoute &
  EndpointFacts<undefined, undefined, B, R>

/**
 * Returns the function that makes the routes of one API that answer with inference: `route` makes its routes. `otherAnswers`
 * are those of all of them, and `errorCodes` of a route those besides the codes of all inference.
 */
export const inferenceRouteOf =
  (route: ReturnType<typeof routeOf>, owners: InferenceOwners, otherAnswers: AnyEndpoint['otherAnswers'] = {}) =>
  <B extends z.ZodType, R extends z.ZodType>(
    line: `POST ${Path}`,
    { task, dialect, begin, errorCodes = [], ...facts }: InferenceFacts<B, R>,
  ) =>
    route(line, 'user:write', {
      bucket: 'jobs',
      otherAnswers,
      ...facts,
      errorCodes: [...errorGroups.submit, ...errorGroups.wait, ...errorCodes],
      answer: exchange => infer({ task, dialect, begin }, exchange, owners),
    })

/**
 * Answers a synchronous inference request: validates the body and translates it for the engine, asks admission, waits for
 * a slot, relays or reshapes the engine's answer, and stores one record. The call is a job in memory. If an engine fails
 * before the first byte of the answer, another one is tried.
 */
export async function infer(
  { task = conversationTask, dialect: form, begin }: InferenceRoute,
  exchange: ClientExchange,
  owners: InferenceOwners,
): Promise<void> {
  const { admission, config, cpu, registry } = owners
  admission.requireRoom()
  const createdAt = Date.now()
  exchange.releaseBody = admission.holdBody(heldBytes(exchange.req))
  const prefer = preferenceOf(exchange.req.headers.prefer)
  const body = await readBody(exchange.req, config.limits.chat_body)
  owners.bodyRead?.(exchange, body)
  const formed = begin ? await begin(exchange, body) : {}
  if (!formed) return
  // Copied before the bytes are transferred to a thread. A body that is too large for a job is answered synchronously.
  // A job has the form of its task.
  const jobBody = !form && prefer.later && body.length <= config.limits.json_body ? body.toString('utf8') : undefined
  const keyed = idempotencyKeyOf(exchange) !== undefined
  const size = body.length
  const prepareOptions = { form, context: formed.context, contextLength: formed.contextLength }
  // A large body is transferred to a thread, and a fallback needs it again.
  const kept = registry.hasFallbacks && !isSmallBody(body) ? Buffer.from(body) : body
  const ready = cpu.prepare(task, body, registry.catalog(), config.limits, { ...prepareOptions, hash: keyed })
  const checked = ready instanceof Promise ? await ready : ready
  exchange.releaseBody(heldAfterReading(size))
  exchange.bodyHash = checked.bodyHash
  formed.check?.(checked.form?.request)
  const later = jobBody !== undefined && !checked.stream
  // Reading a large body takes a while, in which the configuration may have changed.
  const kind = later ? 'job' : 'call'
  const estimate = () => checked.estimate!
  const admitted = admission.admit(exchange.caller, { kind, task, modelId: checked.modelId, estimate })
  if (later) return respondLater(exchange, admitted, jobBody, owners)
  const { waitMs, resumeSeconds } = prefer
  const keep = formed.keep ? { keep: formed.keep } : {}
  const admittedCall: AdmittedCall = { admitted, createdAt, waitMs, resumeSeconds, ...keep }
  // After all checks, so that an invalid request does not use its key.
  const before = answeredBefore(exchange, owners)
  if (before && (await before)) return
  if (admitted.model.fallbacks) {
    const other = otherModel(exchange, admittedCall, { task, body: kept, prepareOptions }, owners)
    admittedCall.fallbacks = callFallbacks(exchange.caller, admitted, other, owners)
  }
  // Most requests need nothing else: a further function would cost each of them a promise.
  if (checked.images || (checked.stream && resumeSeconds > 0)) await answer(exchange, checked, admittedCall, owners)
  else {
    const attempt = attemptOf(exchange, checked, admittedCall, owners)
    await runCall(exchange, workOf(exchange, checked, admittedCall), attempt, owners)
  }
}

/** What the call of a prepared request is. */
const workOf = (exchange: ClientExchange, prepared: PreparedRequest, call: AdmittedCall): CallWork => ({
  ...call,
  stream: prepared.stream,
  prompt: isStreamable(prepared.answerFormat) ? prepared.bodies[0] : undefined,
  endingOf: prepared.stream ? endingOfStream(exchange, prepared, call) : undefined,
})

/** Returns how the same body is prepared and admitted for a fallback. */
function otherModel(
  exchange: ClientExchange,
  call: AdmittedCall,
  { task, body, prepareOptions }: { task: TextTask; body: Buffer; prepareOptions: PrepareOptions },
  owners: InferenceOwners,
): OtherModel {
  const { admission, config, cpu, registry } = owners
  let kept: Buffer | undefined = body
  call.dropBody = () => {
    kept = undefined
  }
  return async work => {
    if (kept === undefined) return undefined
    const catalog = catalogOfWork(registry.catalog(), work)
    const checked = await cpu.prepare(task, Buffer.from(kept), catalog, config.limits, prepareOptions)
    const estimate = () => checked.estimate!
    const admitted = admission.admit(exchange.caller, { kind: 'call', task, modelId: work.modelId, estimate })
    // Its budget is not checked again: the call was admitted, and its own hold may have reached the limit.
    return { admitted, attempt: attemptOf(exchange, await complete(exchange, checked, owners), call, owners) }
  }
}

interface AdmittedCall extends Omit<CallWork, 'stream'> {
  /** For how long its stream goes on without its client, seconds. */
  resumeSeconds: number
  keep?: NonNullable<FormState['keep']>
  /** Drops the body that is kept for fallbacks. */
  dropBody?: () => void
}

/** Runs an admitted request that has images, or whose stream may be kept. From here on its outcome is recorded. */
async function answer(exchange: ClientExchange, checked: PreparedRequest, call: AdmittedCall, owners: InferenceOwners) {
  if (checked.images) owners.admission.requireQueueRoom(exchange.caller, call.admitted)
  // Before the call takes a slot that others could use.
  const prepared = checked.images ? await complete(exchange, checked, owners) : checked
  const work = workOf(exchange, prepared, call)
  const resumable = call.resumeSeconds > 0 && !prepared.unstored && work.endingOf?.() !== undefined
  const kept = resumable ? owners.resumable.keep(exchange, call.resumeSeconds) : undefined
  call.kept = kept?.stream
  if (kept) exchange.header('preference-applied', `resume=${kept.seconds}`)
  try {
    const attempt = attemptOf(exchange, prepared, call, owners)
    await runCall(exchange, { ...work, kept: call.kept, named: kept?.named }, attempt, owners)
    kept?.stream.close()
  } catch (thrown) {
    // What a stream ends with is for whoever resumes it, too. Without a head it is answered with a status.
    if (exchange.res.headersSent || exchange.disconnected) kept?.stream.close()
    else kept?.stream.forget()
    throw thrown
  }
}

/** Returns how a stream ends that fails before its answer began; undefined for lines of JSON: they have no comments and no ids. */
const endingOfStream =
  (exchange: ClientExchange, { form }: PreparedRequest, { createdAt }: AdmittedCall) =>
  (): ((failure: Failure) => string) | undefined => {
    const translation = form && formedStream(form, { createdAt, queuedMs: 0 })
    if (translation?.contentType === 'application/x-ndjson') return undefined
    return failure => translation?.failure(failure, exchange.id) ?? errorFrame(failure, exchange.id)
  }

const attemptOf =
  (exchange: ClientExchange, prepared: PreparedRequest, call: AdmittedCall, owners: InferenceOwners): CallAttempt =>
  (lease, running) =>
    prepared.stream
      ? relay(exchange, prepared, running, lease, call, owners)
      : collect(exchange, prepared, running, lease, call, owners)

/** Puts the images of a request into its bodies. */
const complete = async (exchange: ClientExchange, checked: PreparedRequest, { media, cpu }: Owners<'media' | 'cpu'>) =>
  checked.images ? withImages(checked, fetchFrom(media, exchange.sender), cpu) : checked

/** Answers `Prefer: respond-async`: submits the same request as a durable job. */
async function respondLater(
  exchange: ClientExchange,
  admitted: Admitted,
  body: string,
  owners: Owners<'config' | 'jobs'>,
): Promise<void> {
  const { stream: _, ...request } = JSON.parse(body) as Record<string, unknown>
  const { job } = await submitJob(exchange, request, { admitted, inputs: request }, owners)
  answerLater(exchange, job)
}

function relay(
  exchange: ClientExchange,
  prepared: PreparedRequest,
  running: RunningCall,
  lease: Lease,
  { keep, kept, dropBody }: AdmittedCall,
  { config, throughput, timings }: Owners<'config' | 'throughput' | 'timings'>,
): Promise<CallEnd> {
  const { answerFormat, form } = prepared
  const { createdAt, queuedMs } = running
  if (!isStreamable(answerFormat)) throw new Error(`${answerFormat.task} has no stream`)
  return new Promise(resolve => {
    const stream = new StreamRelay({
      exchange,
      kept,
      answerFormat,
      translation: form && formedStream(form, { createdAt, queuedMs }),
      keep: keep && form && (ended => keep(form.request, JSON.stringify(ended))),
      maxFrameBytes: config.limits.stream_frame,
      streams: exchange.streams,
      meter: throughput.meter(lease.modelId),
      timings,
      modelId: lease.modelId,
      // A stream that has begun is not retried, so the request body is no longer needed.
      begun(ignored) {
        nameIgnored(exchange, prepared, ignored)
        prepared.bodies = []
        dropBody?.()
        exchange.releaseBody()
      },
      ended(end, timeToFirstTokenMs) {
        running.timeToFirstTokenMs = timeToFirstTokenMs === null ? null : Math.round(timeToFirstTokenMs)
        resolve(end)
      },
    })
    const [body] = prepared.bodies
    const marks = { unstored: prepared.unstored === true, several: prepared.several === true }
    const sent = { path: prepared.path, body: body!, ...marks, stream: true, maxBytes: Number.POSITIVE_INFINITY }
    stream.attach(openShortened(lease, sent, stream, prepared.droppable))
  })
}

/** Adds the header that names what was left out of the request, before the engine and by it. */
function nameIgnored(exchange: ClientExchange, { ignored = [], form }: PreparedRequest, byEngine = ''): void {
  if (ignored.length === 0 && byEngine === '') return
  const schemas = form?.schemas ?? []
  const own = (path: string) =>
    path.replace(/^tools\[(\d+)\]\.function\.parameters/, (same, at) => schemas[Number(at)] ?? same)
  const paths = ignoredText([...ignored, ...byEngine.split(/, */).filter(Boolean).map(own)])
  if (paths !== '') exchange.header(ignoredHeader, paths)
}

async function collect(
  exchange: ClientExchange,
  prepared: PreparedRequest,
  { id, createdAt, queuedMs }: RunningCall,
  lease: Lease,
  { keep }: AdmittedCall,
  { config, cpu, throughput }: Owners<'config' | 'cpu' | 'throughput'>,
): Promise<CallEnd> {
  const answers: Buffer[] = []
  const { asStream, path, answerFormat, form, droppable } = prepared
  const maxBytes = answerBound(answerFormat, config.limits)
  const collected =
    asStream !== undefined && isStreamable(answerFormat)
      ? new AnswerCollector(answerFormat, maxBytes, throughput.meter(lease.modelId))
      : undefined
  let ignored: string | undefined
  const options = {
    droppable,
    unstored: prepared.unstored === true,
    several: prepared.several === true,
    ignored(paths: string) {
      ignored = paths
    },
  }
  const used = (usage: Usage) => throughput.used(lease.modelId, collected?.uncounted(usage) ?? usage)
  try {
    if (collected)
      answers.push(
        await collected.ask(lease, path, prepared.bodies[0]!, exchange.abortSource, { ...options, members: asStream }),
      )
    else
      for (const body of prepared.bodies)
        answers.push(await ask(lease, path, body, maxBytes, exchange.abortSource, options))
  } catch (thrown) {
    const failure = Failure.from(thrown)
    if (failure.code === 'cancelled') {
      const usage = collected?.usage ?? noUsage
      used(usage)
      return { how: 'cancelled', usage }
    }
    // Only a failed engine is replaced by another one: an engine that answered, even with an error, is not retried.
    return failure.code === 'worker_error' && !collected?.fault
      ? { how: 'retry', failure }
      : { how: 'failed', failure, usage: noUsage }
  }
  const ready = cpu.shape(answers, answerFormat, form && { ...form, facts: { createdAt, queuedMs } })
  const shaped = ready instanceof Promise ? await ready : ready
  used(shaped.usage)
  // A call that was cancelled while its answer was reshaped has been answered.
  exchange.abortSource.throwIfAborted()
  if (keep && form) await keep(form.request, String(shaped.body))
  if (exchange.keyLock) await keepAnswer(exchange, shaped.body, id)
  nameIgnored(exchange, prepared, ignored)
  exchange.send(200, shaped.body)
  return { how: 'completed', usage: shaped.usage }
}

import { AbortSource } from '../abort-source.ts'
import type { Admission, Requester } from '../admission/admission.ts'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { NamedWork } from '../models/model-names.ts'
import type { Region } from '../schemas/region.ts'
import { conversationTask } from '../schemas/task.ts'
import { deferredUntil, type JobRecord, jobErrorOf, type RowKey } from '../store/store.ts'
import type { GenerationInputs } from '../tasks/protocols/generation-call.ts'
import { taskRecord } from '../tasks/registry.ts'
import { defaultRewriteLength, rewriteEstimate } from '../tasks/rewriting/rewrite-request.ts'
import type { CallAttempt } from './call.ts'
import { callFallbacks } from './call-fallbacks.ts'
import type { Jobs } from './jobs.ts'
import type { PreparedRewrite, PromptRewriting } from './prompt-rewriting.ts'
import { decideRetry, pauseMs } from './retry.ts'

/** How many prompts are rewritten at once. */
const concurrency = 8
/** How many rewritten prompts are kept for further jobs of their groups. */
const maxGroups = 1_000

/**
 * Rewrites the prompts of deferred jobs, then lets the jobs run with the new prompts. Nothing is lost in a crash: a job is
 * deferred in the store until its new prompt is stored with it, and retries of the job use that prompt. Organizations take
 * turns. A prompt that cannot be rewritten fails its job.
 */
export function openPromptExpansion(dependencies: {
  jobs: Pick<Jobs, 'calls' | 'find' | 'deferred' | 'resume' | 'queueForecast'>
  admission: Pick<Admission, 'admitForJob' | 'fallbacksFor'>
  /** The token that submitted a job, for the fallbacks of the chat model; undefined if it no longer exists. */
  requesterOf: (organizationId: string, tokenId: string, region: Region | undefined) => Promise<Requester | undefined>
  rewriting: PromptRewriting
  /** The chat model that rewrites prompts; undefined if none is configured. */
  model: string | undefined
  log: Log
  now?: () => number
}) {
  const { jobs, admission, requesterOf, rewriting, model, log, now = Date.now } = dependencies
  /** By organization, the oldest first. The organization that was served longest ago is the first of the map. */
  const waiting = new Map<string, string[]>()
  const running = new Set<Promise<void>>()
  const groups = new Map<string, Promise<string>>()
  const closing = new AbortSource()

  function add({ organizationId, id }: RowKey): void {
    const queue = waiting.get(organizationId)
    if (queue) queue.push(id)
    else waiting.set(organizationId, [id])
    start()
  }

  function start(): void {
    while (!closing.aborted && running.size < concurrency) {
      const [first] = waiting
      if (!first) return
      const [organizationId, queue] = first
      const id = queue.shift()!
      waiting.delete(organizationId)
      if (queue.length > 0) waiting.set(organizationId, queue)
      const run = expand({ organizationId, id }).finally(() => {
        running.delete(run)
        start()
      })
      running.add(run)
    }
  }

  /** Rewrites the prompt of one job. Never rejects: what fails is tried again, or fails the job. */
  async function expand({ organizationId, id }: RowKey): Promise<void> {
    for (let attempt = 1; !closing.aborted; attempt++) {
      try {
        const job = await jobs.find(organizationId, id)
        if (job?.status !== 'pending' || job.notBefore !== deferredUntil) return
        return await expandJob(job)
      } catch (thrown) {
        const failure = Failure.from(thrown)
        if (closing.aborted) return
        if (failure.code === 'internal_error') log.error('A prompt could not be rewritten', { job: id }, failure.cause)
        const decision = failure.final
          ? ({ do: 'fail' } as const)
          : decideRetry({ failure, attempt, maxAttempts: 3, now: now(), random: Math.random() })
        if (decision.do === 'fail') return fail({ organizationId, id }, failure, attempt)
        // A model that cannot answer now is waited for, however long that takes.
        if (decision.do === 'release') attempt--
        await pause(decision.do === 'retry' ? decision.at - now() : pauseMs(failure))
      }
    }
  }

  async function expandJob(job: JobRecord): Promise<void> {
    const { prompt_expansion, ...inputs } = JSON.parse(job.inputs) as GenerationInputs
    const { group, not_before: notBefore } = prompt_expansion!
    const prompt = await promptOf(group, job, inputs)
    // A server that takes the place of this one has taken the job up by now.
    if (closing.aborted) return
    const expanded: GenerationInputs = { ...inputs, prompt, original_prompt: inputs.prompt }
    await jobs.resume(job, { inputs: JSON.stringify(expanded), notBefore })
  }

  /** The prompt of a group of jobs, which is rewritten once. */
  function promptOf(group: string, job: JobRecord, inputs: GenerationInputs): Promise<string> {
    const known = groups.get(group)
    if (known) return known
    const prompt = rewrite(job, inputs)
    groups.set(group, prompt)
    if (groups.size > maxGroups) groups.delete(groups.keys().next().value!)
    prompt.catch(() => groups.delete(group))
    return prompt
  }

  async function rewrite(job: JobRecord, { prompt, seed }: GenerationInputs): Promise<string> {
    if (model === undefined)
      throw new Failure(
        'no_capacity',
        "No model rewrites prompts here any more. Set 'prompt_rewriting' in infer.yaml.",
        { final: true },
      )
    const maxLength = Math.max(defaultRewriteLength, prompt.length)
    const estimate = () => rewriteEstimate({ prompt, count: 1, maxLength })
    const admit = (modelId: string) => admission.admitForJob(job, { task: conversationTask, modelId, estimate })
    const owner = await requesterOf(job.organizationId, job.tokenId, job.region ?? undefined)
    const requester: Requester | undefined = owner && job.relayed ? { ...owner, isRelayed: true } : owner
    const admitted = await admit(model)
    const { organizationId, id } = job
    const caller = new AbortSource()
    const stop = () => caller.abort(closing.reason)
    closing.addEventListener('abort', stop)
    try {
      const prepare = (work?: NamedWork) =>
        rewriting.prepare({
          modelId: admitted.requestedModel ?? admitted.model.id,
          work,
          sender: { organizationId, origin: '', jobId: id },
          caller,
          prompt,
          task: taskRecord(job.task),
          count: 1,
          maxLength,
          seed,
        })
      let last = await prepare()
      const attemptWith =
        (one: PreparedRewrite): CallAttempt =>
        (lease, call) => {
          last = one
          return one.attempt(lease, call)
        }
      const substitute = async (work: NamedWork) => ({
        admitted: await admit(work.modelId),
        attempt: attemptWith(await prepare(work)),
      })
      const fallbacks = requester && callFallbacks(requester, admitted, substitute, { admission, jobs })
      const traceparent = job.traceparent ?? undefined
      const options = { admitted, createdAt: now(), waitMs: Number.POSITIVE_INFINITY, traceparent, caller, fallbacks }
      const { end } = await jobs.calls.run(options, attemptWith(last))
      if (end.how === 'cancelled') throw new Failure('cancelled', 'The request that rewrites the prompt was cancelled.')
      return last.prompts[0]!
    } finally {
      closing.removeEventListener('abort', stop)
    }
  }

  async function fail(job: RowKey, failure: Failure, attempt: number): Promise<void> {
    const message = `The prompt could not be rewritten: ${failure.message} Without 'enable_prompt_expansion' it is used as it is.`
    const error = { ...jobErrorOf(failure, attempt), message }
    await jobs.resume(job, { error }).catch((thrown: unknown) => {
      log.warn('A job whose prompt could not be rewritten is tried again after a restart', { job: job.id }, thrown)
    })
  }

  /** Resolves after this time, or when the server stops. */
  function pause(ms: number): Promise<void> {
    return new Promise(resolve => {
      const done = () => {
        clearTimeout(timer)
        closing.removeEventListener('abort', done)
        resolve()
      }
      const timer = setTimeout(done, Math.max(0, ms)).unref()
      closing.addEventListener('abort', done)
    })
  }

  return {
    /** Rewrites the prompt of a job that was submitted as deferred. */
    add,
    /** Takes up the deferred jobs of an earlier run of the server. */
    async resume(): Promise<void> {
      for (const job of await jobs.deferred()) add(job)
    },
    /** Stops rewriting; deferred jobs stay deferred, and continue after the next start. */
    async close(): Promise<void> {
      closing.abort(new Failure('shutting_down', 'This server is shutting down. Retry later.'))
      await Promise.allSettled(running)
    },
  }
}

import type { Caller } from '../accounts/accounts.ts'
import { modelAllowed } from '../accounts/model-allowed.ts'
import type { TokenLimiter } from '../accounts/token-limiter.ts'
import { Failure } from '../failure.ts'
import type { Model } from '../models/model.ts'
import type { Registry } from '../models/registry.ts'
import type { Task } from '../schemas/task.ts'
import type { JobLimits, JobRecord } from '../store/store.ts'
import { modelFor } from '../tasks/catalog.ts'
import { taskRecord } from '../tasks/registry.ts'
import type { BodyMemory, BodySize } from './body-memory.ts'

/** The caller who requests work. */
export type Requester = Pick<Caller, 'organizationId' | 'tokenId' | 'token' | 'limits'>

/** The requested work. */
export interface WorkRequest {
  /** `call`: a synchronous caller waits for it. `job`: it is stored. `node`: it is a node of a new execution. */
  kind: 'call' | 'job' | 'node'
  task: Task
  modelId: string
  /** The field of the request that names the model; null if its URL does. */
  param?: string | null
}

declare const admitted: unique symbol

/**
 * Work that may begin. Calls, jobs and executions can only be started with an `Admitted`, and only admission creates
 * one, so no code can bypass it.
 */
export interface Admitted {
  readonly [admitted]: true
  readonly organizationId: string
  readonly tokenId: string
  readonly task: Task
  readonly model: Model
  /** Limits of the organization that the store checks when the job is added; absent if there are none. */
  readonly jobLimits?: JobLimits
}

/** Checks for capacity. Each throws a Failure that says when to retry. */
export interface CapacityChecks {
  /** Limits the usage records that are not written yet: work that cannot be billed is not started. */
  records(): void
  /** Limits the calls that wait for a model. */
  queue(model: Model): void
  /** Refuses work for which this machine lacks something: waiting would not help. */
  machine(model: Model, task: Task): void
}

/**
 * The only admission of work: synchronous requests, stored jobs, executions with each of their nodes, retries. Returns
 * the work that may begin, or throws the Failure for the caller: `model_not_found`, `unsupported_task`,
 * `model_not_allowed`, `rate_limit` (tokens of models per minute), `queue_full`, `no_capacity`.
 */
export function openAdmission({
  registry,
  room,
  bodies,
  tokenLimiter,
}: {
  registry: Pick<Registry, 'find' | 'catalog'>
  tokenLimiter: Pick<TokenLimiter, 'admit'>
  room: CapacityChecks
  bodies: BodyMemory
}) {
  const allowed = ({ token }: Requester, modelId: string): boolean => modelAllowed(token.models, modelId)

  /** Throws Failure `model_not_allowed` if the token may not use this model. */
  function requireAllowed(requester: Requester, modelId: string, param: string | null): void {
    if (allowed(requester, modelId)) return
    const { name } = requester.token
    throw new Failure('model_not_allowed', `The token '${name}' may not use the model '${modelId}'.`, {
      param: param ?? undefined,
    })
  }

  return {
    /** Checks whether any work may begin now, before a request is read. Throws Failure `no_capacity`. */
    requireRoom: (): void => room.records(),

    /**
     * Checks whether one more call may wait for the model. Call it before media are fetched, and after an idempotency
     * key was looked up: a stored reply is returned again however full the queue is. Throws Failure `queue_full`.
     */
    requireQueueRoom: ({ model }: Admitted): void => room.queue(model),

    /** Counts the memory of a body; see `hold` of BodyMemory. Throws Failure `no_capacity`. */
    holdBody: (size: BodySize): ((keep?: number) => void) => bodies.hold(size),

    /** Whether the requester's token may use a model. */
    allowed,

    /** Admits work of a requester, or throws the Failure that says why not. */
    admit(requester: Requester, { kind, task, modelId, param = 'model' }: WorkRequest): Admitted {
      const record = taskRecord(task)
      modelFor(record, modelId, registry.catalog())
      const model = registry.find(modelId)!
      requireAllowed(requester, model.id, param)
      if (record.category === 'text') tokenLimiter.admit(requester)
      room.machine(model, task)
      if (kind === 'call') room.records()
      const { organizationId, tokenId, limits } = requester
      const { pendingJobs } = limits
      // Work that writes no files needs no room for them.
      const storedBytes = record.files ? limits.storedBytes : 0
      const jobLimits = pendingJobs > 0 || storedBytes > 0 ? { pendingJobs, storedBytes } : undefined
      return { organizationId, tokenId, task, model, ...(jobLimits ? { jobLimits } : {}) } as Admitted
    },

    /**
     * Admits an attempt of a job that was admitted before: its model must still be offered for its task. The token is
     * not checked again: work that it started is finished.
     */
    readmit({ task, modelId }: Pick<JobRecord, 'task' | 'modelId'>): Model {
      const model = registry.find(modelId)
      if (!model)
        throw new Failure('model_not_found', `The model '${modelId}' is no longer offered here.`, { param: 'model' })
      // A disabled model is expected to be enabled again: the attempt never began, and the job waits.
      if (!model.enabled) throw new Failure('no_capacity', `The model '${modelId}' is disabled here.`)
      modelFor(taskRecord(task), modelId, registry.catalog())
      return model
    },
  }
}
export type Admission = ReturnType<typeof openAdmission>

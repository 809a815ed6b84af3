import { type Caller, modelAllowed } from '../accounts/accounts.ts'
import { Failure } from '../failure.ts'
import type { Model } from '../models/model.ts'
import { costOf, hasPrice } from '../models/price.ts'
import type { Registry } from '../models/registry.ts'
import type { Task } from '../schemas/task.ts'
import type { JobRecord } from '../store/store.ts'
import { modelFor } from '../tasks/catalog.ts'
import type { Estimate } from '../tasks/metering.ts'
import { taskRecord } from '../tasks/registry.ts'
import type { BodyMemory, BodySize } from './body-memory.ts'
import { type Spend, type Spender, spenderOf } from './spend.ts'

/** The caller who requests work. */
export type Requester = Pick<Caller, 'organizationId' | 'tokenId' | 'token'>

/** The requested work. */
export interface WorkRequest {
  /** `call`: a synchronous caller waits for it. `job`: it is stored. `node`: it is a node of a new execution. */
  kind: 'call' | 'job' | 'node'
  task: Task
  modelId: string
  /** The field of the request that names the model; null if its URL does. */
  param?: string | null
  /** Returns the most that it can use. Called only for a model with a price; without it nothing is held. */
  estimate?: (model: Model) => Estimate
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
  readonly spender: Spender
  /** The most that it can cost, millionths of the currency unit: held from its beginning to its end. */
  readonly hold: number
}

/** The most that a request can cost. Work of a model without a price is not estimated. */
function holdOf(model: Model, estimate: WorkRequest['estimate']): number {
  if (!estimate || !hasPrice(model.price)) return 0
  const { usage, image } = estimate(model)
  return costOf(model.price, usage, image)
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
 * `model_not_allowed`, `quota_exceeded`, `queue_full`, `no_capacity`.
 */
export function openAdmission({
  registry,
  room,
  bodies,
  spend,
}: {
  registry: Pick<Registry, 'find' | 'catalog'>
  room: CapacityChecks
  bodies: BodyMemory
  spend: Pick<Spend, 'requireAnythingLeft' | 'spenderOf' | 'hold'>
}) {
  const allowed = ({ token }: Requester, modelId: string): boolean => modelAllowed(token.models, modelId)

  function requireBudget({ spender, hold }: Admitted): void {
    if (hold > 0) spend.requireAnythingLeft(spender)
  }

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
     * key was looked up: a stored reply is returned again however full the queue is. Throws Failure `queue_full`, and
     * `quota_exceeded` like `requireBudget`.
     */
    requireQueueRoom(admitted: Admitted): void {
      requireBudget(admitted)
      room.queue(admitted.model)
    },

    /**
     * Checks whether anything is left of the spend limits, if the work may cost something. The work holds its part when
     * it begins; call this before expensive preparations. Throws Failure `quota_exceeded`.
     */
    requireBudget,

    /** Counts the memory of a body; see `hold` of BodyMemory. Throws Failure `no_capacity`. */
    holdBody: (size: BodySize): ((keep?: number) => void) => bodies.hold(size),

    /** Whether the requester's token may use a model. */
    allowed,

    /** Admits work of a requester, or throws the Failure that says why not. */
    admit(requester: Requester, { kind, task, modelId, param = 'model', estimate }: WorkRequest): Admitted {
      modelFor(taskRecord(task), modelId, registry.catalog())
      const model = registry.find(modelId)!
      requireAllowed(requester, model.id, param)
      const spender = spenderOf(requester.token)
      const hold = holdOf(model, estimate)
      // Calls and jobs are checked after their idempotency keys, and hold when they begin; nodes hold when they start.
      if (kind === 'node' && hasPrice(model.price)) spend.requireAnythingLeft(spender)
      room.machine(model, task)
      if (kind === 'call') room.records()
      const { organizationId, tokenId } = requester
      return { organizationId, tokenId, task, model, spender, hold } as Admitted
    },

    /** The same work with another estimate, once more is known of it. */
    estimated: (admitted: Admitted, estimate: () => Estimate): Admitted => ({
      ...admitted,
      hold: holdOf(admitted.model, estimate),
    }),

    /**
     * Holds what the attempt of a node's job may cost, until the job ends. Rejects with Failure `quota_exceeded`, and
     * with `token_revoked` if its token no longer exists.
     */
    async holdNode({ id, organizationId, tokenId }: JobRecord, model: Model, estimate: () => Estimate): Promise<void> {
      const amount = holdOf(model, estimate)
      if (amount === 0) return
      const spender = await spend.spenderOf(organizationId, tokenId)
      if (!spender) throw new Failure('token_revoked', 'The token that executed this workflow no longer exists.')
      spend.hold(id, spender, amount)
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

import type { Caller } from '../accounts/accounts.ts'
import { type LocalOnlyOf, type LocalOnlyOwner, localOnlyOwner } from '../accounts/local-only.ts'
import type { TokenLimiter } from '../accounts/token-limiter.ts'
import { Failure, invalid } from '../failure.ts'
import { engineFacts } from '../models/engine-facts.ts'
import type { ModelSetEntry } from '../models/engine-traits.ts'
import { isFor } from '../models/fallbacks.ts'
import type { Model } from '../models/model.ts'
import { modelOfWork, type NamedWork, nameAllowed } from '../models/model-names.ts'
import type { Fallback } from '../models/name-fields.ts'
import { noModel } from '../models/no-model.ts'
import { costOf, hasPrice } from '../models/price.ts'
import type { Registry } from '../models/registry.ts'
import type { Region, RegionLabel } from '../schemas/region.ts'
import type { Task } from '../schemas/task.ts'
import type { JobLimits, JobRecord, VerifiableToken } from '../store/store.ts'
import { modelFor } from '../tasks/catalog.ts'
import type { Estimate } from '../tasks/metering.ts'
import { needsModel, taskRecord } from '../tasks/registry.ts'
import type { StepTaskRecord, TaskRecord, WaitTaskRecord } from '../tasks/task.ts'
import type { BodyMemory, BodySize } from './body-memory.ts'
import { outside, requireRegion } from './regions.ts'
import type { NodeLimits, Spend } from './spend.ts'
import { type Spender, spenderOf, withoutLimits } from './spender.ts'

/** The caller who requests work. */
export interface Requester extends Pick<Caller, 'organizationId' | 'tokenId' | 'limits' | 'region' | 'isRelayed'> {
  token: RequestingToken
}
type RequestingToken = Pick<
  VerifiableToken,
  'organizationId' | 'organizationName' | 'originId' | 'name' | 'models' | 'region' | 'limits' | 'parentLimits'
>

/** The requested work. */
export interface AdmissionRequest {
  /**
   * `call`: a synchronous caller waits for it. `job`: it is stored. `node`: it is a node of a new execution. `line`: it is
   * a line of a batch.
   */
  kind: 'call' | 'job' | 'node' | 'line'
  task: Task
  /** The name of the model: its id, an alias, or the name of a profile. */
  modelId: string
  /** The field of the request that names the model; null if its URL does. */
  param?: string | null
  /** The region of its workflow. */
  region?: Region | undefined
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
  /** With the price that applies to the work. */
  readonly model: Model
  /** The name by which the request chose the model; null if it is its id. */
  readonly requestedModel: string | null
  /** The region in which it must run; null if any will do. */
  readonly region: RegionLabel | null
  /** Whether its request was passed on by another infer; absent if not. */
  readonly relayed?: true
  /** Limits of the organization that the store checks when the job is added; absent if there are none. */
  readonly jobLimits?: JobLimits
  readonly spender: Spender
  /** The most that it can cost, millionths of the currency unit: held from its beginning to its end. */
  readonly hold: number
}

/** The most that a request can cost. Work of a model without a price is not estimated. */
function holdOf(model: Model, estimate: AdmissionRequest['estimate']): number {
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

const none: readonly Fallback[] = []

/**
 * The only admission of work: synchronous requests, stored jobs, executions with each of their nodes, retries. Returns
 * the work that may begin, or throws the Failure for the caller: `model_not_found`, `unsupported_task`,
 * `model_not_allowed`, `region_restricted`, `rate_limit` (tokens of models per minute), `quota_exceeded`, `queue_full`,
 * `no_capacity`.
 */
export function openAdmission(options: {
  registry: Pick<Registry, 'find' | 'catalog'>
  tokenLimiter: Pick<TokenLimiter, 'admit'>
  room: CapacityChecks
  bodies: BodyMemory
  spend: Pick<Spend, 'requireAnythingLeft' | 'spentOut' | 'spenderOf' | 'hold' | 'holdsFor'>
  /** Whose `local_only` keeps the work of a token here now. */
  localOnlyOf: LocalOnlyOf
  /** What lines of batches cost, as a part of the price. */
  batchPriceFactor?: number
}) {
  const { registry, room, bodies, tokenLimiter, spend, localOnlyOf, batchPriceFactor = 1 } = options
  function allowed({ token }: Requester, name: string): boolean {
    if (token.models === null) return true
    const named = registry.catalog().get(name)?.named ?? { kind: 'id' as const, modelId: name }
    return nameAllowed(token.models, { id: name, ...named })
  }

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

  /** Whether the work of a requester may leave this machine for the model. */
  function mayRunAt(requester: Requester, modelId: string): boolean {
    const model = registry.find(modelId)
    if (isPassedOnAgain(requester.isRelayed, model)) return false
    return !isElsewhere(model) || localOnlyOwner(requester) === undefined
  }

  /** Throws Failure `model_not_allowed` if the model runs elsewhere, and the work of the requester may not leave this machine. */
  function requireLocal(requester: Requester, modelId: string, param: string | null): void {
    const model = registry.find(modelId)
    if (isElsewhere(model)) refuseLeaving(modelId, localOnlyOwner(requester), param)
    if (isPassedOnAgain(requester.isRelayed, model)) throw passedOnAgain(modelId, param)
  }

  /**
   * Throws Failure `model_not_allowed` if the model runs elsewhere, and the work of the token may no longer leave this
   * machine. Call it when work that has waited begins.
   */
  function requireStillLocal({ id, engine }: Pick<Model, 'id' | 'engine'>, tokenId: string): void {
    if (isElsewhere({ engine })) refuseLeaving(id, localOnlyOf(tokenId), null)
  }

  /** The fallbacks of a model that the requester may use. */
  function fallbacksFor(requester: Requester, { fallbacks }: Model): readonly Fallback[] {
    if (fallbacks === undefined) return none
    return fallbacks.filter(
      ({ model }) => allowed(requester, model) && registry.catalog().has(model) && mayRunAt(requester, model),
    )
  }

  /** Where a fallback does the work of a model that fails, the model need not be able to serve. */
  function requireMachine(model: Model, task: Task, fallbacks = model.fallbacks ?? none): void {
    if (!fallbacks.some(({ when }) => when.includes('failed'))) room.machine(model, task)
  }

  /** The model of a job that was admitted before, if it is still offered for its task and region. */
  function readmit(job: Pick<JobRecord, 'task' | 'region' | 'tokenId' | 'relayed'> & NamedWork): Model {
    const { task, modelId, region, tokenId, relayed } = job
    if (!needsModel(task)) return noModel
    const model = modelOfWork(registry.find, job)
    if (!model) {
      const name = job.requestedModel ?? modelId
      throw invalid('model', `The model '${name}' is no longer offered here.`, 'model_not_found')
    }
    // A disabled model is expected to be enabled again: the attempt never began, and the job waits.
    if (!model.enabled) throw new Failure('no_capacity', `The model '${modelId}' is disabled here.`)
    const entry = modelFor(taskRecord(task), modelId, registry.catalog())
    // Likewise a model that was moved to another region.
    if (region !== null && entry.region !== region)
      throw new Failure('no_capacity', outside(entry, region, registry.catalog().values()).message)
    requireStillLocal(model, tokenId)
    if (isPassedOnAgain(relayed, model)) throw passedOnAgain(modelId, null)
    return model
  }

  /** The region in which work must run; null if any will do. Throws Failure `region_restricted`, `no_capacity`. */
  function regionFor(requester: Requester, entry: ModelSetEntry, ofWorkflow: Region | undefined): RegionLabel | null {
    const { organizationName: name, region: restricted } = requester.token
    if (restricted === null && requester.region === undefined && ofWorkflow === undefined) return null
    return requireRegion(
      entry,
      { asked: [requester.region, ofWorkflow], organization: { name, region: restricted } },
      () => [...registry.catalog().values()].filter(({ id }) => allowed(requester, id)),
    )
  }

  /** The limits that the store checks when a job of the task is added; undefined if there are none. */
  function jobLimitsOf(
    { limits: { pendingJobs, storedBytes } }: Requester,
    { files }: TaskRecord,
  ): JobLimits | undefined {
    // Work that writes no files needs no room for them.
    const bytes = files ? storedBytes : 0
    return pendingJobs > 0 || bytes > 0 ? { pendingJobs, storedBytes: bytes } : undefined
  }

  /** Work that needs no model: every token may do it, in any region, and it costs nothing. */
  function withoutModel(requester: Requester, record: StepTaskRecord | WaitTaskRecord): Admitted {
    const { organizationId, tokenId, limits, token } = requester
    const spender = spenderOf(token, limits.monthlySpendLimit)
    const jobLimits = jobLimitsOf(requester, record)
    const more = jobLimits ? { jobLimits } : {}
    const work = { organizationId, tokenId, task: record.id, model: noModel, requestedModel: null, region: null }
    return { ...work, spender, hold: 0, ...more } as Admitted
  }

  return {
    /** Checks whether any work may begin now, before a request is read. Throws Failure `no_capacity`. */
    requireRoom: (): void => room.records(),

    /**
     * Checks whether one more call may wait for the model. Call it before media are fetched, and after an idempotency
     * key was looked up: a stored reply is returned again however full the queue is. A call with a fallback that the
     * requester may use need not wait for the model. Throws Failure `queue_full`, and `quota_exceeded` like `requireBudget`.
     */
    requireQueueRoom(requester: Requester, admitted: Admitted): void {
      requireBudget(admitted)
      const fallbacks = fallbacksFor(requester, admitted.model)
      if (!fallbacks.some(one => isFor(one, 'wait') || isFor(one, 'failed'))) room.queue(admitted.model)
    },

    /**
     * Checks whether anything is left of the spend limits, if the work may cost something. The work holds its part when
     * it begins; call this before expensive preparations. Throws Failure `quota_exceeded`.
     */
    requireBudget,

    /** The failure of admitted work that may cost something and whose limits are spent; undefined otherwise. */
    spentOut: ({ spender, hold }: Admitted): Failure | undefined => (hold > 0 ? spend.spentOut(spender) : undefined),

    /** Counts the memory of a body; see `hold` of BodyMemory. Throws Failure `no_capacity`. */
    holdBody: (size: BodySize): ((keep?: number) => void) => bodies.hold(size),

    /** Whether the requester's token may use a model. */
    allowed,

    requireStillLocal,

    fallbacksFor,

    /** Throws Failure `no_capacity` if this machine cannot run the model for the task, and no fallback does its work. */
    requireMachine,

    /** Admits work of a requester, or throws the Failure that says why not. */
    admit(requester: Requester, request: AdmissionRequest): Admitted {
      const { kind, task, modelId, param = 'model', region: ofWorkflow, estimate } = request
      const record = taskRecord(task)
      if (record.runner === 'step' || record.runner === 'wait') return withoutModel(requester, record)
      const entry = modelFor(record, modelId, registry.catalog())
      const model = registry.find(modelId)!
      requireAllowed(requester, entry.id, param)
      requireLocal(requester, modelId, param)
      const region = regionFor(requester, entry, ofWorkflow)
      // A batch runs whenever there is capacity: rates do not limit it.
      if (record.category === 'text' && kind !== 'line') tokenLimiter.admit(requester)
      const spender = spenderOf(requester.token, requester.limits.monthlySpendLimit)
      const cost = holdOf(model, estimate)
      const hold = kind === 'line' ? Math.ceil(cost * batchPriceFactor) : cost
      // Calls and jobs are checked after their idempotency keys, and hold when they begin; nodes hold when they start.
      if (kind === 'node' && hasPrice(model.price)) spend.requireAnythingLeft(spender)
      requireMachine(model, task, fallbacksFor(requester, model))
      if (kind === 'call') room.records()
      const { organizationId, tokenId } = requester
      const jobLimits = jobLimitsOf(requester, record)
      const more = { ...(jobLimits && { jobLimits }), ...(requester.isRelayed && { relayed: true }) }
      const requestedModel = entry.named ? entry.id : null
      return { organizationId, tokenId, task, model, requestedModel, region, spender, hold, ...more } as Admitted
    },

    /** The same work with another estimate, once more is known of it. */
    estimated: (admitted: Admitted, estimate: () => Estimate): Admitted => ({
      ...admitted,
      hold: holdOf(admitted.model, estimate),
    }),

    /**
     * Holds what the attempt of a node's job may cost, until the job ends. `limitsOf` is called only if it may cost
     * something. Rejects with Failure `quota_exceeded`, and with `token_revoked` if its token no longer exists.
     */
    async holdNode(
      { id, organizationId, tokenId, fallbackReason }: JobRecord,
      model: Model,
      estimate: () => Estimate,
      limitsOf?: () => Promise<NodeLimits>,
    ): Promise<void> {
      const amount = holdOf(model, estimate)
      if (amount === 0) return
      const spender = await spend.spenderOf(organizationId, tokenId)
      if (!spender) throw new Failure('token_revoked', 'The token that executed this workflow no longer exists.')
      // Last, because what is spent must not change until it is held.
      const spending = fallbackReason === null ? spender : { ...spender, fallback: { modelId: model.id, limit: null } }
      spend.hold(id, spending, amount, await limitsOf?.())
    },

    /**
     * Admits a call that a job needs before it can run, for the token that created the job. The token is not checked
     * again, as for the job itself. Nor are its spend limits if the job holds its cost: its own hold may have reached
     * them, and the job was accepted.
     */
    async admitForJob(
      job: Pick<JobRecord, 'id' | 'organizationId' | 'tokenId' | 'region' | 'relayed'>,
      { task, modelId, estimate }: Pick<AdmissionRequest, 'task' | 'modelId' | 'estimate'>,
    ): Promise<Admitted> {
      const { id: jobId, organizationId, tokenId, region, relayed } = job
      const { id, named } = modelFor(taskRecord(task), modelId, registry.catalog())
      const requestedModel = named ? id : null
      const name = { modelId: named?.modelId ?? id, requestedModel, fallbackReason: null }
      const model = readmit({ task, ...name, region, tokenId, relayed })
      const limited = await spend.spenderOf(organizationId, tokenId)
      if (!limited) throw new Failure('token_revoked', 'The token that submitted this job no longer exists.')
      const spender = spend.holdsFor(jobId) ? withoutLimits(limited) : limited
      requireMachine(model, task)
      room.records()
      const hold = holdOf(model, estimate)
      return { organizationId, tokenId, task, model, requestedModel, region, spender, hold } as Admitted
    },

    /**
     * Admits an attempt of a job that was admitted before: its model must still be offered for its task, be in its region,
     * and be on this machine if its work may no longer leave it. Else the token is not checked again: work that it started is
     * finished.
     */
    readmit,
  }
}
export type Admission = ReturnType<typeof openAdmission>

/** Whether work that was passed on by an infer would be again for the model. */
const isPassedOnAgain = (relayed: boolean | undefined, model: Model | undefined): boolean =>
  relayed === true && engineFacts(model?.engine).isInfer === true

const passedOnAgain = (modelId: string, param: string | null): Failure =>
  new Failure(
    'model_not_allowed',
    `The model '${modelId}' is one of another infer, and this request was passed on by an infer already. Requests are passed on once only, so that they cannot go in circles: name a model of this machine.`,
    { param: param ?? undefined },
  )

const isElsewhere = (model: Pick<Model, 'engine'> | undefined): boolean =>
  engineFacts(model?.engine).isElsewhere === true

/** Throws Failure `model_not_allowed` for a model that runs elsewhere if `owner` keeps the work on this machine. */
function refuseLeaving(modelId: string, owner: LocalOnlyOwner | undefined, param: string | null): void {
  if (!owner) return
  throw new Failure(
    'model_not_allowed',
    `The model '${modelId}' runs elsewhere, and work of the ${owner.of} '${owner.name}' never leaves this machine ('local_only'). Name a model of this machine.`,
    { param: param ?? undefined },
  )
}

import { type Caller, modelAllowed } from '../accounts/accounts.ts'
import { Failure } from '../failure.ts'
import type { Model } from '../models/model.ts'
import type { Registry } from '../models/registry.ts'
import type { Task } from '../schemas/task.ts'
import type { JobRecord } from '../store/store.ts'
import { modelFor } from '../tasks/catalog.ts'
import { taskRecord } from '../tasks/registry.ts'
import type { BodyMemory, BodySize } from './body-memory.ts'

/** Who asks for work. */
export type Requester = Pick<Caller, 'organizationId' | 'tokenId' | 'token'>

/** The work that is asked for. */
export interface WorkRequest {
  /** `call`: a synchronous caller waits for it. `job`: it is stored. `node`: a workflow will come to it. */
  kind: 'call' | 'job' | 'node'
  task: Task
  modelId: string
  /** The field of the request that names the model; null where its address does. */
  param?: string | null
}

declare const admitted: unique symbol

/**
 * Work that may begin. Calls, jobs and executions are begun with one of these and nothing else, and only admission makes
 * them, so that no way leads past it.
 */
export interface Admitted {
  readonly [admitted]: true
  readonly organizationId: string
  readonly tokenId: string
  readonly task: Task
  readonly model: Model
}

/** Whether there is room for more work. Each throws a Failure that says when to try again. */
export interface CapacityChecks {
  /** Usage records that are not written yet are bounded: work that cannot be billed is not begun. */
  records(): void
  /** The calls that wait for a model are bounded. */
  queue(model: Model): void
  /** What this machine lacks for the task is no reason to wait: such work is not begun. */
  machine(model: Model, task: Task): void
}

/**
 * The one gate before all work: synchronous requests, stored jobs, executions with each of their nodes, retries. It
 * answers with what may begin, or throws the Failure that the requester gets: `model_not_found`, `unsupported_task`,
 * `model_not_allowed`, `queue_full`, `no_capacity`.
 */
export function openAdmission({
  registry,
  room,
  bodies,
}: {
  registry: Pick<Registry, 'find' | 'catalog'>
  room: CapacityChecks
  bodies: BodyMemory
}) {
  const allowed = ({ token }: Requester, modelId: string): boolean => modelAllowed(token.models, modelId)

  /** Throws Failure `model_not_allowed` where the token is not for this model. */
  function requireAllowed(requester: Requester, modelId: string, param: string | null): void {
    if (allowed(requester, modelId)) return
    const { name } = requester.token
    throw new Failure('model_not_allowed', `The token '${name}' may not use the model '${modelId}'.`, {
      param: param ?? undefined,
    })
  }

  return {
    /** Whether any work may begin now. Asked before a request is read. Throws Failure `no_capacity`. */
    requireRoom: (): void => room.records(),

    /**
     * Whether one more call may wait for the model. Asked before media are fetched, and after an idempotency key was looked
     * up: what was answered before is answered again however full the queue is. Throws Failure `queue_full`.
     */
    requireQueueRoom: ({ model }: Admitted): void => room.queue(model),

    /** Counts the memory of a body; see `hold` of the body room. Throws Failure `no_capacity`. */
    holdBody: (size: BodySize): ((keep?: number) => void) => bodies.hold(size),

    /** Whether the requester may use a model, as far as its token says. */
    allowed,

    /** Admits work of a requester, or throws the Failure that says what is wrong with it. */
    admit(requester: Requester, { kind, task, modelId, param = 'model' }: WorkRequest): Admitted {
      modelFor(taskRecord(task), modelId, registry.catalog())
      const model = registry.find(modelId)!
      requireAllowed(requester, model.id, param)
      room.machine(model, task)
      if (kind === 'call') room.records()
      const { organizationId, tokenId } = requester
      return { organizationId, tokenId, task, model } as Admitted
    },

    /**
     * Admits an attempt of a job that was admitted before: its model must still be offered for its task. The token is not
     * looked at again: what it began is carried out.
     */
    readmit({ task, modelId }: Pick<JobRecord, 'task' | 'modelId'>): Model {
      const model = registry.find(modelId)
      if (!model)
        throw new Failure('model_not_found', `The model '${modelId}' is no longer offered here.`, { param: 'model' })
      // Whoever disables a model means to enable it again: the attempt never began, and the job waits.
      if (!model.enabled) throw new Failure('no_capacity', `The model '${modelId}' is disabled here.`)
      modelFor(taskRecord(task), modelId, registry.catalog())
      return model
    },
  }
}
export type Admission = ReturnType<typeof openAdmission>

import { createHash, createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import { openDueWork } from '../due-work.ts'
import { conflict, Failure, invalid } from '../failure.ts'
import type { Log } from '../log.ts'
import { pick } from '../members.ts'
import type { WaitTask } from '../schemas/task.ts'
import { type ApprovalResult, type Decision, decisionFault } from '../schemas/waits.ts'
import { jobErrorOf, type Store } from '../store/store.ts'
import type { AwaitedOutside, Wait } from '../store/waits.ts'
import { taskRecord } from '../tasks/registry.ts'
import { approvalResult, hasLink, type StoredApproval } from '../tasks/waits/approval.ts'
import { eventResult } from '../tasks/waits/event.ts'
import { openWaitRunner } from '../tasks/waits/run-wait.ts'

const batchSize = 100
/** At most a minute, so that a changed clock is noticed within this. */
const maxTimerMs = 60_000

const taskOf: Record<AwaitedOutside, WaitTask> = {
  approval: 'wait/approval',
  event: 'wait/event',
  time: 'wait/until',
}

/** Who answers: the name of the token, and the e-mail address of its user, if it has one. */
export interface Approver {
  tokenName: string
  email: string | null
}

/** The right to end a wait, as text in a URL. Derived from the job, so that a link can be shown again. */
function openTokens(key: KeyObject) {
  const tokenOf = (jobId: string): string => createHmac('sha256', key).update(jobId).digest('base64url')
  const digestOf = (token: string): Buffer => createHash('sha256').update(token).digest()
  return { tokenOf, digestOf, digestOfJob: (jobId: string): Buffer => digestOf(tokenOf(jobId)) }
}

/**
 * Nodes that wait for a person, an event or a time. The store keeps each wait with the times at which it is due, so that
 * nothing is in memory, and each is ended once by whoever comes first.
 */
export function openWaits(options: {
  store: Pick<Store, 'waits' | 'executions'>
  /** The tokens are derived from it. */
  key: KeyObject
  log: Log
  clock?: { now(): number }
}) {
  const { store, log, clock = Date } = options
  const tokens = openTokens(options.key)
  const due = openDueWork({ work: endDue, clock, maxTimerMs })

  async function endDue(): Promise<void> {
    try {
      const next = await store.waits.nextDue()
      if (next === null) return
      const now = clock.now()
      if (next > now) return due.at(next)
      const failed: unknown[] = []
      for (const wait of await store.waits.due(now, batchSize))
        await endDueWait(wait, now).catch(thrown => void failed.push(thrown))
      await store.waits.remind(now, batchSize)
      if (failed.length > 0) throw failed[0]
      void due.check()
    } catch (thrown) {
      if (!Failure.from(thrown).retryable) log.error('Waits could not be ended', {}, thrown)
      due.at(clock.now() + 1_000)
    }
  }

  /** Ends a wait that is due; one that cannot be read fails, so that it holds up no others. */
  async function endDueWait(wait: Wait, at: number): Promise<void> {
    try {
      await endByItself(wait, at)
    } catch (thrown) {
      const failure = Failure.from(thrown)
      if (failure.code !== 'internal_error') throw thrown
      log.error('A wait could not be ended as usual, so its node fails', { job: wait.jobId }, thrown)
      const { organizationId, jobId, awaits } = wait
      await store.executions.resolve(organizationId, jobId, { awaits, at, error: jobErrorOf(failure, 0) })
    }
  }

  async function endByItself(
    { organizationId, jobId, awaits, request, createdAt }: Wait,
    at: number,
  ): Promise<boolean> {
    const result = taskRecord(taskOf[awaits]).resultAtDue(JSON.parse(request) as never, at)
    if (result !== undefined) return resolve({ organizationId, jobId, awaits }, result, at)
    const waited = Math.round((at - createdAt) / 1000)
    const failure = new Failure('timeout', `${nothingCame[awaits]} within ${waited} s (timeout).`, { final: true })
    return store.executions.resolve(organizationId, jobId, { awaits, at, error: jobErrorOf(failure, 0) })
  }

  const resolve = (wait: Pick<Wait, 'organizationId' | 'jobId' | 'awaits'>, result: object, at: number) =>
    store.executions.resolve(wait.organizationId, wait.jobId, {
      awaits: wait.awaits,
      at,
      result: JSON.stringify(result),
    })

  /** Throws Failure `conflict` if something else has ended it meanwhile. */
  async function end(wait: Wait, result: object, at: number): Promise<void> {
    if (await resolve(wait, result, at)) return
    throw conflict(
      `${upperFirst(waitName(wait))} waits no more: it was answered, it has timed out, or its execution has ended.`,
    )
  }

  return {
    ...pick(store.waits, 'find', 'list'),

    /** Ends what is due, from now on. Call it when the effects of commits are followed. */
    start: (): void => void due.check(),

    /** Runs the tasks that wait. */
    run: openWaitRunner({ store: store.executions, digestOf: tokens.digestOfJob, begun: due.at, clock }),

    /** The wait that a token in a URL belongs to; undefined without one. */
    async withToken(token: string): Promise<Wait | undefined> {
      const digest = tokens.digestOf(token)
      const wait = await store.waits.withDigest(digest)
      return wait && timingSafeEqual(Buffer.from(wait.digest), digest) ? wait : undefined
    },

    /** The token of a wait that whoever has it may end; null for one that needs a caller with a right of his own. */
    tokenOf: (wait: Wait): string | null =>
      wait.awaits === 'time' || (wait.awaits === 'approval' && !hasLink(JSON.parse(wait.request) as StoredApproval))
        ? null
        : tokens.tokenOf(wait.jobId),

    mayAnswer,

    /**
     * Ends an approval. Throws Failure `invalid_value` for a decision that does not fit its form, `conflict` if it has
     * ended.
     */
    async decide(wait: Wait, decision: Decision, by: ApprovalResult['by']): Promise<ApprovalResult> {
      const fault = decisionFault(JSON.parse(wait.request) as StoredApproval, decision)
      if (fault) throw invalid(fault.path.join('.'), upperFirst(fault.message))
      const at = clock.now()
      const result = approvalResult(decision, by, at)
      await end(wait, result, at)
      return result
    },

    /** Ends the wait for an event with its body, or the wait for a time. Throws Failure `conflict` if it has ended. */
    async arrive(wait: Wait, body: unknown): Promise<void> {
      const at = clock.now()
      await end(wait, wait.awaits === 'event' ? eventResult(body, at) : { at: Math.floor(at / 1000) }, at)
    },

    close: (): Promise<void> => due.close(),
  }
}
export type Waits = ReturnType<typeof openWaits>

/** Whether an approval may be answered by this caller, who has the scope for it. */
function mayAnswer({ request }: Pick<Wait, 'request'>, { tokenName, email }: Approver): boolean {
  const { approvers } = JSON.parse(request) as StoredApproval
  const mail = email?.toLowerCase()
  return !approvers || approvers.some(one => one === tokenName || (mail !== undefined && one.toLowerCase() === mail))
}

const nothingCame: Record<AwaitedOutside, string> = {
  approval: 'Nobody has answered',
  event: 'No event has arrived',
  time: 'The time has not come',
}

/** What waits, in a sentence: a node, or an item of one. */
export const waitName = ({ nodeId, item }: Pick<Wait, 'nodeId' | 'item'>): string =>
  item === null ? `the node '${nodeId}'` : `item ${item} of the node '${nodeId}'`

const upperFirst = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

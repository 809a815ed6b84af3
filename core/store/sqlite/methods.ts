import { noUsage } from '../../usage.ts'
import { callRows, isText } from '../ledger-rows.ts'
import { groupMethods, type MethodName, synchronousMethods } from '../method-table.ts'
import type { JobClaim, JobOutcome, JobRecord, NewJob, SendCommand, Store } from '../store.ts'
import { usageSums } from '../usage-text.ts'
import { type CommandName, type Commands, growingCommands } from './commands.ts'
import { copyInThread } from './copy.ts'
import { keptWork } from './idempotency-keys.ts'
import type { Reader, Reads } from './reader.ts'
import type { ResultSweep } from './result-files.ts'
import type { ResultWriter } from './results.ts'
import { diskFull, received, shuttingDown } from './sent-failure.ts'
import type { Space } from './space.ts'
import type { UsageThread } from './usage-thread.ts'
import type { WriterThread } from './writer-thread.ts'

/** The methods whose name is a command or a read. */
type Plain = MethodName & (keyof Commands | keyof Reads)

/** Combines writer, reader and disk watch into the store. */
export function openMethods(parts: {
  writer: WriterThread
  reader: Reader
  usage: UsageThread
  results: ResultWriter
  /** Absent where no server watches the disk and erases unused result files. */
  space?: Space
  sweep?: ResultSweep
  database: string
  /** Closes what another server must own. */
  leave?: () => Promise<void>
  close: () => Promise<void>
}): Store {
  const { writer, reader, usage, results, space, sweep } = parts
  const { reads } = reader
  let lateResults = 0

  /** Set once another server has the data directory. */
  let elsewhere: SendCommand | undefined

  const send: WriterThread['send'] = (name, given) => {
    if (elsewhere) return elsewhere(name, given) as never
    const room = space?.room() ?? 'enough'
    return (room !== 'enough' && growingCommands.has(name)) ||
      (room === 'full' && name === ('jobs.claim' satisfies CommandName))
      ? Promise.reject(received(diskFull))
      : writer.send(name, given)
  }

  function methodOf(name: Plain): (...given: never[]) => unknown {
    if (!(name in reads)) return (...given) => send(name as Plain & CommandName, given as never)
    const read: (...given: never[]) => unknown = reads[name as Plain & keyof Reads]
    return (synchronousMethods as readonly string[]).includes(name) ? read : async (...given) => read(...given)
  }

  const submitted = (job: NewJob, holder: string | null): { job: JobRecord; replayed: boolean } =>
    holder === null
      ? { job: asSubmitted(job), replayed: false }
      : { job: keptWork('job', holder, reads['jobs.find'](job.organizationId, holder)), replayed: true }

  /** A method that sends a command and answers with what it has changed, unless that is nothing. */
  const afterwards =
    <Name extends CommandName, Found>(command: Name, find: (organizationId: string, id: string) => Found) =>
    async (...given: Parameters<Commands[Name]>): Promise<Found | undefined> => {
      const changed: unknown = await send(command, given)
      const [organizationId, id] = given as unknown as [string, string]
      return changed === false ? undefined : find(organizationId, id)
    }
  /** The same for each row that a command has changed. */
  const eachAfterwards =
    <Found>(
      command: 'expireJobs' | 'expireExecutions',
      find: (organizationId: string, id: string) => Found | undefined,
    ) =>
    async (now: number, limit: number): Promise<Found[]> =>
      (await send(command, [now, limit])).flatMap(({ organizationId, id }) => find(organizationId, id) ?? [])

  const thenSweep =
    (command: 'jobs.remove' | 'executions.remove') =>
    async (...given: Parameters<Commands[typeof command]>) => {
      const removed = await send(command, given)
      sweep?.schedule()
      return removed
    }

  const names = [...Object.keys(reads), ...writer.names].filter((name): name is Plain => name.includes('.'))
  // These do a part of their work in the calling thread: README.md, 'A method', says why.
  const methods = groupMethods(names, methodOf, {
    async 'jobs.submit'(job) {
      return submitted(job, await send('addJob', [job]))
    },
    async 'jobs.submitAll'(jobs) {
      const holders = await send('addJobs', [jobs])
      return jobs.map((job, at) => submitted(job, holders[at]!))
    },
    async 'jobs.settle'(job, ended, slotOf) {
      const claim = claimOf(job)
      // A full disk refuses this claim as it refuses `jobs.claim`.
      const next = space?.room() === 'full' ? undefined : slotOf
      const settled = await results.settling(claim, ended, outcome => send('settleJob', [claim, outcome, next]))
      if (!settled) lateResults += 1
      return settled
    },
    'jobs.resume': afterwards('resumeJob', reads['jobs.find']),
    'jobs.cancel': afterwards('cancelJob', reads['jobs.find']),
    'jobs.expire': eachAfterwards('expireJobs', reads['jobs.find']),
    'jobs.release': (job, notBefore) => send('jobs.release', [claimOf(job), notBefore]),
    'jobs.record': finished =>
      send('recordCalls', [
        callRows(finished.flatMap(one => (isText(one) ? [] : [one]))),
        finished.filter(isText).map(({ text }) => text),
      ]),
    'jobs.remove': thenSweep('jobs.remove'),
    // The counts of an execution's nodes are in its row only after the commit.
    async 'executions.create'(execution) {
      const holder = await send('addExecution', [execution])
      const id = holder ?? execution.id
      return {
        execution: keptWork('execution', id, reads['executions.find'](execution.organizationId, id)),
        replayed: holder !== null,
      }
    },
    'executions.resolve': (organizationId, id, { awaits, at, ...how }) => {
      const facts = { at, engineId: null, logs: null }
      const outcome: JobOutcome =
        'error' in how
          ? { status: 'failed', error: how.error, retryAt: null, ...facts }
          : { status: 'completed', result: how.result, usage: noUsage, cost: 0, files: [], library: [], ...facts }
      const claim = { organizationId, id, boot: null, claims: 0 }
      return results.settling(claim, outcome, written => send('resolveJob', [{ organizationId, id, awaits }, written]))
    },
    'executions.cancel': afterwards('cancelExecution', reads['executions.find']),
    'executions.expire': eachAfterwards('expireExecutions', reads['executions.find']),
    'executions.remove': thenSweep('executions.remove'),
    async 'workflows.create'(workflow) {
      await send('addWorkflow', [workflow])
      return reads['workflows.find'](workflow.organizationId, workflow.id, undefined)!
    },
    // Another version may have been added in the same commit.
    async 'workflows.update'(...given) {
      const [organizationId, id] = given
      const version = await send('updateWorkflow', given)
      return version === undefined ? undefined : reads['workflows.find'](organizationId, id, version)
    },
    async 'batches.create'(batch) {
      const holder = await send('addBatch', [batch])
      return { batch: reads['batches.find'](batch.organizationId, holder ?? batch.id)!, replayed: holder !== null }
    },
    'batches.cancel': afterwards('cancelBatch', reads['batches.find']),
    'webhooks.redeliver': afterwards('redeliver', reads['webhooks.delivery']),
    async 'batches.feed'(feed) {
      return (await send('feedBatch', [feed])) ? feed.jobs.map(asSubmitted) : undefined
    },
    'usage.read': query => usage.read(query),
  })

  return {
    ...methods,
    onCommitted: listener => writer.onCommitted(listener),
    recovery: writer.recovery,
    stats: () => ({
      ...writer.stats(),
      writable: space?.writable() ?? true,
      lateResults,
      ledgerRows: reader.ledgerRows(),
      used: new Map([...writer.used()].map(([model, sums]) => [model, usageSums(sums)])),
    }),
    backup: (to, onProgress) => copyInThread(parts.database, to, onProgress),
    async handOver(sendElsewhere) {
      elsewhere = sendElsewhere
      await parts.leave?.()
    },
    perform: async (name, given) => {
      if (!(writer.names as readonly string[]).includes(name)) throw shuttingDown()
      if (elsewhere) return elsewhere(name, given)
      return writer.send(name as CommandName, given as never)
    },
    close: parts.close,
  }
}

/** Without the rest of the record that a caller may give as a claim. */
const claimOf = ({ organizationId, id, boot, claims }: JobClaim): JobClaim => ({ organizationId, id, boot, claims })

/** A job as the database holds it right after its submission; saves reading it back. */
const asSubmitted = ({ idempotency: _key, limits: _limits, held: _held, ...job }: NewJob): JobRecord => ({
  ...job,
  webhook: job.webhook ?? null,
  class: job.class ?? 'async',
  region: job.region ?? null,
  relayed: job.relayed ?? false,
  requestedModel: job.requestedModel ?? null,
  traceparent: job.traceparent ?? null,
  kind: 'async',
  status: 'pending',
  attempt: 0,
  claims: 0,
  notBefore: Math.max(job.notBefore, job.createdAt),
  boot: null,
  engineId: null,
  result: null,
  error: null,
  usage: null,
  cost: null,
  updatedAt: job.createdAt,
  startedAt: null,
  referenceQueueMs: null,
  fallbackReason: null,
  finishedAt: null,
  expiresAt: null,
  awaits: null,
  parent: null,
  batch: job.batch ?? null,
})

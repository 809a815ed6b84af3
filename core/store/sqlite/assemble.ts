import { Failure } from '../../failure.ts'
import { limitFailure } from '../limit-failure.ts'
import { type JobRecord, type LimitReached, type NewJob, type Store, theServer } from '../store.ts'
import { usageSums } from '../usage-text.ts'
import { received } from './batch.ts'
import { batchStore } from './batch-store.ts'
import type { CommandName } from './commands.ts'
import { growingCommands } from './commands.ts'
import { copyInThread } from './copy-thread.ts'
import { diskFull } from './group.ts'
import type { Reader } from './reader.ts'
import type { ResultSweep } from './result-sweep.ts'
import type { Results } from './results.ts'
import type { Space } from './space.ts'
import type { UsageThread } from './usage-thread.ts'
import { webhookStore } from './webhook-store.ts'
import type { WriterThread } from './writer-thread.ts'

/** Combines writer, reader and disk watch into the Store interface. */
export function assemble(parts: {
  writer: WriterThread
  reader: Reader
  usage: UsageThread
  results: Results
  /** Absent where no server watches the disk and erases unused result files. */
  space?: Space
  sweep?: ResultSweep
  database: string
  close: () => Promise<void>
}): Store {
  const { writer, reader, results, space, sweep } = parts
  let lateResults = 0

  const send: WriterThread['send'] = (name, argument, weight) => {
    const room = space?.room() ?? 'enough'
    return (room !== 'enough' && growingCommands.has(name)) ||
      (room === 'full' && name === ('jobs.claim' satisfies CommandName))
      ? Promise.reject(received(diskFull))
      : writer.send(name, argument, weight)
  }

  function jobOfKey(organizationId: string, holder: string): JobRecord {
    const made = reader.jobs.find(organizationId, holder)
    if (made) return made
    throw new Failure(
      'output_expired',
      `This Idempotency-Key made the job ${holder}, which is no longer kept. Send a new key to run it again.`,
    )
  }

  const submitted = (job: NewJob, holder: string | null): { job: JobRecord; replayed: boolean } =>
    holder === null
      ? { job: asSubmitted(job), replayed: false }
      : { job: jobOfKey(job.organizationId, holder), replayed: true }

  return {
    organizations: {
      async create(organization, by = theServer) {
        await send('organizations.create', { organization, by })
        return reader.organizations.find(organization.id)!
      },
      list: async () => reader.organizations.list(),
      find: async id => reader.organizations.find(id),
      use: (id, dayStart) => send('organizations.use', { id, dayStart }),
      async update(id, change, by, at) {
        return (await send('organizations.update', { id, change, by, at })) ? reader.organizations.find(id) : undefined
      },
      async setStatus(id, status, by, at) {
        const set = await send('organizations.setStatus', { id, status, by, at })
        return set ? reader.organizations.find(id) : undefined
      },
      suspended: async () => reader.organizations.suspended(),
      // In the writer's thread, because it scans all pending jobs.
      activeWork: id => send('organizations.activeWork', id),
      cancelWork: (id, at, limit) => send('organizations.cancelWork', { id, at, limit }),
      remove: (id, force, by, at) => send('organizations.remove', { id, force, by, at }),
      unerased: async () => reader.organizations.unerased(),
      erase: (id, at, limit) => send('organizations.erase', { id, at, limit }),
    },
    users: {
      async create(user, by) {
        await send('users.create', { user, by })
        return reader.users.find(user.organizationId, user.id)!
      },
      find: async (organizationId, id) => reader.users.find(organizationId, id),
      summary: async (organizationId, id) => reader.users.summary(organizationId, id),
      list: async (organizationId, page) => reader.users.list(organizationId, page),
      update: (organizationId, id, change, act) => send('users.update', { organizationId, id, change, ...act }),
      remove: (organizationId, id, act) => send('users.remove', { organizationId, id, ...act }),
    },
    audit: {
      list: async (organizationId, filter) => reader.audit.list(organizationId, filter),
    },
    tokens: {
      async create(token, by = theServer) {
        await send('tokens.create', { token, by })
        return reader.tokens.find(token.organizationId, token.id)!
      },
      verify: publicId => reader.tokens.verify(publicId),
      verifyId: id => reader.tokens.verifyId(id),
      find: async (organizationId, id) => reader.tokens.find(organizationId, id),
      list: async (organizationId, page) => reader.tokens.list(organizationId, page),
      async update(organizationId, id, change, by = theServer) {
        await send('tokens.update', { organizationId, id, change, by, at: Date.now() })
        return reader.tokens.find(organizationId, id)
      },
      async revoke(organizationId, id, at, by = theServer) {
        await send('tokens.revoke', { organizationId, id, at, by })
        return reader.tokens.find(organizationId, id)
      },
      async rotate(organizationId, id, next, previousValidUntil, by = theServer) {
        const rotated = await send('tokens.rotate', { organizationId, id, next, previousValidUntil, by })
        return rotated ? reader.tokens.find(organizationId, next.id) : undefined
      },
      countActive: async (organizationId, scope, at) => reader.tokens.countActive(organizationId, scope, at),
      touch: uses => send('tokens.touch', uses),
    },
    jobs: {
      async submit(job) {
        const holder = permitted(await send('jobs.submit', job, job.inputs.length))
        return submitted(job, holder)
      },
      async submitAll(jobs) {
        const length = jobs.reduce((sum, { inputs }) => sum + inputs.length, 0)
        const holders = permitted(await send('jobs.submitAll', jobs, length))
        return jobs.map((job, at) => submitted(job, holders[at]!))
      },
      async findByKey(organizationId, key, now) {
        const holder = reader.jobs.keyHolder(organizationId, key, now)
        return holder === undefined ? undefined : jobOfKey(organizationId, holder)
      },
      // In the writer's thread, because it scans all pending jobs.
      backlog: () => send('jobs.backlog', undefined),
      deferred: () => send('jobs.deferred', undefined),
      async resume(organizationId, id, how, at) {
        const length = 'inputs' in how ? how.inputs.length : 0
        const resumed = await send('jobs.resume', { organizationId, id, how, at }, length)
        return resumed ? reader.jobs.find(organizationId, id) : undefined
      },
      waiting: async query => reader.jobs.waiting(query),
      wake: (now, limit) => send('jobs.wake', { now, limit }),
      nextDue: async () => reader.jobs.nextDue(),
      claim: (organizationId, id, now) => send('jobs.claim', { organizationId, id, now }),
      async expire(now, limit) {
        const ended = await send('jobs.expire', { now, limit })
        return ended
          .map(({ organizationId, id }) => reader.jobs.find(organizationId, id))
          .filter(job => job !== undefined)
      },
      async settle({ organizationId, id, boot, claims }, ended, slotOf) {
        const claim = { organizationId, id, boot, claims }
        // A full disk refuses this claim as it refuses `jobs.claim`.
        const next = space?.room() === 'full' ? undefined : slotOf
        const settled = await results.settling(claim, ended, outcome => {
          const text = outcome.status === 'completed' && typeof outcome.result === 'string' ? outcome.result.length : 0
          return send('jobs.settle', { claim, outcome, next }, text + (outcome.logs?.length ?? 0))
        })
        if (!settled) lateResults += 1
        return settled
      },
      release: ({ organizationId, id, boot, claims }, notBefore) =>
        send('jobs.release', { claim: { organizationId, id, boot, claims }, notBefore, at: Date.now() }),
      async cancel(organizationId, id, at) {
        return (await send('jobs.cancel', { organizationId, id, at }))
          ? reader.jobs.find(organizationId, id)
          : undefined
      },
      find: async (organizationId, id) => reader.jobs.find(organizationId, id),
      wasRemoved: async (organizationId, id) => reader.jobs.wasRemoved(organizationId, id),
      list: async (organizationId, filter) => reader.jobs.list(organizationId, filter),
      logs: async (organizationId, id) => reader.jobs.logs(organizationId, id),
      async remove(organizationId, id, at) {
        const removed = await send('jobs.remove', { organizationId, id, at })
        sweep?.schedule()
        return removed || undefined
      },
      sweep: (now, limit, keysNow = now) => send('jobs.sweep', { now, keysNow, limit }),
      // As one text: cloning eighteen members per record cost the main thread twice as much as serializing them.
      record: finished => send('jobs.record', JSON.stringify(finished)),
      counts: async () => reader.jobs.counts(),
    },
    events: {
      after: async (organizationId, query) => reader.events.after(organizationId, query),
      ofOrganization: async (organizationId, query) => reader.events.ofOrganization(organizationId, query),
      ofExecution: async (organizationId, query) => reader.events.ofExecution(organizationId, query),
      last: async () => reader.events.last(),
    },
    idempotency: {
      find: async digest => reader.idempotency.find(digest),
      keep: (digest, reply) => send('idempotency.keep', { digest, reply }, reply.body.length),
    },
    files: {
      async requireRoom(organizationId, file, limits) {
        permitted(await send('files.room', { organizationId, ...file, limits }))
      },
      async add(file, limits) {
        permitted(await send('files.add', { file, limits }))
        return { ...file, removedAt: null }
      },
      find: async id => reader.files.find(id),
      list: async (organizationId, page) => reader.files.list(organizationId, page),
      listOfApi: async (organizationId, page) => reader.files.listOfApi(organizationId, page),
      async delete(organizationId, id, at) {
        return (await send('files.delete', { organizationId, id, at })) ? reader.files.find(id) : undefined
      },
      async remove(organizationId, id, at) {
        return (await send('files.remove', { organizationId, id, at })) ? reader.files.find(id) : undefined
      },
      expire: (now, limit) => send('files.expire', { now, limit }),
      erased: ids => send('files.erased', ids),
    },
    sessions: {
      add: session => send('sessions.add', session),
      find: digest => reader.sessions.find(digest),
      extend: these => send('sessions.extend', these),
      remove: digest => send('sessions.remove', digest),
    },
    responses: {
      add: record => send('responses.add', record, record.input.length + (record.answer?.length ?? 0)),
      find: async (organizationId, id, now) => reader.responses.find(organizationId, id, now),
      remove: (organizationId, id) => send('responses.remove', { organizationId, id }),
    },
    library: {
      list: async (organizationId, filter) => reader.library.list(organizationId, filter),
      find: async (organizationId, id) => reader.library.find(organizationId, id),
      remove: (organizationId, id, at) => send('library.remove', { organizationId, id, at }),
    },
    workflows: {
      async create(workflow) {
        await send('workflows.create', workflow)
        return reader.workflows.find(workflow.organizationId, workflow.id)!
      },
      async update(organizationId, id, change, { expected, at }) {
        const updated = await send('workflows.update', { organizationId, id, change, expected, at })
        return updated ? reader.workflows.find(organizationId, id) : undefined
      },
      find: async (organizationId, id, version) => reader.workflows.find(organizationId, id, version),
      versions: async (organizationId, id, page) => reader.workflows.versions(organizationId, id, page),
      list: async (organizationId, page) => reader.workflows.list(organizationId, page),
      remove: async (organizationId, id) => (await send('workflows.remove', { organizationId, id })) || undefined,
    },
    executions: {
      async create(execution) {
        const holder = permitted(await send('executions.create', execution))
        const made = reader.executions.find(execution.organizationId, holder ?? execution.id)
        if (!made)
          throw new Failure(
            'output_expired',
            `This Idempotency-Key made the execution ${holder}, which is no longer kept. Send a new key to run it again.`,
          )
        return { execution: made, replayed: holder !== null }
      },
      find: async (organizationId, id) => reader.executions.find(organizationId, id),
      summary: async (organizationId, id) => reader.executions.summary(organizationId, id),
      nodes: async (organizationId, id) => reader.executions.nodes(organizationId, id),
      list: async (organizationId, filter) => reader.executions.list(organizationId, filter),
      async cancel(organizationId, id, at) {
        const cancelled = await send('executions.cancel', { organizationId, id, at })
        return cancelled ? reader.executions.find(organizationId, id) : undefined
      },
      async expire(now, limit) {
        const ended = await send('executions.expire', { now, limit })
        return ended
          .map(({ organizationId, id }) => reader.executions.find(organizationId, id))
          .filter(execution => execution !== undefined)
      },
      nextDue: async () => reader.executions.nextDue(),
      async remove(organizationId, id, at) {
        const removed = await send('executions.remove', { organizationId, id, at })
        sweep?.schedule()
        return removed || undefined
      },
      sweep: (now, limit) => send('executions.sweep', { now, limit }),
      results: async (organizationId, id, nodeIds) => reader.executions.results(organizationId, id, nodeIds),
      inputs: async (organizationId, id, maxLength) => reader.executions.inputs(organizationId, id, maxLength),
      cached: async (organizationId, key) => reader.executions.cached(organizationId, key),
      reuse: (organizationId, jobId, from) => send('executions.reuse', { organizationId, jobId, from }),
    },
    batches: batchStore(send, reader, asSubmitted),
    webhooks: webhookStore(send, reader),
    usage: { read: query => parts.usage.read(query) },
    spend: {
      read: async fromMonth => reader.spend.read(fromMonth),
      held: async () => reader.spend.held(),
      limitPlans: limits => send('spend.limitPlans', limits),
    },
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
    close: parts.close,
  }
}

/** Throws the failure of a limit that forbids the request. */
function permitted<Answer>(answer: Answer | LimitReached): Answer {
  if (answer !== null && typeof answer === 'object' && 'limit' in answer) throw limitFailure(answer)
  return answer
}

/** A job as the database holds it right after its submission; saves reading it back. */
const asSubmitted = ({ idempotency: _key, limits: _limits, held: _held, ...job }: NewJob): JobRecord => ({
  ...job,
  webhook: job.webhook ?? null,
  class: job.class ?? 'async',
  region: job.region ?? null,
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
  finishedAt: null,
  expiresAt: null,
  parent: null,
  batch: job.batch ?? null,
})

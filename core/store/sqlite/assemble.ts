import { Failure } from '../../failure.ts'
import type { JobRecord, NewJob, Store } from '../store.ts'
import { received } from './batch.ts'
import type { CommandName } from './commands.ts'
import { growingCommands } from './commands.ts'
import { copyInThread } from './copy-thread.ts'
import { diskFull } from './group.ts'
import type { Reader } from './reader.ts'
import type { ResultSweep } from './result-sweep.ts'
import type { Results } from './results.ts'
import type { Space } from './space.ts'
import type { WriterThread } from './writer-thread.ts'

/** Puts writer, reader and disk watch together into the Store that the rest of the program knows. */
export function assemble(parts: {
  writer: WriterThread
  reader: Reader
  results: Results
  /** Absent where no server watches the disk and frees what is not wanted any more. */
  space?: Space
  sweep?: ResultSweep
  database: string
  close: () => Promise<void>
}): Store {
  const { writer, reader, results, space, sweep } = parts
  let lateResults = 0

  const ask: WriterThread['ask'] = (name, argument, weight) => {
    const room = space?.room() ?? 'enough'
    return (room !== 'enough' && growingCommands.has(name)) ||
      (room === 'full' && name === ('jobs.claim' satisfies CommandName))
      ? Promise.reject(received(diskFull))
      : writer.ask(name, argument, weight)
  }

  function keyed(organizationId: string, holder: string): JobRecord {
    const made = reader.jobs.find(organizationId, holder)
    if (made) return made
    throw new Failure(
      'output_expired',
      `This Idempotency-Key made the job ${holder}, which is not kept any more. Send a new key to run it again.`,
    )
  }

  return {
    organizations: {
      async create(organization) {
        await ask('organizations.create', organization)
        return reader.organizations.find(organization.id)!
      },
      list: async () => reader.organizations.list(),
      find: async id => reader.organizations.find(id),
    },
    tokens: {
      async create(token) {
        await ask('tokens.create', token)
        return reader.tokens.find(token.organizationId, token.id)!
      },
      verify: publicId => reader.tokens.verify(publicId),
      find: async (organizationId, id) => reader.tokens.find(organizationId, id),
      list: async (organizationId, page) => reader.tokens.list(organizationId, page),
      async update(organizationId, id, change) {
        await ask('tokens.update', { organizationId, id, change })
        return reader.tokens.find(organizationId, id)
      },
      async revoke(organizationId, id, at) {
        await ask('tokens.revoke', { organizationId, id, at })
        return reader.tokens.find(organizationId, id)
      },
      async rotate(organizationId, id, next, previousValidUntil) {
        const rotated = await ask('tokens.rotate', { organizationId, id, next, previousValidUntil })
        return rotated ? reader.tokens.find(organizationId, next.id) : undefined
      },
      countActive: async (organizationId, scope, at) => reader.tokens.countActive(organizationId, scope, at),
      touch: uses => ask('tokens.touch', uses),
    },
    jobs: {
      async submit(job) {
        const holder = await ask('jobs.submit', job, job.inputs.length)
        if (holder === null) return { job: asSubmitted(job), replayed: false }
        return { job: keyed(job.organizationId, holder), replayed: true }
      },
      async keyed(organizationId, key, now) {
        const holder = reader.jobs.keyHolder(organizationId, key, now)
        return holder === undefined ? undefined : keyed(organizationId, holder)
      },
      // In the thread of the writer, because it goes through all that wait.
      backlog: () => ask('jobs.backlog', undefined),
      waiting: async want => reader.jobs.waiting(want),
      wake: (now, limit) => ask('jobs.wake', { now, limit }),
      nextDue: async () => reader.jobs.nextDue(),
      claim: (organizationId, id, now) => ask('jobs.claim', { organizationId, id, now }),
      async expire(now, limit) {
        const ended = await ask('jobs.expire', { now, limit })
        return ended
          .map(({ organizationId, id }) => reader.jobs.find(organizationId, id))
          .filter(job => job !== undefined)
      },
      async settle({ organizationId, id, boot, claims }, ended, slotOf) {
        const claim = { organizationId, id, boot, claims }
        // What would not be claimed by itself is not claimed with this either.
        const next = space?.room() === 'full' ? undefined : slotOf
        const settled = await results.settling(claim, ended, outcome => {
          const text = outcome.status === 'completed' && typeof outcome.result === 'string' ? outcome.result.length : 0
          return ask('jobs.settle', { claim, outcome, next }, text + (outcome.logs?.length ?? 0))
        })
        if (!settled) lateResults += 1
        return settled
      },
      release: ({ organizationId, id, boot, claims }, notBefore) =>
        ask('jobs.release', { claim: { organizationId, id, boot, claims }, notBefore, at: Date.now() }),
      async cancel(organizationId, id, at) {
        return (await ask('jobs.cancel', { organizationId, id, at })) ? reader.jobs.find(organizationId, id) : undefined
      },
      find: async (organizationId, id) => reader.jobs.find(organizationId, id),
      gone: async (organizationId, id) => reader.jobs.gone(organizationId, id),
      list: async (organizationId, filter) => reader.jobs.list(organizationId, filter),
      logs: async (organizationId, id) => reader.jobs.logs(organizationId, id),
      async remove(organizationId, id, at) {
        const removed = await ask('jobs.remove', { organizationId, id, at })
        sweep?.look()
        return removed || undefined
      },
      sweep: (now, limit, keysNow = now) => ask('jobs.sweep', { now, keysNow, limit }),
      // As one text: cloning eighteen members a record cost the main thread twice as much as writing them down.
      record: finished => ask('jobs.record', JSON.stringify(finished)),
      counts: async () => reader.jobs.counts(),
    },
    events: {
      after: async (organizationId, want) => reader.events.after(organizationId, want),
      ofOrganization: async (organizationId, want) => reader.events.ofOrganization(organizationId, want),
      ofExecution: async (organizationId, want) => reader.events.ofExecution(organizationId, want),
      last: async () => reader.events.last(),
    },
    idempotency: {
      find: async digest => reader.idempotency.find(digest),
      keep: (digest, reply) => ask('idempotency.keep', { digest, reply }, reply.body.length),
    },
    files: {
      async add(file) {
        await ask('files.add', file)
        return { ...file, removedAt: null }
      },
      find: async id => reader.files.find(id),
      list: async (organizationId, page) => reader.files.list(organizationId, page),
      async remove(organizationId, id, at) {
        return (await ask('files.remove', { organizationId, id, at })) ? reader.files.find(id) : undefined
      },
      expire: (now, limit) => ask('files.expire', { now, limit }),
      erased: ids => ask('files.erased', ids),
    },
    library: {
      list: async (organizationId, filter) => reader.library.list(organizationId, filter),
      find: async (organizationId, id) => reader.library.find(organizationId, id),
      remove: (organizationId, id, at) => ask('library.remove', { organizationId, id, at }),
    },
    workflows: {
      async create(workflow) {
        await ask('workflows.create', workflow)
        return reader.workflows.find(workflow.organizationId, workflow.id)!
      },
      async update(organizationId, id, change, { expected, at }) {
        const updated = await ask('workflows.update', { organizationId, id, change, expected, at })
        return updated ? reader.workflows.find(organizationId, id) : undefined
      },
      find: async (organizationId, id, version) => reader.workflows.find(organizationId, id, version),
      list: async (organizationId, page) => reader.workflows.list(organizationId, page),
      remove: async (organizationId, id) => (await ask('workflows.remove', { organizationId, id })) || undefined,
    },
    executions: {
      async create(execution) {
        const holder = await ask('executions.create', execution)
        const made = reader.executions.find(execution.organizationId, holder ?? execution.id)
        if (!made)
          throw new Failure(
            'output_expired',
            `This Idempotency-Key made the execution ${holder}, which is not kept any more. Send a new key to run it again.`,
          )
        return { execution: made, replayed: holder !== null }
      },
      find: async (organizationId, id) => reader.executions.find(organizationId, id),
      summary: async (organizationId, id) => reader.executions.summary(organizationId, id),
      nodes: async (organizationId, id) => reader.executions.nodes(organizationId, id),
      list: async (organizationId, filter) => reader.executions.list(organizationId, filter),
      async cancel(organizationId, id, at) {
        const cancelled = await ask('executions.cancel', { organizationId, id, at })
        return cancelled ? reader.executions.find(organizationId, id) : undefined
      },
      async expire(now, limit) {
        const ended = await ask('executions.expire', { now, limit })
        return ended
          .map(({ organizationId, id }) => reader.executions.find(organizationId, id))
          .filter(execution => execution !== undefined)
      },
      nextDue: async () => reader.executions.nextDue(),
      async remove(organizationId, id, at) {
        const removed = await ask('executions.remove', { organizationId, id, at })
        sweep?.look()
        return removed || undefined
      },
      sweep: (now, limit) => ask('executions.sweep', { now, limit }),
      results: async (organizationId, id, nodeIds) => reader.executions.results(organizationId, id, nodeIds),
      inputs: async (organizationId, id, longest) => reader.executions.inputs(organizationId, id, longest),
      cached: async (organizationId, key) => reader.executions.cached(organizationId, key),
      reuse: (organizationId, jobId, from) => ask('executions.reuse', { organizationId, jobId, from }),
    },
    onCommitted: listener => writer.onCommitted(listener),
    recovery: writer.recovery,
    stats: () => ({
      ...writer.stats(),
      writable: space?.writable() ?? true,
      lateResults,
      ledgerRows: reader.ledgerRows(),
    }),
    backup: (to, onProgress) => copyInThread(parts.database, to, onProgress),
    close: parts.close,
  }
}

/** A job as the database holds it right after its submission; saves reading back what is known. */
const asSubmitted = ({ idempotency: _key, ...job }: NewJob): JobRecord => ({
  ...job,
  class: job.class ?? 'async',
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
})

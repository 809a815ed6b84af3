import type { JobRecord, NewJob, Store } from '../store.ts'
import { received } from './batch.ts'
import type { CommandName } from './commands.ts'
import { growing } from './commands.ts'
import { copyInThread } from './copy-thread.ts'
import { diskFull } from './group.ts'
import type { Reader } from './reader.ts'
import type { Space } from './space.ts'
import type { WriterThread } from './writer-thread.ts'

/** Puts writer, reader and disk watch together into the Store that the rest of the program knows. */
export function assemble(parts: {
  writer: WriterThread
  reader: Reader
  /** Absent where no server watches the disk. */
  space?: Space
  database: string
  close: () => Promise<void>
}): Store {
  const { writer, reader, space } = parts
  let lateResults = 0

  const ask: WriterThread['ask'] = (name, argument, weight) => {
    const room = space?.room() ?? 'enough'
    return (room !== 'enough' && growing.has(name)) ||
      (room === 'full' && name === ('jobs.claim' satisfies CommandName))
      ? Promise.reject(received(diskFull))
      : writer.ask(name, argument, weight)
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
        return { job: reader.jobs.find(job.organizationId, holder)!, replayed: true }
      },
      async claim(want) {
        const numbers = await ask('jobs.claim', want)
        // A cancel may have come between the commit and here.
        return numbers
          .map(number => reader.jobs.numbered(number))
          .filter(job => job?.status === 'processing') as JobRecord[]
      },
      async settle({ organizationId, id, boot, claims }, outcome) {
        const weight = outcome.status === 'completed' ? outcome.result.length : 0
        const settled = await ask('jobs.settle', { claim: { organizationId, id, boot, claims }, outcome }, weight)
        if (!settled) lateResults += 1
        return { settled, job: reader.jobs.find(organizationId, id) }
      },
      release: ({ organizationId, id, boot, claims }, notBefore) =>
        ask('jobs.release', { claim: { organizationId, id, boot, claims }, notBefore }),
      async cancel(organizationId, id, at) {
        return (await ask('jobs.cancel', { organizationId, id, at })) ? reader.jobs.find(organizationId, id) : undefined
      },
      find: async (organizationId, id) => reader.jobs.find(organizationId, id),
      // As one text: cloning eighteen members a record cost the main thread twice as much as writing them down.
      record: finished => ask('jobs.record', JSON.stringify(finished)),
      counts: async () => reader.jobs.counts(),
    },
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
const asSubmitted = (job: NewJob): JobRecord => ({
  id: job.id,
  queueId: job.queueId,
  organizationId: job.organizationId,
  tokenId: job.tokenId,
  kind: 'async',
  task: job.task,
  modelId: job.modelId,
  inputs: job.inputs,
  priority: job.priority,
  status: 'pending',
  attempt: 0,
  maxAttempts: job.maxAttempts,
  claims: 0,
  notBefore: Math.max(job.notBefore, job.createdAt),
  boot: null,
  engineId: null,
  metadata: job.metadata,
  result: null,
  error: null,
  usage: null,
  cost: null,
  createdAt: job.createdAt,
  updatedAt: job.createdAt,
  startedAt: null,
  finishedAt: null,
})

import { limitFailure } from '../limit-failure.ts'
import type { BatchStore, JobRecord, NewJob } from '../store.ts'
import type { Reader } from './reader.ts'
import type { WriterThread } from './writer-thread.ts'

/** Combines the writer and the reader into the batches of the store. */
export function batchStore(
  send: WriterThread['send'],
  reader: Pick<Reader, 'batches'>,
  asSubmitted: (job: NewJob) => JobRecord,
): BatchStore {
  const { batches } = reader
  return {
    async create(batch) {
      const holder = await send('batches.create', batch)
      return { batch: batches.find(batch.organizationId, holder ?? batch.id)!, replayed: holder !== null }
    },
    find: async (organizationId, id) => batches.find(organizationId, id),
    list: async (organizationId, page) => batches.list(organizationId, page),
    unfinished: async () => batches.unfinished(),
    begin: (key, { total, modelId }, at) => send('batches.begin', { ...key, total, modelId, at }),
    fail: (key, faults, at) => send('batches.fail', { ...key, faults, at }),
    async feed(feed) {
      const length = feed.jobs.reduce((sum, { inputs }) => sum + inputs.length, 0)
      const fed = await send('batches.feed', feed, length)
      if (typeof fed === 'object') throw limitFailure(fed)
      return fed ? feed.jobs.map(asSubmitted) : undefined
    },
    refuseRest: (key, error, at) => send('batches.refuseRest', { ...key, error, at }),
    async cancel(organizationId, id, at) {
      return (await send('batches.cancel', { organizationId, id, at })) ? batches.find(organizationId, id) : undefined
    },
    expire: (key, at) => send('batches.expire', { ...key, at }),
    finish: (key, at) => send('batches.finish', { ...key, at }),
    lines: async (key, from, to) => batches.lines(key, from, to),
    running: async key => batches.running(key),
    sweep: limit => send('batches.sweep', limit),
  }
}

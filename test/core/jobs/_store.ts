import { Failure } from '../../../core/failure.ts'
import { waitingOf } from '../../../core/store/job-records.ts'
import type { Backlog, JobRecord, NewJob, Store, StoredJobClass } from '../../../core/store/store.ts'

type Jobs = Store['jobs']

/**
 * The jobs of a store, in memory and synchronous, for tests with simulated time. Methods that the tests do not use
 * throw.
 */
export function memoryStore(): Store {
  const rows = new Map<string, JobRecord>()
  const due = (job: JobRecord) => job.status === 'pending' && job.notBefore <= job.createdAt
  const own = (organizationId: string, id: string) => {
    const row = rows.get(id)
    return row?.organizationId === organizationId ? row : undefined
  }
  const holds = (claim: { id: string; claims: number }) => {
    const row = rows.get(claim.id)
    return row?.status === 'processing' && row.claims === claim.claims ? row : undefined
  }
  const jobs: Partial<Jobs> = {
    async submit(job: NewJob) {
      const row: JobRecord = {
        ...job,
        class: job.class ?? 'async',
        region: job.region ?? null,
        relayed: job.relayed ?? false,
        notBefore: Math.max(job.notBefore, job.createdAt),
        kind: 'async',
        status: 'pending',
        attempt: 0,
        claims: 0,
        boot: null,
        engineId: null,
        result: null,
        error: null,
        usage: null,
        cost: null,
        updatedAt: job.createdAt,
        startedAt: null,
        referenceQueueMs: null,
        requestedModel: null,
        fallbackReason: null,
        finishedAt: null,
        expiresAt: null,
        webhook: null,
        awaits: null,
        parent: null,
        batch: null,
      }
      rows.set(job.id, row)
      return { job: { ...row }, replayed: false }
    },
    async backlog() {
      const counts = new Map<string, Backlog>()
      for (const { modelId, organizationId, class: jobClass } of [...rows.values()].filter(due)) {
        const key = `${modelId} ${jobClass} ${organizationId}`
        const one = counts.get(key) ?? { modelId, class: jobClass as StoredJobClass, organizationId, jobs: 0 }
        counts.set(key, { ...one, jobs: one.jobs + 1 })
      }
      return [...counts.values()]
    },
    async waiting(want) {
      return [...rows.values()]
        .filter(
          job =>
            due(job) &&
            job.modelId === want.modelId &&
            job.class === want.class &&
            job.organizationId === want.organizationId &&
            job.rank >= want.from,
        )
        .sort((a, b) => a.rank - b.rank)
        .slice(0, want.limit)
        .map(waitingOf)
    },
    async waitingDetails(want) {
      const found = await jobs.waiting!(want)
      return found.map(job => {
        const { maxAttempts, fallbackReason, updatedAt: since } = rows.get(job.id)!
        return { ...job, maxAttempts, fallbackReason, since }
      })
    },
    async wake(at, limit) {
      const woken = [...rows.values()].filter(job => job.status === 'pending' && !due(job) && job.notBefore <= at)
      for (const job of woken.slice(0, limit))
        Object.assign(job, { updatedAt: Math.max(job.updatedAt, job.notBefore), notBefore: job.createdAt })
      return woken.slice(0, limit).map(waitingOf)
    },
    async nextDue() {
      const times = [...rows.values()].flatMap(job =>
        job.status !== 'pending' ? [] : [...(due(job) ? [] : [job.notBefore]), ...(job.startBy ? [job.startBy] : [])],
      )
      return times.length === 0 ? null : Math.min(...times)
    },
    async claim(organizationId, id, at, behindMs = null) {
      const row = own(organizationId, id)
      if (row?.status !== 'pending' || !due(row)) return undefined
      const referenceQueueMs = behindMs === null ? null : Math.max(0, at - row.createdAt - behindMs)
      Object.assign(row, { status: 'processing', attempt: row.attempt + 1, claims: row.claims + 1, startedAt: at })
      Object.assign(row, { referenceQueueMs })
      return { ...row }
    },
    async expire(at, limit) {
      const over = [...rows.values()].filter(
        job => job.status === 'pending' && job.startBy !== null && job.startBy <= at,
      )
      for (const row of over.slice(0, limit)) Object.assign(row, { status: 'failed', finishedAt: at })
      return over.slice(0, limit).map(row => ({ ...row }))
    },
    async settle(claim, outcome) {
      const row = holds(claim)
      if (!row) return false
      if (outcome.status === 'completed')
        Object.assign(row, { status: 'completed', result: outcome.result, finishedAt: outcome.at })
      else if (outcome.retryAt === null)
        Object.assign(row, { status: 'failed', error: outcome.error, finishedAt: outcome.at })
      else Object.assign(row, { status: 'pending', error: outcome.error, notBefore: outcome.retryAt, startedAt: null })
      return true
    },
    async release(claim) {
      const row = holds(claim)
      if (row) Object.assign(row, { status: 'pending', attempt: row.attempt - 1, startedAt: null })
      return row !== undefined
    },
    async cancel(organizationId, id, at) {
      const row = own(organizationId, id)
      if (!row) return undefined
      if (row.status === 'completed' || row.status === 'failed')
        throw new Failure('job_already_finished', `The job ${id} has already ended.`)
      if (row.status !== 'cancelled') Object.assign(row, { status: 'cancelled', finishedAt: at })
      return { ...row }
    },
    find: async (organizationId, id) => own(organizationId, id),
    logs: async () => '[]',
    sweep: async () => 0,
  }
  return { jobs, events: {} } as unknown as Store
}

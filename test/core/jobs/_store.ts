import { Failure } from '../../../core/failure.ts'
import type { JobRecord, NewJob, Store } from '../../../core/store/store.ts'

type Jobs = Store['jobs']

/** The jobs of a store, in memory and at once: for tests in which time is not real. What it is not asked for throws. */
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
        finishedAt: null,
        expiresAt: null,
        parent: null,
      }
      rows.set(job.id, row)
      return { job: { ...row }, replayed: false }
    },
    async backlog() {
      const counts = new Map<string, { modelId: string; organizationId: string; jobs: number }>()
      for (const { modelId, organizationId } of [...rows.values()].filter(due)) {
        const one = counts.get(`${modelId} ${organizationId}`) ?? { modelId, organizationId, jobs: 0 }
        counts.set(`${modelId} ${organizationId}`, { ...one, jobs: one.jobs + 1 })
      }
      return [...counts.values()]
    },
    async waiting({ modelId, organizationId, from, limit }) {
      return [...rows.values()]
        .filter(job => due(job) && job.modelId === modelId && job.organizationId === organizationId && job.rank >= from)
        .sort((a, b) => a.rank - b.rank)
        .slice(0, limit)
        .map(({ id, rank }) => ({ id, organizationId, modelId, rank }))
    },
    async wake(at, limit) {
      const woken = [...rows.values()].filter(job => job.status === 'pending' && !due(job) && job.notBefore <= at)
      for (const job of woken.slice(0, limit)) job.notBefore = job.createdAt
      return woken
        .slice(0, limit)
        .map(({ id, organizationId, modelId, rank }) => ({ id, organizationId, modelId, rank }))
    },
    async nextDue() {
      const times = [...rows.values()].flatMap(job =>
        job.status !== 'pending' ? [] : [...(due(job) ? [] : [job.notBefore]), ...(job.startBy ? [job.startBy] : [])],
      )
      return times.length === 0 ? null : Math.min(...times)
    },
    async claim(organizationId, id, at) {
      const row = own(organizationId, id)
      if (row?.status !== 'pending' || !due(row)) return undefined
      Object.assign(row, { status: 'processing', attempt: row.attempt + 1, claims: row.claims + 1, startedAt: at })
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
  return { jobs } as unknown as Store
}

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Admitted } from '../../../core/admission/admission.ts'
import { newId } from '../../../core/ids.ts'
import { type Log, openLog } from '../../../core/log.ts'
import { openSqliteStore, type StoreWish } from '../../../core/store/sqlite/store.ts'
import type {
  FinishedJob,
  JobRecord,
  NewFile,
  NewJob,
  NewLibraryItem,
  NewToken,
  Store,
} from '../../../core/store/store.ts'
import { admittedWork } from '../_admission.ts'

/** A directory that is gone at the end of the scope. */
export function temporaryDirectory(): Disposable & { path: string } {
  const path = mkdtempSync(join(tmpdir(), 'infer-store-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

/** A log that keeps its lines. */
export function keptLog(): { log: Log; lines: string[] } {
  const lines: string[] = []
  return { log: openLog('debug', line => lines.push(line)), lines }
}

export const organizationId = 'org_test'

export type TestStore = AsyncDisposable & { store: Store; dataDir: string; fatal: [Error, number][]; lines: string[] }

/** A server's store with one organization, in a directory of its own unless one is given. */
export async function openTestStore(wish: Partial<StoreWish> = {}): Promise<TestStore> {
  const directory = temporaryDirectory()
  const dataDir = wish.dataDir ?? directory.path
  const fatal: [Error, number][] = []
  const { log, lines } = keptLog()
  const store = await openSqliteStore({
    dataDir,
    log,
    minFreeBytes: 0,
    ballastBytes: 0,
    onFatal: (failure, exitCode) => fatal.push([failure, exitCode]),
    ...wish,
  })
  if (!(await store.organizations.find(organizationId))) await createOrganization(store)
  return {
    store,
    dataDir,
    fatal,
    lines,
    async [Symbol.asyncDispose]() {
      await store.close()
      directory[Symbol.dispose]()
    },
  }
}

export const createOrganization = (store: Store, id = organizationId) =>
  store.organizations.create({
    id,
    name: `name of ${id}`,
    plan: 'pro',
    requestsPerMinute: null,
    jobsPerMinute: 0,
    createdAt: 1_700_000_000_000,
  })

/** A job as the store takes it, with the admission that the owner of jobs wants besides. */
export const newJob = (job: Partial<NewJob> = {}): NewJob & { admitted: Admitted } => {
  const { createdAt = Date.now(), priority = 0 } = job
  const made: NewJob = {
    id: newId('job'),
    organizationId,
    tokenId: 'tok_test',
    task: 'std/chat-completion',
    modelId: 'tiny-chat',
    slug: null,
    inputs: '{"messages":[]}',
    priority,
    rank: createdAt * 1000 - priority * 60_000_000,
    maxAttempts: 3,
    startBy: null,
    timeoutMs: null,
    retentionMs: null,
    notBefore: createdAt,
    createdAt,
    metadata: null,
    idempotency: null,
    ...job,
  }
  // Not a field of what is stored.
  return Object.defineProperty(made, 'admitted', { value: admittedWork(made) }) as NewJob & { admitted: Admitted }
}

export const newToken = (token: Partial<NewToken> = {}): NewToken => ({
  id: newId('tok'),
  publicId: Math.random().toString(36).slice(2, 14).padEnd(12, '0'),
  organizationId,
  name: 'a token',
  scopes: ['user:read', 'user:write'],
  digest: Buffer.alloc(32, 7),
  hint: '…abcd',
  models: null,
  createdAt: 1_700_000_000_000,
  expiresAt: null,
  createdBy: null,
  ...token,
})

export const finishedCall = (call: Partial<FinishedJob> = {}): FinishedJob => ({
  id: newId('job'),
  organizationId,
  tokenId: 'tok_test',
  task: 'std/chat-completion',
  modelId: 'tiny-chat',
  status: 'completed',
  error: null,
  usage: { inputTokens: 10, outputTokens: 5 },
  cost: 15,
  engineId: 'wkr_test',
  createdAt: Date.now(),
  startedAt: Date.now(),
  finishedAt: Date.now(),
  ...call,
})

export const newFile = (file: Partial<NewFile> = {}): NewFile => ({
  id: newId('file'),
  organizationId,
  purpose: 'output',
  name: 'video.mp4',
  contentType: 'video/mp4',
  bytes: 1000,
  sha256: 'ab'.repeat(32),
  width: 64,
  height: 48,
  durationMs: 2000,
  jobId: null,
  createdAt: 1_700_000_000_000,
  expiresAt: null,
  ...file,
})

/** The entry of a video and the files behind it, as a job hands them in. */
export function newVideo(item: Partial<NewLibraryItem> = {}): { files: NewFile[]; library: NewLibraryItem[] } {
  const { jobId = newId('job'), organizationId: owner = organizationId } = item
  const video = newFile({ jobId, organizationId: owner })
  const thumbnail = newFile({ jobId, organizationId: owner, purpose: 'thumbnail', name: 'video.webp' })
  return {
    files: [video, thumbnail],
    library: [
      {
        id: video.id,
        organizationId: owner,
        jobId,
        task: 'slug/text-to-video',
        modelId: 'demo',
        prompt: 'a cat',
        seed: 7,
        fps: 8,
        numFrames: 16,
        thumbnailId: thumbnail.id,
        createdAt: 1_700_000_000_000,
        ...item,
      },
    ],
  }
}

export const completed = (at = Date.now()) => ({
  status: 'completed' as const,
  result: '{"ok":true}',
  usage: { inputTokens: 3, outputTokens: 4 },
  cost: 7,
  engineId: 'wkr_test',
  at,
  logs: null,
  files: [],
  library: [],
})

export const failed = (retryAt: number | null = null, code: 'worker_error' | 'timeout' = 'worker_error') => ({
  status: 'failed' as const,
  error: { code, message: 'It broke.', type: 'server_error', retryable: true, attempt: 1 },
  retryAt,
  engineId: null,
  at: Date.now(),
  logs: null,
})

/** Takes what waits by rank, of all models and organizations: a queue that knows nothing of fairness. */
export async function claimWaiting(
  store: Store,
  { limit = 100, now = Date.now(), modelId }: { limit?: number; now?: number; modelId?: string } = {},
): Promise<JobRecord[]> {
  await store.jobs.wake(now, 1000)
  const lines = (await store.jobs.backlog()).filter(line => modelId === undefined || line.modelId === modelId)
  const waiting = await Promise.all(
    lines.map(line => store.jobs.waiting({ ...line, from: Number.MIN_SAFE_INTEGER, limit })),
  )
  const first = waiting.flat().sort((a, b) => a.rank - b.rank)
  const claimed = await Promise.all(first.slice(0, limit).map(job => store.jobs.claim(job.organizationId, job.id, now)))
  return claimed.filter(job => job !== undefined)
}

import { newId } from '../../../core/ids.ts'
import type {
  FinishedJob,
  JobRecord,
  NewFile,
  NewJob,
  NewLibraryItem,
  NewToken,
  Store,
} from '../../../core/store/store.ts'

/** The organization that every store of a test has. */
export const organizationId = 'org_test'

export const createOrganization = (store: Store, id = organizationId) =>
  store.organizations.create({
    id,
    name: `name of ${id}`,
    plan: 'pro',
    requestsPerMinute: null,
    jobsPerMinute: 0,
    createdAt: 1_700_000_000_000,
  })

export const newJob = (job: Partial<NewJob> = {}): NewJob => {
  const { createdAt = Date.now(), priority = 0 } = job
  return {
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
  referenceQueueMs: null,
  finishedAt: Date.now(),
  ...call,
})

export const newFile = (file: Partial<NewFile> = {}): NewFile => ({
  id: newId('file'),
  organizationId,
  purpose: 'output',
  apiPurpose: null,
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

/** The entry of a video and its files, as a job gives them to the store. */
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

/** Claims waiting jobs by rank, of all models and organizations: a queue without fairness. */
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

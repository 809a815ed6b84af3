import { isSlugTask, mediaFor } from '../../core/schemas/task.ts'
import type { TaskRecord } from '../../core/tasks/task.ts'
import { sampleImage } from '../../core/tasks/task-test.ts'
import type { Client } from '../client/client.ts'
import { followJob } from '../jobs/follow.ts'
import { filesOfJob, type Job } from '../jobs/job.ts'
import { submitJob } from '../jobs/submit.ts'
import { sampleMedia } from './sample-media.ts'

/**
 * Tests a task whose results are files or a transcript with a small job, which it deletes at the end. Resolves with the
 * reason why the model did not pass, as a sentence; null if it did. Rejects with the Failure of a refused job.
 */
export async function testByJob(
  record: TaskRecord,
  model: string,
  client: Client,
  signal: AbortSignal,
): Promise<string | null> {
  const inputs = testInputs(record)
  const connect = () => client
  const options = { signal, onTrouble() {} }
  const { id } = await submitJob(connect, { task: record.id, model_id: model, inputs }, options)
  try {
    const job = await followJob(connect, id, { ...options, onChange() {} })
    if (job.status !== 'completed') return job.error?.message ?? `The job was ${job.status}.`
    return await faultOfResult(record, job, url => bytesOf(client, url, signal))
  } finally {
    // What is left of a test only takes up space until it expires.
    await client.api.DELETE('/api/jobs/{id}', { params: { path: { id } } }).catch(() => undefined)
  }
}

/** Returns the inputs of a small job of a task: its sample, with the files that it needs. */
export function testInputs({
  id,
  family,
  sample,
}: Pick<TaskRecord, 'id' | 'family' | 'sample'>): Record<string, unknown> {
  if (family === 'transcription') return { url: sampleMedia.audio() }
  if (family === 'speech') return { ...sample }
  const prompt = { prompt: sampleImage }
  if (!isSlugTask(id)) return sample ? { ...sample } : { ...prompt, image: sampleMedia.image() }
  const files = mediaFor(id).map(kind => [`${kind}_url`, sampleMedia[kind]()] as const)
  return { ...(sample ?? { ...prompt, preset: 'fast_draft' }), ...Object.fromEntries(files) }
}

async function bytesOf(client: Client, url: string, signal: AbortSignal): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  for await (const piece of client.bytes(url, signal)) pieces.push(piece)
  return Buffer.concat(pieces)
}

/** The first bytes of files that models make, by their kind. */
const heads = {
  image: /^(\x89PNG|\xff\xd8\xff|RIFF....WEBP)/s,
  video: /^(....ftyp|.E\xdf\xa3)/s,
  audio: /^(RIFF....WAVE|ID3|fLaC|OggS|\xff[\xe0-\xff])/s,
}

/** Returns what is wrong with the result of a test job, as a sentence; null if nothing is. */
export async function faultOfResult(
  { family, category }: Pick<TaskRecord, 'family' | 'category'>,
  job: Pick<Job, 'result'>,
  read: (url: string) => Promise<Buffer>,
): Promise<string | null> {
  if (family === 'transcription')
    return typeof (job.result as { text?: unknown } | null)?.text === 'string' ? null : 'The result has no text.'
  const { files } = filesOfJob(job as Job)
  if (files.length === 0) return 'The result has no file.'
  for (const { url } of files) {
    const bytes = await read(url)
    if (category !== 'text' && !heads[category].test(bytes.toString('latin1', 0, 16)))
      return `The file of the result is not ${category === 'video' ? 'a video' : category === 'image' ? 'an image' : 'audio'}.`
    if (category === 'audio' && bytes.subarray(wavHeader).every(byte => byte === 0)) return 'The speech is silent.'
  }
  return null
}

/** Bytes before the samples of a WAV file; the speech of a test is one. */
const wavHeader = 44

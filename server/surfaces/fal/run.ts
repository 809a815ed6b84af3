import { z } from 'zod'
import { queueIdOf } from '../../../core/ids.ts'
import { string } from '../../../core/schemas/fields.ts'
import type { JobRecord } from '../../../core/store/store.ts'
import type { Call } from '../../http/request/call.ts'
import { errorGroups } from '../../http/request/error-groups.ts'
import { JsonText } from '../../http/request/json-text.ts'
import type { Owners } from '../../http/request/owners.ts'
import { hasEnded } from '../../views/job-record.ts'
import { jobTermsOf } from '../../work/job-terms.ts'
import { streamStatus } from '../../work/stream-status.ts'
import { type SubmitOwners, submitGeneration } from '../../work/submit-generation.ts'
import { waitForEnd } from '../../work/wait.ts'
import { appSlug } from './app-slug.ts'
import { falRoute, ownTimeout } from './errors.ts'
import { FalInput, FalOutput } from './queue.ts'
import { falResult, falUrls, setRequestIdHeader } from './view.ts'

const suffix = '/stream'

/** Returns the answer for an unfinished request: the client must not retry it, and gets the URLs to poll. */
function unfinished(job: JobRecord, call: Call): JsonText {
  const request_id = queueIdOf(job.id)
  const message = `Request ${request_id} has not ended yet and continues. Read it at its response_url.`
  call
    .header(ownTimeout[0]!, ownTimeout[1]!)
    .header('x-fal-error-type', 'request_timeout')
    .header('x-fal-retryable', 'false')
  const body = { detail: message, message, error_type: 'request_timeout', request_id, ...falUrls(job, call) }
  return new JsonText(JSON.stringify(body), 504)
}

/** Returns an event of the stream: the progress, and at the end the output or the error. */
async function eventOf(job: JobRecord, call: Call, owners: Pick<Owners, 'files' | 'jobs'>): Promise<object> {
  if (hasEnded(job)) return JSON.parse((await falResult(job, call, owners)).text) as object
  const { progress } = owners.jobs.progressOf(job)
  return { request_id: queueIdOf(job.id), progress: progress ?? 0 }
}

/** The routes of fal's direct calls: what its clients send to `https://fal.run`. */
export const falRunRoutes = (owners: SubmitOwners) => [
  falRoute('POST /fal/run/**:path', 'user:write', {
    bucket: 'jobs',
    summary: 'Run fal request',
    description:
      'Creates an image or a video and answers with the result. The path is a slug; with `/stream` after it the answer is a stream of server-sent events, and the last event is the result. A request that has not ended after `sync_wait` (120 s by default) is answered with 504 and continues in the background.',
    events: 'FalRunEvent',
    errorCodes: [...errorGroups.submit, ...errorGroups.media, ...errorGroups.wait],
    largeBody: true,
    params: z.object({
      path: string('A slug, with `/stream` after it for server-sent events. It may contain `/`.'),
    }),
    body: FalInput,
    example: { prompt: 'A cat on a mat.' },
    response: FalOutput,
    async handle({ params: { path }, body }, call) {
      const { config, registry } = owners
      const app = appSlug(path, registry)
      const streamed = app.endsWith(suffix) && !registry.bySlug(app)
      const slug = streamed ? appSlug(path.slice(0, -suffix.length), registry) : app
      const terms = jobTermsOf(call, owners)
      const { job, model } = await submitGeneration(call, { target: { slug }, body, terms }, owners)
      setRequestIdHeader(job, call)
      if (streamed) {
        await streamStatus(call, job, now => eventOf(now, call, owners), owners, { generation: true })
        return new JsonText('')
      }
      const waitMs = config.limits.sync_wait
      const startMs = terms.startTimeoutMs ?? model.dispatch_wait_ms
      const now = hasEnded(job) ? job : await waitForEnd(call, job, { waitMs, startMs }, owners)
      return hasEnded(now) ? falResult(now, call, owners) : unfinished(now, call)
    },
  }),
]
